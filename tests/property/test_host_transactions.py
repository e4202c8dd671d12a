"""A transaction on a real directory that fails leaves no trace, and one that succeeds keeps all of its changes."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from errno import EBUSY
from pathlib import Path
from random import Random

import pytest
from attrs import frozen
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.models.host import IS_ROOT, Record, left_in_journals, record
from tests.property.test_host_restores import EXAMPLES, Place, a_place, changes
from tests.sampling import share
from weakfs import DEFAULT_TOOLS, Session, Tool, ToolContext, ToolResult, Toolset
from weakfs.backends import HostFilesystem
from weakfs.filesystem import FilesystemSnapshot
from weakfs.tools import require_filesystem

seeds = st.lists(st.integers(0, 1 << 32), min_size=1, max_size=12)

NAMES = ("a", "b", "c", "d.py", "new", "a\nb", "\uf7ff", "n" * 255, ".hidden", "caf\uf7e9")
MODES = tuple(mode for mode in (0o644, 0o600, 0o755, 0o444, 0o000) if IS_ROOT or mode & 0o400)
DIRECTORY_MODES = tuple(mode for mode in MODES if IS_ROOT or mode & 0o700 == 0o700)


class Work:
    """Random operations through the library; those that are refused do nothing."""

    def __init__(self, fs: HostFilesystem, snapshot: FilesystemSnapshot) -> None:
        self.fs, self.snapshot = fs, snapshot

    def act(self, seed: int) -> None:
        random = Random(seed)
        with suppress(OSError, ValueError):
            random.choice(OPERATIONS)(self, random)

    def there(self, random: Random) -> str:
        return random.choice(["/", *(entry.path for entry in self.fs.walk())])

    def somewhere(self, random: Random) -> str:
        directories = ["", *(entry.path for entry in self.fs.walk() if entry.is_directory)]
        return "/".join((random.choice(directories), *random.choices(NAMES, k=random.choice((1, 1, 2)))))


def chmod(work: Work, path: str, random: Random) -> None:
    work.fs.chmod(path, random.choice(DIRECTORY_MODES if work.fs.is_directory(path) else MODES))


OPERATIONS: tuple[Callable[[Work, Random], object], ...] = (
    lambda work, random: work.fs.write(work.there(random), "over"),
    lambda work, random: work.fs.write(work.somewhere(random), "new"),
    lambda work, random: work.fs.append(work.there(random), "more"),
    lambda work, random: work.fs.append(work.somewhere(random), "more"),
    lambda work, random: work.fs.mkdir(work.somewhere(random)),
    lambda work, random: work.fs.delete(work.there(random), recursive=True),
    lambda work, random: work.fs.delete(work.there(random)),
    lambda work, random: work.fs.move(work.there(random), work.somewhere(random)),
    lambda work, random: work.fs.move(work.there(random), work.there(random)),
    lambda work, random: work.fs.copy(work.there(random), work.somewhere(random)),
    lambda work, random: work.fs.copy(work.there(random), work.there(random)),
    lambda work, random: chmod(work, work.there(random), random),
    lambda work, random: work.fs.symlink("../outside", work.somewhere(random)),
    lambda work, random: work.fs.restore(work.snapshot),
    lambda work, random: work.fs.import_bytes(work.fs.export_bytes()),
)


def state(found: Record) -> dict[bytes, tuple[object, ...]]:
    """Return everything that a transaction restores, including inodes."""
    return {path: (*seen.exact, seen.inode) for path, seen in found.items()}


def assert_nothing_lies_about(place: Place) -> None:
    assert not left_in_journals(place.store)
    assert not [path for path in record(place.root) if re.search(rb"\.weakfs-[0-9a-f]{16}\.tmp", path)]
    place.assert_secret_is_untouched()


@settings(max_examples=share(EXAMPLES))
@given(first=changes, then=changes, operations=seeds)
def test_a_failed_transaction_leaves_no_trace(first: list[int], then: list[int], operations: list[int]) -> None:
    with a_place() as place:
        place.change(first)
        fs = place.open()
        work = Work(fs, fs.snapshot())
        before = place.change(then)

        with pytest.raises(RuntimeError), fs.session.transaction():
            for seed in operations:
                work.act(seed)
            raise RuntimeError

        assert state(record(place.root)) == state(before)
        assert_nothing_lies_about(place)


@settings(max_examples=share(EXAMPLES))
@given(first=changes, operations=st.lists(seeds, min_size=3, max_size=3), fails=st.booleans())
def test_a_failed_nested_transaction_is_undone_alone(
    first: list[int], operations: list[list[int]], fails: bool
) -> None:
    with a_place() as place:
        place.change(first)
        fs = place.open()
        work = Work(fs, fs.snapshot())
        before = end = record(place.root)

        with suppress(RuntimeError), fs.session.transaction():
            for seed in operations[0]:
                work.act(seed)
            halfway = record(place.root)
            with pytest.raises(RuntimeError), fs.session.transaction():
                for seed in operations[1]:
                    work.act(seed)
                raise RuntimeError
            assert state(record(place.root)) == state(halfway)
            for seed in operations[2]:
                work.act(seed)
            end = record(place.root)
            if fails:
                raise RuntimeError

        assert state(record(place.root)) == state(before if fails else end)
        assert_nothing_lies_about(place)


@settings(max_examples=share(EXAMPLES))
@given(first=changes, operations=seeds)
def test_an_operation_that_is_refused_changes_nothing(first: list[int], operations: list[int]) -> None:
    with a_place() as place:
        place.change(first)
        fs = place.open()
        work = Work(fs, fs.snapshot())
        for seed in operations:
            before = record(place.root)
            random = Random(seed)
            try:
                random.choice(OPERATIONS)(work, random)
            except (OSError, ValueError):
                assert record(place.root) == before
        assert_nothing_lies_about(place)


def change_one(fs: HostFilesystem, directory: str, random: Random) -> None:
    """Change something in one directory."""
    path = f"/{directory}/{random.choice(NAMES)}"
    works: tuple[Callable[[], object], ...] = (
        lambda: fs.write(path, str(random.random())),
        lambda: fs.append(path, "more"),
        lambda: fs.mkdir(path),
        lambda: fs.delete(path, recursive=True),
        lambda: fs.copy(f"/{directory}/a", path),
    )
    random.choice(works)()


@settings(max_examples=share(EXAMPLES // 3))
@given(mine=seeds, others=seeds)
def test_a_transaction_that_fails_leaves_the_work_of_another_thread(mine: list[int], others: list[int]) -> None:
    with a_place() as place:
        for name in ("mine", "others"):
            (place.root / name).mkdir()
            (place.root / name / "a").write_text("a")
        before = record(place.root / "mine")
        session = Session()
        fs = place.open(session=session)
        turns = threading.Barrier(2)
        left: list[Record] = []

        def work(name: str, operations: list[int], *, fails: bool) -> None:
            with session.transaction():
                turns.wait(120)
                for seed in operations:
                    with suppress(FileExistsError, IsADirectoryError, NotADirectoryError, FileNotFoundError):
                        change_one(fs, name, Random(seed))
                turns.wait(120)
                if fails:
                    raise RuntimeError
                left.append(record(place.root / name))

        with ThreadPoolExecutor(2) as pool:
            failing = pool.submit(work, "mine", mine, fails=True)
            pool.submit(work, "others", others, fails=False).result()
            with pytest.raises(RuntimeError):
                failing.result()

        assert state(record(place.root / "mine")) == state(before)
        assert state(record(place.root / "others")) == state(left[0])
        assert_nothing_lies_about(place)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (lambda fs: fs.write("/a", "1"), lambda fs: fs.write("/a", "2")),
        (lambda fs: fs.write("/a", "1"), lambda fs: fs.delete("/a")),
        (lambda fs: fs.write("/d/x", "1"), lambda fs: fs.delete("/d", recursive=True)),
        (lambda fs: fs.write("/d/x", "1"), lambda fs: fs.move("/d", "/e")),
        (lambda fs: fs.delete("/d", recursive=True), lambda fs: fs.write("/d/y", "2")),
        (lambda fs: fs.move("/d", "/e"), lambda fs: fs.write("/e/y", "2")),
        (lambda fs: fs.move("/a", "/e"), lambda fs: fs.write("/a", "2")),
        (lambda fs: fs.copy("/d", "/e"), lambda fs: fs.write("/e/x", "2")),
        (lambda fs: fs.mkdir("/new/dir"), lambda fs: fs.write("/new/file", "2")),
        (lambda fs: fs.chmod("/a", 0o600), lambda fs: fs.append("/a", "2")),
        (lambda fs: fs.symlink("a", "/l"), lambda fs: fs.delete("/l")),
        (lambda fs: fs.write("/a", "1"), lambda fs: fs.import_bytes(fs.export_bytes())),
        (lambda fs: fs.write("/a", "1"), lambda fs: fs.restore(fs.snapshot())),
    ],
)
def test_a_path_that_another_unfinished_transaction_changed_is_refused(
    tmp_path: Path, first: Callable[[HostFilesystem], object], second: Callable[[HostFilesystem], object]
) -> None:
    root = tmp_path / "root"
    (root / "d").mkdir(parents=True)
    (root / "a").write_text("a")
    (root / "d" / "x").write_text("x")
    before = record(root)
    fs = HostFilesystem(root, session=Session(), store=tmp_path / "store")
    refusals: list[OSError] = []

    def other() -> None:
        for _ in range(2):
            try:
                with fs.session.transaction():
                    second(fs)
            except OSError as error:
                refusals.append(error)

    with pytest.raises(RuntimeError), fs.session.transaction():
        first(fs)
        halfway = record(root)
        thread = threading.Thread(target=other)
        thread.start()
        thread.join(60)
        assert state(record(root)) == state(halfway)
        raise RuntimeError

    assert [error.errno for error in refusals] == [EBUSY, EBUSY]
    assert "try again" in str(refusals[0])
    assert state(record(root)) == state(before)


@frozen
class SpoilParams:
    path: str


def spoil(params: SpoilParams, *, context: ToolContext) -> ToolResult[None]:
    """Change all sorts of things, and then fail."""
    fs = require_filesystem(context)
    fs.write(params.path, "spoiled")
    fs.write(params.path + ".more/and/more", "spoiled")
    fs.move(params.path, params.path + ".more/moved")
    fs.chmod(params.path + ".more", 0o700)
    raise OSError("failed on purpose")


@pytest.mark.slow
def test_failed_calls_in_eight_threads_leave_the_successful_ones_alone(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    for me in range(8):
        (root / f"d{me}").mkdir()
        (root / f"d{me}" / "kept").write_text("kept")
    session = Session()
    tools = (*DEFAULT_TOOLS, Tool("spoil", "For tests.", SpoilParams, spoil))
    toolset = Toolset(session, HostFilesystem(root, session=session, store=tmp_path / "store"), tools=tools)
    kept = {me: os.stat(root / f"d{me}" / "kept") for me in range(8)}

    def work(me: int) -> None:
        for turn in range(8):
            path = f"/d{me}/f{turn}"
            assert toolset.call("write_file", {"path": path, "content": "one\ntwo\n"}).success
            assert toolset.call("edit_file", {"path": path, "old_string": "two", "new_string": str(me)}).success
            assert not toolset.call("spoil", {"path": f"/d{me}/kept" if turn % 2 else path}).success

    with ThreadPoolExecutor(8) as pool:
        for done in [pool.submit(work, me) for me in range(8)]:
            done.result()

    found = {path: seen.content for path, seen in record(root).items() if seen.kind == "file"}
    made = {f"d{me}/f{turn}".encode(): f"one\n{me}\n".encode() for me in range(8) for turn in range(8)}
    assert found == made | {f"d{me}/kept".encode(): b"kept" for me in range(8)}
    for me, status in kept.items():
        now = os.stat(root / f"d{me}" / "kept")
        assert (now.st_ino, now.st_mtime_ns) == (status.st_ino, status.st_mtime_ns)
