"""`weakfs diff`: the differences between the files at two moments, as names or in the format of `git diff`."""

from __future__ import annotations

from collections.abc import Iterator

from weakfs.class_decorators import frozen
from weakfs.cli.formatting import shown
from weakfs.cli.output import Output
from weakfs.history.tree_patch import file_changes, patch
from weakfs.reducers import FileTree, TreeDiff

STYLES = {b"+": "green", b"-": "red", b"@": "cyan"}
LOOKS = {
    "added": ("A", "green"),
    "removed": ("D", "red"),
    "changed": ("M", "yellow"),
    "moved": ("R", "cyan"),
}
HEADERS = (b"+++ ", b"--- ", b"diff ")


@frozen
class Difference:
    """One entry that differs, and its origin if it moved."""

    change: str
    path: str
    source: str | None = None


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


def named(found: TreeDiff) -> Iterator[Difference]:
    """Yield the entries that differ, one by one."""
    yield from (Difference("added", path) for path in found.added)
    yield from (Difference("removed", path) for path in found.removed)
    yield from (Difference("changed", path) for path in found.changed)
    yield from (Difference("moved", target, source) for source, target in found.moved)
