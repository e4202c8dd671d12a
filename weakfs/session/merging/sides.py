"""What a merge function may look at: the slices of three versions, and the records that led to both sides."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from attrs import field

from weakfs.class_decorators import frozen
from weakfs.session.merging.resolver import Resolver
from weakfs.session.slices.table import Table

# The tags of a session's own events. Importing their classes would be circular: they import this package.
MERGED, ROLLED_BACK = "session/merged", "session/rolled_back"
# A record as it is stored: (time, cause, tag of the event, fields of the event).
Row = tuple[int, "str | None", str, tuple[Any, ...]]


@frozen(eq=False)
class BranchHistory:
    """The records on both sides of a merge, numbered as in the session `own` that `fork` is merged into.

    `first` is the record after which the fork first branched off, and `base` the last record in the merge base.
    """

    own: str
    fork: str
    first: int
    base: int
    # Returns the records of the session after a number, each with its number.
    ours_since: Callable[[int], Iterator[tuple[int, Row]]]
    theirs: list[Row]
    # Returns the STATE slices after a record of the session; `None` if they are not kept, or for a record of a merged
    # fork.
    state_at: Callable[[int], Table | None]
    # The number of the session's newest record.
    last: int

    def theirs_numbered(self) -> Iterator[tuple[int, Row]]:
        """Yield their records with the numbers that they will get, which follow the number of the merge."""
        return enumerate(self.theirs, self.last + 2)

    def ours(self) -> Iterator[tuple[int, Row]]:
        """Yield our records since the fork first branched off, without those of the fork itself."""
        own_end = 0
        for number, row in self.ours_since(self.first):
            if row[2] == MERGED and row[3][0] == self.fork and self.fork != self.own:
                own_end = max(own_end, number + row[3][2])
            if number > own_end:
                yield number, row

    def calls(
        self, touched: Callable[[str, tuple[Any, ...]], Iterable[str]], *, of_ours: bool
    ) -> dict[str, list[tuple[int, str]]]:
        """Return the `(number, cause)` of each record that was not rolled back, by the names that it touched."""
        found: list[tuple[int, str, Iterable[str]]] = []
        for number, (_, cause, tag, values) in self.ours() if of_ours else self.theirs_numbered():
            if tag == ROLLED_BACK:
                found = [each for each in found if each[0] <= values[0]]
            elif cause is not None:
                found.append((number, cause, touched(tag, values)))
        calls: dict[str, list[tuple[int, str]]] = {}
        for number, cause, names in found:
            for name in names:
                calls.setdefault(name, []).append((number, cause))
        return calls


@frozen(eq=False)
class Sides:
    """The tables of all STATE slices of the base, ours and theirs, and how conflicts are resolved."""

    base: Table
    ours: Table
    theirs: Table
    resolver: Resolver = field(factory=Resolver)
    # Returns the records. Few merges need them.
    records: Callable[[], BranchHistory | None] = lambda: None

    @property
    def history(self) -> BranchHistory | None:
        """The records of both sides; `None` if they are not known."""
        return self.records()
