"""Folding: reducing many events into a slice at once, in a replay whose intermediate states nobody reads.

A slice type may declare a fold in addition to its reducers. It returns the same value as applying the reducers one by
one, and is faster: it builds each directory of a tree once, where the reducers rebuild it for every event. Events that
are only appended to a LOG slice are built when they are read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from attrs import field

from weakfs.class_decorators import define
from weakfs.session.blobs.rope import without_ropes
from weakfs.session.errors import SessionError
from weakfs.session.slices.event_reducers import Rules
from weakfs.session.slices.log import STRETCH, Deferred, Log
from weakfs.session.slices.packed_state import PackedValue
from weakfs.session.slices.slice import Folded
from weakfs.session.slices.table import Table

# At least this many events are added to a slice as a stretch of events that have not been built yet.
MANY = 64


@define(eq=False)
class Runs:
    """The events that are waiting to be folded or appended, by slice."""

    rules: Rules
    # The slices that the replay starts with, in the packed form of a keyframe until they are read.
    _packed: dict[str, PackedValue] = field(factory=dict)
    _waiting: dict[str, list[Folded]] = field(factory=dict)
    # The fields of events to be appended to LOG slices.
    _appended: dict[str, list[tuple[Any, ...]]] = field(factory=dict)

    def begin(self, state: Mapping[str, Log[Any] | PackedValue]) -> Table:
        """Return the slices that a replay starts with, except for those that are packed."""
        table: dict[str, Log[Any]] = {}
        for tag, values in state.items():
            if not isinstance(values, PackedValue):
                table[tag] = values
            elif tag in self.rules.folds:
                self._packed[tag] = values
            else:
                table[tag] = values.values()
        return Table(table)

    def of(self, tag: str) -> list[Folded]:
        """Return the list of events waiting for one slice, oldest first; callers may append to it."""
        return self._waiting.setdefault(tag, [])

    def appended_to(self, tag: str) -> list[tuple[Any, ...]]:
        """Return the list of the fields of events to be appended to a LOG slice; callers may append to it."""
        return self._appended.setdefault(tag, [])

    def extended(self, logs: Table, tags: Iterable[str] | None = None) -> Table:
        """Return the LOG slices with the waiting events of `tags`, or of all slices, appended to them."""
        for tag in self._appended if tags is None else tags:
            events = self._appended.get(tag)
            if events:
                spec = self.rules.specs[tag]
                make = partial(_built, self.rules.registry.by_type[spec.cls].build)
                values: Log[Any] = logs.get(tag, spec.empty)
                if len(events) >= MANY:
                    starts = range(0, len(events), STRETCH)
                    values = values._with_stretches(Deferred(events[start : start + STRETCH], make) for start in starts)
                else:
                    values = values.extend(make(events))
                logs = logs.set(tag, values)
                events.clear()
        return logs

    def forget(self) -> None:
        """Discard all waiting events, because the STATE slices go back to an earlier state."""
        self._packed.clear()
        for run in self._waiting.values():
            run.clear()

    def reduced(self, state: Table, tags: Iterable[str] | None = None) -> Table:
        """Return the slices with the waiting events of `tags`, or of all slices, folded into them."""
        for tag in self.rules.folds if tags is None else tags:
            run = self._waiting.get(tag, ())
            packed = self._packed.pop(tag, None)
            if run or packed is not None:
                before = packed or state.get(tag, self.rules.specs[tag].empty)
                after = self._folded(tag, before, run)
                if after is not before:
                    state = state.set(tag, after)
                if run:
                    run.clear()
        return state

    def _folded(self, tag: str, values: Log[Any] | PackedValue, run: Sequence[Folded]) -> Log[Any]:
        fold = self.rules.folds[tag]
        try:
            return fold(values, run)
        except SessionError:
            raise
        except Exception:
            self._explain(tag, values, run)
            raise

    def _explain(self, tag: str, before: Log[Any] | PackedValue, run: Sequence[Folded]) -> None:
        """Find the record at which a fold failed by running the reducers, and raise an error that names it."""
        values = before.values() if isinstance(before, PackedValue) else before
        for seq, type_, fields in run:
            step = next(step for step in self.rules.steps[type_] if step.tag == tag)
            try:
                values = step.react(values, self.rules.registry.by_type[type_].build(*fields))
            except SessionError:
                raise
            except Exception as error:
                raise unreadable(seq, self.rules.registry.by_type[type_].tag, error) from error


def _built(build: Callable[..., Any], events: list[tuple[Any, ...]]) -> list[Any]:
    """Build events from their fields."""
    return [build(*fields) for fields in without_ropes(events)]


def unreadable(seq: int, tag: str, error: Exception) -> SessionError:
    """Return the error for a record that cannot be applied."""
    return SessionError(
        f"cannot read history: record {seq} ({tag}) cannot be applied: {error!r}; register the reducers that made it"
    )
