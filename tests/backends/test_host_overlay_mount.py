"""A root on an overlay mount, as in every container: directories of the lower layer cannot be renamed (EXDEV)."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from weakfs import Session
from weakfs.backends import HostFilesystem
from weakfs.snapshots.directory.directory import HostDirectory
from weakfs.snapshots.journal.journal import Journal


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
            pytest.skip(f"cannot mount {kind}: {ran.stderr.strip()}")
        mounted.append(place)

    try:
        # An upper layer cannot lie on an overlay itself.
        mount("tmpfs", space, "size=16m")
        for name in ("lower/d/sub", "upper", "work", "root"):
            (space / name).mkdir(parents=True)
        (space / "lower/d/sub/file").write_text("deep\n")
        (space / "lower/d/file").write_text("text\n")
        layers = f"lowerdir={space}/lower,upperdir={space}/upper,workdir={space}/work"
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
def test_a_failed_transaction_puts_a_directory_of_the_lower_layer_back(fs: HostFilesystem, change: str) -> None:
    before = fs.tree()
    with pytest.raises(KeyError), fs.session.transaction():
        CHANGES[change](fs)
        raise KeyError
    after = fs.tree()
    assert after.fingerprint == before.fingerprint
    assert [entry.path for entry in fs.walk()] == ["/d", "/d/file", "/d/sub", "/d/sub/file"]


def test_a_removal_that_was_killed_halfway_is_undone(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Killed(BaseException):
        pass

    def remove(directory: HostDirectory, segments: tuple[str, ...]) -> None:
        (root / "d/sub/file").unlink()
        raise Killed

    disk = HostDirectory(str(root))
    start = str(root.parent / "journals" / "own")
    journal = Journal(disk, start, lambda ref: None)
    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(HostDirectory, "remove", remove)
        journal.keep(("d",))
    journal.undo()
    assert (root / "d/sub/file").read_text() == "deep\n"
