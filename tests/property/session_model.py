"""A session as plain dicts and lists that keep every state: slow, simple and correct."""

from __future__ import annotations

from attrs import define, evolve, field, frozen


class Differs(Exception):
    """Both sides changed these things differently."""

    def __init__(self, names: list[str]) -> None:
        super().__init__(names)
        self.names = names


@frozen
class State:
    """The state that a rollback restores: the total and the shelf."""

    total: int = 0
    shelf: dict[str, int] = field(factory=dict[str, int])

    def with_total(self, total: int) -> State:
        return State(total, self.shelf)

    def with_item(self, key: str, value: int | None) -> State:
        shelf = {name: number for name, number in self.shelf.items() if name != key}
        if value is not None:
            shelf[key] = value
        return State(self.total, shelf)


def merged(base: State, ours: State, theirs: State) -> State:
    """Merge three-way, name by name; `Differs` names everything that cannot be merged."""
    names: list[str] = []
    if theirs.total not in (base.total, ours.total) and ours.total != base.total:
        names.append("ledger/total")
    total = ours.total if theirs.total == base.total else theirs.total
    shelf: dict[str, int] = {}
    for key in {*base.shelf, *ours.shelf, *theirs.shelf}:
        old, mine, other = base.shelf.get(key), ours.shelf.get(key), theirs.shelf.get(key)
        if old != mine and old != other and mine != other:
            names.append(key)
        value = mine if other == old else other
        if value is not None:
            shelf[key] = value
    if names:
        raise Differs(names)
    return State(total, shelf)


Moment = tuple[State, tuple[str, ...]]


@define(eq=False)
class Line:
    """One line of history: its position, every moment so far, and where it left another line."""

    state: State = field(factory=State)
    notes: tuple[str, ...] = ()
    # The moment after each record, by its number; the moment before the first record is number 0.
    moments: list[Moment] = field(factory=lambda: [(State(), ())])
    # What each record noted, if anything; record 1 is at index 0.
    rows: list[str | None] = field(factory=list["str | None"])
    snapshots: dict[str, State] = field(factory=dict[str, State])
    dropped: int = 0
    # Counts records and compactions: it shows whether anything has changed.
    version: int = 0
    base: Line | None = None

    @property
    def seq(self) -> int:
        return len(self.rows)

    def record(self, state: State | None = None, note: str | None = None) -> None:
        """Add one record, with a new state, a note, or neither."""
        self.state = self.state if state is None else state
        self.notes = self.notes if note is None else (*self.notes, note)
        self.rows.append(note)
        self.moments.append((self.state, self.notes))
        self.version += 1

    def branch(self) -> Line:
        """Return a new line that starts from the current state."""
        return self._copy(base=self._copy(base=None))

    def _copy(self, base: Line | None) -> Line:
        return evolve(self, moments=[*self.moments], rows=[*self.rows], snapshots={**self.snapshots}, base=base)

    def rebase(self) -> None:
        """Make the current state the base of the next merge."""
        self.base = self._copy(base=None)

    def compact(self, keep: int) -> int:
        """Drop all but the newest records, and return how many were dropped."""
        going = max(self.seq - self.dropped - keep, 0)
        self.dropped += going
        self.version += bool(going)
        return going

    def absorb(self, branch: Line) -> None:
        """Merge what a branch did since its base."""
        base = branch.base
        assert base is not None
        self.record(merged(base.state, self.state, branch.state))
        for note in branch.rows[base.seq :]:
            self.record(note=note)
        self.take_snapshots(branch)

    def take_snapshots(self, branch: Line) -> None:
        """Keep the snapshots that a branch took."""
        base = branch.base
        assert base is not None
        self.snapshots |= {name: state for name, state in branch.snapshots.items() if name not in base.snapshots}

    def join(self, branch: Line) -> None:
        """End a transaction in this line."""
        base = branch.base
        assert base is not None
        if branch.seq > base.seq and self.version == base.version:
            self.state, self.notes = branch.state, branch.notes
            self.moments, self.rows, self.version = branch.moments, branch.rows, branch.version
        elif branch.seq > base.seq:
            self.absorb(branch)
        self.take_snapshots(branch)
        self.snapshots = {
            name: state
            for name, state in self.snapshots.items()
            if name in branch.snapshots or name not in base.snapshots
        }

    def abandon(self, branch: Line) -> None:
        """End a transaction that failed in this line: its records stay, followed by their rollback."""
        base = branch.base
        assert base is not None
        branch.snapshots = dict(base.snapshots)
        if branch.seq > base.seq:
            branch.record(base.state)
            self.join(branch)
