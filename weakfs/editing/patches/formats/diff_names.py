"""File names in the headers of unified diffs: quoted, with prefixes, followed by times."""

from __future__ import annotations

import re

from weakfs.reducers.tree import name_escaping as names

NOTHING = "/dev/null"

# Git's prefixes of the old and the new name: `a/` and `b/` unless diff.mnemonicPrefix is set.
_PREFIXES = {("a/", "b/"), ("i/", "w/"), ("c/", "i/"), ("c/", "w/"), ("o/", "w/"), ("1/", "2/"), ("b/", "a/")}

_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')
_ESCAPE = re.compile(rb"\\([0-7]{1,3}|.)", re.DOTALL)
_CONTROL = {b"a": b"\a", b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"v": b"\v"}

# How diff -N, in any time zone, and Subversion show a file that does not exist.
_NEVER = re.compile(r"(?:1970-01-01|1969-12-31) \d\d:\d\d:\d\d(?:\.0+)?(?: [+-]\d{4})?|\((?:nonexistent|revision 0)\)")


def unquoted(text: str) -> str | None:
    """Return a name without git's quotes and escapes; `None` if it has an opening quote but no closing one."""
    if not text.startswith('"'):
        return text
    found = _QUOTED.fullmatch(text)
    return None if found is None else _plain(found[1])


def _plain(escaped: str) -> str:
    data = _ESCAPE.sub(_unescaped, escaped.encode(errors="surrogatepass"))
    return names.from_bytes(data)


def _unescaped(found: re.Match[bytes]) -> bytes:
    code: bytes = found[1]
    return bytes([int(code, 8) & 0xFF]) if code[:1].isdigit() else _CONTROL.get(code, code)


def name_and_time(text: str) -> tuple[str | None, bool]:
    """Parse the text after `---` or `+++`: the name, and whether the time or revision is that of a missing file."""
    if text.startswith('"'):
        found = _QUOTED.match(text)
        return (None, False) if found is None else (_plain(found[1]), _is_of_none(text[found.end() :]))
    name, _, time = text.partition("\t")
    return name.rstrip("\r"), _is_of_none(time)


def _is_of_none(time: str) -> bool:
    return _NEVER.fullmatch(time.strip()) is not None


def both_names(text: str) -> tuple[str, str] | None:
    """Parse the text after `diff --git`: both names with their prefixes; `None` if they cannot be separated."""
    if '"' in text:
        return _quoted_names(text)
    half, odd = divmod(len(text) - 1, 2)
    if not odd and text[half : half + 1] == " ":
        old, new = text[:half], text[half + 1 :]
        if old == new or _without_prefix(old, new) is not None:
            return old, new
    parts = text.split(" ")
    return (parts[0], parts[1]) if len(parts) == 2 else None


def _quoted_names(text: str) -> tuple[str, str] | None:
    first = _QUOTED.match(text)
    if first is not None:
        new = unquoted(text[first.end() :].removeprefix(" "))
        return None if new is None else (_plain(first[1]), new)
    old, _, rest = text.partition(' "')
    new = unquoted('"' + rest)
    return None if new is None else (old, new)


def _without_prefix(old: str, new: str) -> str | None:
    same = old[2:] == new[2:] and (old[:2], new[:2]) in _PREFIXES
    return old[2:] if same else None


def paths_of(old: str, new: str) -> tuple[str, str]:
    """Remove the prefixes from two names, if they have them; one of them may be `/dev/null`."""
    old, new = old.replace("\\", "/"), new.replace("\\", "/")
    prefixed = (old[:2], new[:2]) in _PREFIXES
    if prefixed or (new == NOTHING and old[:2] == "a/") or (old == NOTHING and new[:2] == "b/"):
        return (old if old == NOTHING else old[2:]), (new if new == NOTHING else new[2:])
    return old, new


def without_compared_directories(old: str, new: str) -> tuple[str, str]:
    """Remove the directories that diff -r compared from names that differ only in them, such as `v1/x` and `v2/x`."""
    first, _, below = old.partition("/")
    second, _, also_below = new.partition("/")
    return (below, below) if below and below == also_below and first != second else (old, new)
