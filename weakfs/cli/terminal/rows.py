"""The rows of the list, in the order of the HTML page, each with its lane, its text and its search text."""

from __future__ import annotations

from collections.abc import Iterator

from attrs import field
from rich.cells import set_cell_size
from rich.text import Text

from weakfs.class_decorators import define, frozen
from weakfs.cli.formatting import date_and_time, shortened, shown
from weakfs.history.descriptions import short_action
from weakfs.history.timeline_rows import RowChanges, TimelineRow
from weakfs.messages import plural
from weakfs.session import Merged

NODES = {"call": "●", "change": "○", "merge": "◆", "rollback": "↶", "snapshot": "■"}
LANE_STYLES = ("cyan", "magenta", "yellow", "green", "blue")
# Further lanes are drawn like the last one.
MAX_LANES = 6


@frozen(eq=False)
class ListedRow:
    """A row with the number of forks around it, and the lowercase text that is searched."""

    changes: RowChanges
    lane: int
    haystack: str

    @property
    def row(self) -> TimelineRow:
        """The row of the timeline."""
        return self.changes.row


def listed(rows: Iterator[RowChanges]) -> Iterator[ListedRow]:
    """Yield rows with their lanes. As in the page, the rows of a fork come before the row of its merge."""
    order = _Order()
    for one in rows:
        yield from order.add(one)
    yield from order.end()


@define(eq=False)
class _Order:
    # The merges whose forks are being read, each with the number of its last record.
    _open: list[tuple[RowChanges, int]] = field(factory=list[tuple[RowChanges, int]])

    def add(self, one: RowChanges) -> Iterator[ListedRow]:
        seq = one.row.last if one.step is None else one.step.record.seq
        while self._open and seq is not None and self._open[-1][1] < seq + (one.row.kind == "snapshot"):
            yield self._close()
        event = None if one.step is None or one.step.base is None else one.step.record.event
        if isinstance(event, Merged) and seq is not None:
            self._open.append((one, seq + event.count))
        else:
            yield self._listed(one)

    def end(self) -> Iterator[ListedRow]:
        while self._open:
            yield self._close()

    def _close(self) -> ListedRow:
        return self._listed(self._open.pop()[0])

    def _listed(self, one: RowChanges) -> ListedRow:
        row = one.row
        words = (row.action, row.target, row.status, row.caller, row.fork, row.name, *(file.path for file in row.files))
        return ListedRow(one, len(self._open), "\n".join(word for word in words if word).lower())


def matches(row: ListedRow, words: list[str], *, failed_only: bool) -> bool:
    """Return whether a row contains all of these lowercase words and, with `failed_only`, failed."""
    if failed_only and row.row.status == "ok":
        return False
    return all(word in row.haystack for word in words)


def row_text(listed: ListedRow, width: int, *, is_marked: bool = False) -> Text:
    """Return a row as one line of at most `width` columns; narrow screens show fewer fields."""
    row = listed.row
    text = Text()
    text.append(">" if is_marked else " ", "bold")
    lane = min(listed.lane, MAX_LANES)
    for one in range(lane):
        text.append("│ ", LANE_STYLES[one % len(LANE_STYLES)])
    text.append(NODES[row.kind], "red" if row.status != "ok" else LANE_STYLES[lane % len(LANE_STYLES)])
    if row.kind == "merge":
        text.append("─╯", LANE_STYLES[(lane + 1) % len(LANE_STYLES)])
    text.append(f" {'' if row.number is None else row.number:>5} ", "dim")
    added, removed = row.lines
    right = [(" " + date_and_time(row.at), "dim")] if width >= 118 else []
    if width >= 100:
        right.insert(0, (" " + _cell(_who(row), 14), "cyan"))
    if width >= 80:
        right.insert(0, (f" {_took(row):>9}", "dim"))
        right.insert(0, (f" {plural(len(row.files), 'file') if row.files else '':>9}", ""))
    lines = [(f" {f'+{added}' if row.files else '':>5}", "green"), (f" {f'-{removed}' if row.files else '':<5}", "red")]
    room = width - text.cell_len - sum(len(part) for part, _ in (*lines, *right))
    status = "" if row.status == "ok" else f" {shortened(shown(row.status), 24)}"
    action = shown(short_action(row.action))
    action = _cell(action, max(len(action), 10)) if len(action) <= 14 else shortened(action, 14)
    target = max(room - len(action) - 1 - len(status), 4)
    text.append(action, "bold")
    text.append(" " + _cell(shown(row.target), target))
    text.append(status, "red")
    for part, style in (*lines, *right):
        text.append(part, style)
    text.truncate(width)
    return text


def _cell(text: str, width: int) -> str:
    return set_cell_size(shortened(text, width), width)


def _who(row: TimelineRow) -> str:
    return " · ".join(shown(one) for one in (row.caller, row.fork) if one)


def _took(row: TimelineRow) -> str:
    if row.kind != "call":
        return ""
    took = (row.ended_at - row.at) / 1e6
    return f"{took / 1000:.1f} s" if took >= 10_000 else f"{took:.1f} ms"
