"""A session of many calls: what each leaves behind, and dropping old ones."""

from __future__ import annotations

import gc
import json
import tracemalloc
from collections.abc import Iterator
from hashlib import sha256
from itertools import count
from pathlib import Path

import pytest

from tests.faults.damage import in_rows
from tests.sampling import is_exhaustive
from weakfs import Session, Toolset
from weakfs.session import Session as AnySession
from weakfs.tools import ToolCall
from weakfs.tools.slices import FileSeen, FilesSeen

FILES = 20
CALLS = 3000 if is_exhaustive() else 1500


def seen_by(session: AnySession, caller: str) -> list[str]:
    """List the files that a caller has seen, from the only value of the slice."""
    (seen,) = session[FilesSeen].all()
    filesystem = str(getattr(Toolset(session).filesystem, "filesystem_id", ""))
    paths = seen.paths(filesystem, caller)
    assert all(seen.sight(filesystem, caller, path) is not None for path in paths)
    return sorted(paths)


def live(tools: Toolset, numbers: Iterator[int], calls: int) -> None:
    """Write, read and edit a few files, one call after another."""
    for number in (next(numbers) for _ in range(calls)):
        path, kind = f"/d{number % 4}/f{number % FILES}.txt", number // FILES % 3
        arguments: dict[str, object] = {"path": path}
        name = "read_file"
        if kind == 0:
            name, arguments["content"] = "write_file", f"call {number}\nand a second line\n" * 4
        elif kind == 2:
            name = "edit_file"
            arguments |= {"old_string": "call", "new_string": f"call {number}", "replace_all": True}
        assert tools.call(name, arguments, caller="ann").success


@pytest.fixture(scope="module")
def lived() -> AnySession:
    """Make a session of many calls."""
    tools = Toolset(Session(session_id="s"))
    live(tools, count(), CALLS)
    return tools.session


@pytest.mark.slow
def test_calls_leave_no_objects_tracked_by_the_garbage_collector() -> None:
    tools, numbers = Toolset(Session(session_id="s")), count()
    live(tools, numbers, 2200)
    gc.collect()
    before = len(gc.get_objects())
    live(tools, numbers, 1800)
    gc.collect()
    assert len(gc.get_objects()) - before < 1000


@pytest.mark.slow
def test_a_call_leaves_few_bytes() -> None:
    tools, numbers = Toolset(Session(session_id="s")), count()
    tracemalloc.start()
    try:
        live(tools, numbers, 2200)
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        live(tools, numbers, 1100)
        gc.collect()
        assert (tracemalloc.get_traced_memory()[0] - before) / 1100 < 300
    finally:
        tracemalloc.stop()


def test_calls_survive_saving_forks_and_compaction(lived: Session, tmp_path: Path) -> None:
    calls = lived[ToolCall].all()
    assert [call.call_id for call in calls] == [f"s/call{number}" for number in range(1, CALLS + 1)]
    lived.save(tmp_path / "s.json")
    again = Session.load(tmp_path / "s.json")
    assert again[ToolCall].all() == calls
    assert list(again.records) == list(lived.records)
    assert list(again.replayed().records) == list(lived.records)
    fork = again.fork()
    live(Toolset(fork), count(), 3)
    again.merge(fork)
    assert len(again[ToolCall].all()) == CALLS + 3
    again.compact(keep=100)
    assert again[ToolCall].all()[:CALLS] == calls


def test_old_calls_are_dropped_if_compaction_is_asked_to(lived: Session, tmp_path: Path) -> None:
    lived.save(tmp_path / "s.json")
    session = Session.load(tmp_path / "s.json")
    calls = session[ToolCall].all()
    newest = calls[-CALLS * 2 // 5 :]
    kept = set(newest)
    session.compact(keep=CALLS * 2 // 3, keep_calls=len(newest))
    assert session[ToolCall].all() == newest
    for seq in (session.seq, session.seq - 10, session.seq - CALLS // 2):
        assert session.at(seq)[ToolCall].all() == tuple(call for call in lived.at(seq)[ToolCall].all() if call in kept)
    session.save(tmp_path / "t.json")
    assert (tmp_path / "t.json").stat().st_size < (tmp_path / "s.json").stat().st_size
    again = Session.load(tmp_path / "t.json")
    assert again[ToolCall].all() == newest
    assert again.replayed()[ToolCall].all() == newest


def test_a_call_is_kept_as_long_as_its_record(lived: Session, tmp_path: Path) -> None:
    lived.save(tmp_path / "s.json")
    session = Session.load(tmp_path / "s.json")
    calls = session[ToolCall].all()
    session.compact(keep=50, keep_calls=0)
    kept = [record.event for record in session.records if isinstance(record.event, ToolCall)]
    assert list(session[ToolCall].all()) == kept == list(calls[-len(kept) :])
    session.compact(keep=0, keep_calls=0)
    assert session[ToolCall].all() == ()


def test_all_calls_are_kept_by_default_and_if_there_are_fewer(lived: Session, tmp_path: Path) -> None:
    lived.save(tmp_path / "s.json")
    session = Session.load(tmp_path / "s.json")
    session.compact(keep=0)
    session.compact(keep=0, keep_calls=10_000)
    assert session[ToolCall].all() == lived[ToolCall].all()


def test_a_negative_number_of_calls_is_refused() -> None:
    with pytest.raises(ValueError, match="cannot keep -1 calls"):
        Session().compact(keep=0, keep_calls=-1)


def test_seen_versions_have_one_entry_per_caller_and_path(lived: Session) -> None:
    assert seen_by(lived, "ann") == sorted(f"/d{number % 4}/f{number}.txt" for number in range(FILES))
    assert seen_by(lived, "bob") == []


def test_the_newest_version_seen_by_two_forks_is_kept() -> None:
    tools = Toolset(Session(session_id="s"))
    tools.call("write_file", {"path": "/a", "content": "1\n"}, caller="ann")
    tools.call("write_file", {"path": "/b", "content": "1\n"}, caller="ann")
    one, other = tools.session.fork(), tools.session.fork()
    Toolset(one).call("write_file", {"path": "/a", "content": "2\n"}, caller="ann")
    Toolset(other).call("write_file", {"path": "/b", "content": "3\n"}, caller="ann")
    tools.session.merge(one)
    tools.session.merge(other)
    for path, content in (("/a", "4\n"), ("/b", "4\n")):
        assert tools.call("write_file", {"path": path, "content": content}, caller="ann").success
    assert seen_by(tools.session, "ann") == ["/a", "/b"]


def test_an_old_session_file_with_every_seen_version_is_reduced_to_the_newest(tmp_path: Path) -> None:
    tools = Toolset(Session(session_id="s"))
    for content in ("1\n", "2\n", "3\n"):
        tools.call("write_file", {"path": "/a", "content": content}, caller="ann")
    tools.session.save(tmp_path / "s.json")
    document = in_rows(json.loads((tmp_path / "s.json").read_bytes()))
    sightings = [record["event"] for record in document["records"] if record["type"] == "tools/file_seen"]
    (slice_row,) = (row for row in document["slices"] if row["tag"] == "tools/files_seen")
    slice_row |= {"tag": "tools/file_seen", "items": sightings}
    for row in document["installed"]:
        row["tag"] = row["tag"].replace("files_seen", "file_seen")
    rest = {key: value for key, value in document.items() if key not in ("format", "version", "sha256")}
    text = json.dumps(rest, separators=(",", ":"), ensure_ascii=False)[1:].encode()
    head = {"format": "weakfs-session", "version": 1, "sha256": sha256(text).hexdigest()}
    (tmp_path / "old.json").write_bytes(json.dumps(head, separators=(",", ":"))[:-1].encode() + b"," + text)

    old = Session.load(tmp_path / "old.json")

    assert len(sightings) == 3
    assert old[FilesSeen].all() == tools.session[FilesSeen].all()
    Toolset(old).call("write_file", {"path": "/a", "content": "bob\n"}, caller="bob")
    stale = Toolset(old).call("write_file", {"path": "/a", "content": "4\n"}, caller="ann")
    assert stale.status == "conflict"
    old.save(tmp_path / "again.json")
    assert b'"tools/file_seen","kind"' not in (tmp_path / "again.json").read_bytes()
    assert FileSeen not in {spec.cls for spec in Session.load(tmp_path / "again.json")._parts()[0].specs.values()}


def test_the_last_change_of_a_file_is_found_behind_many_other_calls() -> None:
    tools = Toolset(Session(session_id="s"))
    tools.call("write_file", {"path": "/a", "content": "1\n"}, caller="ann")
    tools.call("write_file", {"path": "/a", "content": "2\n"}, caller="bob", call_id="the change")
    for _ in range(700):
        tools.call("read_file", {"path": "/a"}, caller="cleo")
    stale = tools.call("write_file", {"path": "/a", "content": "3\n"}, caller="ann")
    assert "'bob' has changed it" in stale.message
    assert "the change" in stale.message
