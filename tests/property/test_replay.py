"""Any session is rebuilt from its records: its slices, at every record and snapshot, and its files."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test as run_machine  # pyright: ignore[reportUnknownVariableType]  # untyped

from tests.property.session_model import Line
from tests.property.test_filesystem_machine import FilesystemMachine
from tests.property.test_session_machine import SessionMachine, moment
from tests.sampling import share
from tests.session.ledger import Added, Noted, Put, Shelf, Taken, Total, install_ledger, make_session
from weakfs import Registry, Session
from weakfs.reducers import FileTree
from weakfs.session.replay.verification import Comparison, Moment, Rebuilding

LEDGER = Registry.empty().with_types(Added, Put, Taken, Noted, Total, Shelf)


def moments_of(session: Session) -> list[Moment]:
    rules, line, own = session._parts()
    return list(Rebuilding(rules, line, own["session_id"], own["origin_id"]).moments())


def check(session: Session) -> Session:
    """Replay a session, compare everything that both hold, and have its past computed again."""
    again = session.replayed()
    rules, line, _ = session._parts()
    _, other, _ = again._parts()
    same = Comparison(rules)
    for one, two in ((line.state, other.state), (line.logs, other.logs)):
        assert same.differing(one, two) == ()
    assert list(line.rows) == list(other.rows)
    assert again.snapshots == session.snapshots
    for name, entry in line.snapshots.items():
        assert same.differing(entry.state, other.snapshots[name].state) == ()
    assert [one for one in moments_of(session) if not one.is_same] == []
    return again


class ReplayedSession(SessionMachine):
    """A session with transactions, forks, merges, snapshots and compactions, replayed in the end."""

    def teardown(self) -> None:
        super().teardown()
        with tempfile.TemporaryDirectory(prefix="weakfs-replay-") as folder:
            for session, line in [(self.session, self.line), *self.forks]:
                self.check(session, line, Path(folder))

    def check(self, session: Session, line: Line, folder: Path) -> None:
        # The reducers that the machine's sessions have are installed, not declared.
        again = make_session(session.session_id)
        again.replay(session.records)
        loaded = Session.load(saved(session, folder / "session.json"), registry=LEDGER)
        install_ledger(loaded)
        for one in (again, check(session), check(loaded)):
            assert list(one.records) == list(session.records)
            assert one.snapshots == session.snapshots
            for seq in range(line.dropped, line.seq + 1):
                assert moment(one.at(seq)) == line.moments[seq]
            for name, state in line.snapshots.items():
                assert moment(one.at(name))[0] == state


def saved(session: Session, path: Path) -> Path:
    session.save(path)
    return path


class ReplayedFiles(FilesystemMachine):
    """The files of a session, replayed in the end."""

    def teardown(self) -> None:
        try:
            loaded = Session.load(saved(self.session, Path(self.folder.name) / "session.json"))
            for again in (check(self.session), check(loaded)):
                for seq in self.history:
                    one, other = (tree_at(session, seq) for session in (self.session, again))
                    assert (one.digest, one.fingerprint) == (other.digest, other.fingerprint)
        finally:
            super().teardown()


def tree_at(session: Session, seq: int) -> FileTree:
    return session.at(seq)[FileTree].latest() or FileTree()


def test_replaying_the_records_of_any_session_gives_the_session() -> None:
    run_machine(
        ReplayedSession,
        settings=settings(
            max_examples=share(80), stateful_step_count=40, deadline=None, suppress_health_check=[HealthCheck.too_slow]
        ),
    )


def test_replaying_the_records_of_any_files_gives_the_files() -> None:
    run_machine(
        ReplayedFiles,
        settings=settings(
            max_examples=share(40), stateful_step_count=25, deadline=None, suppress_health_check=[HealthCheck.too_slow]
        ),
    )
