"""Hard links: an edit and its undo keep the inode of a file, and no name outside the root is ever changed."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest

from tests.models.host import left_in_journals, record
from tests.sampling import sample
from weakfs import Capability, Session, Toolset
from weakfs.backends import HostFilesystem, MountedFilesystem


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    (root / "d").mkdir(parents=True)
    (root / "a").write_text("before\n")
    (root / "other").write_text("another file\n")
    os.link(root / "a", root / "d" / "b")
    return root


@pytest.fixture
def another_disk(tmp_path: Path) -> Iterator[Path]:
    """A directory on a device other than the root's, if there is one."""
    place = Path("/dev/shm") / f"weakfs-test-{os.getpid()}-{tmp_path.name}"
    if not os.access("/dev/shm", os.W_OK) or os.stat("/dev/shm").st_dev == os.stat(tmp_path).st_dev:
        pytest.skip("there is no other device")
    place.mkdir()
    try:
        yield place
    finally:
        shutil.rmtree(place)


@pytest.fixture(params=["same disk", "another disk"])
def fs(root: Path, tmp_path: Path, request: pytest.FixtureRequest) -> HostFilesystem:
    store = tmp_path if request.param == "same disk" else request.getfixturevalue("another_disk")
    return HostFilesystem(root, session=Session(), store=store / "store")


def file_of(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_ino, status.st_nlink


def found_at(path: Path) -> tuple[str, int]:
    return path.read_text(), path.stat().st_mode


CHANGES: dict[str, Callable[[HostFilesystem], object]] = {
    "write": lambda fs: fs.write("/a", "after\n"),
    "longer": lambda fs: fs.write("/a", "after\n" * 1000),
    "empty": lambda fs: fs.write("/a", ""),
    "append": lambda fs: fs.append("/a", "more\n"),
    "splice": lambda fs: fs.splice("/a", [(0, 6, b"after")]),
    "chmod": lambda fs: fs.chmod("/a", 0o600),
    "both names": lambda fs: (fs.write("/a", "one\n"), fs.append("/d/b", "two\n")),
}
changes = pytest.mark.parametrize("change", CHANGES)


@changes
def test_a_change_preserves_hard_links(fs: HostFilesystem, root: Path, change: str) -> None:
    inode, links = file_of(root / "a")
    CHANGES[change](fs)
    assert file_of(root / "a") == file_of(root / "d" / "b") == (inode, links) == (inode, 2)
    assert fs.read("/a").content == fs.read("/d/b").content


@changes
def test_a_failed_transaction_preserves_hard_links(fs: HostFilesystem, root: Path, change: str) -> None:
    before = record(root)
    with pytest.raises(KeyError), fs.session.transaction():
        CHANGES[change](fs)
        raise KeyError
    assert {path: (*seen.exact, seen.inode) for path, seen in record(root).items()} == {
        path: (*seen.exact, seen.inode) for path, seen in before.items()
    }


@changes
@pytest.mark.parametrize("how", ["snapshot", "record", "restore"])
def test_a_rollback_preserves_hard_links(fs: HostFilesystem, root: Path, change: str, how: str) -> None:
    before = record(root)
    files = fs.snapshot() if how == "restore" else None
    moment = fs.session.snapshot() if how == "snapshot" else fs.session.seq
    CHANGES[change](fs)
    report = fs.restore(files) if files is not None else None
    if report is None:
        fs.session.rollback(moment)
    assert {path: (*seen.exact, seen.inode) for path, seen in record(root).items()} == {
        path: (*seen.exact, seen.inode) for path, seen in before.items()
    }
    assert report is None or report.notes == ()


def test_a_change_is_recorded_for_every_name_of_the_file(fs: HostFilesystem) -> None:
    fs.session.snapshot()
    fs.write("/a", "after\n")
    changed = {getattr(record.event, "path", None) for record in fs.session.records}
    assert {"/a", "/d/b"} <= changed


def test_a_deleted_name_is_restored_as_a_hard_link_to_the_same_file(fs: HostFilesystem, root: Path) -> None:
    before = file_of(root / "a")
    with pytest.raises(KeyError), fs.session.transaction():
        fs.delete("/d/b")
        raise KeyError
    assert file_of(root / "a") == file_of(root / "d" / "b") == before


@pytest.mark.parametrize("change", [change for name, change in CHANGES.items() if name != "both names"])
def test_a_change_is_undone_and_redone_under_all_names_at_once(
    fs: HostFilesystem, root: Path, change: Callable[[HostFilesystem], object]
) -> None:
    before = {path: seen.essence for path, seen in record(root).items()}
    change(fs)
    after = {path: seen.essence for path, seen in record(root).items()}
    fs.session.undo()
    assert {path: seen.essence for path, seen in record(root).items()} == before
    assert file_of(root / "a") == file_of(root / "d" / "b")
    fs.session.redo()
    assert {path: seen.essence for path, seen in record(root).items()} == after
    assert file_of(root / "a") == file_of(root / "d" / "b")


def test_a_deleted_hard_link_and_a_later_edit_of_the_file_are_both_undone(fs: HostFilesystem, root: Path) -> None:
    with pytest.raises(KeyError), fs.session.transaction():
        fs.delete("/d/b")
        fs.write("/a", "after\n")
        raise KeyError
    assert (root / "a").read_text() == (root / "d" / "b").read_text() == "before\n"


@pytest.mark.parametrize(
    "replace", [lambda fs: fs.delete("/a"), lambda fs: fs.move("/x", "/a")], ids=["delete", "move"]
)
@pytest.mark.parametrize("change", ["write", "chmod"])
def test_a_replaced_hard_link_and_a_failed_program_that_changed_the_file_are_both_undone(
    fs: HostFilesystem, root: Path, replace: Callable[[HostFilesystem], object], change: str
) -> None:
    (root / "x").write_text("x")
    names = ("a", "d/b", "x")
    files, before = [file_of(root / name) for name in names], [found_at(root / name) for name in names]
    with pytest.raises(ZeroDivisionError), fs.session.transaction():
        replace(fs)
        with pytest.raises(KeyError), fs.checkout() as laid:
            other = Path(laid.directory, "d", "b")
            other.write_text("changed by a program") if change == "write" else other.chmod(0o751)
            raise KeyError
        raise ZeroDivisionError
    assert [found_at(root / name) for name in names] == before
    if (root / "d" / "b").stat().st_dev == os.stat(fs.store.path).st_dev:
        assert [file_of(root / name) for name in names] == files


@pytest.mark.parametrize("place", ["/a", "/d"])
def test_a_killed_process_whose_program_changed_a_file_under_another_name_is_undone(
    root: Path, tmp_path: Path, place: str
) -> None:
    (root / "c").hardlink_to(root / "a")
    names = ("a", "c", "d/b")
    files, before = [file_of(root / name) for name in names], [found_at(root / name) for name in names]
    process = os.fork()
    if not process:
        try:
            fs = HostFilesystem(root, session=Session(), store=tmp_path / "store")
            with fs.session.transaction():
                fs.delete(place, recursive=True)
                with fs.checkout() as laid:
                    Path(laid.directory, "c").write_text("changed by a program")
                    os.kill(os.getpid(), signal.SIGKILL)
        finally:
            os._exit(1)
    os.waitpid(process, 0)
    HostFilesystem(root, session=Session(), store=tmp_path / "store")
    assert [found_at(root / name) for name in names] == before
    assert [file_of(root / name) for name in names] == files


def test_a_file_with_a_hard_link_outside_is_replaced_and_the_result_says_so(fs: HostFilesystem, root: Path) -> None:
    outside = root.parent / "outside"
    os.link(root / "a", outside)
    done = fs.write("/a", "after\n")
    assert outside.read_text() == (root / "d" / "b").read_text() == "before\n"
    assert [note.path for note in done.notes] == ["/a"]
    assert "hard link" in str(done.notes[0])
    assert fs.write("/a", "again\n").notes == ()


def through_a_stream(fs: HostFilesystem) -> None:
    with fs.open("/a", "w") as stream:
        stream.write("after\n")


@pytest.mark.parametrize("change", [lambda fs: fs.chmod("/a", 0o600), through_a_stream], ids=["chmod", "stream"])
def test_a_change_without_a_result_logs_that_a_hard_link_to_the_outside_was_broken(
    fs: HostFilesystem, root: Path, change: Callable[[HostFilesystem], object], caplog: pytest.LogCaptureFixture
) -> None:
    outside = root.parent / "outside"
    os.link(root / "a", outside)
    before = outside.stat().st_mode
    change(fs)
    assert (outside.stat().st_mode, outside.read_text()) == (before, "before\n")
    assert "/a: it was a hard link to a file with a name outside this directory" in caplog.text
    caplog.clear()
    change(fs)
    assert caplog.text == ""


CHANGING: dict[str, dict[str, object]] = {
    "write_file": {"path": "a", "content": "after\n"},
    "edit_file": {"path": "a", "old_string": "before", "new_string": "after"},
    "apply_patch": {"patch": "*** Begin Patch\n*** Update File: a\n@@\n-before\n+after\n*** End Patch\n"},
}


@pytest.mark.parametrize("is_nested", [False, True])
@pytest.mark.parametrize("tool", CHANGING)
def test_the_answer_to_a_call_says_once_which_hard_link_it_broke(
    fs: HostFilesystem, root: Path, tool: str, is_nested: bool
) -> None:
    os.link(root / "a", root.parent / "outside")
    os.link(root / "other", root.parent / "elsewhere")
    tools = Toolset(fs.session, fs)
    with fs.session.transaction() if is_nested else nullcontext():
        fs.write("/other", "changed before the call\n")
        done = tools.call(tool, CHANGING[tool])
        again = tools.call("write_file", {"path": "a", "content": "again\n"})
    assert (done.success, again.success) == (True, True)
    assert done.message.count("/a: ") == done.message.count("hard link") == 1
    assert "hard link" not in again.message


def test_the_answer_names_a_mounted_file_by_its_mounted_path(root: Path, tmp_path: Path) -> None:
    os.link(root / "a", root.parent / "outside")
    session = Session()
    fs = MountedFilesystem(HostFilesystem(root, session=session, store=tmp_path / "store"), "/project")
    done = Toolset(session, fs).call("write_file", {"path": "/project/a", "content": "after\n"})
    assert "\n/project/a: " in done.message


def test_a_restore_does_not_set_the_time_of_a_symbolic_link_with_a_name_outside(fs: HostFilesystem, root: Path) -> None:
    outside = root.parent / "outside"
    outside.symlink_to("nowhere")
    os.utime(outside, ns=(5, 5), follow_symlinks=False)
    (root / "l").symlink_to("nowhere")
    os.utime(root / "l", ns=(7, 7), follow_symlinks=False)
    snapshot = fs.snapshot()
    (root / "l").unlink()
    os.link(outside, root / "l", follow_symlinks=False)
    fs.restore(snapshot)
    assert (outside.lstat().st_mtime_ns, (root / "l").lstat().st_mtime_ns) == (5, 7)


def test_a_restore_that_turns_hard_links_into_separate_files_says_so(fs: HostFilesystem, root: Path) -> None:
    (root / "a").unlink()
    (root / "a").write_text("its own\n")
    snapshot = fs.snapshot()
    (root / "a").unlink()
    os.link(root / "d" / "b", root / "a")
    report = fs.restore(snapshot)
    assert (root / "a").read_text() == "its own\n"
    assert (root / "d" / "b").read_text() == "before\n"
    assert [note.path for note in report.notes] == ["/a"]


def test_a_restore_breaks_no_hard_link_between_names_with_equal_contents(fs: HostFilesystem, root: Path) -> None:
    snapshot = fs.snapshot()
    with open(root / "a", "w") as stream:
        stream.write("changed by somebody else\n")
    (root / "a").chmod(0o600)
    os.link(root / "a", root / "c")
    inode, _ = file_of(root / "a")
    assert fs.restore(snapshot).notes == ()
    assert file_of(root / "a") == file_of(root / "d" / "b") == (inode, 2)
    assert (root / "a").read_text() == "before\n"
    assert not (root / "c").exists()


def test_a_file_that_another_call_is_changing_is_refused_under_its_other_name_too(fs: HostFilesystem) -> None:
    other = fs.bind(fs.session)
    with fs.session.transaction():
        fs.write("/a", "after\n")
        refused: list[BaseException] = []

        def write() -> None:
            try:
                other.write("/d/b", "mine\n")
            except OSError as error:
                refused.append(error)

        thread = threading.Thread(target=write)
        thread.start()
        thread.join()
    assert [type(error) for error in refused] == [OSError]
    assert "another call" in str(refused[0])


def test_a_call_cannot_write_to_a_file_with_a_hard_link_in_a_protected_place(root: Path, tmp_path: Path) -> None:
    session = Session()
    fs = HostFilesystem(root, session=session, store=tmp_path / "store")
    os.link(root / "a", root / "open")
    toolset = Toolset(session, fs, capability=Capability(fs_roots=("/d",)))
    result = toolset.call("write_file", {"path": "/d/b", "content": "mine"})
    assert (result.status, result.error_code) == ("forbidden", "path_forbidden")
    assert "hard link" in result.message
    assert (root / "a").read_text() == "before\n"


def test_holes_of_a_hard_linked_file_stay_holes(fs: HostFilesystem, root: Path) -> None:
    with open(root / "a", "wb") as stream:
        stream.truncate(8 << 20)
        stream.write(b"begin")
    before = (root / "a").stat().st_blocks
    with pytest.raises(KeyError), fs.session.transaction():
        fs.append("/a", "end")
        assert (root / "a").stat().st_blocks <= before + 256
        raise KeyError
    assert (root / "a").stat().st_blocks <= before + 256
    assert (root / "a").stat().st_size == 8 << 20


def test_a_tool_says_in_its_answer_that_a_hard_link_was_broken(root: Path, tmp_path: Path) -> None:
    session = Session()
    fs = HostFilesystem(root, session=session, store=tmp_path / "store")
    os.link(root / "a", tmp_path / "outside")
    toolset = Toolset(session, fs)
    assert "hard link" not in toolset.call("write_file", {"path": "/other", "content": "x"}).message
    result = toolset.call("edit_file", {"path": "/a", "old_string": "before", "new_string": "after"})
    assert (result.success, result.message.count("\n")) == (True, 1)
    assert result.message.endswith(
        "/a: it was a hard link to a file with a name outside this directory, and is now a separate file"
    )


def test_a_file_moved_onto_its_other_name_keeps_only_that_name(fs: HostFilesystem, root: Path) -> None:
    snapshot = fs.session.snapshot()
    fs.move("/a", "/d/b")
    assert (fs.exists("/a"), (root / "d/b").read_text(), (root / "d/b").stat().st_nlink) == (False, "before\n", 1)
    fs.session.rollback(snapshot)
    assert ((root / "a").read_text(), (root / "d/b").read_text()) == ("before\n", "before\n")


CALLS = ("mkdir", "rename", "link", "unlink", "pwrite", "write", "utime", "rmdir", "chmod", "fchmod", "ftruncate")
# More than the number of such calls in one change.
MOMENTS = 40


def killed_at(moment: int, root: Path, store: Path, change: Callable[[HostFilesystem], object]) -> bool:
    """Make a change in a process that dies before one of its changing system calls; return whether it died."""
    child = os.fork()
    if not child:
        calls = 0

        def dying(real: Callable[..., object]) -> Callable[..., object]:
            def call(*given: object, **more: object) -> object:
                nonlocal calls
                calls += 1
                if calls == moment + 1:
                    os._exit(9)
                return real(*given, **more)

            return call

        try:
            fs = HostFilesystem(root, session=Session(), store=store)
            for module, name in (*((os, name) for name in (*CALLS, "copy_file_range")), (fcntl, "ioctl")):
                setattr(module, name, dying(getattr(module, name)))
            change(fs)
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9


@pytest.mark.sampled(by_rule=True)
@pytest.mark.parametrize("change", ["longer", "empty", "append", "chmod"])
@pytest.mark.parametrize("place", ["same disk", "another disk"])
def test_a_process_killed_at_any_call_leaves_a_change_complete_or_absent(
    tmp_path: Path, request: pytest.FixtureRequest, change: str, place: str
) -> None:
    above = tmp_path if place == "same disk" else request.getfixturevalue("another_disk")
    deaths = 0
    for moment in sample(range(MOMENTS)):
        root = tmp_path / str(moment) / "root"
        (root / "d").mkdir(parents=True)
        (root / "a").write_text("before\n" * 500)
        os.link(root / "a", root / "d" / "b")
        os.utime(root / "a", ns=(5, 5))
        before, file = record(root), file_of(root / "a")
        died = killed_at(moment, root, above / f"store {moment}", CHANGES[change])
        deaths += died

        fs = HostFilesystem(root, session=Session(), store=above / f"store {moment}")

        after = record(root)
        assert file_of(root / "a") == file_of(root / "d" / "b") == file
        assert after.keys() == before.keys()
        is_undone = after[b"a"].exact == before[b"a"].exact
        if is_undone:
            assert {path: seen.exact for path, seen in after.items()} == {
                path: seen.exact for path, seen in before.items()
            }
        else:
            expected = {"longer": b"after\n" * 1000, "empty": b"", "append": b"before\n" * 500 + b"more\n"}
            assert after[b"a"].content == expected.get(change, b"before\n" * 500)
        assert died or not is_undone
        assert not left_in_journals(above / f"store {moment}", after_interrupt=True)
        del fs
    assert deaths
