"""A merging session whose history another process compacted: reads of that history catch up and continue."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.session.durable.streams import MemoryStreams
from tests.storage.servers import ENGINES, OBJECT_STORES, empty_location
from weakfs import InMemoryFilesystem, Session, Toolset
from weakfs.history import timeline
from weakfs.reducers.events import FileWritten
from weakfs.session import MissingBlob, SessionConflict, SessionError, UnknownSnapshot
from weakfs.session.durable.frames.stream_history import GAP
from weakfs.session.durable.open_session import Where
from weakfs.session.errors import RecordsDropped
from weakfs.tools import ToolCall, ToolCalls, ToolResult
from weakfs.tools.calls.finished_calls import FinishedCalls

pytestmark = pytest.mark.filterwarnings("ignore::weakfs.storage.DurabilityWarning")

# Too long to be part of a frame.
LONG = "long " * 500


def opened_behind(where: Where) -> tuple[Session, Session]:
    """Return a merging session that has not read its history, and another one that has compacted it."""
    with Session.open(where, "s") as session:
        fs, tools = InMemoryFilesystem(session), Toolset(session)
        for number in range(GAP + 5):
            fs.write("/a", f"{number}")
        tools.call("write_file", {"path": "/b", "content": LONG}, call_id="b")
        session.snapshot("first")
        fs.write("/gone", f"gone {LONG}")
        session.checkpoint()
        for number in range(5):
            fs.write("/c", f"{number}{LONG}")
    behind = Session.open(where, "s", on_conflict="merge")
    other = Session.open(where, "s", on_conflict="merge")
    fs = InMemoryFilesystem(other)
    fs.delete("/gone")
    for number in range(GAP):
        fs.write("/d", f"{number}")
    other.compact(keep=2)
    return behind, other


def lines_of(session: Session) -> list[int]:
    return [line.record for line in session.blame("/c")]


READS: dict[str, Callable[[Session], object]] = {
    "to_bytes": Session.to_bytes,
    "replayed": lambda session: session.replayed().to_bytes(),
    "blame": lines_of,
    "at": lambda session: [one.call_id for one in session.at("first")[ToolCalls].all()],
    "preview": lambda session: session.rollback("first", preview=True),
    "values_of_a_log": lambda session: [one.call_id for one in session[ToolCalls].all()],
    "some_values_of_a_log": lambda session: session[ToolCalls].where(lambda one: one.call_id == "b"),
    "newest_value_of_a_log": lambda session: session[ToolCalls].latest(),
    "timeline": lambda session: [(row.first, row.last) for row in timeline(session)],
}


def write_twice(session: Session) -> None:
    with session.transaction():
        fs = InMemoryFilesystem(session)
        fs.write("/f", "1")
        fs.write("/c", "2")


def undo(session: Session) -> None:
    # What it would undo now, the caller has not seen.
    with pytest.raises(SessionError, match="dropped"):
        session.undo()
    session.undo()


CHANGES: dict[str, Callable[[Session], object]] = {
    "snapshot": lambda session: session.snapshot("second"),
    "drop_snapshot": lambda session: session.drop_snapshot("first"),
    "undo": undo,
    "rollback": lambda session: session.rollback("first"),
    "restore": lambda session: session.restore("first"),
    "compact": lambda session: session.compact(keep=1),
    "checkpoint": Session.checkpoint,
    "transaction": write_twice,
}


@pytest.fixture(params=["memory", "folder"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> Where:
    return MemoryStreams() if request.param == "memory" else tmp_path


def check_reads(where: Where, name: str) -> None:
    behind, other = opened_behind(where)

    found = READS[name](behind)

    assert found == READS[name](other)
    # It continues with what was read.
    InMemoryFilesystem(behind).write("/e", "1")
    assert behind.to_bytes() == Session.open(where, "s").to_bytes()


def check_changes(where: Where, name: str) -> None:
    behind, other = opened_behind(where)

    CHANGES[name](behind)

    InMemoryFilesystem(behind).write("/e", "1")
    other.refresh()
    assert behind.to_bytes() == other.to_bytes() == Session.open(where, "s").to_bytes()


@pytest.mark.parametrize("name", READS)
def test_reading_dropped_history_catches_up_first(where: Where, name: str) -> None:
    check_reads(where, name)


@pytest.mark.parametrize("name", READS)
def test_subscribers_see_the_records_that_a_read_caught_up_with(where: Where, name: str) -> None:
    behind, _ = opened_behind(where)
    seen: list[int] = []
    behind.subscribe(FileWritten, lambda record: seen.append(record.seq))

    READS[name](behind)

    assert behind.seq in seen


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_that_needs_dropped_history_catches_up_first(where: Where, name: str) -> None:
    check_changes(where, name)


@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", [*READS, *CHANGES])
def test_every_engine_catches_up(engine: str, name: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    (check_reads if name in READS else check_changes)(empty_location(engine, request, tmp_path), name)


@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.parametrize("engine", OBJECT_STORES)
@pytest.mark.parametrize("name", [next(iter(READS)), next(iter(CHANGES))])
def test_other_object_stores_catch_up(engine: str, name: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    (check_reads if name in READS else check_changes)(empty_location(engine, request, tmp_path), name)


@pytest.mark.parametrize(
    ("method", "target"),
    [
        (Session.at, GAP),
        (Session.rollback, GAP),
        (Session.rollback, GAP + 10),
        (Session.restore, GAP + 10),
        (Session.revert, GAP + 10),
    ],
)
def test_a_record_that_another_process_dropped_is_unknown(
    where: Where, method: Callable[[Session, int], object], target: int
) -> None:
    behind, _ = opened_behind(where)
    with pytest.raises(UnknownSnapshot, match=r"the session holds 52\d to 526; pass"):
        method(behind, target)
    assert InMemoryFilesystem(behind).read("/d").content == f"{GAP - 1}"


def test_a_file_that_another_process_deleted_is_not_found(where: Where) -> None:
    behind, _ = opened_behind(where)
    with pytest.raises(FileNotFoundError):
        InMemoryFilesystem(behind).read("/gone")
    assert Toolset(behind).call("read_file", {"path": "/c"}).success


def test_a_call_that_reads_a_file_deleted_by_another_process_says_so(where: Where) -> None:
    behind, _ = opened_behind(where)
    result = Toolset(behind).call("read_file", {"path": "/gone"})
    assert not result.success
    assert "/gone" in result.message


def test_a_call_that_conflicts_is_answered_when_history_is_dropped_once_more(
    where: Where, monkeypatch: pytest.MonkeyPatch
) -> None:
    behind = Session.open(where, "s", on_conflict="merge")
    InMemoryFilesystem(behind).write("/a", "0")
    other = Session.open(where, "s", on_conflict="merge")
    fs = InMemoryFilesystem(other)

    def compact(keep: int) -> None:
        for number in range(2 * GAP):
            fs.write("/b", f"{number}")
        other.compact(keep=keep)

    fs.write("/a", "1")
    compact(GAP)
    looked = FinishedCalls.find

    def find(*arguments: Any) -> ToolCall | None:
        found = looked(*arguments)
        if behind.seq > 1:
            # It has read the first compaction, and is about to record that it conflicts.
            monkeypatch.undo()
            compact(0)
        return found

    monkeypatch.setattr(FinishedCalls, "find", find)

    result = Toolset(behind).call("write_file", {"path": "/a", "content": "2"}, call_id="a")

    assert FinishedCalls.find is looked
    assert result.error_code == "merge_conflict"
    behind.refresh()
    assert behind.to_bytes() == Session.open(where, "s").to_bytes()


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("grep", {"pattern": "long"}),
        ("edit_file", {"path": "/gone", "old_string": "long", "new_string": "short"}),
        ("cp", {"source": "/gone", "destination": "/f"}),
    ],
)
def test_a_call_that_needs_dropped_contents_is_answered_and_can_be_repeated(
    where: Where, name: str, arguments: dict[str, str]
) -> None:
    behind, other = opened_behind(where)
    tools = Toolset(behind)

    result = tools.call(name, arguments)

    if result.error_code == "merge_conflict":
        assert "another process has changed the files" in result.message
    again = tools.call(name, arguments)
    assert again.success == (name == "grep")
    other.refresh()
    assert behind.to_bytes() == other.to_bytes()


def changed_and_compacted(where: Where) -> Session:
    """Compact a session after changing a file in it; return the changing session.

    Sessions that were opened before cannot merge another change of that file, but only their commit finds out.
    """
    other = Session.open(where, "s", on_conflict="merge")
    InMemoryFilesystem(other).write("/b", f"other {LONG}")
    other.compact(keep=0)
    return other


APPEND = {"path": "/b", "content": "end", "mode": "append"}


def check_answers(result: ToolResult[object], again: ToolResult[object], behind: Session, other: Session) -> None:
    assert (result.error_code, again.success) == ("merge_conflict", True), result.message
    assert "another process has changed the files; read them again, and repeat the call" in result.message
    assert InMemoryFilesystem(behind).read("/b").content == f"other {LONG}end"
    # The records of the first call could not be stored.
    first, second = behind[ToolCall].all()
    assert (first.first_seq, first.last_seq, second.first_seq) == (None, None, second.last_seq)
    other.refresh()
    assert behind.to_bytes() == other.to_bytes()


def test_a_call_whose_merge_needs_dropped_contents_is_answered_and_can_be_repeated(where: Where) -> None:
    with Session.open(where, "s") as session:
        InMemoryFilesystem(session).write("/b", LONG)
        session.checkpoint()
    behind = Session.open(where, "s", on_conflict="merge")
    other, tools = changed_and_compacted(where), Toolset(behind)
    result, again = tools.call("write_file", APPEND), tools.call("write_file", APPEND)
    check_answers(result, again, behind, other)


async def test_an_awaited_call_whose_merge_needs_dropped_contents_is_answered_and_can_be_repeated(
    tmp_path: Path,
) -> None:
    where = f"sqlite:{tmp_path / 'sessions.db'}"
    with Session.open(where, "s") as session:
        InMemoryFilesystem(session).write("/b", LONG)
        session.checkpoint()
    behind = await Session.aopen(where, "s", on_conflict="merge")
    async with behind:
        other, tools = changed_and_compacted(where), Toolset(behind)
        result, again = await tools.acall("write_file", APPEND), await tools.acall("write_file", APPEND)
        check_answers(result, again, behind, other)
        other.close()


def test_iterating_over_dropped_records_says_what_to_do(where: Where) -> None:
    behind, other = opened_behind(where)
    with pytest.raises(RecordsDropped, match=r"call session.refresh\(\) and try again"):
        list(behind.records)
    behind.refresh()
    assert list(behind.records) == list(other.records)


def test_a_session_that_does_not_merge_reports_what_it_is_missing(where: Where) -> None:
    opened_behind(where)
    with Session.open(where, "s") as session:
        behind = Session.open(where, "s")
        InMemoryFilesystem(session).write("/c", "new")
        session.compact(keep=0)
    for read in (behind.to_bytes, lambda: list(behind.records)):
        with pytest.raises((RecordsDropped, MissingBlob), match=r"call session.refresh\(\) and try again"):
            read()
    with pytest.raises(SessionConflict):
        InMemoryFilesystem(behind).write("/e", "1")
    behind.refresh()
    assert behind.to_bytes() == Session.open(where, "s").to_bytes()


def test_a_checkpoint_of_dropped_history_is_not_an_error(where: Where, caplog: pytest.LogCaptureFixture) -> None:
    behind, _ = opened_behind(where)
    with caplog.at_level(logging.WARNING):
        behind.checkpoint()
    assert not caplog.records


@pytest.mark.parametrize("kept", [5, 20])
def test_undo_never_undoes_an_operation_that_was_read_only_because_history_was_dropped(where: Where, kept: int) -> None:
    with Session.open(where, "s") as session:
        for number in range(3):
            Toolset(session).call("write_file", {"path": f"/{number}", "content": ""}, call_id=str(number))
        session.checkpoint()
    behind = Session.open(where, "s", on_conflict="merge")
    with Session.open(where, "s", on_conflict="merge") as other:
        for number in range(2):
            Toolset(other).call("write_file", {"path": f"/other{number}", "content": ""}, call_id=f"other{number}")
        other.compact(keep=kept)

    if kept == 5:
        with pytest.raises(SessionError, match="another process has dropped records up to 5, and stored records 7 to "):
            behind.undo()
        # The caller can see it now.
        assert behind.undo().records == ((9, 10),)
        assert [entry.name for entry in InMemoryFilesystem(behind).list()] == ["0", "1", "2", "other0"]
    else:
        assert behind.undo().records == ((5, 6),)
        assert [entry.name for entry in InMemoryFilesystem(behind).list()] == ["0", "1", "other0", "other1"]
    behind.close()
