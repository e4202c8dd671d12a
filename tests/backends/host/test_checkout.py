"""Programs that work on the files: in place on the host, elsewhere in a private directory, with the same events."""

from __future__ import annotations

import os
import stat
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from weakfs import Session
from weakfs.backends import HostFilesystem, InMemoryFilesystem
from weakfs.filesystem import Limits
from weakfs.session.slices.events import RolledBack

Filesystem = HostFilesystem | InMemoryFilesystem
Make = Callable[[Limits], Filesystem]


@pytest.fixture(params=["host", "memory"])
def make(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Make:
    private = tmp_path / "private"
    private.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(private))

    def made(limits: Limits) -> Filesystem:
        session = Session()
        if request.param == "memory":
            fs: Filesystem = InMemoryFilesystem(session, limits=limits)
        else:
            (tmp_path / "root").mkdir()
            fs = HostFilesystem(tmp_path / "root", session=session, limits=limits, store=tmp_path / "store")
        fs.write("/a.txt", "one\n")
        fs.write("/d/b.txt", "b")
        fs.mkdir("/empty")
        return fs

    return made


@pytest.fixture
def fs(make: Make) -> Filesystem:
    return make(Limits())


def run(fs: Filesystem, command: str, path: str = "/") -> tuple[str, ...]:
    with fs.checkout(path) as work:
        subprocess.run(command, shell=True, check=True, cwd=work.directory)
        assert work.changed == ()
    return work.changed


def test_changes_by_a_program_are_applied_and_reported(fs: Filesystem) -> None:
    changed = run(fs, "echo two >> a.txt; mkdir -p x/y; echo z > x/y/z; rm -r d; chmod 700 empty; ln -s a.txt l")
    assert changed == ("/a.txt", "/d", "/d/b.txt", "/empty", "/l", "/x", "/x/y", "/x/y/z")
    assert fs.read("/a.txt").content == "one\ntwo\n"
    assert fs.read("/x/y/z").content == "z\n"
    assert not fs.exists("/d")
    assert fs.stat("/empty").mode == 0o700
    assert fs.readlink("/l") == "a.txt"


def test_changes_by_a_program_are_recorded_like_any_others(fs: Filesystem) -> None:
    before = fs.session.seq if fs.session else 0
    run(fs, "echo new > new.txt; rm a.txt; mkdir made")
    assert fs.session is not None
    names = {type(record.event).__name__ for record in fs.session.records.since(before)}
    assert names - {"TreeSeen"} == {"FileWritten", "EntryDeleted", "DirectoryMade"}
    fs.session.rollback(before)
    assert fs.read("/a.txt").content == "one\n"
    assert not fs.exists("/made")


def test_a_program_that_changes_nothing_leaves_no_record(fs: Filesystem) -> None:
    assert fs.session is not None
    before = fs.session.seq
    assert run(fs, "cat a.txt > /dev/null") == ()
    assert fs.session.seq == before


def test_a_change_of_kind_is_reported(fs: Filesystem) -> None:
    run(fs, "rm a.txt; mkdir a.txt; echo x > a.txt/in; rm -r d; echo d > d; rm -r empty; mkfifo empty")
    assert fs.read("/a.txt/in").content == "x\n"
    assert fs.read("/d").content == "d\n"
    entry = next(entry for entry in fs.list("/") if entry.name == "empty")
    assert [entry.is_file, entry.is_directory, entry.is_symlink] == [False] * 3


def test_an_error_in_the_block_undoes_all_of_it(fs: Filesystem) -> None:
    before = fs.tree().fingerprint
    with pytest.raises(LookupError), fs.checkout() as work:
        subprocess.run("rm -rf *; echo x > new; ln -s / out; chmod 700 .", shell=True, check=True, cwd=work.directory)
        raise LookupError
    assert fs.tree().fingerprint == before


def test_a_failed_transaction_undoes_a_program_that_succeeded(fs: Filesystem) -> None:
    assert fs.session is not None
    before = fs.tree().fingerprint
    with pytest.raises(LookupError), fs.session.transaction():
        fs.write("/first.txt", "first")
        run(fs, "rm -rf d; echo x >> a.txt; echo y >> first.txt")
        fs.write("/d", "a file now")
        raise LookupError
    assert fs.tree().fingerprint == before
    assert isinstance(fs.session.records[-1].event, RolledBack)


def test_a_single_directory_can_be_checked_out(fs: Filesystem) -> None:
    changed = run(fs, "ls > listing", "/d")
    assert changed == ("/d/listing",)
    assert "b.txt" in fs.read("/d/listing").content


def test_changes_that_exceed_a_quota_are_refused_and_undone(make: Make) -> None:
    fs = make(Limits(max_total_size=1000))
    before = fs.tree().fingerprint
    with pytest.raises(OSError, match="1000"):
        run(fs, "head -c 5000 /dev/zero > large")
    assert fs.tree().fingerprint == before


def test_names_that_are_not_text_survive(fs: Filesystem) -> None:
    with fs.checkout() as work:
        Path(os.fsdecode(os.fsencode(work.directory) + b"/\xff\\ name")).write_text("odd")
    assert work.changed == ("/\uf7ff\uf75c name",)
    assert fs.read("/\uf7ff\uf75c name").content == "odd"
    fs.delete("/\uf7ff\uf75c name")


def test_a_program_sees_the_files_exactly(fs: Filesystem) -> None:
    fs.chmod("/a.txt", 0o755)
    fs.symlink("nowhere", "/link")
    with fs.checkout() as work:
        status = os.stat(f"{work.directory}/a.txt")
        assert stat.S_IMODE(status.st_mode) == 0o755
        assert status.st_mtime_ns == fs.stat("/a.txt").modified_ns
        assert os.readlink(f"{work.directory}/link") == "nowhere"
        assert sorted(os.listdir(work.directory)) == ["a.txt", "d", "empty", "link"]


def test_nothing_is_left_in_the_private_directory(make: Make, tmp_path: Path) -> None:
    fs = make(Limits())
    run(fs, "mkdir -p deep/er; chmod 000 deep/er deep; true")
    assert os.listdir(tmp_path / "private") == []


def test_another_call_cannot_change_anything_while_a_program_runs_on_the_host(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    fs = HostFilesystem(tmp_path / "root", store=tmp_path / "store")
    with fs.checkout(), pytest.raises(OSError, match="another call"):
        fs.write("/a.txt", "text")
    fs.write("/a.txt", "text")


def test_a_program_is_refused_while_another_call_has_changed_something(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    fs = HostFilesystem(tmp_path / "root", store=tmp_path / "store")
    fork = fs.session.fork()
    with fork.transaction():
        fs.bind(fork).write("/a.txt", "text")
        with pytest.raises(OSError, match="another call"), fs.checkout():
            raise AssertionError("it must not get this far")
    with fs.checkout():
        pass
