"""What appending, saving and loading cost, counted in bytes allocated and calls made, not in seconds."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable, Generator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import pytest

from fixtures.sessions.story import Clock
from tests.models.cost import calls_of
from tests.sampling import is_exhaustive
from weakfs import InMemoryFilesystem, Limits, Session
from weakfs.fast_init import MANY
from weakfs.reducers import FileTree
from weakfs.reducers.events import TreeMounted
from weakfs.reducers.tree.leaf import file
from weakfs.reducers.tree.node import tree_of

KILOBYTE = "a line of thirty-two characters\n" * 32
APPENDS = 5000 if is_exhaustive() else 1500


def opened(tree: FileTree | None = None) -> tuple[Session, InMemoryFilesystem]:
    session = Session(session_id="cost", clock=Clock())
    if tree is not None:
        session.dispatch(TreeMounted("/", "source", tree, (), 1))
    return session, InMemoryFilesystem(session, limits=Limits(max_file_size=None))


@pytest.fixture(autouse=True, scope="module")
def modules(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Import everything that saving and loading need: modules stay, and should not be counted."""
    path = tmp_path_factory.mktemp("first") / "s.json"
    Session().save(path)
    Session.load(path)


@contextmanager
def traced() -> Generator[None, None, None]:
    gc.collect()
    tracemalloc.start()
    try:
        yield
    finally:
        tracemalloc.stop()


def allocated(work: Callable[[], object]) -> int:
    """Return the peak of allocated bytes during a piece of work, in which no copy can hide."""
    before = tracemalloc.get_traced_memory()[0]
    tracemalloc.reset_peak()
    work()
    return tracemalloc.get_traced_memory()[1] - before


def appending(filesystem: InMemoryFilesystem, times: int) -> Callable[[], None]:
    def work() -> None:
        for _ in range(times):
            filesystem.append("/log", KILOBYTE)

    return work


def test_many_appends_allocate_only_what_they_add() -> None:
    _, filesystem = opened()
    # What is created only once, such as what is known about an event type, is not part of the cost of appending.
    filesystem.append("/log", KILOBYTE)
    with traced():
        steps = [allocated(appending(filesystem, 1)) for _ in range(APPENDS)]
    assert sum(steps) <= 4 * APPENDS * len(KILOBYTE)
    # No single append copies the file: the memory that it needs at once does not grow with the file.
    assert max(steps[:100]) < 50 * len(KILOBYTE)
    assert sorted(steps)[-10] < 10 * len(KILOBYTE)


def test_many_appends_call_as_many_functions_at_the_end_as_at_the_start() -> None:
    _, filesystem = opened()
    filesystem.append("/log", KILOBYTE)
    first = calls_of(appending(filesystem, 500))
    appending(filesystem, APPENDS - 1000)()
    last = calls_of(appending(filesystem, 500))
    assert last <= 1.05 * first


def test_a_file_of_many_appends_is_read_with_one_copy() -> None:
    _, filesystem = opened()
    filesystem.write("/small", "x")
    # The class of results compiles its `__init__` after some calls, which is not what is measured.
    for _ in range(MANY):
        filesystem.read_bytes("/small")
    appending(filesystem, APPENDS)()
    with traced():
        size = APPENDS * len(KILOBYTE)
        assert allocated(lambda: filesystem.read_bytes("/log")) <= 2.5 * size
        assert allocated(lambda: filesystem.read_bytes("/log", limit=10)) < size / 100


@pytest.mark.parametrize("read_between", [False, True])
def test_saving_an_appended_file_keeps_one_copy_of_it(read_between: bool, tmp_path: Path) -> None:
    session, filesystem = opened(tree_of({"log": file(b"x" * 200_000, at=1)}))
    for number in range(100):
        appending(filesystem, 1)()
        if read_between and not number % 50:
            filesystem.read_bytes("/log")
        session.snapshot()
    size = filesystem.stat("/log").size_bytes
    with traced():
        before = tracemalloc.get_traced_memory()[0]
        peak = allocated(lambda: session.save(tmp_path / "s.json"))
        gc.collect()
        kept = tracemalloc.get_traced_memory()[0] - before
    assert kept <= 3 * size
    # A hundred versions; the document is in memory a few times, as values, as text and with its header.
    assert peak <= 20 * size


def test_loading_an_appended_file_keeps_one_copy_of_it(tmp_path: Path) -> None:
    session, filesystem = opened(tree_of({"log": file(b"x" * 200_000, at=1)}))
    for _ in range(100):
        appending(filesystem, 1)()
        session.snapshot()
    session.save(tmp_path / "s.json")
    size = filesystem.stat("/log").size_bytes
    with traced():
        before = tracemalloc.get_traced_memory()[0]
        back = Session.load(tmp_path / "s.json")
        back.save(tmp_path / "s.json")
        gc.collect()
        kept = tracemalloc.get_traced_memory()[0] - before
    assert kept <= 5 * size


@pytest.mark.slow
def test_saving_an_appended_file_costs_calls_in_proportion(tmp_path: Path) -> None:
    session, filesystem = opened()
    counted: list[int] = []
    for times in (200, 200, 400):
        for _ in range(times):
            appending(filesystem, 1)()
            session.snapshot()
        counted.append(calls_of(lambda: session.save(tmp_path / "s.json")))
    assert counted[2] - counted[1] <= 1.2 * 2 * (counted[1] - counted[0])


@pytest.mark.slow
@pytest.mark.parametrize("by", ["saving", "loading"])
def test_another_snapshot_costs_only_what_differs(by: str, tmp_path: Path) -> None:
    directories = {
        f"d{number}": tree_of({f"f{inner}": file(b"%d %d" % (number, inner), at=1) for inner in range(40)})
        for number in range(100)
    }
    session, filesystem = opened(tree_of({**directories}))
    path = tmp_path / "s.json"

    def cost() -> int:
        saving = calls_of(lambda: session.save(path))
        return saving if by == "saving" else calls_of(lambda: Session.load(path))

    counted = [cost()]
    # Among the first fifty no directory changes twice: they cost less and are not compared.
    for start in (0, 50, 100, 150):
        for number in range(start, start + 50):
            filesystem.write(f"/d{number % 50}/f{number % 40}", "changed")
            session.snapshot()
        counted.append(cost())
    _, second, third, fourth = (after - before for before, after in pairwise(counted))
    assert max(third, fourth) <= 1.2 * second
    # Fifty snapshots of four thousand files: far less than the files in even one of them.
    assert max(second, third, fourth) < 50 * 4000


def test_saving_leaves_no_memory_behind(tmp_path: Path) -> None:
    tree = tree_of({f"f{number}": file(b"%d" % number, at=1) for number in range(2000)})
    session, _ = opened(tree)
    session.snapshot()
    session.save(tmp_path / "s.json")
    with traced():
        before = tracemalloc.get_traced_memory()[0]
        session.save(tmp_path / "s.json")
        gc.collect()
        assert tracemalloc.get_traced_memory()[0] - before < 20_000


@pytest.mark.parametrize("by", ["saving", "writing bytes", "loading"])
def test_temporary_objects_of_saving_and_loading_are_freed_at_once(by: str, tmp_path: Path) -> None:
    # Not only after a garbage collection, which would visit every row.
    session, filesystem = opened()
    for number in range(600):
        filesystem.write(f"/new/{number}", f"text {number}")
    path = tmp_path / "s.json"
    acts: dict[str, Callable[[], object]] = {
        "saving": lambda: session.save(path),
        "writing bytes": session.to_bytes,
        "loading": lambda: Session.load(path),
    }
    act = acts[by]
    session.save(path)
    act()
    gc.collect()
    gc.disable()
    try:
        act()
        garbage = gc.collect()
    finally:
        gc.enable()
    assert garbage < 100
