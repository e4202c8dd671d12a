"""Everything that a file ever contained: the contents at a path in every state of a session."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from weakfs.history.forgetting.history_rewrite import applied_if_possible
from weakfs.history.forgetting.text_redaction import Redaction, forms_of
from weakfs.history.record_states import row_states
from weakfs.reducers import ExternalTrees, FileTree
from weakfs.reducers.apply import segments_of
from weakfs.reducers.tree.leaf import CONTENT, Special
from weakfs.reducers.tree.node import entries, find, is_tree
from weakfs.session import Session
from weakfs.session.blobs.rope import joined
from weakfs.session.errors import MissingBlob
from weakfs.session.history.timeline import ordered_snapshots
from weakfs.session.slices.table import Table
from weakfs.session.slices.tags import tag_of

# A shorter line may be in other files by chance.
LEAST_LINE = 8


def contents_at(session: Session, path: str) -> frozenset[bytes]:
    """Return all contents that the file at a path ever had; raises `FileNotFoundError` if there never was a file."""
    found: set[bytes] = set()
    seen: dict[int, object] = {}
    is_known = False
    for state in _states(session):
        for tree in _trees(state):
            node = find(tree, segments_of(path))
            if node is None or id(node) in seen:
                continue
            is_known = True
            seen[id(node)] = node
            for content in _contents(node):
                try:
                    found.add(joined(content))
                except MissingBlob:
                    continue
    if not is_known:
        raise FileNotFoundError(2, "cannot forget a file that never existed in this session; check the path", path)
    return frozenset(content for content in found if content)


def redactions_of_path(contents: frozenset[bytes]) -> tuple[Redaction, Redaction]:
    """Return redactions for files, where only whole contents are replaced, and for calls, where lines are too."""
    lines: dict[str, None] = {}
    for content in contents:
        text = content.decode("utf-8", "replace")
        for line in text.split("\n"):
            if len(line.strip()) >= LEAST_LINE and "\ufffd" not in line:
                lines[line.strip()] = None
    forms = {form: made for line in lines for form, made in forms_of(line).items()}
    of_files = Redaction({}, whole=contents)
    ordered = dict(sorted(forms.items(), key=lambda item: (-len(item[0]), item[0])))
    return of_files, Redaction(ordered, whole=contents, digests=of_files.digests)


def forms_of_contents(contents: frozenset[bytes]) -> tuple[bytes, ...]:
    """Return the forms in which contents can be stored as a whole, except short ones, which may occur by chance."""
    return tuple(form for content in contents if len(content) >= LEAST_LINE for form in forms_of(content))


def _states(session: Session) -> Iterator[Table]:
    """Yield every state that the session had, including those of forks."""
    line = session._trunk
    yield line.base.state
    every = row_states(line, session._rules, session.session_id, applied_if_possible)
    yield from (one.after for one in every if one.after is not None)
    yield line.state
    for entry in ordered_snapshots(line):
        yield entry.state


def _trees(state: Table) -> Iterator[FileTree]:
    yield from state.get(tag_of(FileTree), ())
    for known in state.get(tag_of(ExternalTrees), ()):
        for tree in known.trees.values():
            yield tree.tree
            yield tree.found


def _contents(node: Any) -> Iterator[Any]:
    if is_tree(node):
        for _, child in entries(node):
            yield from _contents(child)
    elif not isinstance(node[CONTENT], str | Special):
        yield node[CONTENT]
