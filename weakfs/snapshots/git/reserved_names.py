"""Names that git refuses in a tree, because on some systems they would refer to a repository's own files.

The rules are those of git's `verify_path` and `git fsck`: `.git` in any case, and names that NTFS or HFS+ treat as the
same.
"""

from __future__ import annotations

import re

from weakfs.reducers.tree import name_escaping as names

# HFS+ ignores these characters.
_IGNORED = re.compile("[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]")
# NTFS drops trailing blanks and dots, treats the part after a colon as a stream name, and uses `git~1` as a short name.
_NTFS = re.compile(r"(?:\.git|git~1)[ .]*(?::|\Z)", re.IGNORECASE)
_NTFS_MODULES = re.compile(r"(?:\.gitmodules|gitmod~[1-4]|gi7eba~[1-9]|gi7eb~[0-9]+)[ .]*(?::|\Z)", re.IGNORECASE)


def is_refused(name: str, *, is_link: bool = False) -> bool:
    """Return whether git refuses an entry with a canonical name; for a link, also `.gitmodules`."""
    if name.isascii() and "gi" not in name.lower():
        return False
    raw = names.to_bytes(name).decode("utf-8", "surrogateescape")
    if any(_NTFS.match(part) or (is_link and _NTFS_MODULES.match(part)) for part in raw.split("\\")):
        return True
    plain = re.split("[\udc80-\udcff]", _IGNORED.sub("", raw))[0].lower()
    return plain == ".git" or (is_link and plain == ".gitmodules")
