"""What a session asks of a filesystem whose state lies outside it, and how several go back together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol


class Journal(Protocol):
    """What one piece of work changed outside, with what was there before."""

    def undo(self) -> None:
        """Put back what was changed. May be called again after it failed."""
        ...

    def close(self) -> None:
        """Forget the old contents: the work is to stay."""
        ...


class External(Protocol):
    """A filesystem that a session snapshots and rolls back along with its slices."""

    @property
    def filesystem_id(self) -> str: ...
    def snapshot(self, tag: str | None = None) -> Any: ...
    def restore(self, snapshot: Any) -> Any: ...
    def begin(self) -> Journal: ...


class Repair(Protocol):
    """One step that did not succeed and may be tried again."""

    def __call__(self) -> object: ...


def snapshot_all(attached: Sequence[External], tag: str | None) -> tuple[tuple[str, Any], ...]:
    """Take a snapshot of each filesystem; the first that fails fails all."""
    return tuple((external.filesystem_id, external.snapshot(tag)) for external in attached)


def restore_all(
    attached: Sequence[External], wanted: Mapping[str, Any]
) -> tuple[dict[str, Repair], dict[str, str], Exception | None]:
    """Restore each filesystem to its snapshot; if one fails, put all back to where they were.

    Gives the steps still to be taken (none if all is consistent), what became of each filesystem, and the
    error that stopped the restoring.
    """
    states: dict[str, str] = {external.filesystem_id: "untouched" for external in attached}
    done: list[tuple[External, Any]] = []
    failure: Exception | None = None
    for external in attached:
        if external.filesystem_id not in wanted:
            continue
        try:
            done.append((external, external.snapshot(None)))
            external.restore(wanted[external.filesystem_id])
            states[external.filesystem_id] = "restored"
        except Exception as error:
            states[external.filesystem_id] = f"not restored: {error}"
            failure = error
            break
    if failure is None:
        return {}, states, None
    repairs: dict[str, Repair] = {}
    for external, before in reversed(done):
        try:
            external.restore(before)
            states[external.filesystem_id] = "as it was"
        except Exception as error:
            states[external.filesystem_id] = f"neither restored nor as it was: {error}"
            repairs[external.filesystem_id] = _Restore(external, before)
    return repairs, states, failure


class _Restore:
    def __init__(self, external: External, snapshot: Any) -> None:
        self._external = external
        self._snapshot = snapshot

    def __call__(self) -> object:
        return self._external.restore(self._snapshot)


def undo_all(journals: Mapping[str, Journal]) -> tuple[dict[str, Repair], dict[str, str]]:
    """Undo each journal, newest first; give the steps that failed and what became of each filesystem."""
    repairs: dict[str, Repair] = {}
    states: dict[str, str] = {}
    for name, journal in reversed(list(journals.items())):
        try:
            journal.undo()
            states[name] = "put back"
        except Exception as error:
            states[name] = f"not put back: {error}"
            repairs[name] = journal.undo
    return repairs, states


def repair_all(repairs: Mapping[str, Repair]) -> tuple[dict[str, Repair], dict[str, str]]:
    """Take each step again; give those that failed still, and what became of each filesystem."""
    left: dict[str, Repair] = {}
    states: dict[str, str] = {}
    for name, step in repairs.items():
        try:
            step()
            states[name] = "put back"
        except Exception as error:
            left[name] = step
            states[name] = f"not put back: {error}"
    return left, states
