"""Files that programs keep open in a mount, and what they have written to them but not stored yet."""

from __future__ import annotations

import ctypes
import errno
import os
import stat
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest

from tests.integrations.mount.conftest import Run
from weakfs import InMemoryFilesystem, Limits, Session
from weakfs.integrations.mount import mount


def test_an_open_file_can_be_deleted_moved_or_replaced(files: InMemoryFilesystem, place: Path, run: Run) -> None:
    for name in ("deleted", "moved", "replaced"):
        files.write(f"/d/{name}", "old ")
    with mount(files, place):
        opened = {name: (place / "d" / name).open("r+b", buffering=0) for name in ("deleted", "moved", "replaced")}
        run("rm d/deleted; mv d/moved d/here; echo new > n; mv n d/replaced; mv d e")
        for file in opened.values():
            file.seek(0, os.SEEK_END)
            file.write(b"end")
            file.seek(0)
            assert file.read() == b"old end"
            assert os.fstat(file.fileno()).st_size == 7
            file.truncate(3)
            file.close()
    assert sorted(entry.path for entry in files.list("/e")) == ["/e/here", "/e/replaced"]
    assert files.read("/e/here").content == "old"
    assert files.read("/e/replaced").content == "new\n"


def test_a_deleted_file_keeps_its_mode_while_it_is_open(files: InMemoryFilesystem, place: Path) -> None:
    files.write("/a", "text")
    files.chmod("/a", 0o640)
    with mount(files, place), (place / "a").open("r+b") as opened:
        (place / "a").unlink()
        assert stat.S_IMODE(os.fstat(opened.fileno()).st_mode) == 0o640
        os.fchmod(opened.fileno(), 0o755)
        assert stat.S_IMODE(os.fstat(opened.fileno()).st_mode) == 0o755
    assert not files.exists("/a")


@pytest.mark.parametrize("flags", [os.O_RDWR, os.O_WRONLY, os.O_WRONLY | os.O_APPEND])
def test_space_for_a_file_is_allocated(files: InMemoryFilesystem, place: Path, flags: int) -> None:
    files.write("/a", "text")
    with mount(files, place):
        opened = os.open(place / "a", flags)
        os.posix_fallocate(opened, 2, 4)
        assert os.fstat(opened).st_size == 6
        os.posix_fallocate(opened, 0, 3)
        with pytest.raises(OSError, match="File too large"):
            os.posix_fallocate(opened, 0, 1 << 40)
        os.close(opened)
    assert files.read_bytes("/a").content == b"text\0\0"


def test_allocating_space_beyond_the_end_can_keep_the_size_and_holes_are_refused(
    files: InMemoryFilesystem, place: Path
) -> None:
    files.write("/a", "text")
    fallocate = ctypes.CDLL(None, use_errno=True).fallocate
    fallocate.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)
    with mount(files, place), (place / "a").open("r+b") as opened:
        assert fallocate(opened.fileno(), 1, 0, 100) == 0
        assert os.fstat(opened.fileno()).st_size == 4
        assert (fallocate(opened.fileno(), 3, 0, 2), ctypes.get_errno()) == (-1, errno.EOPNOTSUPP)
    assert files.read("/a").content == "text"


def test_unstored_writes_are_visible_to_other_programs(files: InMemoryFilesystem, place: Path) -> None:
    with mount(files, place) as mounted, (place / "a").open("wb", buffering=0) as writer:
        writer.write(b"12345")
        assert (place / "a").read_bytes() == b"12345"
        assert (place / "a").stat().st_size == 5
        assert files.read_bytes("/a").content in (b"", b"12345")
        os.fsync(writer.fileno())
        assert files.read_bytes("/a").content == b"12345"
        writer.seek(10)
        writer.write(b"!")
        mounted.store()
        assert files.read_bytes("/a").content == b"12345\0\0\0\0\0!"


def test_a_program_that_writes_last_wins_over_the_session(files: InMemoryFilesystem, place: Path) -> None:
    with mount(files, place):
        with (place / "a").open("wb", buffering=0) as writer:
            writer.write(b"program")
            files.write("/a", "session")
        assert files.read("/a").content == "program"


def test_a_program_that_writes_last_wins_over_another_process(tmp_path: Path, place: Path, run: Run) -> None:
    where = f"folder:{tmp_path}/stored"
    opened = partial(Session.open, where, "main", on_conflict="merge")
    with opened() as session, opened() as other:
        theirs = InMemoryFilesystem(other)
        with mount(InMemoryFilesystem(session), place):
            run("echo one > a; echo one > b")
            other.refresh()
            with open(place / "a", "r+b", buffering=0) as first, open(place / "b", "r+b", buffering=0) as second:
                theirs.write("/a", "two\n")
                theirs.delete("/b")
                # Neither is an error when the file is closed: both are written.
                first.write(b"three\n")
                second.write(b"three\n")
            assert run("cat a b") == "three\nthree\n"
        other.refresh()
        assert theirs.read("/a").content == theirs.read("/b").content == "three\n"


@pytest.mark.parametrize("limits", [Limits(max_total_size=3_000_000), Limits(max_file_size=None)])
def test_unstored_writes_to_many_files_are_bounded_together(
    place: Path, limits: Limits, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("weakfs.integrations.mount.open_files.LARGEST", 3_000_000)
    files = InMemoryFilesystem(Session(), limits=limits)
    with mount(files, place), ExitStack() as stack:
        opened = [stack.enter_context(open(place / str(number), "wb", buffering=0)) for number in range(4)]
        for one in opened[:3]:
            os.truncate(one.fileno(), 1_000_000)
        with pytest.raises(OSError, match="No space left"):
            opened[3].write(b"x")
        # There is room again when one of them is shorter, or stored.
        os.truncate(opened[0].fileno(), 0)
        opened[3].write(b"x")
        stack.close()
    assert files.read("/3").content == "x"
    assert files.stat("/1").size_bytes == 1_000_000


def test_a_file_too_large_to_be_written_can_still_be_read_emptied_and_removed(
    tmp_path: Path, place: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    from weakfs import HostFilesystem

    monkeypatch.setattr("weakfs.integrations.mount.open_files.LARGEST", 1000)
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "big").write_bytes(b"x" * 2000)
    (tmp_path / "work" / "other").write_bytes(b"x" * 2000)
    session = Session()
    files = HostFilesystem(
        tmp_path / "work", session=session, store=tmp_path / "store", limits=Limits(max_file_size=None)
    )
    with mount(files, place):
        assert run("wc -c < big") == "2000\n"
        with open(place / "big", "r+b", buffering=0) as stream, pytest.raises(OSError, match="too large"):
            stream.write(b"y")
        run("echo a > big; rm other")
        assert run("ls; cat big") == "big\na\n"
    assert (tmp_path / "work" / "big").read_text() == "a\n"


def test_an_open_file_is_moved_to_a_place_with_an_odd_name(files: InMemoryFilesystem, place: Path, run: Run) -> None:
    with mount(files, place):
        run("echo a > a; mkdir .fuse_hidden_things")
        with open(place / "a"):
            run("mv a .fuse_hidden_things/a")
    assert files.read("/.fuse_hidden_things/a").content == "a\n"
