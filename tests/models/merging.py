"""Three-way merge of plain dictionaries, path by path: the expected results of `weakfs.reducers.merging.tree_merge`."""

from __future__ import annotations

from weakfs.reducers.merging.line_merge import WORK, Hunk, merge_parts

from .trees import Entry, Plain


def merge_plain(base: Plain, ours: Plain, theirs: Plain) -> Plain | frozenset[str]:
    """Merge two changes of one tree, or return every path that both changed differently."""
    merged: Plain = {}
    conflicts: set[str] = set()
    for path in sorted({*base, *ours, *theirs}):
        found, agreed = _merge_entry(base.get(path), ours.get(path), theirs.get(path))
        if not agreed:
            conflicts.add(path)
        if found is not None:
            merged[path] = found
    for path in merged:
        parent = path.rpartition("/")[0] or "/"
        if path != "/" and merged.get(parent, ("", ""))[0] != "d":
            conflicts.add(path)
    return frozenset(conflicts) if conflicts else merged


def _merge_entry(old: Entry | None, mine: Entry | None, new: Entry | None) -> tuple[Entry | None, bool]:
    """Return an entry, and whether the sides agree on it; if they do not, the entry is ours or theirs."""
    if mine == new or old == new:
        return mine, True
    if old == mine:
        return new, True
    mine_mode, new_mode = _directory(mine), _directory(new)
    if mine_mode is not None and new_mode is not None:
        # Both created the directory, or both changed its bits; a new one has 0755 unless stated otherwise.
        before = _directory(old)
        mode = _merge_value(0o755 if before is None else before, mine_mode, new_mode)
        return (("d", mode), True) if isinstance(mode, int) else (mine, False)
    files = [_file(old), _file(mine), _file(new)]
    if None not in files:
        contents, modes = zip(*(file for file in files if file is not None), strict=True)
        content, mode = _merge_content(*contents), _merge_value(*modes)
        if isinstance(mode, int) and content is not None:
            return ("f", content, mode), True
    return mine or new, False


def _directory(entry: Entry | None) -> int | None:
    return entry[1] if entry is not None and len(entry) == 2 and isinstance(entry[1], int) else None


def _file(entry: Entry | None) -> tuple[bytes, int] | None:
    return (entry[1], entry[2]) if entry is not None and len(entry) == 3 else None


def _merge_value(old: object, mine: object, new: object) -> object:
    if mine == new or old == new:
        return mine
    return new if old == mine else None


def merge_lines(base: bytes, ours: bytes, theirs: bytes, *, work: int = WORK) -> bytes | None:
    """Return the lines of a merge, or `None` if it has a conflict."""
    parts = merge_parts(base, ours, theirs, work=work)
    if any(isinstance(part, Hunk) for part in parts):
        return None
    return b"".join(line for part in parts if not isinstance(part, Hunk) for line in part)


def _merge_content(old: bytes, mine: bytes, new: bytes) -> bytes | None:
    merged = _merge_value(old, mine, new)
    if isinstance(merged, bytes):
        return merged
    if all(_is_text(data) for data in (old, mine, new)):
        return merge_lines(old, mine, new)
    return None


def _is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return b"\0" not in data[:8192]
