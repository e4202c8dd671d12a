"""What a session asks of a filesystem whose state lies outside it, and how several go back together."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from attrs import define, field

from weakfs.session.errors import RollbackIncomplete

if TYPE_CHECKING:
    from weakfs.session.blobs.blob import Source
    from weakfs.session.views import SessionView

logger = logging.getLogger("weakfs.session")

# How the notes of an exception begin that say what undoing could not put back as it was; see `BaseException.add_note`.
INEXACT = "put back, but not exactly: "


class Journal(Protocol):
    """What one piece of work changed outside, with what was there before."""

    def undo(self) -> None:
        """Put back what was changed. May be called again after it failed."""
        ...

    def close(self) -> None:
        """Forget the old contents: the work is to stay."""
        ...


@runtime_checkable
class Inexact(Protocol):
    """A journal that tells, after it was undone, what it could not put back as it was, such as a file's owner."""

    @property
    def inexact(self) -> Sequence[object]: ...


@runtime_checkable
class Divisible(Protocol):
    """A journal that parts of the work can be undone in by themselves."""

    def begin(self) -> Journal:
        """Start a part: undone alone, or left to the whole when it is closed."""
        ...


class External(Protocol):
    """A filesystem that a session snapshots and rolls back along with its slices."""

    @property
    def filesystem_id(self) -> str: ...
    def snapshot(self, tag: str | None = None) -> Any: ...
    def restore(self, snapshot: Any) -> Any: ...
    def begin(self) -> Journal: ...


@runtime_checkable
class Attachable(Protocol):
    """A filesystem that has its side for sessions apart from the methods that its users call."""

    @property
    def external(self) -> External: ...


@runtime_checkable
class HoldsContents(Protocol):
    """A filesystem with a place that holds contents, perhaps some that are missing elsewhere."""

    @property
    def contents(self) -> Source: ...


@runtime_checkable
class KeepsSnapshots(Protocol):
    """A filesystem whose snapshots lie in a store outside the session."""

    def lost_snapshots(self) -> Sequence[str]:
        """Return the ids of the session's snapshots of it that neither the store nor the session holds any more."""
        ...


@runtime_checkable
class SelfRestoring(Protocol):
    """A filesystem whose `restore` does all or nothing: one that fails has put everything back itself."""

    restores_all_or_nothing: bool


@runtime_checkable
class Exchanging(Protocol):
    """A filesystem that can take a snapshot and restore another one in one step, and look at its files only once."""

    def exchange(self, snapshot: Any, on_kept: Callable[[Any], object]) -> None:
        """Take a snapshot, give it to `on_kept`, and restore `snapshot`."""
        ...


@runtime_checkable
class Rewindable(Protocol):
    """A filesystem whose changes the session's slices tell, so that it can go back to any record."""

    @property
    def filesystem_id(self) -> str: ...
    def known_at(self, then: SessionView, now: SessionView) -> Any:
        """Return what `restore` takes back to `then`: every path that the session knows to have changed since."""
        ...


class Repair(Protocol):
    """One step that did not succeed and may be tried again."""

    def __call__(self) -> object: ...


def snapshot_all(attached: Sequence[External], tag: str | None) -> tuple[tuple[str, Any], ...]:
    """Take a snapshot of each filesystem; the first that fails fails all."""
    return tuple((external.filesystem_id, external.snapshot(tag)) for external in attached)


@define(eq=False)
class Restoring:
    """Several filesystems that are restored, all of them or none."""

    states: dict[str, str] = field(factory=dict[str, str])
    # Each that was begun with, and a snapshot of it from before.
    begun: list[tuple[External, Any]] = field(factory=list[tuple[External, Any]])
    # Whether it is restored for good, or put back.
    settled: bool = False

    @property
    def before(self) -> tuple[tuple[str, Any], ...]:
        """A snapshot of each filesystem from before, so that the restoring can be undone later."""
        return tuple((external.filesystem_id, snapshot) for external, snapshot in self.begun)

    def run(self, attached: Sequence[External], wanted: Mapping[str, Any]) -> None:
        """Restore each filesystem that has a wanted snapshot; raises what stops it, and `put_back` then undoes it."""
        self.states = {external.filesystem_id: "untouched" for external in attached}
        for external in attached:
            name = external.filesystem_id
            if name in wanted:
                try:
                    self._exchange(external, wanted[name])
                except BaseException as error:
                    self.states[name] = f"not restored: {_told(error)}"
                    if isinstance(external, SelfRestoring) and not isinstance(error, RollbackIncomplete):
                        # It went back to where it was by itself.
                        self.begun = [one for one in self.begun if one[0] is not external]
                    error.add_note(f"{name} could not be restored; every filesystem goes back to where it was")
                    raise
                self.states[name] = "restored"

    def _exchange(self, external: External, wanted: Any) -> None:
        def begin(before: Any) -> None:
            self.begun.append((external, before))

        if isinstance(external, Exchanging):
            external.exchange(wanted, begin)
        else:
            begin(external.snapshot(None))
            external.restore(wanted)

    def put_back(self) -> dict[str, Repair]:
        """Put all back to where they were, the last first; give the steps that failed and may be tried again."""
        repairs: dict[str, Repair] = {}
        for external, snapshot in reversed(self.begun):
            name = external.filesystem_id
            step = partial(external.restore, snapshot)
            try:
                step()
                self.states[name] = "as it was"
            except BaseException as error:
                self.states[name] = f"neither restored nor as it was: {_told(error)}"
                repairs[name] = step
        return repairs


def begin_all(attached: Sequence[External], outer: Mapping[str, Journal]) -> dict[str, Journal]:
    """Start a journal of each filesystem; if one cannot, those that were started are closed again."""
    journals: dict[str, Journal] = {}
    try:
        for external in attached:
            journals[external.filesystem_id] = begin(external, outer.get(external.filesystem_id))
    except BaseException:
        close_all(journals)
        raise
    return journals


def begin(external: External, outer: Journal | None) -> Journal:
    """Start a journal: a part of the outer transaction's, if that can be divided."""
    return outer.begin() if isinstance(outer, Divisible) else external.begin()


def close_all(journals: Mapping[str, Journal]) -> None:
    """Close each journal. What they describe has happened: an error in closing is logged, an interrupt comes last."""
    interrupt: BaseException | None = None
    for name, journal in journals.items():
        try:
            journal.close()
        except Exception:
            logger.exception("the journal of %s could not be closed", name)
        except BaseException as error:
            interrupt = error
    if interrupt is not None:
        raise interrupt


def undo_all(journals: Mapping[str, Journal]) -> tuple[dict[str, Repair], dict[str, str], set[str]]:
    """Undo each journal, newest first: the steps that failed, what became of each, and which were undone."""
    repairs: dict[str, Repair] = {}
    states: dict[str, str] = {}
    for name, journal in reversed(list(journals.items())):
        try:
            journal.undo()
            states[name] = "put back"
        except BaseException as error:
            states[name] = f"not put back: {_told(error)}"
            repairs[name] = journal.undo
    return repairs, states, journals.keys() - repairs.keys()


def inexact_notes(journals: Mapping[str, Journal]) -> list[str]:
    """Return what journals that were undone could not put back as it was, each as a note for an exception."""
    return [
        INEXACT + str(note) for journal in journals.values() if isinstance(journal, Inexact) for note in journal.inexact
    ]


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
            states[name] = f"not put back: {_told(error)}"
    return left, states


def _told(error: BaseException) -> str:
    return str(error) or type(error).__name__
