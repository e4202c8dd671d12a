"""The data of a page: its rows, the lanes of forks, the files after each row, and who wrote their lines."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from itertools import chain, groupby

from attrs import field

from weakfs.class_decorators import define, frozen
from weakfs.history.blame.lines import Blames, FileVersion
from weakfs.history.descriptions import short_action
from weakfs.history.page.contents import PageContents, PageLimits
from weakfs.history.timeline_rows import RowChanges, TimelineRow, changes_between, changes_of_rows
from weakfs.history.tree_patch import FileChange
from weakfs.history.trees import Trees
from weakfs.reducers import FileTree
from weakfs.reducers.merging.line_merge import common_ends
from weakfs.reducers.tree.leaf import MODE, Leaf, content_of, is_file, is_link
from weakfs.reducers.tree.node import walk
from weakfs.session import Merged, Session, SessionView

Fields = dict[str, object]
# A filesystem and a path in it.
Place = tuple[str | None, str]


def page_data(session: Session, *, limits: PageLimits | None = None, with_contents: bool = True) -> Fields:
    """Return the data of a session's page, as plain values for JSON. O(records), plus what they changed.

    `rows` are in the order of the page, in which the rows of a fork come before the row of its merge. A row's `parent`
    is the position of the row on whose files its own files are based. `state` lists how the files differ from those,
    unless `files` says the same; it is `None` if the files are not known.

    The `blame` of a file is the last item of an entry in `state`. It alternates between the row that wrote the next
    lines, or `None`, and the number of these lines. Or it is an object: `same` is the number of items at the start and
    at the end that the blame of the replaced file has too, and `between` are the items between them.
    """
    return _Page(session, limits or PageLimits(), with_contents).data()


@frozen(eq=False)
class _Version(FileVersion):
    """A file after a row: the number of its content, the entry for its blame, and the version that it replaced."""

    content: int
    fields: Fields | list[object]
    base: _Version | None = None


@define(eq=False)
class _Lane:
    """The rows of the session itself, or those of one merge, which end with record `last`."""

    number: int
    fork: str | None
    # The numbers of the lane's first and last record.
    first: int
    last: float
    # The row after which the lane branched off.
    start: int | None = None
    newest: int | None = None
    view: SessionView | None = None
    # The merge's row, which is shown when the lane ends.
    merge: tuple[RowChanges, SessionView | None] | None = None
    # The newest version of each file that the rows of the lane changed.
    versions: dict[Place, _Version] = field(factory=dict[Place, _Version])
    # The rows of the lane, each with the number of its record.
    states: list[tuple[int, int]] = field(factory=list[tuple[int, int]])


@define(eq=False)
class _Page:
    session: Session
    limits: PageLimits
    with_contents: bool
    trees: Trees = field(init=False)
    contents: PageContents = field(init=False)
    rows: list[Fields] = field(factory=list[Fields], init=False)
    forks: list[Fields] = field(factory=list[Fields], init=False)
    _views: list[SessionView | None] = field(factory=list["SessionView | None"], init=False)
    _lanes: list[_Lane] = field(factory=list[_Lane], init=False)
    _ended: list[_Lane] = field(factory=list[_Lane], init=False)
    _entries: int = field(default=0, init=False)
    _row_of: dict[int, int] = field(factory=dict[int, int], init=False)
    _unknown_trees: int = field(default=0, init=False)
    _changed: set[Place] = field(factory=set[Place], init=False)
    _versions: list[_Version] = field(factory=list[_Version], init=False)

    def __attrs_post_init__(self) -> None:
        self.trees = Trees(self.session)
        self.contents = PageContents(self.limits, is_omitted=not self.with_contents)

    def data(self) -> Fields:
        found: deque[RowChanges] = deque(maxlen=self.limits.rows)
        total = 0
        for one in changes_of_rows(self.session, self.trees):
            found.append(one)
            total += 1
        self._lanes = [_Lane(0, None, 0, float("inf"))]
        for one in found:
            seq = one.row.last if one.step is None else one.step.record.seq
            # A snapshot after the last record of a merge is assumed to be of the session that was merged into.
            while seq is not None and self._lanes[-1].last < seq + (one.row.kind == "snapshot"):
                self._leave()
            self._add(one)
        while len(self._lanes) > 1:
            self._leave()
        self._views.clear()
        unblamed = self._add_blame()
        return {
            "session": self.session.session_id,
            "rows": self.rows,
            "forks": self.forks,
            "contents": self.contents.entries,
            "left_out": {
                "rows": total - len(found),
                "trees": self._unknown_trees,
                "blames": unblamed,
                **self.contents.count_left_out(),
            },
        }

    def _add(self, one: RowChanges) -> None:
        lane = self._lanes[-1]
        if one.step is None or one.step.base is None:
            # The files after a snapshot are the same as before it.
            self._append(lane, one, lane.view if one.step is None else one.step.after)
            return
        event = one.step.record.event
        assert isinstance(event, Merged)
        start = self._row_at(one.step.base, event.fork)
        self.forks.append({"name": event.fork, "start": start, "end": None, "parent": lane.number})
        seq = one.step.record.seq
        side = _Lane(len(self.forks), event.fork, seq + 1, seq + event.count, start, start)
        side.view = None if start is None else self._views[start]
        side.merge = (one, one.step.after)
        self._lanes.append(side)

    def _row_at(self, base: int, fork: str) -> int | None:
        """Return the row after which a fork branched off: its own, merged earlier, or one in the lane around it."""
        own = (one for one in self._ended if one.fork == fork and one.first <= base <= one.last)
        around = (one for one in reversed(self._lanes) if one.first <= base)
        lane = next(own, None) or next(around)
        place = bisect_right(lane.states, (base, len(self.rows)))
        return lane.states[place - 1][1] if place else lane.start

    def _leave(self) -> None:
        side = self._lanes.pop()
        lane = self._lanes[-1]
        assert side.merge is not None
        one, view = side.merge
        self.forks[side.number - 1]["end"] = len(self.rows)
        self._append(lane, one, view, seq=int(side.last))
        self._ended.append(side)

    def _append(self, lane: _Lane, one: RowChanges, view: SessionView | None, *, seq: int | None = None) -> None:
        number, row = len(self.rows), one.row
        fields = _fields_of(row)
        if lane.number:
            fields["lane"] = lane.number
        if lane.newest is not None:
            fields["parent"] = lane.newest
        if one.changes is None:
            fields["compacted"] = True
        files = [
            self._file_fields(filesystem, change, counted.added, counted.removed)
            for (filesystem, change), counted in zip(one.changes or (), row.files, strict=True)
        ]
        if files:
            fields["files"] = files
        state = self._state(lane, one, view)
        if state is not _AS_FILES:
            fields["state"] = state
            lane.versions.clear()
        elif view is not None:
            for (filesystem, change), file in zip(one.changes or (), files, strict=True):
                base = lane.versions.pop((filesystem, change.path), None)
                if change.new is not None:
                    content = self.contents.number(change.new, is_changed=True)
                    version = _Version(filesystem, change.new_path, change.new, view.seq, content, file, base)
                    self._versions.append(version)
                    lane.versions[filesystem, change.new_path] = version
        if state is None:
            view = None
        self.rows.append(fields)
        self._views.append(view)
        lane.newest, lane.view = number, view
        if seq is None:
            seq = row.last if one.step is None else one.step.record.seq
        if seq is not None and row.kind != "snapshot":
            lane.states.append((seq, number))
        if row.kind != "snapshot" and row.first is not None and row.last is not None:
            for record in range(row.first, row.last + 1):
                self._row_of[record] = number

    def _state(self, lane: _Lane, one: RowChanges, view: SessionView | None) -> object:
        """Return how the files after a row differ from those after its parent, unless `files` says the same."""
        if view is None:
            return None
        if lane.view is None:
            return self._whole(view)
        between = tuple(changes_between(self.trees, lane.view, view))
        if between == (one.changes or ()):
            return _AS_FILES
        if not self._fits(len(between)):
            return None
        changes: list[list[object]] = []
        for filesystem, change in between:
            if change.old is not None and (change.new is None or change.path != change.new_path):
                changes.append([filesystem or 0, change.path])
            if change.new is not None:
                changes.append(self._entry(view, filesystem, change.new_path, change.new))
        return changes

    def _whole(self, view: SessionView) -> object:
        trees = self.trees.all(view)
        if not self._fits(sum(tree.node_count for tree in trees.values())):
            return None
        return [
            self._entry(view, name, path, leaf)
            for name, tree in trees.items()
            for path, leaf in walk(tree)
            if type(leaf) is not FileTree
        ]

    def _fits(self, entries: int) -> bool:
        if self._entries + entries > self.limits.entries:
            self._unknown_trees += 1
            return False
        self._entries += entries
        return True

    def _entry(self, view: SessionView, filesystem: str | None, path: str, leaf: Leaf) -> list[object]:
        content = self.contents.number(leaf, is_changed=False)
        entry: list[object] = [filesystem or 0, path, content, _mode(leaf)]
        self._versions.append(_Version(filesystem, path, leaf, view.seq, content, entry))
        return entry

    def _file_fields(
        self, filesystem: str | None, change: FileChange, added: int | None, removed: int | None
    ) -> Fields:
        fields: Fields = {"path": change.new_path, "added": added, "removed": removed}
        self._changed.add((filesystem, change.new_path))
        if change.path != change.new_path:
            fields["source"] = change.path
        if filesystem is not None:
            fields["filesystem"] = filesystem
        if change.old is not None:
            fields["old"] = self.contents.number(change.old, is_changed=True)
            fields["old_mode"] = _mode(change.old)
        if change.new is not None:
            fields["new"] = self.contents.number(change.new, is_changed=True, base=change.old)
            fields["new_mode"] = _mode(change.new)
        return fields

    def _add_blame(self) -> int:
        """Add the blame of changed files, and return the number of versions for which it was left out.

        The newest version of each file comes first, then the others, newest first.
        """
        newest: list[_Version] = []
        older: list[_Version] = []
        places = set[Place]()
        for version in reversed(self._versions):
            place = version.filesystem, version.path
            if place in self._changed and is_file(version.leaf) and self.contents.has_text(version.content):
                (older if place in places else newest).append(version)
                places.add(place)
        lines, chosen = 0, set[int]()
        for version in chain(newest, older):
            if lines < self.limits.blame_lines:
                chosen.add(id(version))
                lines += content_of(version.leaf).count(b"\n") + 1
        versions = [version for version in self._versions if id(version) in chosen]
        known: dict[int, list[object]] = {}
        for version, origins in zip(versions, Blames().origins(self.session, versions), strict=True):
            runs: list[object] = []
            for row, same in groupby(map(self._row_of.get, origins)):
                runs += [row, sum(1 for _ in same)]
            known[id(version)] = runs
            if isinstance(version.fields, dict):
                version.fields["blame"] = _changed_runs(known.get(id(version.base), []), runs)
            else:
                version.fields.append(runs)
        return len(newest) + len(older) - len(versions)


def _changed_runs(old: list[object], new: list[object]) -> object:
    start, end = common_ends(old, new)
    between = new[start : len(new) - end]
    return new if len(between) + 6 >= len(new) else {"same": [start, end], "between": between}


# Returned if the state follows from the changes of the row.
_AS_FILES = object()


def _fields_of(row: TimelineRow) -> Fields:
    fields: Fields = {
        "kind": row.kind,
        "number": row.number,
        "name": row.name,
        "action": short_action(row.action),
        "target": row.target,
        "status": None if row.status == "ok" else row.status,
        "at": row.at // 1_000_000,
        "took": row.ended_at - row.at if row.kind == "call" else None,
        "caller": row.caller,
        "first": row.first,
        "last": None if row.last == row.first else row.last,
    }
    return {name: value for name, value in fields.items() if value is not None and value != ""}


def _mode(leaf: Leaf) -> int:
    return 0o120000 if is_link(leaf) else 0o100000 | (leaf[MODE] & 0o777)
