"""External filesystems: the interface to filesystems with state outside a session, and restoring several together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from attrs import field

from weakfs.class_decorators import define, frozen
from weakfs.session.errors import RollbackIncomplete
from weakfs.session.logger import logger

if TYPE_CHECKING:
    from weakfs.session.blobs.blob import ContentSource
    from weakfs.session.history.views import SessionView
    from weakfs.session.merging.resolver import Resolver


# The beginning of exception notes that say what an undo could not restore exactly; see `BaseException.add_note`.
INEXACT = "put back, but not exactly: "


class Journal(Protocol):
    """An undo journal: what one piece of work changed outside the session, with the previous contents."""

    def undo(self) -> None:
        """Restore what was changed. This may be called again after a failure."""
        ...

    def close(self) -> None:
        """Discard the previous contents: the changes are kept."""
        ...


@frozen
class CommitPlace:
    """Where the commit of a session will be stored: in which frame of which stream, under which name.

    `after` is the number of the record that it follows.
    """

    url: str
    stream: str
    number: int
    name: str
    after: int


@runtime_checkable
class Preparable(Protocol):
    """A journal that outlives its process, and can note which commit its work belongs to."""

    def prepare(self, place: CommitPlace) -> None:
        """Note that the work counts if a commit is stored there, and is to be undone otherwise."""
        ...


@runtime_checkable
class Inexact(Protocol):
    """A journal that reports, after an undo, what it could not restore exactly, such as a file's owner."""

    @property
    def inexact(self) -> Sequence[object]: ...


@runtime_checkable
class Lossy(Protocol):
    """A journal that reports what files lost through its work, such as a hard link."""

    @property
    def lost(self) -> Sequence[object]: ...


@runtime_checkable
class Divisible(Protocol):
    """A journal in which parts of the work can be undone separately."""

    def begin(self) -> Journal:
        """Start a part, which can be undone separately, or together with the whole once it is closed."""
        ...


class External(Protocol):
    """A filesystem that is snapshotted and rolled back together with a session's slices."""

    @property
    def filesystem_id(self) -> str: ...
    def snapshot(self, tag: str | None = None) -> Any: ...
    def restore(self, snapshot: Any) -> Any: ...
    def begin(self) -> Journal: ...


@runtime_checkable
class Attachable(Protocol):
    """A filesystem whose interface for sessions is separate from the methods that its users call."""

    @property
    def external(self) -> External: ...


@runtime_checkable
class HoldsContents(Protocol):
    """A filesystem with a store of blobs, perhaps including some that are missing elsewhere."""

    @property
    def contents(self) -> ContentSource: ...


@runtime_checkable
class KeepsSnapshots(Protocol):
    """A filesystem whose snapshots are in a store outside the session."""

    def lost_snapshots(self) -> Sequence[str]:
        """Return the ids of the session's snapshots that neither the store nor the session holds any more."""
        ...


@runtime_checkable
class SelfRestoring(Protocol):
    """A filesystem whose `restore` is all or nothing: after a failure it has already restored itself."""

    restores_all_or_nothing: bool


@runtime_checkable
class Exchanging(Protocol):
    """A filesystem that can take a snapshot and restore another in one step, with a single scan of its files."""

    def exchange(self, snapshot: Any, on_kept: Callable[[Any], object]) -> None:
        """Take a snapshot, pass it to `on_kept`, and restore `snapshot`."""
        ...


@runtime_checkable
class RunsPrograms(Protocol):
    """A filesystem whose files may be changed by programs at any time."""

    def quiesce(self) -> None:
        """Stop the programs, and record what they changed; called before a rollback."""
        ...

    def release(self) -> None:
        """Stop the programs that the session started; called when it is closed."""
        ...


@runtime_checkable
class Rewindable(Protocol):
    """A filesystem whose changes are recorded in the session's slices, so that it can go back to any record."""

    @property
    def filesystem_id(self) -> str: ...
    def known_at(self, then: SessionView, now: SessionView) -> Any:
        """Return what `restore` needs to go back to `then`: every path that the session knows to have changed since."""
        ...


@runtime_checkable
class Reversible(Protocol):
    """A filesystem whose files can be merged with those of another moment, as the session knows them."""

    @property
    def filesystem_id(self) -> str: ...
    @property
    def sightings(self) -> frozenset[str]:
        """The tags of the events that record what a scan found, whoever changed it."""
        ...

    def scan_changes(self) -> None:
        """Record what background processes of the session have changed; do nothing if there are none."""
        ...

    def look(self) -> Any:
        """Scan the files. Return the event that describes them to the session."""
        ...

    def known(self, view: SessionView, now: SessionView) -> Any:
        """Return the files that the session knew at a moment, including those that it found only later."""
        ...

    def differing(self, one: Any, other: Any) -> tuple[str, ...]:
        """Return the paths at which two states of the files differ, in order."""
        ...

    def merged(
        self, base: Any, ours: Any, theirs: Any, *, paths: Sequence[str] | None = None, resolver: Resolver
    ) -> Any:
        """Return our files with what changed from `base` to `theirs`, at `paths` or everywhere."""
        ...

    def aim(self, there: Any, wanted: Any) -> Any:
        """Return what `External.restore` needs to turn the current files into the wanted ones."""
        ...

    def replace(self, wanted: Any, source: str) -> None:
        """Change the files to the wanted ones by events of the session."""
        ...


class Repair(Protocol):
    """One step that failed and can be retried."""

    def __call__(self) -> object: ...


def snapshot_all(attached: Sequence[External], tag: str | None) -> tuple[tuple[str, Any], ...]:
    """Take a snapshot of each filesystem; if one fails, raise its error."""
    return tuple((external.filesystem_id, external.snapshot(tag)) for external in attached)


@define(eq=False)
class Restoring:
    """Restores several filesystems, all or none of them."""

    states: dict[str, str] = field(factory=dict[str, str])
    # The filesystems already begun, each with a snapshot from before.
    begun: list[tuple[External, Any]] = field(factory=list[tuple[External, Any]])
    # Whether all were restored, or were put back into their previous state as far as possible.
    settled: bool = False

    @property
    def before(self) -> tuple[tuple[str, Any], ...]:
        """A snapshot of each filesystem from before, with which the restore can be undone later."""
        return tuple((external.filesystem_id, snapshot) for external, snapshot in self.begun)

    def run(self, attached: Sequence[External], wanted: Mapping[str, Any]) -> None:
        """Restore each filesystem that has a wanted snapshot. If this raises, call `put_back` to undo it."""
        self.states = {external.filesystem_id: "untouched" for external in attached}
        for external in attached:
            name = external.filesystem_id
            if name in wanted:
                try:
                    self._exchange(external, wanted[name])
                except BaseException as error:
                    self.states[name] = f"not restored: {_reason(error)}"
                    if isinstance(external, SelfRestoring) and not isinstance(error, RollbackIncomplete):
                        # This filesystem has already restored itself.
                        self.begun = [one for one in self.begun if one[0] is not external]
                    error.add_note(
                        f"{name} could not be restored; every filesystem is put back into its previous state"
                    )
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
        """Put all filesystems back into their previous state, the last one first.

        Return the failed steps for a retry.
        """
        repairs: dict[str, Repair] = {}
        for external, snapshot in reversed(self.begun):
            name = external.filesystem_id
            step = partial(external.restore, snapshot)
            try:
                step()
                self.states[name] = "unchanged"
            except BaseException as error:
                self.states[name] = f"neither restored nor put back: {_reason(error)}"
                repairs[name] = step
        return repairs


def begin_all(attached: Sequence[External], outer: Mapping[str, Journal]) -> dict[str, Journal]:
    """Start a journal for each filesystem; if one fails, close those already started."""
    journals: dict[str, Journal] = {}
    try:
        for external in attached:
            journals[external.filesystem_id] = begin(external, outer.get(external.filesystem_id))
    except BaseException:
        close_all(journals)
        raise
    return journals


def begin(external: External, outer: Journal | None) -> Journal:
    """Start a journal: a part of the outer transaction's journal, if that is divisible."""
    return outer.begin() if isinstance(outer, Divisible) else external.begin()


def close_all(journals: Mapping[str, Journal]) -> None:
    """Close each journal. The changes are final: an error on closing is logged, an interrupt is raised last."""
    interrupt: BaseException | None = None
    for name, journal in journals.items():
        try:
            journal.close()
        except Exception:
            logger().exception("cannot close the journal of %s", name)
        except BaseException as error:
            interrupt = error
    if interrupt is not None:
        raise interrupt


def prepare_all(journals: Mapping[str, Journal], place: CommitPlace) -> None:
    """Let each journal note the commit that it belongs to."""
    for journal in journals.values():
        if isinstance(journal, Preparable):
            journal.prepare(place)


def undo_all(journals: Mapping[str, Journal]) -> tuple[dict[str, Repair], dict[str, str], set[str]]:
    """Undo each journal, newest first; return the failed steps, the state of each, and the names of those undone."""
    repairs: dict[str, Repair] = {}
    states: dict[str, str] = {}
    for name, journal in reversed(list(journals.items())):
        try:
            journal.undo()
            states[name] = "put back"
        except BaseException as error:
            states[name] = f"not put back: {_reason(error)}"
            repairs[name] = journal.undo
    return repairs, states, journals.keys() - repairs.keys()


class InexactNote(str):
    """A note for an exception: what an undone journal could not restore exactly, and in which filesystem."""

    __slots__ = ("about", "filesystem")

    about: object
    filesystem: str

    @classmethod
    def of(cls, about: object, filesystem: str) -> InexactNote:
        """Return the note on what the journal of a filesystem, given by its id, reported."""
        made = cls(INEXACT + str(about))
        made.about, made.filesystem = about, filesystem
        return made


def inexact_notes(journals: Mapping[str, Journal]) -> list[InexactNote]:
    """Return what undone journals could not restore exactly, each as a note for an exception."""
    return [
        InexactNote.of(note, name)
        for name, journal in journals.items()
        if isinstance(journal, Inexact)
        for note in journal.inexact
    ]


def repair_all(repairs: Mapping[str, Repair]) -> tuple[dict[str, Repair], dict[str, str]]:
    """Retry each step; return those that failed again, and the state of each filesystem."""
    failed: dict[str, Repair] = {}
    states: dict[str, str] = {}
    for name, step in repairs.items():
        try:
            step()
            states[name] = "put back"
        except Exception as error:
            failed[name] = step
            states[name] = f"not put back: {_reason(error)}"
    return failed, states


def _reason(error: BaseException) -> str:
    return str(error) or type(error).__name__


def recorded_id(filesystem: object, attached: Iterable[External]) -> str | None:
    """Return the id that records use for a filesystem's files: `None` unless it is one of those attached."""
    own: str | None = getattr(filesystem, "filesystem_id", None)
    return own if any(one.filesystem_id == own for one in attached) else None
