"""Missing permissions, files that others remove meanwhile, and names that no filesystem allows: clear errors."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from errno import EACCES, ENAMETOOLONG, ENOENT, EROFS
from pathlib import Path

import pytest

from tests.faults.saving import NOBODY
from tests.models.host import exact, left_in_journals, record
from weakfs.backends import HostFilesystem
from weakfs.filesystem import Limits
from weakfs.snapshots.directory.directory import HostDirectory

AsNobody = Callable[..., list[str]]

needs_root = pytest.mark.skipif(os.getuid() != 0, reason="only root can become somebody else")


@pytest.fixture
def place() -> Iterator[Path]:
    """Return a directory that everybody may pass through, with a root in it."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o777)
    root = folder / "root"
    for name in ("d", "e/deep", "hidden"):
        (root / name).mkdir(parents=True)
    for name in ("a", "d/a", "e/deep/a", "hidden/a", "secret"):
        (root / name).write_text("a")
    yield folder
    subprocess.run(["chmod", "-R", "u+rwX", folder], check=True)
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def nobody() -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "tests.faults.as_nobody"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield process


@pytest.fixture
def as_nobody(nobody: subprocess.Popen[str], place: Path) -> AsNobody:
    """Return a function that acts in the directory as an unprivileged user, and returns what that user saw."""
    assert nobody.stdin is not None
    assert nobody.stdout is not None
    asked, answers = nobody.stdin, nobody.stdout

    def ask(what: str, path: str = "/") -> list[str]:
        print(json.dumps([str(place / "root"), str(place / "store"), what, path]), file=asked, flush=True)
        return [str(line) for line in json.loads(answers.readline())]

    return ask


def give_away(place: Path, *kept: str) -> None:
    """Give all entries except some to the user nobody; without root's rights, do nothing."""
    if os.getuid():
        assert not kept
        return
    for path in (place / "root", *(place / "root").rglob("*")):
        if str(path.relative_to(place / "root")) not in kept:
            os.chown(path, NOBODY, NOBODY, follow_symlinks=False)


@needs_root
@pytest.mark.parametrize("what", ["snapshot", "statistics", "import", "read", "copy"])
def test_a_file_that_may_not_be_read_is_named(place: Path, as_nobody: AsNobody, what: str) -> None:
    give_away(place, "secret")
    (place / "root" / "secret").chmod(0o600)
    before = record(place / "root")

    (answer,) = as_nobody(what, "/secret")

    assert record(place / "root") == before
    if what == "statistics":
        assert answer == "done"
    else:
        assert answer.startswith(f"PermissionError {EACCES}: cannot ")
        assert "'/secret'" in answer
        assert ";" in answer


@needs_root
@pytest.mark.parametrize("what", ["snapshot", "statistics", "import", "list", "read", "write", "delete"])
def test_a_directory_that_may_not_be_entered_is_named(place: Path, as_nobody: AsNobody, what: str) -> None:
    give_away(place, "hidden")
    (place / "root" / "hidden").chmod(0o700)
    before = record(place / "root")

    (answer,) = as_nobody(what, "/hidden/a" if what in ("read", "write") else "/hidden")

    assert record(place / "root") == before
    assert answer.startswith(f"PermissionError {EACCES}: cannot ")
    assert "hidden" in answer
    assert ";" in answer


@needs_root
@pytest.mark.parametrize(
    ("what", "path"),
    [
        *[(what, "/d/a") for what in ("write", "append", "delete", "move", "chmod")],
        *[(what, "/d/new") for what in ("write", "append", "mkdir", "symlink", "move away")],
        ("chmod", "/d"),
    ],
)
def test_entries_that_the_user_may_not_change_stay(place: Path, as_nobody: AsNobody, what: str, path: str) -> None:
    give_away(place, "d", "d/a")
    before = record(place / "root")

    (answer,) = as_nobody(what, path)

    assert exact(record(place / "root")) == exact(before)
    assert answer.startswith("PermissionError "), answer
    assert "/d" in answer or what == "move away"
    assert ";" in answer


@needs_root
@pytest.mark.parametrize("what", ["fail after changing", "restore", "fail after restore"])
def test_a_time_of_a_directory_of_another_user_that_cannot_be_put_back_is_reported(
    place: Path, as_nobody: AsNobody, what: str
) -> None:
    directory = place / "root" / "d"
    (directory / "b").write_text("b")
    directory.chmod(0o777)
    give_away(place, "d")
    before = exact(record(place / "root"))

    said, done = as_nobody(what, "/d")

    assert done == "done"
    lost = "put back" if what.startswith("fail") else "kept"
    assert said.endswith(f"/d: its modification time could not be {lost}")
    assert said.count("/d") == 1
    after = exact(record(place / "root"))
    assert after.pop(b"d")[:3] == before.pop(b"d")[:3]
    assert after == before


@needs_root
@pytest.mark.parametrize("has_another_disk", [False, True])
@pytest.mark.parametrize("foreign", ["d", "e/deep", "sticky"])
def test_a_directory_with_entries_that_the_user_may_not_remove_is_not_deleted(
    place: Path, as_nobody: AsNobody, foreign: str, has_another_disk: bool
) -> None:
    root, store = place / "root", place / "store"
    (root / "sticky").mkdir()
    (root / "sticky" / "a").touch()
    give_away(place, "d", "d/a", "e/deep", "e/deep/a", "sticky", "sticky/a")
    (root / "sticky").chmod(0o1777)
    shared = Path(tempfile.mkdtemp(dir="/dev/shm")) if has_another_disk else place
    try:
        if has_another_disk:
            shared.chmod(0o777)
            store.symlink_to(shared)
        before = record(root)
        (answer,) = as_nobody("delete", f"/{foreign.partition('/')[0]}")
        assert exact(record(root)) == exact(before)
        assert answer.startswith("PermissionError "), answer
        assert f"/{foreign}" in answer
        assert as_nobody("write", "/new") == ["done"]
        assert not left_in_journals(store)
    finally:
        if has_another_disk:
            shutil.rmtree(shared)


@needs_root
def test_what_a_restore_cannot_remove_is_left_in_the_store_and_prevents_nothing(
    place: Path, as_nobody: AsNobody
) -> None:
    give_away(place, "e/deep", "e/deep/a")

    assert as_nobody("import") == ["done"]
    assert not os.listdir(place / "root")
    (left,) = (place / "store" / "journals").iterdir()
    assert [path.name for path in left.rglob("*")] != []

    for one in (left, *left.iterdir()):
        # An old directory without a log is taken for a leftover of a process that was killed.
        os.utime(one, (0, 0))
    assert as_nobody("write", "/new") == ["done"]
    assert (place / "root" / "new").exists()


@needs_root
def test_deleting_a_directory_with_a_mount_point_in_it_succeeds_and_prevents_nothing(
    place: Path, caplog: pytest.LogCaptureFixture
) -> None:
    mounted = place / "root" / "e" / "deep"
    ran = subprocess.run(["mount", "-t", "tmpfs", "tmpfs", mounted], capture_output=True, text=True, check=False)
    if ran.returncode:
        pytest.skip(f"cannot mount: {ran.stderr}")
    try:
        (mounted / "file").write_text("in the mount\n")
        files = HostFilesystem(place / "root", store=place / "store")
        files.delete("/e", recursive=True)
        (left,) = (place / "store" / "journals").iterdir()
        assert str(left) in caplog.text
        os.utime(left, (0, 0))
        mounted = next(left.glob("*/deep"))
        HostFilesystem(place / "root", store=place / "store").write("/new", "new")
        files.session.undo()
        assert (place / "root" / "e" / "deep" / "file").read_text() == "in the mount\n"
    finally:
        subprocess.run(["umount", mounted], check=True)


@needs_root
def test_a_mounted_file_that_a_program_changed_is_restored_in_place(place: Path) -> None:
    outside, mounted = place / "outside", place / "root" / "a"
    outside.write_text("before\n")
    os.utime(outside, ns=(0, 10**18))
    ran = subprocess.run(["mount", "--bind", outside, mounted], capture_output=True, text=True, check=False)
    if ran.returncode:
        pytest.skip(f"cannot mount: {ran.stderr}")
    try:
        files = HostFilesystem(place / "root", store=place / "store")
        before = record(place / "root")
        for _ in range(2):
            with pytest.raises(RuntimeError), files.checkout():
                mounted.write_text("of a program\n")
                mounted.chmod(0o600)
                raise RuntimeError
            assert exact(record(place / "root")) == exact(before)
        files.session.snapshot("before")
        with files.checkout():
            mounted.write_text("of another\n")
        files.session.rollback("before")
        assert exact(record(place / "root")) == exact(before)
        with pytest.raises(RuntimeError), files.session.transaction():
            with files.checkout():
                mounted.write_text("of a third\n")
            raise RuntimeError
        assert exact(record(place / "root")) == exact(before)
        assert outside.read_text() == "before\n"
    finally:
        subprocess.run(["umount", mounted], check=True)


@pytest.mark.parametrize("what", ["write", "append"])
def test_a_read_only_file_is_not_written_even_if_its_directory_allows_replacing_it(
    place: Path, as_nobody: AsNobody, what: str
) -> None:
    give_away(place)
    (place / "root" / "a").chmod(0o444)
    before = record(place / "root")

    (answer,) = as_nobody(what, "/a")

    assert answer.startswith("PermissionError "), answer
    assert exact(record(place / "root")) == exact(before)


@needs_root
@pytest.mark.parametrize(("what", "path"), [("write", "/d/new"), ("delete", "/d/a"), ("mkdir", "/d/new")])
def test_a_world_writable_directory_of_another_user_can_be_changed(
    place: Path, as_nobody: AsNobody, what: str, path: str
) -> None:
    give_away(place, "d")
    (place / "root" / "d").chmod(0o777)
    assert as_nobody(what, path) == ["done"]
    assert (place / "root" / path[1:]).exists() == (what != "delete")


def test_a_restore_of_read_only_directories_is_undone_by_their_owner(place: Path, as_nobody: AsNobody) -> None:
    give_away(place)
    (place / "root" / "d").chmod(0o555)
    assert as_nobody("fail after restoring") == ["changed True 0o755", "done"]


def test_read_only_directories_are_moved_deleted_and_restored_by_their_owner(place: Path, as_nobody: AsNobody) -> None:
    give_away(place)
    for name in ("e/deep", "e", "d"):
        (place / "root" / name).chmod(0o555)
    assert as_nobody("fail after deleting") == ["True", "done"]


@needs_root
def test_a_root_that_may_not_be_opened_says_so(place: Path, as_nobody: AsNobody) -> None:
    (place / "root").chmod(0o700)
    (answer,) = as_nobody("open")
    assert answer.startswith(f"PermissionError {EACCES}: cannot open ")
    assert ";" in answer


@needs_root
def test_a_disk_that_is_mounted_read_only_refuses_every_change(place: Path) -> None:
    root = place / "root"
    fs = HostFilesystem(root, store=place / "store")
    snapshot = fs.snapshot()
    (root / "a").write_text("changed")
    commands = (["mount", "--bind", str(root), str(root)], ["mount", "-o", "remount,ro,bind", str(root)])
    if any(subprocess.run(command, capture_output=True, check=False).returncode for command in commands):
        pytest.skip("this needs the right to mount")
    try:
        mounted = HostFilesystem(root, store=place / "elsewhere")
        before = record(root)
        changes: tuple[Callable[[], object], ...] = (
            lambda: mounted.write("/a", "x"),
            lambda: mounted.append("/new", "x"),
            lambda: mounted.mkdir("/new/dir"),
            lambda: mounted.delete("/d", recursive=True),
            lambda: mounted.move("/a", "/b"),
            lambda: mounted.copy("/a", "/b"),
            lambda: mounted.chmod("/a", 0o600),
            lambda: mounted.symlink("a", "/l"),
        )
        for change in changes:
            with pytest.raises(OSError, match="read-only; use another") as caught:
                change()
            assert caught.value.errno == EROFS
            assert record(root) == before
        assert mounted.read("/a").content == "changed"
    finally:
        subprocess.run(["umount", "--lazy", root], check=True)
    fs.restore(snapshot)
    assert fs.read("/a").content == "a"


@pytest.mark.parametrize("name", ["n" * 256, "\u00e9" * 128, "d/" * 70 + "x"])
def test_a_name_that_no_file_system_allows_is_refused(place: Path, name: str) -> None:
    fs = HostFilesystem(place / "root", store=place / "store")
    before = record(place / "root")
    for make in (fs.mkdir, lambda path: fs.write(path, "x"), lambda path: fs.copy("/a", path)):
        with pytest.raises(OSError, match="cannot") as caught:
            make(name)
        assert caught.value.errno == ENAMETOOLONG
    with pytest.raises(FileNotFoundError):
        fs.read(name)
    assert not fs.exists(name)
    assert record(place / "root") == before


def test_a_name_that_is_too_long_only_for_the_host_is_refused_with_the_hosts_error(place: Path) -> None:
    fs = HostFilesystem(
        place / "root", store=place / "store", limits=Limits(max_segment_length=None, max_path_depth=None)
    )
    before = record(place / "root")
    for change in (lambda: fs.write("/" + "n" * 300, "x"), lambda: fs.mkdir("/new/" + "n" * 300)):
        with pytest.raises(OSError, match="cannot change '/n") as caught:
            change()
        assert caught.value.errno == ENAMETOOLONG
        assert exact(record(place / "root")) == exact(before)


def test_a_path_deeper_than_the_host_can_name_is_read_and_restored(place: Path) -> None:
    fs = HostFilesystem(place / "root", store=place / "store", limits=Limits(max_path_depth=None))
    path = ("/" + "n" * 200) * 40
    fs.write(path + "/file", "deep")
    snapshot = fs.snapshot()
    fs.delete("/" + "n" * 200, recursive=True)

    fs.restore(snapshot)

    assert fs.read(path + "/file").content == "deep"
    fs.delete("/" + "n" * 200, recursive=True)


@pytest.mark.parametrize("vanishes", ["d/a", "d"])
@pytest.mark.parametrize(
    "work",
    [
        lambda fs: fs.read("/d/a"),
        lambda fs: fs.append("/d/a", "x"),
        lambda fs: fs.copy("/d/a", "/copied"),
        lambda fs: fs.move("/d/a", "/moved"),
        lambda fs: fs.delete("/d/a"),
        lambda fs: fs.chmod("/d/a", 0o600),
    ],
)
def test_a_file_that_vanishes_during_a_call_is_an_ordinary_error(
    place: Path, monkeypatch: pytest.MonkeyPatch, work: Callable[[HostFilesystem], object], vanishes: str
) -> None:
    """There is one attempt for each moment at which a status is read: the file vanishes right after that."""
    root = place / "root"
    fs = HostFilesystem(root, store=place / "store")
    snapshot = fs.snapshot()
    status = HostDirectory.status
    came_through = False
    for moment in range(1, 40):
        looks = 0

        def look(self: HostDirectory, segments: tuple[str, ...], moment: int = moment) -> os.stat_result | None:
            nonlocal looks
            looks += 1
            found = status(self, segments)
            if looks == moment:
                shutil.rmtree(root / "d") if vanishes == "d" else (root / "d" / "a").unlink(missing_ok=True)
            return found

        with monkeypatch.context() as patch:
            patch.setattr(HostDirectory, "status", look)
            refusal: OSError | None = None
            try:
                work(fs)
            except FileNotFoundError as error:
                refusal = error
            came_through = looks < moment
        assert refusal is None or (refusal.errno == ENOENT and "cannot" in str(refusal))
        assert not left_in_journals(place / "store", after_interrupt=True)
        fs.restore(snapshot)
        if came_through:
            return
    pytest.fail("it never came through")


def test_a_file_with_hard_links_that_its_owner_may_not_read_is_restored_after_a_program_changed_it(
    place: Path, as_nobody: AsNobody
) -> None:
    one, other = place / "root" / "d" / "a", place / "root" / "d" / "b"
    os.link(one, other)
    one.chmod(0o200)
    give_away(place)
    assert as_nobody("fail after a program", "/d/a") == ["done"]
    assert one.stat().st_mode & 0o777 == 0o200
    one.chmod(0o600)
    assert (one.read_text(), one.stat().st_ino) == ("a", other.stat().st_ino)
