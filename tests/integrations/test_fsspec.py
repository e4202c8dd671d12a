"""fsspec's own tests over files in memory, on the host and in a layer; and what sessions add."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import fsspec
import pytest
from fsspec.tests import abstract

from weakfs import Capability, HostFilesystem, InMemoryFilesystem, Limits, OverlayFilesystem, Session
from weakfs.backends import MountedFilesystem
from weakfs.integrations.fsspec import WeakfsFileSystem
from weakfs.tools.permissions.guard import guarded


class Fixtures(abstract.AbstractFixtures):  # type: ignore[misc]  # fsspec has no types
    @pytest.fixture
    def fs(self, tmp_path: Path) -> WeakfsFileSystem:
        return WeakfsFileSystem()

    @pytest.fixture
    def fs_path(self) -> str:
        return "/tests"

    @pytest.fixture
    def fs_join(self) -> Any:
        return lambda *parts: "/".join(parts)

    @pytest.fixture
    def supports_empty_directories(self) -> bool:
        return True


class OnTheHost(Fixtures):
    @pytest.fixture
    def fs(self, tmp_path: Path) -> WeakfsFileSystem:
        (tmp_path / "root").mkdir()
        return WeakfsFileSystem(HostFilesystem(tmp_path / "root", store=tmp_path / "store"))


class InALayer(Fixtures):
    @pytest.fixture
    def fs(self, tmp_path: Path) -> WeakfsFileSystem:
        return WeakfsFileSystem(OverlayFilesystem(InMemoryFilesystem(), Session()))


class TestCopy(abstract.AbstractCopyTests, Fixtures): ...  # type: ignore[misc]


class TestGet(abstract.AbstractGetTests, Fixtures): ...  # type: ignore[misc]


class TestPut(abstract.AbstractPutTests, Fixtures): ...  # type: ignore[misc]


# The suites of older versions do not have these.
if hasattr(abstract, "AbstractPipeTests"):

    class TestPipe(abstract.AbstractPipeTests, Fixtures): ...  # type: ignore[misc]

    class TestOpen(abstract.AbstractOpenTests, Fixtures): ...  # type: ignore[misc]


@pytest.mark.exhaustive
class TestCopyOnTheHost(abstract.AbstractCopyTests, OnTheHost): ...  # type: ignore[misc]


@pytest.mark.exhaustive
class TestGetOnTheHost(abstract.AbstractGetTests, OnTheHost): ...  # type: ignore[misc]


@pytest.mark.exhaustive
class TestPutOnTheHost(abstract.AbstractPutTests, OnTheHost): ...  # type: ignore[misc]


@pytest.mark.exhaustive
class TestCopyInALayer(abstract.AbstractCopyTests, InALayer): ...  # type: ignore[misc]


@pytest.fixture
def session() -> Session:
    session = Session(session_id="main")
    files = InMemoryFilesystem(session)
    files.write("/data/a.csv", "x,y\n1,2\n")
    session.snapshot("before")
    files.write("/data/a.csv", "x,y\n3,4\n")
    return session


def test_a_url_opens_a_file_of_a_session(session: Session) -> None:
    opened: Any = fsspec.open("weakfs:///data/a.csv", "r", session=session)
    with opened as stream:
        assert stream.read() == "x,y\n3,4\n"


def test_a_past_moment_is_read_only(session: Session) -> None:
    past = fsspec.filesystem("weakfs", session=session, at="before")
    assert past.cat("/data/a.csv") == b"x,y\n1,2\n"
    with pytest.raises(PermissionError):
        past.pipe("/data/a.csv", b"")


def test_a_saved_session_and_one_in_storage_are_opened(session: Session, tmp_path: Path) -> None:
    session.save(tmp_path / "s.json")
    assert fsspec.filesystem("weakfs", where=tmp_path / "s.json").find("/") == ["/data/a.csv"]
    with Session.open(tmp_path / "store", "one") as stored:
        InMemoryFilesystem(stored).write("/b.txt", "b")
    opened = fsspec.filesystem("weakfs", where=tmp_path / "store", session_id="one")
    assert opened.ls("/", detail=False) == ["/b.txt"]
    opened.files.session.close()


def test_a_host_directory_is_opened_by_its_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "a.txt").write_text("a")
    assert fsspec.filesystem("weakfs", root=tmp_path / "root").cat("/a.txt") == b"a"


def test_a_failed_transaction_is_rolled_back_whatever_it_did(session: Session) -> None:
    fs = fsspec.filesystem("weakfs", session=session)
    with pytest.raises(KeyError), fs.transaction:
        fs.pipe("/new.txt", b"1")
        fs.rm("/data", recursive=True)
        raise KeyError
    assert fs.find("/") == ["/data/a.csv"]
    with fs.transaction:
        with fs.open("/new.txt", "wb") as stream:
            stream.write(b"2")
        fs.mv("/data/a.csv", "/moved.csv")
    assert fs.find("/") == ["/moved.csv", "/new.txt"]
    assert len({record.cause for record in session.records[-2:]}) == 1
    session.undo()
    assert fs.find("/") == ["/data/a.csv"]


def test_transactions_in_a_row_are_undone_one_by_one(session: Session) -> None:
    fs = fsspec.filesystem("weakfs", session=session)
    for name in ("/one", "/two"):
        with fs.transaction:
            fs.pipe(name, b"1")
            fs.pipe(f"{name}.txt", b"1")
    session.undo()
    assert fs.find("/") == ["/data/a.csv", "/one", "/one.txt"]


@pytest.mark.parametrize("mode", ["wb", "w", "wt", "a", "ab"])
def test_what_a_failed_block_wrote_to_a_stream_is_dropped(session: Session, mode: str) -> None:
    fs = WeakfsFileSystem(session=session)
    fs.pipe("/kept", b"kept\n")

    def fail() -> None:
        with fs.open("/kept", mode) as stream:
            stream.write(b"half" if "b" in mode else "half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert fs.cat("/kept") == b"kept\n"
    with fs.open("/kept", mode) as stream:
        stream.write(b"whole\n" if "b" in mode else "whole\n")
    assert InMemoryFilesystem(session).read("/kept").content.endswith("whole\n")
    with fs.open("/kept", "r") as stream:
        assert stream.readlines()[-1] == "whole\n"


@pytest.mark.parametrize("compression", ["gzip", "bz2", "xz", "zip", "infer", None])
@pytest.mark.parametrize("mode", ["wb", "w", "xb"])
def test_a_compressed_stream_is_stored_as_a_whole_or_dropped(
    session: Session, mode: str, compression: str | None
) -> None:
    fs, data = WeakfsFileSystem(session=session), "line\n" * 10_000

    def write(then: Callable[[], object]) -> None:
        with fs.open("/new.gz", mode, compression=compression) as stream:
            stream.write(data.encode() if "b" in mode else data)
            then()

    def fail() -> None:
        raise RuntimeError

    with pytest.raises(RuntimeError):
        write(fail)
    if compression != "zip":  # An abandoned ZipFile warns.
        abandoned = fs.open("/new.gz", mode, compression=compression)
        abandoned.write(data.encode() if "b" in mode else data)
        del abandoned
        gc.collect()
    assert not fs.exists("/new.gz")
    write(lambda: None)
    with fs.open("/new.gz", "r", compression=compression) as stream:
        assert stream.read() == data
    assert (len(fs.cat("/new.gz")) < len(data) / 10) == (compression not in ("zip", None))


def test_a_compressed_stream_that_is_too_large_stores_nothing(session: Session) -> None:
    files = InMemoryFilesystem(session, limits=Limits(max_file_size=100))
    stream = WeakfsFileSystem(files).open("/new.gz", "wb", compression="gzip")
    stream.write(os.urandom(1000))
    with pytest.raises(OSError, match="max_file_size"):
        stream.close()
    assert stream.closed
    assert not files.exists("/new.gz")


def test_a_compressed_stream_of_a_failed_transaction_stores_nothing(session: Session) -> None:
    fs = WeakfsFileSystem(session=session)
    fs.start_transaction()
    stream = fs.open("/new.gz", "wb", compression="gzip")
    stream.write(b"half")
    fs.transaction.complete(commit=False)
    stream.close()
    assert not fs.exists("/new.gz")


def test_a_stream_of_a_failed_transaction_writes_nothing_when_it_is_closed_later(session: Session) -> None:
    fs = WeakfsFileSystem(session=session)
    with fs.transaction:
        fs.pipe("/before", b"x")
        first = fs.open("/first", "wb")
        first.write(b"1")
        fs.start_transaction()
        second = fs.open("/second", "wb")
        second.write(b"2")
        fs.transaction.complete(commit=False)
        second.close()
        first.close()
    assert not fs.exists("/second")
    assert fs.cat("/first") == b"1"
    assert list(fs.transaction.files) == []


def test_a_nested_transaction_is_undone_alone() -> None:
    session = Session()
    fs = WeakfsFileSystem(session=session)
    with fs.transaction:
        fs.pipe("/outer", b"1")
        with pytest.raises(RuntimeError), fs.transaction:
            fs.pipe("/inner", b"1")
            raise RuntimeError
        fs.pipe("/after", b"1")
    assert fs.find("/") == ["/after", "/outer"]
    with pytest.raises(RuntimeError), fs.transaction:
        with fs.transaction:
            fs.pipe("/inner", b"1")
        raise RuntimeError
    assert fs.find("/") == ["/after", "/outer"]
    # One operation for undo.
    session.undo()
    assert fs.find("/") == []


def test_a_transaction_can_be_started_and_ended_by_calls() -> None:
    fs = WeakfsFileSystem(session=Session())
    fs.start_transaction()
    fs.pipe("/kept", b"1")
    fs.end_transaction()
    fs.start_transaction()
    fs.pipe("/discarded", b"1")
    fs.transaction.complete(commit=False)
    # There is no transaction to end.
    fs.end_transaction()
    assert fs.find("/") == ["/kept"]
    fs.pipe("/kept", b"2")
    assert fs.cat("/kept") == b"2"


@pytest.mark.parametrize("recursive", [False, True])
def test_a_move_is_one_event_even_for_a_directory(recursive: bool) -> None:
    session = Session()
    fs = WeakfsFileSystem(session=session)
    fs.pipe("/d/a", b"1")
    fs.mkdir("/into")
    before = session.seq
    fs.mv("/d", "/e", recursive=recursive)
    fs.mv("/e", "/into", recursive=recursive)
    fs.mv("/into/e/a", "/into/", recursive=recursive)
    assert session.seq == before + 3
    assert fs.find("/") == ["/into/a"]
    with pytest.raises(FileNotFoundError):
        fs.mv("/gone", "/x")
    fs.mv("/into/a", "/into/a")
    assert fs.cat("/into/a") == b"1"


def test_a_past_moment_has_the_paths_and_limits_of_the_files(tmp_path: Path) -> None:
    session = Session()
    files = InMemoryFilesystem(session)
    for name in ("/open/a", "/vault/key"):
        files.write(name, "then")
    host = HostFilesystem(tmp_path, session=session, store=tmp_path.parent / "store")
    host.write("/a", "then")
    session.snapshot("then")
    for one, name in ((files, "/open/a"), (files, "/vault/key"), (host, "/a")):
        one.write(name, "now")

    mounted = MountedFilesystem(files, "/workspace")
    assert WeakfsFileSystem(mounted, at="then").cat("/workspace/open/a") == b"then"
    assert WeakfsFileSystem(host, at="then").cat("/a") == b"then"
    guard = guarded(files, Capability(fs_roots=("/open",)), None, "read")
    past = WeakfsFileSystem(guard, at="then")
    assert past.cat("/open/a") == b"then"
    with pytest.raises(PermissionError):
        past.cat("/vault/key")


def test_ranges_may_count_from_the_end(session: Session) -> None:
    fs = fsspec.filesystem("weakfs", session=session)
    assert fs.cat_file("/data/a.csv", start=-4) == b"3,4\n"
    assert fs.cat_file("/data/a.csv", start=4, end=5) == b"3"
    assert fs.cat_file("/data/a.csv", start=7, end=2) == b""
    with fs.open("/data/a.csv", "rb") as stream:
        stream.seek(4)
        assert stream.read() == b"3,4\n"


def test_a_part_of_a_file_is_never_returned_as_if_it_were_all_of_it(session: Session) -> None:
    InMemoryFilesystem(session).write("/big", "wombat\n" * 1000)
    capability = Capability(max_read_bytes=100)
    fs = WeakfsFileSystem(guarded(InMemoryFilesystem(session), capability, None, "read"))
    for read in (lambda: fs.cat("/big"), lambda: fs.cat_file("/big", 10, 200), lambda: fs.open("/big").read()):
        with pytest.raises(PermissionError, match="7000 bytes"):
            read()
    assert fs.cat_file("/big", 7, 14) == b"wombat\n"
    assert len(fs.cat_file("/big", -100)) == 100


def test_links_have_the_type_link(session: Session) -> None:
    fs = fsspec.filesystem("weakfs", session=session)
    fs.files.symlink("data", "/link")
    assert fs.info("/link")["type"] == "link"
    assert fs.info("/link")["destination"] == "data"
    with pytest.raises(PermissionError):
        fs.cat("/link/a.csv")


def test_contradictory_or_missing_options_are_refused(session: Session) -> None:
    with pytest.raises(ValueError, match="give only one of"):
        WeakfsFileSystem(InMemoryFilesystem(), session=session)
    fs = WeakfsFileSystem(session=session)
    with pytest.raises(ValueError, match="use rb, wb, xb or ab"):
        fs.open("/data/a.csv", "r+b")
    with pytest.raises(FileNotFoundError):
        fs.info("/nowhere")
    with pytest.raises(FileExistsError):
        fs.mkdir("/data")
    with pytest.raises(OSError, match="recursive"):
        fs.rmdir("/data")
    with pytest.raises(PermissionError):
        fs.cat("/../outside")


def test_without_fsspec_the_message_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("fsspec")]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, "weakfs.integrations.fsspec")
    with pytest.raises(ModuleNotFoundError, match=r"fsspec is not installed; run: pip install 'weakfs\[fsspec\]'"):
        import_module("weakfs.integrations.fsspec")


def test_a_past_moment_of_an_overlay_has_the_current_lower_files(tmp_path: Path) -> None:
    (tmp_path / "below/deep").mkdir(parents=True)
    (tmp_path / "below/deep/a").write_text("a\n")
    (tmp_path / "below/b").write_text("b\n")
    session = Session()
    files = OverlayFilesystem(HostFilesystem(tmp_path / "below"), session)
    files.write("/new", "1\n")
    before = session.seq
    files.delete("/deep", recursive=True)
    files.write("/b", "changed\n")
    files.write("/new", "2\n")
    past = WeakfsFileSystem(filesystem=files, at=before)
    assert sorted(past.find("/")) == ["/b", "/deep/a", "/new"]
    assert [past.cat(path) for path in ("/b", "/deep/a", "/new")] == [b"b\n", b"a\n", b"1\n"]
    with pytest.raises(PermissionError):
        past.pipe("/b", b"")
    assert files.read("/b").content == "changed\n"
