"""Many threads over one session: no lost update, no torn read, no deadlock."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import Random
from threading import Thread

import pytest

from tests.faults.together import run_together
from tests.sampling import share
from weakfs import MergeConflict, Record, Session
from weakfs.backends import InMemoryFilesystem
from weakfs.reducers import FileTree

THREADS = 8
TURNS = share(1500)


def retrying(session: Session, work: Callable[[], object]) -> None:
    """Do a piece of work in a transaction, and repeat it as long as others commit first."""
    while True:
        try:
            with session.transaction():
                work()
        except MergeConflict:
            continue
        return


class Worker:
    """One thread's work on its own files, their expected contents, and its share of a common counter."""

    def __init__(self, number: int, session: Session) -> None:
        self.home = f"/worker{number}"
        self.session = session
        self.fs = InMemoryFilesystem(session)
        self.random = Random(number)
        self.expected: dict[str, str] = {}
        self.counted = 0

    def __call__(self) -> None:
        acts = (self.write, self.write, self.move, self.pair, self.fail, self.keep, self.count)
        for turn in range(TURNS):
            self.random.choice(acts)(turn)

    def path(self) -> str:
        return f"{self.home}/{self.random.choice('abcd')}.txt"

    def write(self, turn: int) -> None:
        path, text = self.path(), f"{turn}\n" * self.random.randrange(1, 20)
        self.fs.write(path, text)
        self.expected[path] = text

    def move(self, turn: int) -> None:
        texts = sorted(path for path in self.expected if path.endswith(".txt"))
        if texts:
            source, target = self.random.choice(texts), f"{self.home}/moved/{turn}.txt"
            self.fs.mkdir(f"{self.home}/moved")
            self.fs.move(source, target)
            self.expected[target] = self.expected.pop(source)

    def pair(self, turn: int) -> None:
        with self.session.transaction():
            for side in ("left", "right"):
                self.fs.write(f"{self.home}/{side}", f"{turn}")
        self.expected |= {f"{self.home}/{side}": f"{turn}" for side in ("left", "right")}

    def fail(self, turn: int) -> None:
        before = dict(self.expected)
        with pytest.raises(LookupError), self.session.transaction():
            self.write(turn)
            self.move(turn)
            raise LookupError
        self.expected = before

    def keep(self, turn: int) -> None:
        snapshot = self.session.snapshot(f"{self.home} {turn}")
        shown = InMemoryFilesystem(self.session.at(snapshot))
        assert {path: shown.read(path).content for path in self.expected} == self.expected
        if turn % 2:
            self.session.drop_snapshot(snapshot)

    def count(self, turn: int) -> None:
        def add_one() -> None:
            number = int(self.fs.read("/counter").content.split()[0])
            # The writer is recorded next to the number: two that write exactly the same text do not conflict.
            self.fs.write("/counter", f"{number + 1} {self.home} {turn}")

        retrying(self.session, add_one)
        self.counted += 1


def test_eight_threads_that_write_move_snapshot_and_roll_back_lose_nothing() -> None:
    session = Session()
    fs = InMemoryFilesystem(session)
    fs.write("/counter", "0")
    workers = [Worker(number, session) for number in range(THREADS)]

    def check_pairs() -> None:
        shown = InMemoryFilesystem(session.at(session.seq))
        for worker in workers:
            sides = [f"{worker.home}/{side}" for side in ("left", "right")]
            texts = [shown.read(path).content if shown.exists(path) else None for path in sides]
            assert texts[0] == texts[1], "two files that are written together were seen apart"
        assert shown.exists("/counter")

    run_together(*workers, meanwhile=check_pairs)

    for worker in workers:
        assert {path: fs.read(path).content for path in worker.expected} == worker.expected
        found = {entry.path for entry in fs.list(worker.home) if entry.is_file}
        assert found == {path for path in worker.expected if "/moved/" not in path}
    assert int(fs.read("/counter").content.split()[0]) == sum(worker.counted for worker in workers)
    assert [record.seq for record in session.records] == list(range(1, session.seq + 1))


def test_threads_that_also_roll_back_the_session_leave_a_consistent_history() -> None:
    session = Session()
    fs = InMemoryFilesystem(session)
    fs.write("/left", "start")
    fs.write("/right", "start")
    first = session.snapshot("first").seq

    def write_both(text: str) -> None:
        for side in ("left", "right"):
            fs.write(f"/{side}", text)

    def work(number: int) -> None:
        random = Random(number)
        # Each rollback makes the transactions of all others start again.
        for turn in range(TURNS // 2):
            act = random.randrange(5)
            if act == 0:
                session.rollback(random.randrange(first, session.seq + 1))
            elif act == 1:
                session.rollback("first")
            elif act == 2:
                fs.write(f"/{number}", f"{turn}")
            else:
                retrying(session, partial(write_both, f"{number} {turn}"))

    run_together(*(partial(work, number) for number in range(THREADS)))

    again = Session()
    again.replay(session.records)
    assert again[FileTree].latest().fingerprint == session[FileTree].latest().fingerprint  # type: ignore[union-attr]
    for seq in Random(0).sample(range(session.seq + 1), 100):
        assert (
            again.at(seq)[FileTree].latest().fingerprint  # type: ignore[union-attr]
            == session.at(seq)[FileTree].latest().fingerprint  # type: ignore[union-attr]
        )


def test_a_counter_updated_under_the_lock_loses_no_increment() -> None:
    session = Session()
    fs = InMemoryFilesystem(session)
    fs.write("/counter", "0")

    def work() -> None:
        own = InMemoryFilesystem(session)
        for _ in range(TURNS):
            with session.lock:
                own.write("/counter", str(int(own.read("/counter").content) + 1))

    run_together(*[work] * THREADS)

    assert fs.read("/counter").content == str(TURNS * THREADS)


def test_lines_appended_by_threads_to_one_file_are_all_present_and_complete() -> None:
    session = Session()
    fs = InMemoryFilesystem(session)
    fs.write("/log", "")

    def work(number: int) -> None:
        for turn in range(TURNS):
            fs.append("/log", f"{number} {turn}\n")

    def check_lines() -> None:
        text = fs.read("/log").content
        assert not text or text.endswith("\n")
        numbers = [tuple(map(int, line.split())) for line in text.splitlines()]
        for number in range(THREADS):
            assert [turn for who, turn in numbers if who == number] == list(range(sum(n[0] == number for n in numbers)))

    run_together(*(partial(work, number) for number in range(THREADS)), meanwhile=check_lines)

    lines = fs.read("/log").content.splitlines()
    assert sorted(lines) == sorted(f"{number} {turn}" for number in range(THREADS) for turn in range(TURNS))


def test_forks_of_threads_are_merged_with_all_their_changes() -> None:
    session = Session()
    fs = InMemoryFilesystem(session)
    fs.write("/shared", "start\n")

    def work(number: int) -> None:
        for turn in range(100):
            fork = session.fork(f"call{number}")
            mine = fs.bind(fork)
            mine.write(f"/{number}/{turn}", f"{number} {turn}")
            if turn:
                mine.delete(f"/{number}/{turn - 1}")
            session.merge(fork)

    run_together(*(partial(work, number) for number in range(THREADS)))

    for number in range(THREADS):
        assert [entry.name for entry in fs.list(f"/{number}")] == ["99"]
        assert fs.read(f"/{number}/99").content == f"{number} 99"


def test_a_fork_may_be_merged_while_its_thread_continues() -> None:
    session = Session()
    forks = [session.fork(str(number)) for number in range(4)]

    def work(number: int) -> None:
        mine = InMemoryFilesystem(forks[number])
        for turn in range(TURNS):
            mine.write(f"/{number}/{turn}", "x")

    def merge() -> None:
        for fork in forks:
            session.merge(fork)

    run_together(*(partial(work, number) for number in range(4)), meanwhile=merge)
    merge()

    fs = InMemoryFilesystem(session)
    assert [len(fs.list(f"/{number}")) for number in range(4)] == [TURNS] * 4
    assert [record.seq for record in session.records] == list(range(1, session.seq + 1))


def test_records_are_read_consistently_while_others_write_and_compact() -> None:
    session = Session()
    fs = InMemoryFilesystem(session)
    fs.write("/f", "0")

    def work(number: int) -> None:
        for turn in range(TURNS):
            fs.write(f"/{number}", f"{turn}")
            if turn % 10 == number:
                session.compact(keep=turn % 7)

    def read() -> None:
        records = session.records
        numbers = [record.seq for record in records]
        assert numbers == list(range(numbers[0], numbers[0] + len(numbers))) if numbers else True
        assert session.seq >= (numbers[-1] if numbers else 0)

    run_together(*(partial(work, number) for number in range(4)), meanwhile=read)

    assert [fs.read(f"/{number}").content for number in range(4)] == [str(TURNS - 1)] * 4


def test_subscribers_that_come_and_go_do_not_disturb_those_that_stay() -> None:
    session = Session()
    fs = InMemoryFilesystem(session)
    told: list[list[int]] = [[] for _ in range(4)]

    def listen(number: int) -> None:
        def own(record: Record) -> None:
            told[number].append(record.seq)

        session.subscribe(object, own)
        for turn in range(TURNS):
            unsubscribe = session.subscribe(object, lambda record: None)
            fs.write(f"/{number}", str(turn))
            unsubscribe()

    run_together(*(partial(listen, number) for number in range(4)))

    for numbers in told:
        assert numbers == list(range(numbers[0], 4 * TURNS + 1)), "a subscriber missed records"


def test_a_handler_may_wait_for_another_thread_that_uses_the_session() -> None:
    session = Session()
    fs = InMemoryFilesystem(session)
    waited: list[bool] = []

    def wait_for_another(record: Record) -> None:
        other = Thread(target=session.snapshot, daemon=True)
        other.start()
        other.join(timeout=60)
        waited.append(not other.is_alive())

    session.subscribe(object, wait_for_another)
    for step in (
        lambda: fs.write("/a", "1"),
        lambda: fs.append("/a", "2"),
        lambda: fs.move("/a", "/b"),
        lambda: session.rollback(0),
    ):
        step()
        assert waited.pop(), "the handler waited for a thread that waited for the session"
    with session.lock:
        fs.write("/a", "1")
        fs.write("/b", "1")
    session._notify()
    assert waited == [True, True]
