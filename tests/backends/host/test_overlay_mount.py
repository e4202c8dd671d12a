"""A root on an overlay mount, as in every container: directories of the lower layer cannot be renamed (EXDEV)."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.models.host import exact, record
from weakfs import Policy, PolicyRule, Session, Toolset
from weakfs.backends import HostFilesystem
from weakfs.reducers.events import EntryMoved
from weakfs.snapshots.directory.directory import HostDirectory
from weakfs.snapshots.undo_journal.journal import Journal
from weakfs.snapshots.undo_journal.journal_directory import Journals


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Path]:
    space = tmp_path / "space"
    space.mkdir()
    mounted: list[Path] = []

    def mount(kind: str, place: Path, options: str) -> None:
        ran = subprocess.run(
            ["mount", "-t", kind, kind, "-o", options, place], capture_output=True, text=True, check=False
        )
        if ran.returncode:
            pytest.skip(f"cannot mount {kind}; without root's rights, run this under `unshare -Urm`")
        mounted.append(place)

    try:
        # An upper layer cannot itself be on an overlay mount.
        mount("tmpfs", space, "size=16m")
        for name in ("lower/d/sub", "upper", "work", "root"):
            (space / name).mkdir(parents=True)
        (space / "lower/d/sub/file").write_text("deep\n")
        (space / "lower/d/file").write_text("text\n")
        (space / "lower/d/sub/one").write_text("linked\n")
        os.link(space / "lower/d/sub/one", space / "lower/d/sub/two")
        # In a user namespace, changing the owner may be impossible.
        with suppress(OSError):
            os.chown(space / "lower/d/sub/one", 12_345, 23_456)
        (space / "lower/d/sub/one").chmod(0o4755)
        (space / "lower/d/sub/link").symlink_to("one")
        os.mkfifo(space / "lower/d/sub/fifo")
        layers = f"lowerdir={space}/lower,upperdir={space}/upper,workdir={space}/work"
        # In a user namespace, the overlay may not store its metadata in attributes that only root can set.
        layers += "" if Path("/proc/self/uid_map").read_text().split() == ["0", "0", "4294967295"] else ",userxattr"
        mount("overlay", space / "root", layers)
        yield space / "root"
    except FileNotFoundError:
        pytest.skip("there is no mount program")
    finally:
        for place in reversed(mounted):
            subprocess.run(["umount", "--lazy", place], check=True)


@pytest.fixture(params=["same disk", "another disk"])
def fs(root: Path, tmp_path: Path, request: pytest.FixtureRequest) -> HostFilesystem:
    store = root.parent / "store" if request.param == "same disk" else tmp_path / "store"
    return HostFilesystem(root, session=Session(), store=store)


CHANGES: dict[str, Callable[[HostFilesystem], object]] = {
    "move": lambda fs: fs.move("/d", "/moved/e"),
    "delete": lambda fs: fs.delete("/d", recursive=True),
    "delete below": lambda fs: fs.delete("/d/sub", recursive=True),
    "delete and write": lambda fs: (fs.delete("/d", recursive=True), fs.write("/d", "a file now")),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_directory_of_the_lower_layer_is_changed_and_restored(fs: HostFilesystem, change: str) -> None:
    before = fs.tree().fingerprint
    snapshot = fs.session.snapshot()
    CHANGES[change](fs)
    assert not fs.exists("/d/sub")
    if change == "move":
        assert fs.read("/moved/e/sub/file").content == "deep\n"
    fs.session.rollback(snapshot)
    assert fs.tree().fingerprint == before


@pytest.mark.parametrize("change", CHANGES)
def test_a_failed_transaction_restores_a_directory_of_the_lower_layer(fs: HostFilesystem, change: str) -> None:
    before = fs.tree()
    with pytest.raises(KeyError), fs.session.transaction():
        CHANGES[change](fs)
        raise KeyError
    after = fs.tree()
    assert after.fingerprint == before.fingerprint
    assert {"/d", "/d/file", "/d/sub", "/d/sub/file"} <= {entry.path for entry in fs.walk()}


def test_a_removal_that_was_killed_halfway_is_undone(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Killed(BaseException):
        pass

    def remove(directory: HostDirectory, segments: tuple[str, ...]) -> None:
        (root / "d/sub/file").unlink()
        raise Killed

    disk = HostDirectory(str(root))
    start = str(root.parent / "journals" / "own")
    journal = Journal(disk, Journals(start), lambda ref: None)
    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(HostDirectory, "remove", remove)
        journal.keep(("d",))
    journal.undo()
    assert (root / "d/sub/file").read_text() == "deep\n"


def move_and_delete(fs: HostFilesystem) -> None:
    fs.move("/d", "/e")
    fs.delete("/e/sub", recursive=True)
    fs.write("/e/new", "new")


CHANGES_BELOW: dict[str, Callable[[HostFilesystem], object]] = {
    **CHANGES,
    "move a file": lambda fs: fs.move("/d/sub/one", "/d/elsewhere"),
    "delete a file": lambda fs: fs.delete("/d/sub/one"),
    "write a file": lambda fs: fs.write("/d/sub/one", "changed\n"),
    "append to a file": lambda fs: fs.append("/d/sub/one", "more\n"),
    "change the mode": lambda fs: fs.chmod("/d/sub/one", 0o600),
    "change both names": lambda fs: (fs.append("/d/sub/one", "1"), fs.append("/d/sub/two", "2")),
    "move and delete": move_and_delete,
}


def owners(root: Path) -> dict[str, tuple[int, int, int]]:
    found: dict[str, tuple[int, int, int]] = {}
    for path in sorted(root.rglob("*")):
        status = path.lstat()
        found[str(path.relative_to(root))] = status.st_uid, status.st_gid, status.st_mode
    return found


def mark(root: Path) -> dict[str, bytes]:
    """Set attributes on entries of the lower layer, if the kernel supports them on tmpfs, and return all attributes."""
    found: dict[str, bytes] = {}
    for name in ("d", "d/sub", "d/sub/file", "d/sub/one"):
        path = root / name
        try:
            attributes = os.listxattr(path, follow_symlinks=False)
            found[name] = os.getxattr(path, "user.kind") if "user.kind" in attributes else b""
        except OSError:
            found[name] = b"none"
    return found


@pytest.fixture
def marked(root: Path) -> Path:
    for name in ("d", "d/sub", "d/sub/file", "d/sub/one"):
        try:
            os.setxattr(root.parent / "lower" / name, "user.kind", name.encode())
        except OSError:
            break
    return root


@pytest.mark.parametrize("change", CHANGES_BELOW)
def test_undoing_a_change_of_the_lower_layer_is_exact(fs: HostFilesystem, marked: Path, change: str) -> None:
    before = exact(record(marked)), owners(marked), mark(marked)
    with pytest.raises(KeyError) as caught, fs.session.transaction():
        CHANGES_BELOW[change](fs)
        raise KeyError
    assert (exact(record(marked)), owners(marked), mark(marked)) == before
    # The only loss is that of hard links: copying a file up from the lower layer drops its other names.
    assert all("hard link" in note for note in getattr(caught.value, "__notes__", ()))


@pytest.mark.sampled
@pytest.mark.parametrize("way", ["restore", "rollback", "record"])
@pytest.mark.parametrize("change", CHANGES_BELOW)
def test_going_back_to_a_moment_of_the_lower_layer_is_exact(
    fs: HostFilesystem, marked: Path, change: str, way: str
) -> None:
    def seen() -> dict[bytes, tuple[object, ...]]:
        # Going back to a record restores what the session knows, which does not include the times of directories.
        found = record(marked)
        return {
            path: one.essence if way == "record" and one.kind == "directory" else one.exact
            for path, one in found.items()
        }

    before = seen()
    files = fs.snapshot()
    moment = fs.session.snapshot() if way == "rollback" else fs.session.seq
    CHANGES_BELOW[change](fs)
    assert seen() != before
    if way == "restore":
        fs.restore(files)
    else:
        fs.session.rollback(moment)
    assert seen() == before


def test_a_file_of_the_lower_layer_that_is_edited_keeps_owner_and_attributes(fs: HostFilesystem, marked: Path) -> None:
    before, attributes = owners(marked), mark(marked)
    done = fs.write("/d/sub/one", "changed\n")
    assert (owners(marked), mark(marked)) == (before, attributes)
    assert fs.read("/d/sub/two").content == "linked\n"
    assert [note.path for note in done.notes] == ["/d/sub/one"]
    assert "mount" in done.notes[0].cause


def test_changes_by_a_program_to_the_lower_layer_are_undone_exactly(fs: HostFilesystem, marked: Path) -> None:
    before = exact(record(marked)), owners(marked), mark(marked)
    with pytest.raises(KeyError), fs.checkout() as work:
        place = Path(work.directory)
        (place / "d/sub/file").write_text("changed by a program\n")
        with open(place / "d/sub/one", "a") as stream:
            stream.write("more\n")
        (place / "d/sub/two").unlink()
        # As `mv` does if a directory cannot be renamed.
        subprocess.run(["mv", place / "d", place / "moved"], check=True)
        shutil.copytree(place / "moved", place / "d", symlinks=True, ignore=shutil.ignore_patterns("fifo"))
        raise KeyError
    assert exact(record(marked)) == before[0]


def test_a_move_by_copying_notes_which_hard_links_it_broke(fs: HostFilesystem, root: Path) -> None:
    # The link has a name outside the directory that is moved.
    os.link(root.parent / "lower/d/sub/one", root.parent / "lower/outside")

    notes = fs.apply(EntryMoved("/d/sub", "/moved", fs.now()))

    assert notes is not None
    (note,) = notes
    assert note.path in ("/moved/one", "/moved/two")
    assert "hard link" in note.cause


def test_the_answer_of_a_move_says_which_hard_links_it_broke(fs: HostFilesystem, root: Path) -> None:
    os.link(root.parent / "lower/d/sub/one", root.parent / "lower/outside")
    done = Toolset(fs.session, fs).call("mv", {"source": "/d/sub", "destination": "/moved"})
    assert done.success
    first, note = done.message.splitlines()
    assert first == "Moved /d/sub to /moved"
    assert note.startswith(("/moved/one: ", "/moved/two: "))
    assert "hard link" in note


def test_the_answer_of_a_move_names_no_hidden_file(fs: HostFilesystem, root: Path) -> None:
    os.link(root.parent / "lower/d/sub/one", root.parent / "lower/outside")
    hidden = PolicyRule(effect="deny", operations=["list", "search"], paths=["one", "two"], reason="hidden")
    done = Toolset(fs.session, fs, policy=Policy([hidden])).call("mv", {"source": "/d/sub", "destination": "/moved"})
    assert done.message == "Moved /d/sub to /moved"
