"""Blame: the record that wrote each line of a file, and the call that made the record."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from errno import EISDIR
from threading import Lock
from typing import Any, Literal

from attrs import field

from weakfs.class_decorators import define, frozen
from weakfs.errors import fault
from weakfs.filesystem.errors import not_found
from weakfs.filesystem.paths import normalize
from weakfs.history.blame.ancestry import Ancestry
from weakfs.history.blame.annotated_text import NOWHERE, AnnotatedText
from weakfs.history.blame.derivation import Derivation, Version
from weakfs.history.blame.path_records import PathRecords, Place, Rows
from weakfs.history.record_states import steps_of
from weakfs.history.trees import Trees, chosen_filesystem
from weakfs.platforms import garbage_collection_paused
from weakfs.reducers import EntryFound, FileTree, TreeSeen, find
from weakfs.reducers.apply import segments_of
from weakfs.reducers.external_trees import external_trees
from weakfs.reducers.tree.leaf import Leaf, content_of, is_file, is_link
from weakfs.search import is_binary
from weakfs.session import Attachable, External, Session, SessionSnapshot, SessionView
from weakfs.session.history.timeline import Timeline
from weakfs.session.slices.event_reducers import Rules
from weakfs.session.slices.tags import tag_of

# The total number of lines in cached results.
MOST_KEPT = 200_000

Kind = Literal["written", "found", "boundary"]
# The id, tool and caller of a call, the time of its record, and the kind of the lines.
About = tuple[str | None, str | None, str | None, int | None, Kind]

FOUND = {tag_of(EntryFound), tag_of(TreeSeen)}


@frozen
class BlameLine:
    """One line of a file, without its line ending, and the record that wrote it. Lines are numbered from 1.

    `call_id` is the cause of the record, which is the id of the call that made it; `tool` and `caller` are those of the
    call, if it is recorded. `at` is the time of the record in nanoseconds. Bytes that are not UTF-8 are shown as
    U+FFFD.

    `kind` is "written", or "found" for lines that another program had written before `record` found them. Lines of kind
    "boundary" are older than all records that are kept; `record` is then the last dropped record.
    """

    number: int
    text: str
    record: int
    call_id: str | None
    tool: str | None
    caller: str | None
    at: int | None
    kind: Kind = "written"


@frozen(eq=False)
class FileVersion:
    """A file that is known to be `leaf` after record `seq`. The path is normalized."""

    filesystem: str | None
    path: str
    leaf: Leaf
    seq: int


@define(eq=False)
class _Known:
    """The cached blame of one version of a file."""

    text: AnnotatedText
    lines: tuple[BlameLine, ...]
    # The newest record at that time, and whether the result is final: no later record can add anything about the calls.
    seq: int
    is_complete: bool


@define(eq=False)
class Blames:
    """The blame of a session's files. A limited number of lines is cached and extended later."""

    _lock: Lock = field(factory=Lock, init=False)
    _rules: Rules | None = field(default=None, init=False)
    _rows: Rows | None = field(default=None, init=False)
    _records: PathRecords | None = field(default=None, init=False)
    _known: dict[tuple[str | None, Version], _Known] = field(factory=dict[Any, _Known], init=False)

    def of(
        self,
        session: Session,
        path: str,
        *,
        at: int | str | SessionSnapshot | None,
        filesystem: str | External | Attachable | None,
    ) -> tuple[BlameLine, ...]:
        """Return the lines of a file at a moment; see `weakfs.Session.blame`."""
        path = normalize(path)
        with session.lock:
            rules, line = session._rules, session._line().copy()
            view = SessionView(rules, line.seq, line.state, line.logs) if at is None else session.at(at)
            trees = Trees(session)
        name = _chosen(view, filesystem)
        content = content_of(_file(trees.at(view, name), path))
        if is_binary(content):
            raise ValueError(f"cannot blame {path!r}: it is a binary file, which has no lines; name a text file")
        with self._lock:
            rows, records = self._read(session, rules, line)
            derivation = _derivation(session, line, rows, records, name)
            texts = {version: each.text for (place, version), each in self._known.items() if place == name}
            version, text = _text(derivation, texts, view.seq, path, content)
            known = None if version is None else self._known.pop((name, version), None)
            if version is not None and known is not None and known.text is text:
                self._known[name, version] = known
                if known.is_complete or known.seq == line.seq:
                    return known.lines
            lines, is_complete = _lines(text, content, rows, records)
            if version is not None:
                self._keep((name, version), _Known(text, lines, line.seq, is_complete))
            return lines

    def origins(self, session: Session, versions: Iterable[FileVersion]) -> list[array[int]]:
        """Return the records that wrote the lines of each version of a file. Each version builds on those before it."""
        with session.lock:
            rules, line = session._rules, session._line().copy()
        found: list[array[int]] = []
        with self._lock:
            rows, records = self._read(session, rules, line)
            known: dict[str | None, tuple[Derivation, dict[Version, AnnotatedText]]] = {}
            for one in versions:
                if one.filesystem not in known:
                    known[one.filesystem] = _derivation(session, line, rows, records, one.filesystem), {}
                derivation, texts = known[one.filesystem]
                version, text = _text(derivation, texts, one.seq, one.path, content_of(one.leaf))
                if version is not None:
                    texts[version] = text
                found.append(text.origins)
        return found

    def _read(self, session: Session, rules: Rules, line: Timeline) -> tuple[Rows, PathRecords]:
        """Index the records that are new since the last call, or all of them if indexed ones were dropped."""
        before, records = self._rows, self._records
        if before is None or records is None or not _continues(before, rules, line):
            self._known.clear()
            before = Rows(rules, line.rows.prefix(0), line.dropped)
            records = PathRecords(Ancestry(session.session_id, line.dropped, line.base.block_end))
        rows = Rows(rules, line.rows, line.dropped)
        # Prevents continuing from an incomplete index if this fails halfway.
        self._rows = self._records = None
        with garbage_collection_paused():
            records.add(rules, line.rows.since(len(before.rows)), before.newest + 1)
        self._rows, self._records = rows, records
        return rows, records

    def _keep(self, key: tuple[str | None, Version], known: _Known) -> None:
        self._known[key] = known
        total = sum(len(each.lines) for each in self._known.values())
        while total > MOST_KEPT and len(self._known) > 1:
            total -= len(self._known.pop(next(iter(self._known))).lines)


def _derivation(
    session: Session, line: Timeline, rows: Rows, records: PathRecords, filesystem: str | None
) -> Derivation:
    others = _files_after(session, records.others, filesystem) if records.others else {}
    return Derivation(records, rows, line.base.state, filesystem, others)


def _text(
    derivation: Derivation, known: dict[Version, AnnotatedText], seq: int, path: str, content: bytes
) -> tuple[Version | None, AnnotatedText]:
    """Return the version and the text of a file that is known to contain `content` after a record."""
    records, name = derivation.records, derivation.filesystem
    # A snapshot taken in a fork has the fork's state, and the number of a record inside the fork's merge.
    states = dict.fromkeys((records.ancestry.in_effect(seq), seq))
    versions = [version for state in states if (version := derivation.version(state, path)) is not None]
    for version in versions:
        if version in known and known[version].holds(content):
            return version, known[version]
    found: AnnotatedText | None = None
    for version in versions:
        with garbage_collection_paused():
            text = derivation.text(version, known)
        if text is not None and text.holds(content):
            return version, text
        found = found or text
    # A file that was found later had existed before.
    origin = records.next_change(Place(name, path), seq) or derivation.rows.dropped
    text = AnnotatedText.put_in(content, origin) if found is None else found.replaced(content, NOWHERE).settled(origin)
    return (versions[0] if versions else None), text


def _continues(before: Rows, rules: Rules, line: Timeline) -> bool:
    """Return whether a timeline begins with the records that were indexed before."""
    return before.rules is rules and before.dropped == line.dropped and line.rows.extends(before.rows)


def _chosen(view: SessionView, wanted: str | External | Attachable | None) -> str | None:
    if wanted is None or isinstance(wanted, str):
        return chosen_filesystem(view, wanted)
    part = wanted.external if isinstance(wanted, Attachable) else wanted
    known = external_trees(view)
    return part.filesystem_id if part.filesystem_id in known.trees else None


def _file(tree: FileTree, path: str) -> Leaf:
    node = find(tree, segments_of(path))
    if node is None or (type(node) is tuple and not (is_file(node) or is_link(node))):
        raise not_found(path, f"cannot blame {path!r}: the session knows no such file", "check the path and the moment")
    if type(node) is FileTree:
        raise fault(IsADirectoryError, EISDIR, f"cannot blame {path!r}: it is a directory; name a file")
    leaf = node
    if is_link(leaf):
        target = content_of(leaf).decode("utf-8", "replace")
        raise ValueError(f"cannot blame {path!r}: it is a symbolic link to {target!r}; name the file that it leads to")
    return leaf


def _files_after(session: Session, numbers: set[int], filesystem: str | None) -> dict[int, FileTree]:
    """Return the files after each of some records."""
    found: dict[int, FileTree] = {}
    for step in steps_of(session):
        if step.record.seq in numbers and step.after is not None:
            own = step.after[FileTree].latest() or FileTree()
            external = external_trees(step.after)
            found[step.record.seq] = own if filesystem is None else external.tree(filesystem)
    return found


def _lines(text: AnnotatedText, content: bytes, rows: Rows, records: PathRecords) -> tuple[tuple[BlameLine, ...], bool]:
    """Return the lines, and whether they are final: no later record can say more about them."""
    origins = text.origins
    about = {seq: _about(seq, rows, records) for seq in {*origins}}
    lines: list[BlameLine] = []
    # `splitlines` would also split at other characters.
    shown = content.decode("utf-8", "replace").split("\n")
    for number, (line, seq) in enumerate(zip(shown, origins, strict=False), 1):
        call_id, tool, caller, at, kind = about[seq]
        lines.append(BlameLine(number, line, seq, call_id, tool, caller, at, kind))
    return tuple(lines), all(tool is not None or call_id is None for call_id, tool, _, _, _ in about.values())


def _about(seq: int, rows: Rows, records: PathRecords) -> About:
    """Return what is known about a record: the call that made it, its caller and time, and the kind of its lines."""
    if seq <= rows.dropped:
        return None, None, None, None, "boundary"
    at, cause, tag, _ = rows[seq]
    if tag in FOUND:
        return None, None, None, at, "found"
    # Several calls may have the same id; each is recorded after its changes.
    called = next((number for number in records.calls.get(cause or "", ()) if number > seq), None)
    if called is None:
        return cause, None, None, at, "written"
    call = rows.event(called)
    return cause, call.tool, call.caller, at, "written"
