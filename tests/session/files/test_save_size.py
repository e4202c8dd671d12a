"""How large session files are: what is shared is written once, and a file grows by what changed."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import pytest

from fixtures.sessions.kinds import Note, Step, registry
from fixtures.sessions.story import Clock
from weakfs import InMemoryFilesystem, Session
from weakfs.reducers import FileTree
from weakfs.reducers.events import TreeMounted
from weakfs.reducers.tree.leaf import file
from weakfs.reducers.tree.node import Node, tree_of
from weakfs.session import append_all

FILES = 10_000
# How much a hundred snapshots may cost according to the specification, compared with one.
ALLOWED = 1.25


def flat(content: Callable[[int], bytes]) -> FileTree:
    return tree_of({f"file{number:05}.py": file(content(number), at=number) for number in range(FILES)})


def nested(content: Callable[[int], bytes]) -> FileTree:
    directories: dict[str, Node] = {}
    for outer in range(20):
        inner: dict[str, Node] = {}
        for middle in range(20):
            first = (outer * 20 + middle) * 25
            leaves = {f"file{number:05}.py": file(content(number), at=number) for number in range(first, first + 25)}
            inner[f"inner{middle}"] = tree_of({**leaves})
        directories[f"outer{outer}"] = tree_of(inner)
    return tree_of(directories)


def path_of(tree: FileTree, number: int) -> str:
    if tree.directory_count:
        return f"/outer{number // 500}/inner{number // 25 % 20}/file{number:05}.py"
    return f"/file{number:05}.py"


def short(number: int) -> bytes:
    return b"value = %d\n" % number


def page(number: int) -> bytes:
    return b"def function_%d():\n    return %d\n" % (number, number) * 20


def opened(tree: FileTree) -> Session:
    session = Session(session_id="size", clock=Clock(), registry=registry())
    session.dispatch(TreeMounted("/", "source", tree, (), 1))
    session.snapshot()
    return session


def size(session: Session, folder: Path) -> int:
    return session.save(folder / "s.json").size_bytes


@pytest.mark.slow
@pytest.mark.sampled(by_rule=True)
@pytest.mark.parametrize("content", [short, page])
@pytest.mark.parametrize("shape", [flat, nested])
def test_a_hundred_snapshots_cost_little_more_than_one(
    shape: Callable[[Callable[[int], bytes]], FileTree], content: Callable[[int], bytes], tmp_path: Path
) -> None:
    tree = shape(content)
    session = opened(tree)
    filesystem = InMemoryFilesystem(session)
    one = size(session, tmp_path)
    for number in range(99):
        place = number * 97 % FILES
        filesystem.write_bytes(path_of(tree, place), content(place + 1))
        session.snapshot()
    hundred = size(session, tmp_path)
    assert len(session.snapshots) == 100
    assert hundred <= ALLOWED * one
    back = Session.load(tmp_path / "s.json", registry=registry())
    for mine, theirs in list(zip(session.snapshots, back.snapshots, strict=True))[::33]:
        expected, found = session.at(mine)[FileTree].latest(), back.at(theirs)[FileTree].latest()
        assert expected is not None
        assert found is not None
        assert found.fingerprint == expected.fingerprint


def test_files_that_come_and_go_between_snapshots_cost_what_they_are(tmp_path: Path) -> None:
    tree = flat(short)
    session = opened(tree)
    filesystem = InMemoryFilesystem(session)
    one = size(session, tmp_path)
    for number in range(33):
        filesystem.delete(path_of(tree, number * 7))
        session.snapshot()
        filesystem.write(f"/new{number}", "x")
        session.snapshot()
        filesystem.move(path_of(tree, number * 7 + 1), f"/moved{number}")
        session.snapshot()
    assert size(session, tmp_path) <= ALLOWED * one


def growth(steps: list[int]) -> list[int]:
    return [after - before for before, after in pairwise(steps)]


def sizes(session: Session, folder: Path, change: Callable[[int], object], *, every: int) -> list[int]:
    """Return the sizes of the file before any change and after each `every` of four times as many."""
    found = [size(session, folder)]
    for number in range(every * 4):
        change(number)
        if not (number + 1) % every:
            found.append(size(session, folder))
    return found


def assert_linear(steps: list[int]) -> None:
    grown = growth(steps)
    assert max(grown) <= 1.3 * min(grown), grown


@pytest.mark.slow
def test_the_file_grows_in_proportion_to_the_snapshots(tmp_path: Path) -> None:
    tree = nested(short)
    session = opened(tree)
    filesystem = InMemoryFilesystem(session)

    def change(number: int) -> None:
        filesystem.write(path_of(tree, number * 131 % FILES), f"changed {number:05}")
        session.snapshot()

    assert_linear(sizes(session, tmp_path, change, every=40))


def test_a_file_appended_to_between_snapshots_is_written_once_with_its_tails(tmp_path: Path) -> None:
    session = opened(tree_of({"log": file(b"an old line of the log\n" * 20_000, at=1)}))
    filesystem = InMemoryFilesystem(session)
    before = size(session, tmp_path)
    line = "one more line of the log\n" * 2
    for _ in range(99):
        filesystem.append("/log", line)
        session.snapshot()
    with_all = size(session, tmp_path)
    assert with_all <= ALLOWED * before
    for one in session.snapshots[1:-1]:
        session.drop_snapshot(one)
    # Compared with the same history with two snapshots: at most another copy of each tail, and the tables.
    assert with_all <= ALLOWED * size(session, tmp_path)


@pytest.mark.parametrize("line", [b"short\n", b"\xff" * 40, b"a line of a kilobyte\n" * 50])
def test_a_log_that_begins_empty_grows_in_proportion_to_its_lines(line: bytes, tmp_path: Path) -> None:
    session = opened(tree_of({"log": file(b"", at=1)}))
    filesystem = InMemoryFilesystem(session)

    def change(_: int) -> None:
        filesystem.write_bytes("/log", line, mode="append")
        session.snapshot()

    assert_linear(sizes(session, tmp_path, change, every=50)[1:])


def test_many_logs_appended_to_in_turn_grow_in_proportion(tmp_path: Path) -> None:
    session = opened(tree_of({f"log{number}": file(b"start of a log\n" * 20, at=1) for number in range(50)}))
    filesystem = InMemoryFilesystem(session)

    def change(number: int) -> None:
        filesystem.append(f"/log{number % 50}", "one more line\n")
        session.snapshot()

    assert_linear(sizes(session, tmp_path, change, every=50))


def test_equal_contents_are_written_once(tmp_path: Path) -> None:
    content = b"the same page in every file\n" * 100
    equal = opened(flat(lambda _: bytes(content)))
    assert equal.save(tmp_path / "s.json").blobs <= 2
    # The names and times of ten thousand files, and one page.
    assert size(equal, tmp_path) < FILES * 60


def test_a_copy_by_hand_of_appended_content_is_stored_once(tmp_path: Path) -> None:
    session = opened(tree_of({"log": file(b"a line of the log\n" * 5000, at=1)}))
    filesystem = InMemoryFilesystem(session)
    filesystem.append("/log", "another\n")
    session.snapshot()
    before = size(session, tmp_path)
    filesystem.write("/copy", filesystem.read("/log").content)
    assert size(session, tmp_path) - before < 1000


def test_a_copied_directory_costs_one_row(tmp_path: Path) -> None:
    session = opened(nested(page))
    filesystem = InMemoryFilesystem(session)
    before = size(session, tmp_path)
    filesystem.copy("/outer0", "/copy")
    session.snapshot()
    assert size(session, tmp_path) - before < 3000


@pytest.mark.slow
def test_calls_that_fail_cost_a_record_each_and_no_tree(tmp_path: Path) -> None:
    tree = flat(short)
    session = opened(tree)
    filesystem = InMemoryFilesystem(session)

    def change(number: int) -> None:
        with suppress(KeyError), session.transaction():
            filesystem.write(path_of(tree, number), "x")
            raise KeyError

    steps = sizes(session, tmp_path, change, every=25)
    assert_linear(steps)
    assert growth(steps)[0] < 25 * 700


@pytest.mark.parametrize("kind", [Note, Step])
def test_a_slice_that_only_grows_is_not_written_again_for_every_snapshot(kind: type, tmp_path: Path) -> None:
    session = Session(session_id="size", clock=Clock(), registry=registry())
    session.install(kind, kind="log" if kind is Step else "state").register(kind, append_all)

    def change(number: int) -> None:
        session.dispatch(kind(f"message {number:06} of a conversation"))
        session.snapshot()

    assert_linear(sizes(session, tmp_path, change, every=50))


def test_compacting_frees_the_space_of_old_records(tmp_path: Path) -> None:
    session = opened(tree_of({}))
    filesystem = InMemoryFilesystem(session)
    for number in range(300):
        filesystem.write("/draft", f"draft {number} " * 100)
    before = size(session, tmp_path)
    for one in session.snapshots:
        session.drop_snapshot(one)
    session.compact(keep=0)
    assert size(session, tmp_path) < before / 100
    back = Session.load(tmp_path / "s.json", registry=registry())
    assert InMemoryFilesystem(back).read("/draft").content == "draft 299 " * 100


def test_compacting_keeps_what_kept_snapshots_need(tmp_path: Path) -> None:
    session = opened(tree_of({}))
    filesystem = InMemoryFilesystem(session)
    for number in range(30):
        filesystem.write("/draft", f"draft {number}")
        if number in (5, 25):
            session.snapshot(f"at {number}")
    session.compact(keep=1)
    size(session, tmp_path)
    back = Session.load(tmp_path / "s.json", registry=registry())
    for number in (5, 25):
        back.rollback(f"at {number}")
        assert InMemoryFilesystem(back).read("/draft").content == f"draft {number}"


def test_equal_sizes_and_times_do_not_make_contents_equal(tmp_path: Path) -> None:
    session = Session(session_id="s", clock=lambda: 5)
    files = InMemoryFilesystem(session)
    for number in range(20):
        files.write(f"/d/{number}", f"text {number:02}")
    for number in range(20):
        session.snapshot(f"before {number}")
        files.write(f"/d/{number}", f"TEXT {number:02}")
    session.save(tmp_path / "s.json")
    loaded = Session.load(tmp_path / "s.json", clock=lambda: 6)
    for number in range(20):
        loaded.rollback(f"before {number}")
        found = [InMemoryFilesystem(loaded).read(f"/d/{each}").content for each in range(20)]
        assert found == [f"{'TEXT' if each < number else 'text'} {each:02}" for each in range(20)]
