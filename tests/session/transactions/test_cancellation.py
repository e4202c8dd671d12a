"""Cancelling a transaction from another thread, while its own code hangs."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from weakfs import HostFilesystem, InMemoryFilesystem, Session
from weakfs.session import Cancellation, TransactionCancelled


class Hanging:
    """A transaction in a thread of its own: it writes, hangs until it is released, and then continues."""

    def __init__(self, session: Session, work: object, after: object) -> None:
        self.cancellation = Cancellation()
        self.reached, self.may_go = threading.Event(), threading.Event()
        self.errors: list[BaseException] = []
        self._session, self._work, self._after = session, work, after
        self.thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        try:
            with self._session.transaction(cause="slow", cancellation=self.cancellation):
                self._work()  # type: ignore[operator]  # a callable
                self.reached.set()
                self.may_go.wait(60)
                self._after()  # type: ignore[operator]  # a callable
        except BaseException as error:
            self.errors.append(error)

    @contextmanager
    def hanging(self) -> Iterator[None]:
        self.thread.start()
        assert self.reached.wait(60)
        try:
            yield
        finally:
            self.may_go.set()
            self.thread.join(60)


def test_a_cancelled_transaction_is_undone_while_its_code_still_hangs() -> None:
    session = Session()
    files = InMemoryFilesystem(session)
    files.write("/a", "1\n")
    before = files.tree().fingerprint
    work = Hanging(session, lambda: files.write("/a", "2\n"), lambda: files.write("/b", "3\n"))
    with work.hanging():
        assert work.cancellation.cancel()
        assert files.tree().fingerprint == before
    assert [type(error) for error in work.errors] == [TransactionCancelled]
    assert files.tree().fingerprint == before
    assert session.records[-1].cause == "slow"


def test_code_in_a_cancelled_transaction_cannot_read_write_or_begin_another() -> None:
    session = Session()
    files = InMemoryFilesystem(session)
    refused: list[str] = []

    def try_all() -> None:
        def begin() -> None:
            with session.transaction():
                files.write("/c", "")

        for attempt in (lambda: files.write("/b", ""), lambda: files.read("/a"), begin):
            try:
                attempt()
            except TransactionCancelled as error:
                refused.append(str(error))

    work = Hanging(session, lambda: files.write("/a", ""), try_all)
    with work.hanging():
        work.cancellation.cancel("the user pressed stop")
    assert len(refused) == 3
    assert all("the user pressed stop" in message for message in refused)
    assert isinstance(work.errors[0], TransactionCancelled)
    assert files.statistics().node_count == 0


def test_an_inner_transaction_is_cancelled_with_the_outer_one(tmp_path: Path) -> None:
    session = Session()
    (tmp_path / "root").mkdir()
    files = HostFilesystem(tmp_path / "root", session=session, store=tmp_path / "store")
    files.write("/a", "1\n")

    def nested() -> None:
        files.write("/a", "2\n")
        inner = session.transaction()
        inner.__enter__()
        files.write("/b", "3\n")

    work = Hanging(session, nested, lambda: files.write("/b", "4\n"))
    with work.hanging():
        assert work.cancellation.cancel()
        assert files.read("/a").content == "1\n"
        assert not files.exists("/b")
    assert [type(error) for error in work.errors] == [TransactionCancelled]
    assert not files.exists("/b")
    assert (tmp_path / "root" / "a").read_text() == "1\n"


def test_work_cancelled_before_it_starts_never_starts() -> None:
    session = Session()
    cancellation = Cancellation()
    assert cancellation.cancel()
    with pytest.raises(TransactionCancelled), session.transaction(cancellation=cancellation):
        raise AssertionError("it began")
    assert session.seq == 0


def test_finished_work_can_no_longer_be_cancelled() -> None:
    session = Session()
    files = InMemoryFilesystem(session)
    cancellation = Cancellation()
    with session.transaction(cancellation=cancellation):
        files.write("/a", "1\n")
    assert not cancellation.cancel()
    assert files.exists("/a")


def test_cancelling_waits_for_the_work_that_it_stops() -> None:
    session = Session()
    cancellation = Cancellation()
    stop, order = threading.Event(), list[str]()

    def work() -> None:
        with pytest.raises(TransactionCancelled), session.transaction(cancellation=cancellation):
            with cancellation.stopping(stop.set):
                started.set()
                stop.wait(60)
                order.append("stopped")
            cancellation.check()

    started = threading.Event()
    thread = threading.Thread(target=work)
    thread.start()
    started.wait(60)
    cancellation.cancel()
    order.append("cancelled")
    thread.join(60)
    assert order == ["stopped", "cancelled"]
