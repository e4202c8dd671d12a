"""Folding: reducing many events into a slice at once, in a replay whose intermediate states nobody reads.

A slice type may declare a fold in addition to its reducers. It returns the same value as applying the reducers one by
one, and is faster: it builds each directory of a tree once, where the reducers rebuild it for every event.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from attrs import field

from weakfs.class_decorators import define
from weakfs.session.errors import SessionError
from weakfs.session.history.log import Log
from weakfs.session.history.packed_state import PackedValue
from weakfs.session.slices.schema import Rules
from weakfs.session.slices.slice import Folded
from weakfs.session.slices.table import Table


@define(eq=False)
class Runs:
    """The events that are waiting to be folded, by slice."""

    rules: Rules
    # The slices that the replay starts with, in the packed form of a keyframe until they are read.
    _packed: dict[str, PackedValue] = field(factory=dict)
    _waiting: dict[str, list[Folded]] = field(factory=dict)

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

    def forget(self) -> None:
        """Discard all waiting events, because the STATE slices go back to another time."""
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
        """Raise the exception of the reducer at the record that a fold could not take."""
        values = before.values() if isinstance(before, PackedValue) else before
        for seq, type_, fields in run:
            step = next(step for step in self.rules.steps[type_] if step.tag == tag)
            try:
                values = step.react(values, self.rules.registry.by_type[type_].build(*fields))
            except SessionError:
                raise
            except Exception as error:
                raise unreadable(seq, self.rules.registry.by_type[type_].tag, error) from error


def unreadable(seq: int, tag: str, error: Exception) -> SessionError:
    """Return the error for a record that cannot be applied."""
    return SessionError(
        f"cannot read history: record {seq} ({tag}) cannot be applied: {error!r}; register the reducers that made it"
    )
