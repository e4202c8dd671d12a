"""The same state gives the same bytes: twice, in another process, and whatever the hash seed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fixtures.sessions import story
from fixtures.sessions.kinds import Note, Step, registry
from weakfs import InMemoryFilesystem, Session, Toolset
from weakfs.session.codec.blob_table import MIN_PARENT, Blobs
from weakfs.session.files.file_head import VERSION

TOP = Path(__file__).parents[3]
SAVE_AGAIN = """
import sys
from fixtures.sessions.kinds import registry
from weakfs import Session
Session.load(sys.argv[1], registry=registry()).save(sys.argv[2])
"""


def python(seed: str, *arguments: str) -> None:
    subprocess.run(
        [sys.executable, *arguments],
        cwd=TOP,
        env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(TOP)},
        check=True,
        timeout=300,
    )


def saved(session: Session, path: Path) -> bytes:
    session.save(path)
    return path.read_bytes()


@pytest.mark.sampled(by_rule=True)
@pytest.mark.parametrize("seed", ["0", "1", "4294967295"])
def test_other_processes_and_hash_seeds_give_the_same_bytes(seed: str, tmp_path: Path) -> None:
    python(seed, "-m", "fixtures.sessions", str(tmp_path))
    here = saved(story.tell(), tmp_path / "here.json")
    assert (tmp_path / f"v{VERSION}.json").read_bytes() == here


@pytest.mark.parametrize("seed", ["0", "7"])
def test_another_process_that_loads_and_saves_gives_the_same_bytes(seed: str, tmp_path: Path) -> None:
    here = saved(story.tell(), tmp_path / "here.json")
    python(seed, "-c", SAVE_AGAIN, str(tmp_path / "here.json"), str(tmp_path / "again.json"))
    assert (tmp_path / "again.json").read_bytes() == here


def test_saving_twice_writes_the_same_bytes(tmp_path: Path) -> None:
    session = story.tell()
    assert saved(session, tmp_path / "one") == saved(session, tmp_path / "two")


def test_saving_over_an_old_file_gives_the_same_bytes(tmp_path: Path) -> None:
    (tmp_path / "s.json").write_bytes(b"x" * 1_000_000)
    assert saved(story.tell(), tmp_path / "s.json") == saved(story.tell(), tmp_path / "two")


def test_reading_contents_and_digests_changes_no_bytes(tmp_path: Path) -> None:
    session = story.tell()
    before = saved(session, tmp_path / "one")
    filesystem = InMemoryFilesystem(session)
    for match in filesystem.glob("**", sort="path"):
        if match.is_file:
            filesystem.read_bytes(match.path)
    assert filesystem.tree().digest
    assert saved(session, tmp_path / "two") == before


def test_a_fork_leaves_no_trace_in_its_parent_except_its_number(tmp_path: Path) -> None:
    session = story.tell()
    fork = session.fork()
    before = saved(session, tmp_path / "one")
    fork[Step].append(Step("elsewhere"))
    fork[Note].append(Note("elsewhere"))
    InMemoryFilesystem(fork).write("/elsewhere", "x")
    fork.snapshot()
    assert saved(session, tmp_path / "two") == before


def test_loading_and_saving_large_calls_whose_records_were_dropped_gives_the_same_bytes(tmp_path: Path) -> None:
    def work(session: Session, count: int) -> None:
        tools = Toolset(session)
        for i in range(count):
            tools.call("write_file", {"path": "/a", "content": f"{session.seq} {i}\n" * 200})
            tools.call("read_file", {"path": "/a", "limit": 199 - i})

    session = Session(session_id="s", clock=lambda: 5)
    work(session, 8)
    # The calls of the fork are another part of the slice.
    fork = session.fork()
    work(fork, 12)
    session.merge(fork)
    work(session, 12)
    session.compact(keep=0)
    work(session, 1)
    session.compact(keep=0)
    before = saved(session, tmp_path / "one")
    assert saved(Session.load(tmp_path / "one"), tmp_path / "two") == before


def test_names_are_sorted_in_the_file_however_they_came(tmp_path: Path) -> None:
    saved_bytes: set[bytes] = set()
    names = [f"{number:x}" for number in range(200)]
    for order in (names, names[::-1]):
        session = Session(session_id="s", registry=registry(), clock=lambda: 5)
        filesystem = InMemoryFilesystem(session)
        for name in order:
            filesystem.write(f"/d/{name}", "same")
        session.compact(keep=0)
        saved_bytes.add(saved(session, tmp_path / "s.json"))
    assert len(saved_bytes) == 1


def test_the_report_says_what_was_written(tmp_path: Path) -> None:
    session = story.tell()
    report = session.save(tmp_path / "s.json")
    assert report.path == str(tmp_path / "s.json")
    assert report.size_bytes == (tmp_path / "s.json").stat().st_size
    assert (report.records, report.snapshots) == (len(session.records), len(session.snapshots))


def test_an_appended_content_is_written_as_a_tail_even_if_another_equal_object_was_written() -> None:
    blobs = Blobs()
    text = b"x" * MIN_PARENT
    blobs.number(text)
    blobs.number(text + b"tail", bytes(bytearray(text)))
    assert blobs.rows[1] == {"parent": 0, "tail": "tail"}
