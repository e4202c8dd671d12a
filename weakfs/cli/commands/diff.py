"""`weakfs diff`: how the files of a session differ between two moments."""

from __future__ import annotations

from collections.abc import Iterator

from attrs import frozen

from weakfs.cli.formatting import shown
from weakfs.cli.git_diff import file_changes, patch
from weakfs.cli.output import Output
from weakfs.editing.unified_hunks import count_changes
from weakfs.filesystem.paths import is_within
from weakfs.reducers import FileTree, TreeDiff, diff
from weakfs.reducers.merging.line_merge import split_lines
from weakfs.reducers.tree.leaf import content_of, same_content
from weakfs.search import is_binary
from weakfs.session import MissingBlob

STYLES = {b"+": "green", b"-": "red", b"@": "cyan"}
LOOKS = {
    "added": ("A", "green"),
    "removed": ("D", "red"),
    "changed": ("M", "yellow"),
    "moved": ("R", "cyan"),
}
# The step limit for comparing one file when the lines of many files are counted: about 50 ms.
COUNTING_WORK = 200_000
HEADERS = (b"+++ ", b"--- ", b"diff ")


@frozen
class Difference:
    """One entry that differs, and its origin if it moved."""

    change: str
    path: str
    source: str | None = None


def differences(before: FileTree, after: FileTree, path: str) -> TreeDiff:
    """Return what differs at `path` and below; an entry moved across that border counts as added or removed."""
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


def show_names(out: Output, found: TreeDiff) -> None:
    """Print one line for each entry that differs: `A`, `D`, `M` or `R`, and its path."""
    for one in sorted(named(found), key=lambda one: one.path):
        origin = "" if one.source is None else f"{shown(one.source)} -> "
        out.line(LOOKS[one.change], f"  {origin}{shown(one.path)}")


def show_texts(out: Output, before: FileTree, after: FileTree, found: TreeDiff) -> None:
    """Print the content differences as `git diff` does: raw in a pipe, with escapes on a terminal."""
    for change in file_changes(before, after, found):
        for line in patch(change):
            if not out.is_terminal:
                out.data(line)
                continue
            text = line.decode("utf-8", "replace").removesuffix("\n")
            style = "bold" if line.startswith(HEADERS) else STYLES.get(line[:1], "")
            for part in text.split("\n"):
                out.line(("\t".join(map(shown, part.split("\t"))), style))


def show_as_json(out: Output, before: FileTree, after: FileTree, found: TreeDiff, *, with_text: bool) -> None:
    """Print one object for each entry that differs, with its difference as text if requested."""
    texts: dict[str, bytes] = {}
    for change in file_changes(before, after, found) if with_text else ():
        texts[change.new_path] = texts.get(change.new_path, b"") + b"".join(patch(change))
    for one in named(found):
        fields: dict[str, object] = {"change": one.change, "path": one.path}
        if one.source is not None:
            fields["from"] = one.source
        if one.path in texts:
            fields["diff"] = texts[one.path].decode("utf-8", "replace")
        out.record(**fields)


def amounts(found: TreeDiff) -> str:
    """Summarize the differences in a few words."""
    parts = [
        f"{len(names):,} {word}"
        for word, names in (
            ("added", found.added),
            ("removed", found.removed),
            ("changed", found.changed),
            ("moved", found.moved),
        )
        if names
    ]
    return ", ".join(parts) or "nothing differs"


def count_lines(before: FileTree, after: FileTree) -> tuple[int, int] | None:
    """Count the lines of text added and removed; `None` if a blob is gone. Binary files count as zero."""
    added = removed = 0
    try:
        for change in file_changes(before, after, diff(before, after)):
            if change.old is not None and change.new is not None and same_content(change.old, change.new):
                continue
            old = b"" if change.old is None else content_of(change.old)
            new = b"" if change.new is None else content_of(change.new)
            if not is_binary(old) and not is_binary(new):
                counts = count_changes(split_lines(old), split_lines(new), work=COUNTING_WORK)
                added, removed = added + counts[0], removed + counts[1]
    except MissingBlob:
        return None
    return added, removed


def named(found: TreeDiff) -> Iterator[Difference]:
    """Yield the entries that differ, one by one."""
    yield from (Difference("added", path) for path in found.added)
    yield from (Difference("removed", path) for path in found.removed)
    yield from (Difference("changed", path) for path in found.changed)
    yield from (Difference("moved", target, source) for source, target in found.moved)
