"""The derivation of a file's text from earlier texts and records, which gives the origin of each line.

The versions that a text derives from are collected first, from the newest to the oldest. Then their texts are computed
from the oldest to the newest, and each is dropped as soon as nothing else needs it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, cast

from weakfs.class_decorators import define, frozen
from weakfs.filesystem.paths import is_within
from weakfs.history.blame.annotated_text import NOWHERE, AnnotatedText
from weakfs.history.blame.path_records import FILES, PathRecords, Place, Rows
from weakfs.reducers import FileTree, find
from weakfs.reducers import events as e
from weakfs.reducers.apply import segments_of
from weakfs.reducers.external_trees import tree_in
from weakfs.reducers.tree.leaf import MODIFIED_AT, Leaf, content_of, is_file
from weakfs.reducers.tree.node import Node, entries, only_directory
from weakfs.session import Merged, Reverted, RolledBack, SliceAppended, SliceCleared, SliceSeeded
from weakfs.session.slices.log import Log
from weakfs.session.slices.table import Table

# After these events there is no file at the path.
ENDS = (e.EntryDeleted, e.EntryHidden, e.LinkMade, e.LayerEmptied)
# The maximum number of records of one operation, and of earlier writes of a path, that are searched for a restored
# text.
MOST_SEARCHED = 500

# A version of a file: the record after which it exists, and its path.
Version = tuple[int, str]


@frozen
class Sources:
    """The versions from which a text may derive, likeliest first. From index `near` on, only equal texts count."""

    versions: tuple[Version, ...] = ()
    near: int = 0

    @classmethod
    def of(cls, *near: Version | None, equal: Sequence[Version | None] = ()) -> Sources:
        """Return these versions without `None` and repetitions."""
        found = dict.fromkeys(one for one in near if one is not None)
        return cls(tuple(dict.fromkeys((*found, *(one for one in equal if one is not None)))), len(found))


@define(eq=False)
class Derivation:
    """The versions of the files of one filesystem; `None` stands for the session's own files.

    `base` is the state before the first record, and `others` has the files after records that only custom reducers
    understand.
    """

    records: PathRecords
    rows: Rows
    base: Table
    filesystem: str | None
    others: Mapping[int, FileTree]

    def text(self, version: Version, known: Mapping[Version, AnnotatedText]) -> AnnotatedText | None:
        """Return the text of a version, with the record that wrote each line; `None` if there is no file.

        `known` are texts that were computed earlier.
        """
        order, sources = self._collected(version, known)
        uses: dict[Version, int] = {version: 1}
        for one in order:
            for source in sources[one].versions:
                uses[source] = uses.get(source, 0) + 1
        texts: dict[Version, AnnotatedText | None] = {}
        for one in order:
            of_one = sources[one]
            texts[one] = known.get(one) or self._annotated(one, [texts[each] for each in of_one.versions], of_one.near)
            for each in of_one.versions:
                uses[each] -= 1
                if not uses[each]:
                    del texts[each]
        return texts[version]

    def _collected(
        self, version: Version, known: Mapping[Version, AnnotatedText]
    ) -> tuple[list[Version], dict[Version, Sources]]:
        """List the versions from which a text derives, each after its own sources."""
        sources: dict[Version, Sources] = {}
        order: dict[Version, None] = {}
        stack = [version]
        while stack:
            one = stack[-1]
            if one not in sources:
                sources[one] = Sources() if one in known else self._sources(*one)
                stack += [each for each in sources[one].versions if each not in sources]
            else:
                order.setdefault(stack.pop())
        return [*order], sources

    def version(self, state: int | None, path: str) -> Version | None:
        """Return the version of a file in a state: where it last changed; `None` if there is certainly no file."""
        while (seq := self._newest(state, path)) is not None:
            if seq == self.rows.dropped:
                return (seq, path) if _file(self._node(self.base, path)) is not None else None
            elsewhere = self._elsewhere(seq, path)
            if elsewhere is None:
                return seq, path
            state, path = elsewhere
        return None

    def _newest(self, state: int | None, path: str) -> int | None:
        return self.records.newest(Place(self.filesystem, path), state)

    def _before(self, seq: int) -> int | None:
        return self.records.ancestry.before(seq)

    def _elsewhere(self, seq: int, path: str) -> tuple[int | None, str] | None:
        """Return the earlier state and path of the same file if a record did not change its text, otherwise `None`.

        The state is `None` if there is no file.
        """
        event, before, is_own = self.rows.event(seq), self._before(seq), self.filesystem is None
        match event:
            case e.DirectoryMade():
                return (None if event.path == path else before), path
            case e.EntryMoved() | e.EntryCopied():
                return self._moved(seq, event, path)
            case e.EntryFound() if _is_bare(event):
                # Only new permission bits and times were found.
                return before, path
            case SliceSeeded() | SliceAppended() | SliceCleared() if (event.slice == FILES) is not is_own:
                return before, path
            case RolledBack():
                target, newest = self.records.ancestry.ancestor(before, event.target), self._newest(before, path)
                return (target, path) if newest is not None and self._newest(target, path) == newest else None
            case Merged():
                return self._merged(seq, event, path)
            case _:
                return (None, path) if isinstance(event, ENDS) else None

    def _moved(self, seq: int, event: e.EntryMoved | e.EntryCopied, path: str) -> tuple[int | None, str] | None:
        before = self._before(seq)
        if not is_within(path, event.destination):
            return (None if isinstance(event, e.EntryMoved) else before), path
        source = event.source + path[len(event.destination) :]
        changed = self._newest(before, source)
        if changed is not None and changed >= self._operation(seq):
            replaced = self._newest(before, path)
            if replaced is not None and (replaced > self.rows.dropped or self._node(self.base, path) is not None):
                # The file was replaced by one that the same operation wrote, which is how many programs save files.
                return None
        return before, source

    def _merged(self, seq: int, event: Merged, path: str) -> tuple[int | None, str] | None:
        last, before = self.records.ancestry.last_of(seq), self._before(seq)
        if last is None:
            return before, path
        base = self._before(seq + 1)
        if base is not None and base == before:
            return self.records.ancestry.taken_by(seq), path
        place = Place(self.filesystem, path)
        if base is None or self.records.changed_within(place, seq + 1, last):
            return None
        left = self.records.ancestry.left_at(seq)
        return None if self.records.moves_within(self.filesystem, left + 1, last) else (before, path)

    def _operation(self, seq: int) -> int:
        """Return the first of the consecutive records with the same cause; `seq` itself if it has none."""
        cause = self.rows[seq][1]
        first = seq
        while cause is not None and seq - first < MOST_SEARCHED:
            before = self._before(first)
            if before is None or before != first - 1 or before <= self.rows.dropped or self.rows[before][1] != cause:
                break
            first = before
        return first

    def _sources(self, seq: int, path: str) -> Sources:
        if seq == self.rows.dropped:
            return Sources()
        event, before = self.rows.event(seq), self._before(seq)
        previous = self.version(before, path)
        match event:
            case e.FileWritten():
                return Sources.of(previous) if previous is not None else self._replaced_within(seq, path)
            case e.EntryMoved() | e.EntryCopied():
                source = self.version(before, event.source + path[len(event.destination) :])
                return Sources() if source is None else Sources.of(source, previous)
            case RolledBack():
                target = self.records.ancestry.ancestor(before, event.target)
                return Sources.of(self.version(target, path), previous)
            case Merged():
                return self._sources_of_merge(seq, path, previous)
            case e.TreeRestored():
                return Sources.of(previous, *self._sources_of_restore(seq, event, path))
            case e.EntryFound() if previous is None and (emptied := self.records.emptied_before(seq)):
                # What a layer contained when it was committed is now in the files below it.
                return Sources.of(self.version(self._before(emptied), path))
            case _:
                return Sources.of(previous)

    def _replaced_within(self, seq: int, path: str) -> Sources:
        """Return the files that the operation deleted before it wrote a new one: first the one at this path."""
        own: Version | None = None
        others: list[Version | None] = []
        for number in range(seq - 1, self._operation(seq) - 1, -1):
            event = self.rows.event(number)
            if not isinstance(event, e.EntryDeleted) or event.filesystem != self.filesystem:
                continue
            before, deleted = self._before(number), event.path
            if is_within(path, deleted):
                own = own or self.version(before, path)
                continue
            others.append(self.version(before, deleted))
            below, tail = path, ""
            while below:
                below, _, part = below.rpartition("/")
                tail = f"/{part}{tail}"
                others.append(self.version(before, deleted + tail))
        return Sources.of(own, equal=others)

    def _sources_of_merge(self, seq: int, path: str, ours: Version | None) -> Sources:
        records = self.records
        last, left, before = records.ancestry.last_of(seq), records.ancestry.left_at(seq), self._before(seq)
        assert last is not None
        taken = records.ancestry.taken_by(seq)
        theirs = self.version(taken, path)
        # One side may have added files to a directory that the other side moved.
        moved_by_them = self._before_moves(path, records.moves_within(self.filesystem, seq + 1, last))
        moved_by_us = self._before_moves(path, records.moves_within(self.filesystem, left + 1, seq - 1))
        followed = [self.version(before, moved_by_them), self.version(taken, moved_by_us)]
        # In external files, the later side wins.
        sides = [ours, theirs] if self.filesystem is None else [theirs, ours]
        return Sources.of(*sides, *followed)

    def _before_moves(self, path: str, moves: Sequence[int]) -> str:
        for seq in reversed(moves):
            event = self.rows.event(seq)
            if is_within(path, event.destination):
                path = event.source + path[len(event.destination) :]
        return path

    def _sources_of_restore(self, seq: int, event: e.TreeRestored, path: str) -> Iterator[Version | None]:
        """Yield the versions that may have been restored."""
        ancestry, before, cause = self.records.ancestry, self._before(seq), self.rows[seq][1]
        for number in range(seq + 1, min(seq + 3, self.rows.newest + 1)):
            reverted = self.rows.event(number)
            if isinstance(reverted, Reverted) and self.rows[number][1] == cause:
                target = reverted.last if reverted.how == "restore" else reverted.first - 1
                yield self.version(ancestry.ancestor(before, target), path)
        taken = self.records.sources.get((self.filesystem, event.source))
        if taken is not None and taken < seq:
            yield self.version(taken, path)
        leaf = self._leaf(seq, path)
        writes = self.records.writes_before(Place(self.filesystem, path), seq)
        if leaf is not None:
            at = leaf[MODIFIED_AT]
            same = (number for number in reversed(writes[-MOST_SEARCHED:]) if self.rows.event(number).at == at)
            yield from ((number, path) for number in islice(same, 1))

    def _annotated(self, version: Version, texts: Sequence[AnnotatedText | None], near: int) -> AnnotatedText | None:
        """Return the text of a version, built from the texts of its sources."""
        seq, path = version
        if seq == self.rows.dropped:
            return _combined(cast(Leaf, self._node(self.base, path)), [], 0, seq)
        event, first = self.rows.event(seq), texts[0] if texts else None
        match event:
            case e.FileSpliced():
                return None if first is None else first.spliced(event.pieces, seq)
            case e.FileAppended() if first is not None:
                return first.spliced([(first.size, first.size, event.tail)], seq)
            case e.EntryMoved() | e.EntryCopied():
                replaced = texts[1] if len(texts) > 1 else None
                return first if first is None or replaced is None else first.traced(replaced, self._operation(seq))
            case _:
                leaf = self._leaf(seq, path)
                return None if leaf is None else _combined(leaf, texts, near, seq)

    def _leaf(self, seq: int, path: str) -> Leaf | None:
        """Return the file that an event left at a path, judging by the event alone."""
        event = self.rows.event(seq)
        segments = segments_of(path)
        match event:
            case e.FileWritten():
                return (event.content, 0, event.at, 0, bytearray())
            case e.FileAppended():
                return (event.tail, 0, event.at, 0, bytearray())
            case e.TreeMounted():
                return _file(find(event.tree, segments[len(segments_of(event.path)) :]))
            case e.EntryFound() | e.EntryPut():
                return _file(find(event.tree, segments[max(len(segments_of(event.path)) - 1, 0) :]))
            case e.TreeRestored() | e.TreeSeen():
                return _file(find(event.tree, segments))
            case RolledBack() | Merged():
                return _file(self._node(event.state, path))
            case SliceSeeded() | SliceAppended():
                item = event.item if isinstance(event, SliceAppended) else (event.items or (None,))[-1]
                return _file(None if item is None else self._node(Table({event.slice: Log((item,))}), path))
            case _:
                tree = self.others.get(seq)
                return None if tree is None else _file(find(tree, segments))

    def _node(self, table: Table, path: str) -> Node | None:
        """Return the node at a path in a table of slices."""
        tree = tree_in(table, self.filesystem)
        return None if tree is None else find(tree, segments_of(path))


def _file(node: Any) -> Leaf | None:
    """Return the node if it is a file, otherwise `None`."""
    return cast(Leaf, node) if type(node) is tuple and is_file(node) else None


def _is_bare(event: e.EntryFound) -> bool:
    """Return whether a directory was found without its entries, or with only the directories above another entry."""
    found: Node | None = event.tree if event.path == "/" else next((node for _, node in entries(event.tree)), None)
    while event.filesystem is None and (name := only_directory(found)) is not None:
        found = find(cast(FileTree, found), (name,))
    return type(found) is FileTree and not found.node_count


def _combined(leaf: Leaf, texts: Sequence[AnnotatedText | None], near: int, origin: int) -> AnnotatedText:
    """Return the content of a file; each line gets its origin from the first text that has it, or else `origin`."""
    content = content_of(leaf)
    for one in texts:
        if one is not None and one.holds(content):
            return one
    found = [one for one in texts[:near] if one is not None]
    if not found:
        return AnnotatedText.put_in(content, origin)
    if len(found) == 1:
        return found[0].replaced(content, origin)
    text = found[0].replaced(content, NOWHERE)
    for one in found[1:]:
        text = text.completed(one)
    return text.settled(origin)
