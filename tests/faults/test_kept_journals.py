"""A journal that is kept for the next write: who uses it, what kills leave in it, and when it is removed."""

from __future__ import annotations

import gc
import logging
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from tests.faults.dying import Death, dying
from tests.models.host import exact, left_in_journals, record
from weakfs import HostFilesystem, Session


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "root" / "d").mkdir(parents=True)
    (tmp_path / "root" / "d" / "file").write_text("one")
    return tmp_path


def opened(place: Path, session: Session | None = None) -> HostFilesystem:
    return HostFilesystem(place / "root", session=session or Session(), store=place / "store")


def journals(place: Path) -> list[Path]:
    return sorted((place / "store" / "journals").iterdir())


def file_of(place: Path) -> Path:
    return place / "root" / "d" / "file"


def test_one_empty_journal_is_kept_and_used_again(place: Path) -> None:
    fs = opened(place)
    fs.write("/d/file", "two")
    (kept,) = journals(place)
    for change in (
        lambda: fs.write("/d/file", "three"),
        lambda: fs.write("/d/new", "new"),
        lambda: fs.delete("/d/new"),
    ):
        change()
        assert journals(place) == [kept]
        assert left_in_journals(place / "store") == []


def test_a_journal_that_held_more_than_links_is_not_kept(place: Path) -> None:
    fs = opened(place)
    fs.mkdir("/e/f")
    fs.delete("/e", recursive=True)
    assert journals(place) == []
    with suppress(KeyError), fs.session.transaction():
        fs.write("/d/file", "two")
        raise KeyError
    assert journals(place) == []


def test_nothing_is_left_by_a_filesystem_that_is_no_longer_used(place: Path) -> None:
    fs = opened(place)
    fs.write("/d/file", "two")
    assert len(journals(place)) == 1
    del fs
    gc.collect()
    assert journals(place) == []


def test_nothing_is_left_by_a_session_that_was_closed(place: Path) -> None:
    with Session() as session:
        opened(place, session).write("/d/file", "two")
        assert len(journals(place)) == 1
    assert journals(place) == []


def test_nothing_is_left_by_a_process_that_ended(place: Path) -> None:
    program = "import sys; from weakfs import HostFilesystem; fs = HostFilesystem(sys.argv[1], store=sys.argv[2]);"
    arguments = [str(place / "root"), str(place / "store")]
    subprocess.run([sys.executable, "-c", program + "fs.write('/d/file', 'two')", *arguments], check=True)
    assert file_of(place).read_text() == "two"
    assert journals(place) == []


def test_a_kill_before_any_call_leaves_a_write_done_or_not(place: Path) -> None:
    states: set[str] = set()
    moment = 0
    was_killed = True
    while was_killed:

        def work(_: Callable[[str], None], moment: int = moment) -> None:
            fs = opened(place)
            for text in ("one", "two", "one"):
                fs.write("/d/file", text)
            Death(moment).install()
            fs.write("/d/file", "two")

        _, was_killed = dying(work)
        seen = record(place / "root")
        opened(place)
        assert file_of(place).read_text() in ("one", "two")
        assert left_in_journals(place / "store", after_interrupt=True) == []
        assert [path for path in record(place / "root") if b".tmp" in path] == []
        if b".weakfs-" in b"".join(seen):
            assert file_of(place).read_text() == "one"
        states.add(file_of(place).read_text())
        moment += 1
    assert states == {"one", "two"}


def test_what_a_killed_process_kept_is_removed_without_a_word(place: Path, caplog: pytest.LogCaptureFixture) -> None:
    def work(_: Callable[[str], None]) -> None:
        fs = opened(place)
        fs.write("/d/file", "two")
        os.kill(os.getpid(), signal.SIGKILL)

    assert dying(work)[1]
    assert len(journals(place)) == 1
    HostFilesystem(place / "root", store=place / "store", read_only=True)
    with caplog.at_level(logging.WARNING):
        opened(place)
    assert caplog.text == ""
    assert journals(place) == []
    assert file_of(place).read_text() == "two"


def test_others_may_remove_a_kept_journal_at_any_time(place: Path) -> None:
    one, other = opened(place), opened(place)
    for number in range(3):
        one.write("/d/file", f"one {number}")
        other.write("/d/file", f"other {number}")
        assert len(journals(place)) == 1
    before = exact(record(place / "root"))
    with suppress(KeyError), one.session.transaction():
        one.write("/d/file", "undone")
        other.write("/d/new", "new")
        other.delete("/d/new")
        raise KeyError
    assert exact(record(place / "root")) == before
    shutil.rmtree(place / "store" / "journals")
    one.write("/d/file", "last")
    (place / "store").rename(place / "moved")
    one.write("/d/file", "in a new store")
    assert len(journals(place)) == 1


def test_a_child_process_does_not_use_what_its_parent_kept(place: Path) -> None:
    fs = opened(place)
    fs.write("/d/file", "two")
    (kept,) = journals(place)

    def work(_: Callable[[str], None]) -> None:
        with fs.session.transaction():
            fs.write("/d/file", "of the child")
            assert kept not in (log.parent for log in (place / "store").rglob("log") if log.stat().st_size)
            os.kill(os.getpid(), signal.SIGKILL)

    assert dying(work)[1]
    assert file_of(place).read_text() == "of the child"
    fs.write("/d/other", "of the parent")
    assert file_of(place).read_text() == "two"
    assert left_in_journals(place / "store") == []


def test_a_child_process_that_ends_leaves_what_its_parent_kept(place: Path) -> None:
    fs = opened(place)
    fs.write("/d/file", "two")
    kept = journals(place)

    def work(_: Callable[[str], None]) -> None:
        fs._root.journals.remove_empty()

    dying(work)
    assert journals(place) == kept


def test_a_journal_with_steps_in_place_of_the_kept_one_is_not_used(place: Path) -> None:
    fs = opened(place)
    fs.write("/d/file", "two")
    (kept,) = journals(place)
    with fs.session.transaction():
        fs.write("/d/file", "three")
        shutil.copytree(kept, place / "backup")
    shutil.rmtree(kept)
    # A store restored from a backup that was made during a call.
    (place / "backup").rename(kept)
    fs.write("/d/file", "four")
    fs.write("/d/file", "five")
    assert file_of(place).read_text() == "five"
    assert [path.name.partition("-")[0] for path in left_journals(place)] == ["elsewhere"]


def left_journals(place: Path) -> list[Path]:
    return left_in_journals(place / "store")


def test_work_in_a_kept_journal_counts_as_newer_than_all_before_it(place: Path) -> None:
    fs = opened(place)
    fs.write("/d/file", "two")
    (kept,) = journals(place)
    os.utime(kept, (0, 0))
    with fs.session.transaction():
        # Its only step adds nothing to the directory of the journal.
        fs.chmod("/d/file", 0o600)
        assert kept.stat().st_mtime > 0
