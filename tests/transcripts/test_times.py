"""The times of recorded calls: read from every format, and shown by the clock of the performing session."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.transcripts.claude_code_lines import answer, called, use
from tests.transcripts.claude_code_model import ROOT
from tests.transcripts.imported import Import
from weakfs.tools import ToolCalls
from weakfs.transcripts import RecordedClock, TranscriptCall, read_transcript

SECOND = 1_000_000_000
# 2026-04-30T09:29:33Z
BEGAN = 1_777_541_373 * SECOND


def at(line: dict[str, Any], seconds: float) -> dict[str, Any]:
    """Set the time of a line to a number of seconds after the beginning."""
    second = 33 + int(seconds)
    return {**line, "timestamp": f"2026-04-30T09:29:{second:02}.{int(seconds % 1 * 1000):03}Z"}


def read_lines(folder: Path, *lines: object) -> tuple[TranscriptCall, ...]:
    path = folder / "t.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return read_transcript(path).calls


def test_records_and_calls_have_the_recorded_times(imported: Import) -> None:
    path = f"{ROOT}/a"
    done = imported(
        at(use("1", "Write", file_path=path, content="one\n"), 0),
        at(answer("1"), 2.5),
        at(use("2", "Edit", file_path=path, old_string="one", new_string="two"), 4),
        at(answer("2"), 5),
    )

    calls = done.session[ToolCalls].all()
    assert [(call.started_at - BEGAN, call.ended_at - BEGAN) for call in calls] == [
        (0, 2.5 * SECOND),
        (4 * SECOND, 5 * SECOND),
    ]
    assert [(record.at - BEGAN) / SECOND for record in done.session.records] == [2.5, 2.5, 5, 5]
    assert done.files.stat("/a").modified_at.timestamp() == BEGAN / SECOND + 5


def test_a_line_without_a_time_has_that_of_the_last_line_with_one(tmp_path: Path) -> None:
    calls = read_lines(
        tmp_path,
        use("0", "LS", path=ROOT),
        at({"type": "summary", "leafUuid": "x"}, 1),
        *called("1", "LS", path=ROOT),
        at(use("2", "LS", path=ROOT), 3),
        answer("2"),
        {**use("3", "LS", path=ROOT), "timestamp": "yesterday"},
    )

    # In the order of their answers; a call without one stays where it was made.
    assert [(call.call_id, call.made_at, call.answered_at) for call in calls] == [
        ("0", None, None),
        ("1", BEGAN + SECOND, BEGAN + SECOND),
        ("2", BEGAN + 3 * SECOND, BEGAN + 3 * SECOND),
        ("3", BEGAN + 3 * SECOND, None),
    ]


@pytest.mark.parametrize(
    "fields",
    [
        {"timestamp": "2026-04-30T09:29:33Z"},
        {"timestamp": "2026-04-30T11:29:33.000+02:00"},
        {"timestamp": "2026-04-30T09:29:33"},
        {"timestamp": 1_777_541_373},
        {"timestamp": 1_777_541_373_000},
        {"timestamp": 1_777_541_373_000_000},
        {"timestamp": BEGAN},
        {"created": 1_777_541_373.0},
        {"created_at": "2026-04-30T09:29:33Z"},
    ],
)
def test_every_format_of_times_is_read(tmp_path: Path, fields: dict[str, object]) -> None:
    (call,) = read_lines(tmp_path, {"id": "c", "tool": "ls", "arguments": {}, **fields})

    assert call.made_at == BEGAN


@pytest.mark.parametrize(
    "value", ["", "soon", 0, -1, True, None, [], 1e300, "9999-12-31T00:00:00Z", "0001-01-01T00:00:00+14:00", 10**400]
)
def test_an_invalid_time_is_none(tmp_path: Path, value: object) -> None:
    (call,) = read_lines(tmp_path, {"id": "c", "tool": "ls", "arguments": {}, "timestamp": value})

    assert call.made_at is None


def made(made_at: int | None, answered_at: int | None = None) -> TranscriptCall:
    return TranscriptCall("c", "ls", {}, 1, made_at=made_at, answered_at=answered_at)


def test_the_clock_shows_when_a_call_was_made_and_then_when_it_was_answered() -> None:
    clock = RecordedClock(5)

    clock.start(made(10, 20))

    assert [clock(), clock(), clock()] == [10, 20, 20]


def test_the_clock_goes_back_only_to_the_start_of_a_concurrent_call() -> None:
    clock = RecordedClock()
    clock.start(made(10, 20))
    readings = [clock(), clock()]
    clock.start(made(12, 15))

    assert [*readings, clock(), clock()] == [10, 20, 12, 20]
    clock.move(made(3))
    clock.start(made(None))
    assert clock() == 20


def test_the_clock_shows_the_real_time_if_none_is_recorded() -> None:
    clock = RecordedClock(real=lambda: 7)
    clock.start(made(None, None))

    assert clock() == 7
