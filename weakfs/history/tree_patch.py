"""Differences between two trees by file: lines added and removed, and patches in the format of `git diff`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal, cast

from weakfs.class_decorators import frozen
from weakfs.editing.unified_hunks import count_changes, hunks
from weakfs.filesystem.paths import is_within
from weakfs.reducers import FileTree, TreeDiff, diff
from weakfs.reducers.apply import segments_of
from weakfs.reducers.merging.line_merge import split_lines, without_common_ends
from weakfs.reducers.tree.leaf import MODE, Leaf, content_of, is_link, same_content
from weakfs.reducers.tree.name_escaping import to_bytes
from weakfs.reducers.tree.node import find, walk
from weakfs.search import is_binary
from weakfs.session import MissingBlob

ChangeKind = Literal["added", "removed", "changed", "moved"]
# The letters of `git diff --name-status`.
LETTERS: Mapping[ChangeKind, str] = {"added": "A", "removed": "D", "changed": "M", "moved": "R"}

# The step limit for comparing one file when counting the lines of many files: about 50 ms.
COUNTING_WORK = 200_000


def differences(before: FileTree, after: FileTree, path: str) -> TreeDiff:
    """Return the differences at and below `path`; an entry moved into or out of it counts as added or removed."""
    found = diff(before, after)
    if path == "/":
        return found
    inside = [pair for pair in found.moved if is_within(pair[0], path) and is_within(pair[1], path)]
    left = [source for source, target in found.moved if is_within(source, path) and not is_within(target, path)]
    came = [target for source, target in found.moved if is_within(target, path) and not is_within(source, path)]
    return TreeDiff(
        tuple(sorted([*(one for one in found.added if is_within(one, path)), *came])),
        tuple(sorted([*(one for one in found.removed if is_within(one, path)), *left])),
        tuple(one for one in found.changed if is_within(one, path)),
        tuple(inside),
    )


@frozen
class FileChange:
    """One file or link before and after; `None` on the side where it does not exist."""

    path: str
    new_path: str
    old: Leaf | None
    new: Leaf | None

    @property
    def kind(self) -> ChangeKind:
        """What happened to the file."""
        if self.path != self.new_path:
            return "moved"
        return "added" if self.old is None else "removed" if self.new is None else "changed"

    @property
    def source(self) -> str | None:
        """Where the file was before, if it moved."""
        return None if self.path == self.new_path else self.path

    def contents(self) -> tuple[bytes, bytes]:
        """Read the contents before and after; empty where there is no file. Raises `MissingBlob` if they are lost."""
        return b"" if self.old is None else content_of(self.old), b"" if self.new is None else content_of(self.new)


def count_lines(before: FileTree, after: FileTree) -> tuple[int, int] | None:
    """Count the lines of text added and removed; `None` if a blob is missing. Binary files count as zero."""
    added = removed = 0
    for change in file_changes(before, after, diff(before, after)):
        counts = count_changed_lines(change)
        if counts is None:
            return None
        added, removed = added + counts[0], removed + counts[1]
    return added, removed


def count_changed_lines(change: FileChange) -> tuple[int, int] | None:
    """Count the lines of text that were added to one file and removed from it; see `count_lines`."""
    if change.old is not None and change.new is not None and same_content(change.old, change.new):
        return 0, 0
    try:
        old, new = change.contents()
    except MissingBlob:
        return None
    if is_binary(old) or is_binary(new):
        return 0, 0
    old, new = without_common_ends(old, new)
    return count_changes(split_lines(old), split_lines(new), work=COUNTING_WORK)


def file_changes(before: FileTree, after: FileTree, found: TreeDiff) -> list[FileChange]:
    """List the files and links that differ, by path; this format does not represent directories."""
    changes = [FileChange(path, path, _leaf(before, path), None) for path in found.removed]
    changes += [FileChange(path, path, None, _leaf(after, path)) for path in found.added]
    for path in found.changed:
        old, new = _leaf(before, path), _leaf(after, path)
        if old is not None and new is not None and is_link(old) is is_link(new):
            changes.append(FileChange(path, path, old, new))
        else:
            # The type of the entry changed, for which git writes a deletion and an addition.
            changes += [FileChange(path, path, old, None), FileChange(path, path, None, new)]
    for source, target in found.moved:
        changes += _moved(before, after, source, target)
    present = [change for change in changes if change.old is not None or change.new is not None]
    return sorted(present, key=lambda change: (change.path, change.new is not None))


def patch(change: FileChange) -> Iterator[bytes]:
    """Yield the lines of one file's diff, each with its line ending."""
    old, new = change.old, change.new
    old_name, new_name = _quoted("a", change.path), _quoted("b", change.new_path)
    yield b"diff --git %s %s\n" % (old_name, new_name)
    yield from _header(change)
    before, after = change.contents()
    if before == after:
        return
    shown_old = b"/dev/null" if old is None else old_name
    shown_new = b"/dev/null" if new is None else new_name
    if is_binary(before) or is_binary(after):
        yield b"Binary files %s and %s differ\n" % (shown_old, shown_new)
        return
    yield b"--- %s\n" % shown_old
    yield b"+++ %s\n" % shown_new
    yield from hunks(split_lines(before), split_lines(after))


def _header(change: FileChange) -> Iterator[bytes]:
    old, new = change.old, change.new
    if old is None:
        yield b"new file mode %s\n" % _mode(cast(Leaf, new))
    elif new is None:
        yield b"deleted file mode %s\n" % _mode(old)
    else:
        if old[MODE] != new[MODE]:
            yield b"old mode %s\nnew mode %s\n" % (_mode(old), _mode(new))
        if change.path != change.new_path:
            if same_content(old, new):
                yield b"similarity index 100%\n"
            yield b"rename from %s\n" % _quoted("", change.path)
            yield b"rename to %s\n" % _quoted("", change.new_path)


def _mode(leaf: Leaf) -> bytes:
    return b"120000" if is_link(leaf) else b"100%03o" % (leaf[MODE] & 0o777)


def _quoted(prefix: str, path: str) -> bytes:
    """Quote a path below `prefix` as git does: in double quotes with C escapes, if it contains special characters."""
    raw = to_bytes(f"{prefix}{path}" if prefix else path[1:])
    if path.isprintable() and not any(byte in b'"\\' for byte in raw):
        return raw
    return b'"%s"' % b"".join(map(_quoted_byte, raw))


def _quoted_byte(byte: int) -> bytes:
    if byte in b'"\\':
        return b"\\%c" % byte
    return b"%c" % byte if 0x20 <= byte < 0x7F else b"\\%03o" % byte


def _leaf(tree: FileTree, path: str) -> Leaf | None:
    node = find(tree, segments_of(path))
    return None if node is None or type(node) is FileTree else node


def _moved(before: FileTree, after: FileTree, source: str, target: str) -> list[FileChange]:
    node = find(after, segments_of(target))
    if type(node) is not FileTree:
        return [FileChange(source, target, _leaf(before, source), _leaf(after, target))]
    # A directory that moved as a whole has the same content on both sides.
    return [
        FileChange(source + below, target + below, leaf, leaf)
        for below, leaf in walk(node)
        if type(leaf) is not FileTree
    ]
