"""Safe file names: converting keys and stream names, which may be any text, to paths below a folder and back.

Each part between slashes becomes a directory, the last one a file or directory with a suffix. Only `a-z`, `0-9`, `-`
and `_` stand for themselves; all other bytes of the UTF-8 form are escaped like `%41`. So different names stay
different on systems that fold case or normalize Unicode, no name is `..` or hidden, and none is a Windows device name.
A long part is spread over nested directories whose names end in `+`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from errno import ELOOP, ENOENT, ENOTDIR

from weakfs.storage.folder.files import Descriptor, open_folder
from weakfs.storage.keys import KEY_BYTES

# Less than the 255 bytes that filesystems allow, to leave room for a suffix.
LONGEST = 200
CONTINUED = "+"
# An empty part; no other part has this encoding.
EMPTY = "%"

_UNSAFE = re.compile(rb"[^a-z0-9_-]")
_ESCAPED = re.compile(rb"%([0-9A-F]{2})")
_ENCODED = re.compile(r"(?:[a-z0-9_-]|%[0-9A-F]{2})+")
_DEVICES = re.compile(rb"(?:con|prn|aux|nul|com[0-9]|lpt[0-9])\Z")


def components(name: str, suffix: str) -> list[str]:
    """Return the directories and the file name that encode `name`. Raises `ValueError` for surrogates."""
    try:
        parts = name.encode().split(b"/")
    except UnicodeEncodeError as error:
        raise ValueError(
            f"cannot use {name!r} as a name: it contains the lone surrogate {name[error.start]!r}; use text that UTF-8 "
            f"can encode"
        ) from None
    found: list[str] = []
    for part in parts:
        encoded = _encoded(part)
        while len(encoded) >= LONGEST:
            # An escape is not split.
            cut = LONGEST - next((back for back in (1, 2) if encoded[LONGEST - back] == "%"), 0)
            found.append(encoded[:cut] + CONTINUED)
            encoded = encoded[cut:] or EMPTY
        found.append(encoded)
    found[-1] += suffix
    return found


def _encoded(part: bytes) -> str:
    if not part:
        return EMPTY
    safe = _UNSAFE.sub(lambda found: b"%%%02X" % found[0][0], part)
    return (b"%%%02X" % safe[0] + safe[1:] if _DEVICES.match(safe) else safe).decode()


def decoded(encoded: str) -> bytes | None:
    """Return the part that a file name encodes; `None` if it is not an encoded name."""
    if encoded == EMPTY:
        return b""
    if not _ENCODED.fullmatch(encoded):
        return None
    part = _ESCAPED.sub(lambda found: bytes([int(found[1], 16)]), encoded.encode())
    return part if _encoded(part) == encoded else None


def walk(root: Descriptor, suffix: str, *, prefix: bytes = b"", after: bytes = b"") -> Iterator[str]:
    """Yield the names below a folder that start with `prefix` and follow `after`, in the order of their UTF-8 bytes."""
    yield from _decoded(_walk(root, suffix, b"", "", prefix, after))


def children(folder: Descriptor, suffix: str, *, after: bytes = b"") -> Iterator[str]:
    """Yield the names directly below a folder that follow `after`, in order; names of directories end in a slash."""
    yield from _decoded(_walk(folder, suffix, b"", "", b"", after, is_shallow=True))


def _decoded(names: Iterator[bytes]) -> Iterator[str]:
    for name in names:
        try:
            yield name.decode()
        except UnicodeDecodeError:
            continue  # not one of ours


def _walk(
    folder: Descriptor, suffix: str, above: bytes, begun: str, prefix: bytes, after: bytes, *, is_shallow: bool = False
) -> Iterator[bytes]:
    """Walk one directory.

    `above` is the name up to its last slash, `begun` the beginning of the part that continues here.
    """
    for part, entry, is_directory in _entries(folder, suffix, begun):
        name = above + part
        if not is_directory:
            if name.startswith(prefix) and name > after:
                yield name
            continue
        if len(name) > KEY_BYTES:
            continue  # not one of ours, and perhaps deeper than a recursion may be
        is_continued = entry.endswith(CONTINUED)
        below = name if is_continued else name + b"/"
        is_wanted = below.startswith(prefix) or prefix.startswith(below)
        if not is_wanted or (below < after and not after.startswith(below)):
            continue
        try:
            found = open_folder(entry, folder)
        except OSError as error:
            if error.errno in (ENOENT, ENOTDIR, ELOOP):
                continue  # deleted in the meantime, or a link
            raise
        if is_continued:
            yield from _walk(found, suffix, above, begun + entry[:-1], prefix, after, is_shallow=is_shallow)
        elif not is_shallow:
            yield from _walk(found, suffix, below, "", prefix, after)
        elif below > after and next(_walk(found, suffix, b"", "", b"", b""), None) is not None:
            yield below


def _entries(folder: Descriptor, suffix: str, begun: str) -> list[tuple[bytes, str, bool]]:
    """Return the entries of a directory in order: the bytes to sort and compare by, the file name, and its kind."""
    found: list[tuple[bytes, bytes, str, bool]] = []
    for entry in os.listdir(folder.number):
        is_directory = not entry.endswith(suffix)
        is_continued = is_directory and entry.endswith(CONTINUED)
        encoded = entry[: -len(CONTINUED)] if is_continued else entry if is_directory else entry[: -len(suffix)]
        if is_continued and len(encoded) < LONGEST - 2:
            continue  # not one of ours
        part = decoded(begun if begun and encoded == EMPTY else begun + encoded)
        if part is not None:
            order = part + b"/" if is_directory and not is_continued else part
            found.append((order, part, entry, is_directory))
    return [(part, entry, is_directory) for _, part, entry, is_directory in sorted(found)]
