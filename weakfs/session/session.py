"""The session: the one mutable object, holding immutable slices that events change."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from os import PathLike
from typing import TYPE_CHECKING, Any, Self, TypeVar

from weakfs.attribute_hints import attribute_hints
from weakfs.messages import a_type
from weakfs.session.codec.expansion_limit import FACTOR
from weakfs.session.errors import RollbackIncomplete
from weakfs.session.external_filesystems import Attachable, External, RunsPrograms, repair_all
from weakfs.session.history.timeline import Timeline
from weakfs.session.history.views import SaveReport
from weakfs.session.logger import logger
from weakfs.session.slices.events import Record
from weakfs.session.slices.type_registry import Registry
from weakfs.session.subscriptions import Bus
from weakfs.session.undo.undo import Undo
from weakfs.shield import cancelled_once, run_in_thread, shielded

if TYPE_CHECKING:
    from weakfs.session.durable.aopen_session import AsyncWhere
    from weakfs.session.durable.open_session import Durability, OnOthers, Where


@attribute_hints(
    apply="dispatch(event)",
    begin="transaction()",
    branch="fork()",
    commit="save(path), or Session.open(where), which stores every change",
    dump="save(path)",
    dumps="to_bytes()",
    emit="dispatch(event)",
    events="records",
    files="InMemoryFilesystem(session)",
    filesystem="InMemoryFilesystem(session)",
    history="records",
    loads="from_bytes(data)",
    log="records",
    reset="rollback(target)",
    savepoint="snapshot(tag)",
    state="session[T].latest()",
    to_json="to_bytes()",
)
class Session(Undo):
    """Immutable slices of state that events change, with their records, snapshots, transactions and forks.

    `clock` returns integer nanoseconds (default `time.time_ns`), `new_id` a new session id. `registry` lists the
    types that the session and its files may hold. Every method may be called from any thread.

    This class is generic; `weakfs.Session` is the same class with all types of weakfs registered.
    """

    __slots__ = ()

    def attach(self, filesystem: External | Attachable) -> None:
        """Let an external filesystem take part in snapshots, rollbacks and transactions.

        Attaching the same filesystem again changes nothing. Raises `ValueError` if another one with its id is attached,
        and `TypeError` for anything but an external filesystem.
        """
        part = filesystem.external if isinstance(filesystem, Attachable) else filesystem
        if not all(hasattr(part, name) for name in ("filesystem_id", "snapshot", "restore", "begin")):
            raise TypeError(
                f"cannot attach {filesystem!r:.60}: it is not an external filesystem, such as a HostFilesystem; files "
                f"in a session need not be attached"
            )
        with self.lock:
            for other in self._attached:
                if other is part:
                    return
                if other.filesystem_id == part.filesystem_id:
                    raise ValueError(f"a filesystem {part.filesystem_id!r} is already attached; attach each only once")
            self._attached = (*self._attached, part)

    def repair(self) -> None:
        """Complete a rollback of external filesystems that failed before; do nothing if there is none.

        Raises `RollbackIncomplete` again as long as something cannot be restored.
        """
        with self.lock:
            self._repairs, states = repair_all(self._repairs)
            if self._repairs:
                raise RollbackIncomplete(states)

    def save(self, path: str | PathLike[str], *, embed: bool = False) -> SaveReport:
        """Write the session to one JSON file; a crash leaves the old file or the new one.

        External blobs, such as those of external snapshots, are written to the sidecar directory `NAME.blobs` next to
        the file, or with `embed` into the file itself; blobs that only the previous file needed are removed.
        Uncommitted changes of an open transaction are not saved. A blob that no source has any more is left out and
        listed in the report's `missing`: a session that could not be saved would lose everything else.

        Raises `SessionError` naming the place of a value that could not be read back, and `OSError` if the file cannot
        be written; the last saved version is then unchanged.
        """
        from weakfs.session.files.session_file import save_session

        return self._reading(lambda: save_session(self, path, embed=embed))

    @classmethod
    def load(
        cls,
        path: str | PathLike[str],
        *,
        registry: Registry | None = None,
        clock: Callable[[], int] | None = None,
        new_id: Callable[[], str] | None = None,
        bus: Bus | None = None,
        max_expansion: float | None = FACTOR,
    ) -> Self:
        """Read a session back: slices, snapshots and records, exactly as they were saved.

        Values that the file stores by reference, such as a blob that extends an earlier one, may take up
        `max_expansion` times its size in memory, or 64 MiB if that is more; `None` means no limit. No saved session
        comes near this limit. It only refuses files that were made to exhaust memory.

        Blobs in the sidecar directory `NAME.blobs` are read when they are needed; those missing there are logged, and
        listed by `missing_blobs`. The file may be a pipe with up to 1 GiB. Raises `SessionFileError` naming what is
        wrong and where, `UnsupportedVersion` for a newer format, and `OSError` if the file cannot be read.
        """
        from weakfs.session.files.session_file import load_session

        session = cls(session_id="loading", registry=registry, clock=clock, new_id=new_id, bus=bus)
        load_session(session, path, max_expansion=max_expansion)
        return session

    @classmethod
    def open(
        cls,
        where: Where,
        session_id: str | None = None,
        *,
        durability: Durability = "process",
        on_conflict: OnOthers = "raise",
        exclusive: bool = False,
        registry: Registry | None = None,
        clock: Callable[[], int] | None = None,
        bus: Bus | None = None,
        max_expansion: float | None = FACTOR,
    ) -> Self:
        """Open a session in storage, or create it. Every change is stored before it takes effect.

        `where` is a folder, a URL such as `sqlite:sessions.db`, a `Storage` or an `EventStore`. Without `session_id`,
        open the only session there, or create one. If a change cannot be stored, nothing has changed. `durability` says
        what an acknowledged change survives: with "process" the death of the process, with "power" a power failure as
        well. "manual" is the same as "process", for programs that call `flush`.

        If another process changed the session in the meantime, a change raises `SessionConflict`; with
        `on_conflict="merge"`, it is merged like a fork. With `exclusive`, no other process can change the session until
        it is closed. Raises `LeaseLost` if another process has opened it exclusively.

        The state is in memory when this returns; records and contents from before the newest checkpoint are read when
        they are needed. A checkpoint may take up `max_expansion` times its size in memory, as a file may with `load`.
        Raises `SessionError` if there are several sessions and no `session_id`, `SessionFileError` if the stream is not
        a session or is damaged, and `StorageError` if the storage cannot be read.
        """
        from weakfs.session.durable.open_session import Options, open_session

        return open_session(
            lambda name: cls(session_id=name, registry=registry, clock=clock, bus=bus),
            where,
            session_id,
            Options(durability, on_conflict, exclusive, max_expansion),
        )

    @classmethod
    async def aopen(
        cls,
        where: AsyncWhere,
        session_id: str | None = None,
        *,
        durability: Durability = "process",
        on_conflict: OnOthers = "raise",
        exclusive: bool = False,
        registry: Registry | None = None,
        clock: Callable[[], int] | None = None,
        bus: Bus | None = None,
        max_expansion: float | None = FACTOR,
    ) -> Self:
        """Open a session as `open` does, on an event loop; commits are awaited with the engine's own client.

        `where` may also be an `AsyncStorage` or an `AsyncEventStore`. `Toolset.acall`,
        `async with session.transaction()` and the methods whose names begin with "a" do not block the loop. All other
        methods use a second client, which blocks. An `AsyncStorage` has no second client, so they raise `StorageError`
        if they would have to wait for it on the loop.
        """
        from weakfs.session.durable.aopen_session import aopen_session
        from weakfs.session.durable.open_session import Options

        opening = aopen_session(
            lambda name: cls(session_id=name, registry=registry, clock=clock, bus=bus),
            where,
            session_id,
            Options(durability, on_conflict, exclusive, max_expansion),
        )
        return await cancelled_once(opening, lambda session: session.aclose())

    def copy_to(self, where: Where, *, durability: Durability = "process") -> None:
        """Store a copy of the session, with its whole history, in a folder, at a URL or in a `Storage`.

        Raises `SessionError` if a session with its id exists there.
        """
        from weakfs.session.durable.open_session import copy_session

        def copy() -> None:
            target = type(self).open(where, self.session_id, durability=durability, registry=self.registry)
            try:
                copy_session(self, target)
            finally:
                target.close()

        self._reading(copy)

    async def acopy_to(self, where: Where, *, durability: Durability = "process") -> None:
        """Store a copy of the session as `copy_to` does, in a thread."""
        await shielded(run_in_thread(partial(self.copy_to, where, durability=durability)))

    @staticmethod
    def delete(where: Where, session_id: str | None = None, *, expected: int | None = None) -> str:
        """Delete a session from storage, with its records, snapshots and contents, and return its id.

        Without `session_id`, delete the only session there. `expected` is the number of its newest frame. Raises
        `SessionError` if there is no such session, `LeaseLost` if another process has opened it exclusively, and
        `SessionConflict` if it does not end at `expected`, because another process has changed it since; then nothing
        is deleted. Any other process that has it open gets `StorageError` on its next change.
        """
        from weakfs.session.durable.deletion import delete_session

        return delete_session(where, session_id, expected=expected)

    @property
    def is_new(self) -> bool:
        """Whether nothing has happened to the session yet: it was just created, in memory or in storage."""
        with self.lock:
            head = 0 if self._log is None else self._log.head
            return not (head or self._trunk.seq or len(self._trunk.snapshots))

    def refresh(self) -> int:
        """Read what other processes stored since, and return the number of new records; 0 for a session in memory.

        Raises `SessionClosed` if the session was closed, and `StorageError` if the storage cannot be read, or if the
        session was deleted.
        """
        with self.lock:
            if self._closed is not None or self._running is not None:
                self._refuse()
            count = 0 if self._log is None else self._log.refresh(self)
        self._notify()
        return count

    async def arefresh(self) -> int:
        """Read what other processes stored since, as `refresh` does, without blocking the event loop."""
        with self.lock:
            if self._closed is not None:
                self._refuse()
            log, queue, before = self._log, self._queue, self._trunk.seq
        if log is None:
            return 0
        if queue is None:
            return await shielded(run_in_thread(self.refresh))
        from weakfs.session.durable.commits.refresh import refreshed

        await queue.perform(partial(refreshed, log, self))
        return self._trunk.seq - before

    def watch(self, *, timeout: float | None = None) -> Iterator[Record]:
        """Follow the session: yield each new record, including those that other processes store.

        End after `timeout` seconds without a new record, or when the session is closed. Raises `StorageError` if the
        session was deleted, or if the storage fails, for example while its server restarts; then call `watch` again to
        continue. Raises `SessionError` for a session in memory, which only this process can change: use `subscribe`
        instead.
        """
        from weakfs.session.durable.watch import watch

        return watch(self, self.refresh, timeout)

    def awatch(self, *, timeout: float | None = None) -> AsyncIterator[Record]:
        """Follow the session as `watch` does, with `async for`."""
        from weakfs.session.durable.watch import awatch

        return awatch(self, self.arefresh, timeout)

    def flush(self) -> None:
        """Wait until everything that was stored is as durable as the storage can make it.

        Raises `StorageError` if stored changes are gone because the folder was removed or the session was deleted.
        """
        with self.lock:
            log = self._log
        if log is not None:
            log.flush()

    async def aflush(self) -> None:
        """Wait until the commits that are under way have ended and everything stored is as durable as it can be."""
        import asyncio

        log = self._log
        if log is not None:
            await (asyncio.to_thread(log.flush) if self._queue is None else self._queue.flush())

    def checkpoint(self) -> None:
        """Store the state, so that opening the session does not have to read the frames before it.

        This happens automatically after enough changes, in the background. Do nothing for a session in memory. Raises
        `SessionClosed` if the session was closed.
        """
        with self.lock:
            if self._closed is not None:
                self._refuse()
            log = self._log
        if log is not None:
            log.checkpoint(self)

    async def acheckpoint(self) -> None:
        """Store the state as `checkpoint` does, in a thread."""
        import asyncio

        await asyncio.to_thread(self.checkpoint)

    def close(self, reason: str = "it was closed") -> None:
        """Refuse every further change, stop the processes that the session started, and release its storage.

        What is in memory can still be read. Old records and large contents, which are read from the storage when they
        are needed, are no longer available, neither to this session nor to its forks and copies. Raises what `flush`
        raises, after everything is released.
        """
        for external in () if self._closed is not None else self._attached:
            if isinstance(external, RunsPrograms):
                try:
                    external.release()
                except Exception:
                    logger().exception("cannot stop the programs that run in %s", external.filesystem_id)
        super().close(reason)
        with self.lock:
            log, queue = self._log, self._queue
        if log is None or log.is_closed:
            return
        if queue is not None and queue.loop.is_running():
            queue.close_soon()
        else:
            log.close(self)

    async def aclose(self, reason: str = "it was closed") -> None:
        """Refuse every further change, wait for the commits that are under way, and release the storage.

        If this is cancelled, it closes the session nevertheless, and then raises `CancelledError`.
        """
        import asyncio

        super().close(reason)
        log, queue = self._log, self._queue
        if log is not None and queue is None:
            await shielded(run_in_thread(partial(log.close, self)))
        elif queue is not None:
            await shielded(asyncio.ensure_future(queue.close()))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def to_bytes(self) -> bytes:
        """Return the session as the bytes of a session file, with all contents in it.

        `from_bytes` and `load` read them back. Raises `SessionError` as `save` does.
        """
        from weakfs.session.files.session_file import session_bytes

        return self._reading(lambda: session_bytes(self))

    @classmethod
    def from_bytes(
        cls,
        data: bytes,
        *,
        registry: Registry | None = None,
        clock: Callable[[], int] | None = None,
        new_id: Callable[[], str] | None = None,
        bus: Bus | None = None,
        max_expansion: float | None = FACTOR,
    ) -> Self:
        """Return the session that `to_bytes` wrote; raises what `load` raises."""
        if not isinstance(data, bytes | bytearray | memoryview):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"data is {a_type(data)}; pass the bytes that to_bytes returned, or load a file with load")
        from weakfs.session.files.session_file import load_session_bytes

        session = cls(session_id="loading", registry=registry, clock=clock, new_id=new_id, bus=bus)
        load_session_bytes(session, data, max_expansion=max_expansion)
        return session

    def __copy__(self) -> Self:
        """Return an independent session with the same id, slices, records and snapshots. O(1).

        Attached filesystems, subscriptions and open transactions are not copied.
        """
        with self.lock:
            rules, line, own = self._parts()
            again = type(self)(session_id=self.session_id, registry=rules.registry, clock=self._clock)
            again._set_parts(rules, line, own, self._missing)
            again._count_like(self)
        return again

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return what `copy.copy` returns: the values that a session holds are immutable."""
        return self.__copy__()

    def __reduce__(self) -> tuple[Callable[..., Self], tuple[type[Self], bytes, dict[str, type]]]:
        standard = self._registry_type.standard().by_tag
        types = {tag: shape.cls for tag, shape in self.registry.by_tag.items() if tag not in standard}
        return _unpickled, (type(self), self.to_bytes(), types)

    @property
    def missing_blobs(self) -> tuple[str, ...]:
        """The blobs, by hex digest, that were missing from the sidecar directory on loading and still are.

        They are checked on every access. Reading one of them raises `MissingBlob`; everything else can be used.
        """
        return tuple(content.digest.hex() for content in self._missing()) if self._missing is not None else ()

    def replayed(self) -> Self:
        """Return a new session with the same id and types that has replayed the records of this one.

        No filesystem is attached to it. See `replay` for what is raised; this session is only read.
        """
        return self._reading(self._replayed)

    def _replayed(self) -> Self:
        with self.lock:
            rules, _, header = self._parts()
            records = self.records
        again = type(self)(session_id=self.session_id, registry=rules.registry, clock=self._clock)
        again._set_parts(rules, Timeline(), header)
        again.replay(records)
        again._count_like(self)
        return again


S = TypeVar("S", bound=Session)


def _unpickled(cls: type[S], data: bytes, types: dict[str, type]) -> S:
    return cls.from_bytes(data, registry=cls._registry_type.standard().with_tags(types))


def checked_session(session: Session) -> Session:
    """Return `session`. Raises `TypeError` for anything else."""
    if not isinstance(session, Session):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"session is {a_type(session)}; pass a Session, such as Session.load(path)")
    return session
