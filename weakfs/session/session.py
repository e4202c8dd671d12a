"""The session: the one mutable object, holding immutable slices that events change."""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from typing import Any, Self

from weakfs.session.blobs.blob import Stored
from weakfs.session.branching import Branching
from weakfs.session.errors import RollbackIncomplete
from weakfs.session.external import Attachable, External, repair_all
from weakfs.session.files.expansion import FACTOR
from weakfs.session.history.timeline import Timeline
from weakfs.session.slices.registry import Registry
from weakfs.session.slices.schema import Rules
from weakfs.session.subscriptions import Bus
from weakfs.session.views import SaveReport


class Session(Branching):
    """Events in, immutable slices out; snapshot, rollback, transactions, forks, save and load.

    `clock` gives integer nanoseconds (default `time.time_ns`), `new_id` a fresh session id. `registry` lists the
    types that the session and its files may hold. Every method may be called from any thread.

    This class knows no filesystems; `weakfs.Session` is this one with all types of weakfs registered.
    """

    __slots__ = ()

    def attach(self, filesystem: External | Attachable) -> None:
        """Let an external filesystem take part in snapshots, rollbacks and transactions.

        Attaching what is attached already changes nothing; another filesystem with its id is a `ValueError`.
        """
        part = filesystem.external if isinstance(filesystem, Attachable) else filesystem
        with self.lock:
            for known in self._attached:
                if known is part:
                    return
                if known.filesystem_id == part.filesystem_id:
                    raise ValueError(f"a filesystem {part.filesystem_id!r} is attached already; attach each once")
            self._attached = (*self._attached, part)

    def repair(self) -> None:
        """Take up a rollback of external filesystems that could not be finished; no-op if there is none.

        Raise `RollbackIncomplete` again while something cannot be put back.
        """
        with self.lock:
            self._repairs, states = repair_all(self._repairs)
            if self._repairs:
                raise RollbackIncomplete(states)

    def save(self, path: str | PathLike[str], *, embed: bool = False) -> SaveReport:
        """Write the session to one JSON file, so that a crash leaves the old file or the new one.

        Contents that lie elsewhere, such as those of external snapshots, are put into the folder `NAME.blobs`
        beside the file, or with `embed` into the file itself; what the file before needed there and this one does
        not, is removed. What an open transaction has done so far is not in it. A content that is nowhere any more is
        left out, and `missing` of the report names it: a session that could not be saved would lose everything else.
        Raise `SessionError` that names the place of a value that could not be read back, and `OSError` if the file
        cannot be written; what was saved before is then as it was.
        """
        from weakfs.session.files.session_file import save_session

        return save_session(self, path, embed=embed)

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

        What the file tells by reference, such as a content as an earlier one and a tail, may take `max_expansion` times
        its size in memory, or 64 MiB where that is more; `None` is no limit. No session that was saved comes near that:
        only a file that was made to exhaust memory is refused.

        What lies in the folder `NAME.blobs` beside the file is read when it is needed; what is missing there is
        logged, and told by `missing_blobs`. Raise `SessionFileError` that names what is wrong and where,
        `UnsupportedVersion` for a newer format, and `OSError` if the file cannot be read.
        """
        from weakfs.session.files.session_file import load_session

        session = cls(session_id="loading", registry=registry, clock=clock, new_id=new_id, bus=bus)
        load_session(session, path, max_expansion=max_expansion)
        return session

    @property
    def missing_blobs(self) -> tuple[str, ...]:
        """The contents, by digest in hex, that were missing beside the file when it was loaded, and are so still.

        Looked for when this is asked. Reading one of them raises `MissingBlob`; all else can be used.
        """
        return tuple(content.digest.hex() for content in self._missing()) if self._missing is not None else ()

    def replayed(self) -> Self:
        """Return a new session of the same id and the same types that replayed the records of this one.

        It attaches nothing. See `replay` for what is raised; this session is only read.
        """
        with self.lock:
            rules, _, own = self._parts()
            records = self.records
        again = type(self)(session_id=self.session_id, registry=rules.registry, clock=self._clock)
        again._take_over(rules, Timeline(), own)
        again.replay(records)
        return again

    def _parts(self) -> tuple[Rules, Timeline, dict[str, Any]]:
        """Return what a file of this session is made of; for `weakfs.session.files.session_file`."""
        own = {"session_id": self.session_id, "origin_id": self.origin_id, "counter": self._counter}
        return self._rules, self._trunk, own

    def _take_over(
        self,
        rules: Rules,
        line: Timeline,
        own: dict[str, Any],
        missing: Callable[[], tuple[Stored, ...]] | None = None,
    ) -> None:
        """Become what a file held; for `weakfs.session.files.session_file`."""
        self.session_id, self.origin_id = own["session_id"], own["origin_id"]
        # Never a number that a kept snapshot has.
        own_prefix = f"{self.session_id}/"
        taken = [e.number for e in line.snapshots.values() if e.snapshot_id.startswith(own_prefix)]
        self._counter = max([own["counter"], *taken])
        self._rules, self._trunk, self._missing = rules, line, missing
