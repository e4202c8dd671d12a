"""`weakfs diff`: the differences between the files at two moments, as names or in the format of `git diff`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import click

from weakfs.class_decorators import frozen
from weakfs.cli.errors import DONE, UNMET, as_failure, usage
from weakfs.cli.formatting import shown
from weakfs.cli.options import (
    EXIT_STATUSES,
    expansion_option,
    file_argument,
    filesystem_option,
    json_option,
    registry_option,
    store_option,
)
from weakfs.cli.output import Output

if TYPE_CHECKING:
    from weakfs.history.tree_patch import ChangeKind
    from weakfs.reducers import FileTree, TreeDiff

STYLES = {b"+": "green", b"-": "red", b"@": "cyan"}
COLORS: Mapping[ChangeKind, str] = {"added": "green", "removed": "red", "changed": "yellow", "moved": "cyan"}
HEADERS = (b"+++ ", b"--- ", b"diff ")


@click.command("diff", epilog=EXIT_STATUSES)
@file_argument
@click.argument("path", default="/")
@click.option("--call", metavar="ID", help="What this call changed: its id, or its number in weakfs log.")
@click.option("--at", metavar="SEQ|TAG", help="From this moment. [default: before the first change, after the mounts]")
@click.option("--to", metavar="SEQ|TAG", help="To this moment. [default: the end]")
@click.option("--names", "only_names", is_flag=True, help="Only the names: A added, D deleted, M modified, R renamed.")
@click.option("--exit-code", is_flag=True, help="Exit with 3 if there are differences.")
@filesystem_option
@store_option
@registry_option
@expansion_option
@json_option
def diff_command(
    file: str,
    path: str,
    call: str | None,
    at: str | None,
    to: str | None,
    only_names: bool,
    exit_code: bool,
    filesystem: str | None,
    store: str | None,
    registry: str | None,
    max_expansion: float | None,
    as_json: bool,
) -> int:
    """Show what changed in a session, or in a directory.

    With PATH, show only what changed at or below it. The names come first, then the differences of the contents in the
    format of "git diff", which "git apply" accepts. FILE may also be a directory: --at and --to then name snapshots,
    and default to the newest snapshot and the current contents of the directory.
    """
    from weakfs.cli.commands.sessions.call_lookup import trees_of_call
    from weakfs.cli.directories import is_directory, trees
    from weakfs.cli.sessions import chosen, first_moment, load, moment_of, tree_of
    from weakfs.filesystem import normalize
    from weakfs.history.tree_patch import differences

    with as_failure(f"use the path {path!r}"):
        path = normalize(path)
    if call is not None and (at is not None or to is not None):
        raise usage("cannot use --call with --at or --to: a call sets both moments itself; omit one")
    if is_directory(file, store=store, filesystem=filesystem, registry=registry):
        if call is not None:
            raise usage(f"cannot use --call: {file!r} is a directory and has no calls; name a session")
        before, after = trees(file, at, to, store)
    else:
        session = load(file, registry, max_expansion)
        if call is not None:
            before, after = trees_of_call(session, call, filesystem)
        else:
            meant = chosen(session, filesystem)
            before = tree_of(session, first_moment(session) if at is None else moment_of(session, at), meant)
            after = tree_of(session, moment_of(session, to), meant)
    found = differences(before, after, path)
    out = Output()
    if as_json:
        show_as_json(out, before, after, found, with_text=not only_names)
    else:
        show_names(out, found)
        if not only_names:
            show_texts(out, before, after, found)
    return UNMET if exit_code and found else DONE


@frozen
class Difference:
    """One entry that differs, and its origin if it moved."""

    change: ChangeKind
    path: str
    source: str | None = None


def show_names(out: Output, found: TreeDiff) -> None:
    """Print one line for each entry that differs: `A`, `D`, `M` or `R`, and its path."""
    from weakfs.history.tree_patch import LETTERS

    for one in sorted(named(found), key=lambda one: one.path):
        origin = "" if one.source is None else f"{shown(one.source)} -> "
        out.line((LETTERS[one.change], COLORS[one.change]), f"  {origin}{shown(one.path)}")


def show_texts(out: Output, before: FileTree, after: FileTree, found: TreeDiff) -> None:
    """Print the content differences as `git diff` does: raw in a pipe, with escapes on a terminal."""
    from weakfs.history.tree_patch import file_changes, patch

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
    from weakfs.history.tree_patch import file_changes, patch

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
