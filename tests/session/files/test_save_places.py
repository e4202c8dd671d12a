"""Where a session can be saved: through links, over old files, in read-only folders, under long names."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.faults.watchdog import watched
from weakfs import InMemoryFilesystem, Session

TOP = Path(__file__).parents[3]


def told(words: str = "words") -> Session:
    session = Session(session_id="places", clock=lambda: 5)
    InMemoryFilesystem(session).write("/a", words)
    return session


def words_in(path: Path) -> str:
    return InMemoryFilesystem(Session.load(path)).read("/a").content


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_path_in_bytes_is_a_path(tmp_path: Path) -> None:
    path = os.fsencode(tmp_path / "s.json")

    told().save(path)  # type: ignore[arg-type]

    loaded = Session.load(path)  # type: ignore[arg-type]
    assert InMemoryFilesystem(loaded).read("/a").content == "words"


def test_a_number_is_not_taken_for_a_file_descriptor(tmp_path: Path) -> None:
    told().save(tmp_path / "s.json")
    with open(tmp_path / "s.json", "rb") as stream:
        with pytest.raises(TypeError, match=r"os\.PathLike object, not int"):
            Session.load(stream.fileno())  # type: ignore[arg-type]
        with pytest.raises(TypeError, match=r"os\.PathLike object, not int"):
            told().save(stream.fileno())  # type: ignore[arg-type]

        assert stream.tell() == 0


def test_saving_to_a_link_writes_its_target_and_keeps_the_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    target, link = tmp_path / "real" / "s.json", tmp_path / "link.json"
    told("old").save(target)
    link.symlink_to("real/s.json")
    report = told("new").save(link)
    assert link.is_symlink()
    assert words_in(target) == words_in(link) == "new"
    assert report.path == str(target)
    assert names(tmp_path) == ["link.json", "real"]
    assert names(target.parent) == ["s.json"]


def test_a_link_to_a_link_in_a_linked_folder_is_followed(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "folder").symlink_to("real")
    (tmp_path / "one").symlink_to("two")
    (tmp_path / "two").symlink_to("folder/s.json")
    told().save(tmp_path / "one")
    assert (tmp_path / "real" / "s.json").is_file()
    assert (tmp_path / "one").is_symlink()
    assert (tmp_path / "two").is_symlink()


def test_saving_to_a_dangling_link_creates_its_target(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("missing.json")
    told().save(tmp_path / "link")
    assert words_in(tmp_path / "missing.json") == "words"
    assert (tmp_path / "link").is_symlink()


def test_a_circular_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "one").symlink_to("two")
    (tmp_path / "two").symlink_to("one")
    with pytest.raises(OSError, match=r"one|two"):
        told().save(tmp_path / "one")
    assert names(tmp_path) == ["one", "two"]
    assert (tmp_path / "one").is_symlink()


def test_a_directory_is_refused_and_stays(tmp_path: Path) -> None:
    (tmp_path / "folder" / "inner").mkdir(parents=True)
    (tmp_path / "empty").mkdir()
    for name in ("folder", "empty"):
        with pytest.raises(IsADirectoryError, match=name):
            told().save(tmp_path / name)
    assert names(tmp_path) == ["empty", "folder"]
    assert names(tmp_path / "folder") == ["inner"]


def test_a_pipe_or_a_device_is_refused_and_stays(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match=r"pipe.*not a regular file"):
        told().save(tmp_path / "pipe")
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)
    assert names(tmp_path) == ["pipe"]


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"missing/s\.json"):
        told().save(tmp_path / "missing" / "s.json")
    assert names(tmp_path) == []


def test_a_folder_that_is_a_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(NotADirectoryError, match=r"file/s\.json"):
        told().save(tmp_path / "file" / "s.json")


@pytest.mark.parametrize("name", ["s", "n" * 255, "\u00e9" * 127, "a b\n\"'", "-", ".hidden", ".tmp", "\udcff\udc80"])
def test_every_name_that_a_file_may_have_can_be_saved_to(name: str, tmp_path: Path) -> None:
    for words in ("old", "new"):
        told(words).save(tmp_path / name)
        assert names(tmp_path) == [name]
        assert words_in(tmp_path / name) == words


def test_two_long_names_do_not_share_a_temporary_file(tmp_path: Path) -> None:
    one, other = tmp_path / ("n" * 254 + "1"), tmp_path / ("n" * 254 + "2")
    told("one").save(one)
    told("other").save(other)
    assert (words_in(one), words_in(other)) == ("one", "other")


def test_a_relative_path_is_resolved_from_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert told().save("s.json").path == str(tmp_path / "s.json")
    assert words_in(Path("s.json")) == "words"


@pytest.mark.parametrize("bits", [0o600, 0o640, 0o444, 0o777])
def test_the_mode_of_an_old_file_is_kept(bits: int, tmp_path: Path) -> None:
    told("old").save(tmp_path / "s.json")
    (tmp_path / "s.json").chmod(bits)
    told("new").save(tmp_path / "s.json")
    assert mode(tmp_path / "s.json") == bits


@pytest.mark.parametrize(("mask", "bits"), [(0o022, 0o644), (0o077, 0o600), (0, 0o666)])
def test_a_new_file_has_the_mode_given_by_the_umask(mask: int, bits: int, tmp_path: Path) -> None:
    before = os.umask(mask)
    try:
        told().save(tmp_path / "s.json")
    finally:
        os.umask(before)
    assert mode(tmp_path / "s.json") == bits


def test_a_hard_link_to_the_old_file_keeps_the_old_session(tmp_path: Path) -> None:
    told("old").save(tmp_path / "s.json")
    os.link(tmp_path / "s.json", tmp_path / "backup.json")
    told("new").save(tmp_path / "s.json")
    assert words_in(tmp_path / "backup.json") == "old"


def test_a_temporary_file_of_a_killed_process_is_reused(tmp_path: Path) -> None:
    (tmp_path / ".s.json.tmp").write_bytes(b"x" * 100_000)
    (tmp_path / ".s.json.tmp").chmod(0o600)
    told().save(tmp_path / "s.json")
    assert names(tmp_path) == ["s.json"]
    assert words_in(tmp_path / "s.json") == "words"


def test_a_link_in_place_of_the_temporary_file_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("precious")
    (tmp_path / ".s.json.tmp").symlink_to("precious")
    with pytest.raises(OSError, match=r"s\.json"):
        told().save(tmp_path / "s.json")
    assert (tmp_path / "precious").read_text() == "precious"


def test_a_pipe_in_place_of_the_temporary_file_does_not_hang(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / ".s.json.tmp")
    with watched(5), pytest.raises(OSError, match=r"s\.json"):
        told().save(tmp_path / "s.json")


@pytest.fixture
def open_folder() -> Generator[Path, None, None]:
    """Return a folder that every user can reach; the parent of a test's own folder is closed to others."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def as_nobody(folder: Path, words: str) -> str:
    """Save as an unprivileged user, and return the error, empty if there was none."""
    command = [sys.executable, "-m", "tests.faults.saving", str(folder / "s.json"), words, "1", "nobody"]
    environment = {**os.environ, "PYTHONPATH": str(TOP)}
    done = subprocess.run(command, cwd=TOP, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_folder_without_write_permission_is_named_and_the_old_file_stays(open_folder: Path) -> None:
    told("old").save(open_folder / "s.json")
    (open_folder / "s.json").chmod(0o666)
    open_folder.chmod(0o555)
    answer = as_nobody(open_folder, "new")
    assert answer.startswith("PermissionError")
    assert "s.json" in answer
    assert words_in(open_folder / "s.json") == "old"
    assert names(open_folder) == ["s.json"]


def test_a_file_without_write_permission_is_replaced_if_the_folder_allows_it(open_folder: Path) -> None:
    open_folder.chmod(0o777)
    told("old").save(open_folder / "s.json")
    (open_folder / "s.json").chmod(0o444)
    assert as_nobody(open_folder, "new") == ""
    assert InMemoryFilesystem(Session.load(open_folder / "s.json")).read("/file0").content == "new 0\n"
    assert mode(open_folder / "s.json") == 0o444
