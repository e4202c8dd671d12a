"""`weakfs run` on session files of Claude Code and Codex."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.forked_command import run_command
from weakfs import InMemoryFilesystem, Session

from .conftest import Run

ROOT = "/home/ann/shop"
Line = dict[str, Any]


def claude(id: str, name: str, result: object, *, error: str | None = None, **arguments: object) -> list[Line]:
    """Return the two lines of a call and its answer."""
    use = {"type": "tool_use", "id": id, "name": name, "input": arguments}
    answer = {"type": "tool_result", "tool_use_id": id, "content": error or "done", "is_error": error is not None}
    envelope = {"sessionId": "s1", "cwd": ROOT}
    return [
        {"type": "assistant", "uuid": f"a{id}", **envelope, "message": {"role": "assistant", "content": [use]}},
        {
            "type": "user",
            "uuid": f"b{id}",
            **envelope,
            "message": {"role": "user", "content": [answer]},
            "toolUseResult": result,
        },
    ]


def edit(id: str, name: str, original: str, old: str, new: str, written: str | None = None) -> list[Line]:
    """Return an edit; `written` is a line that the hunks claim instead of the new one."""
    hunk = {"oldStart": 1, "oldLines": 1, "newStart": 1, "newLines": 1, "lines": [f"-{old}", f"+{written or new}"]}
    result = {
        "filePath": f"{ROOT}/{name}",
        "oldString": old,
        "newString": new,
        "originalFile": original,
        "structuredPatch": [hunk],
        "replaceAll": False,
    }
    return claude(id, "Edit", result, file_path=f"{ROOT}/{name}", old_string=old, new_string=new)


def recorded(folder: Path, *lines: Line) -> Path:
    path = folder / "session.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


GOOD = edit("1", "app.py", "port = 80\n", "port = 80", "port = 8080")
OUTSIDE = claude("2", "Read", None, file_path="/etc/passwd")
REFUSED = claude(
    "3",
    "Edit",
    "Error",
    error="String to replace not found in file.",
    file_path=f"{ROOT}/app.py",
    old_string="x",
    new_string="y",
)
COMMANDS = claude("4", "Bash", {"stdout": ""}, command="make")
OTHER = claude("5", "TodoWrite", {}, todos=[])
# According to the hunks, a text was written that the strings cannot produce, so the edit cannot be repeated.
ODD = edit("6", "odd.py", "one\n", "one", "two", "three")


def test_each_call_says_whether_it_agrees_and_how_that_was_checked(run: Run, tmp_path: Path) -> None:
    done = run("run", recorded(tmp_path, *GOOD, *OUTSIDE, *REFUSED, *COMMANDS, *OTHER), "--json")

    assert done.status == 0
    calls = [one for one in done.objects if one["type"] == "call"]
    assert [(one["tool"], one["agreement"], one["checked"]) for one in calls] == [
        ("Edit", "agreed", "exactly"),
        ("Read", "outside", "not_at_all"),
        ("Edit", "agreed", "rebuilt"),
        ("Bash", "no_counterpart", "not_at_all"),
        ("TodoWrite", "no_counterpart", "not_at_all"),
    ]
    assert [(one["performed"], one["success"], one["recorded_success"]) for one in calls[:3]] == [
        ("edit_file", True, True),
        (None, None, True),
        ("edit_file", False, False),
    ]
    total = done.objects[-1]
    assert total["agreement"]["agreed"] == 2
    assert total["checked"] == {"exactly": 1, "rebuilt": 1, "not_at_all": 1}
    assert total["passed_over"] == {"Bash": 1, "TodoWrite": 1}


def test_the_lines_for_people_say_the_same(run: Run, tmp_path: Path) -> None:
    done = run("run", recorded(tmp_path, *GOOD, *OUTSIDE, *REFUSED, *COMMANDS))

    assert done.lines[0].split() == ["1", "agreed", "Edit", "/app.py", "(exactly)"]
    # A call that was not made has no number.
    assert done.lines[1].split() == ["outside", "Read", "/etc/passwd"]
    assert "is outside the session's directory" in done.lines[2]
    assert done.lines[3].split()[:4] == ["2", "agreed", "Edit", "/app.py"]
    assert done.lines[4] == "total"
    assert any(line.split() == ["agreed", "2"] for line in done.lines)
    assert done.err.startswith("weakfs: did not run 1 shell command")


def test_differences_are_reported_with_their_place(run: Run, tmp_path: Path) -> None:
    done = run("run", recorded(tmp_path, *ODD), "--save", tmp_path / "s.json", "--json")

    assert done.status == 0
    assert done.objects[0]["agreement"] == "differs"
    assert done.objects[0]["difference"] == {"path": "/odd.py", "offset": 1, "line": 1}
    # The recorded text is adopted, so that one difference does not cause others.
    assert InMemoryFilesystem(Session.load(tmp_path / "s.json")).read("/odd.py").content == "three\n"


def test_strict_fails_on_differences_only(run: Run, tmp_path: Path) -> None:
    assert run("run", recorded(tmp_path, *GOOD, *REFUSED), "--strict").status == 0
    assert run("run", recorded(tmp_path, *GOOD, *ODD), "--strict").status == 3


def test_paths_are_mapped_below_the_root_of_the_run(run: Run, tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    (place / "app.py").write_bytes(b"port = 80\r\n")

    done = run("run", recorded(tmp_path, *GOOD), "--root", place, "--store", tmp_path / "store")

    assert done.status == 0
    assert (place / "app.py").read_bytes() == b"port = 8080\r\n"


def test_texts_that_are_not_recorded_are_rebuilt_from_a_mount(run: Run, tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    (place / "app.py").write_text("port = 80\n")
    bare = claude("1", "Edit", None, file_path=f"{ROOT}/app.py", old_string="80", new_string="8080")

    done = run("run", recorded(tmp_path, *bare), "--mount", place, "--json")

    assert [(one["agreement"], one["checked"]) for one in done.objects if one["type"] == "call"] == [
        ("agreed", "rebuilt")
    ]


def test_a_truncated_line_is_reported_and_skipped(run: Run, tmp_path: Path) -> None:
    path = recorded(tmp_path, *GOOD)
    with path.open("a") as file:
        file.write('{"type":"assistant","uuid":"c","ses')

    done = run("run", path, "--json")

    assert done.status == 1
    assert done.objects[0] == {"type": "skipped", "line": 3, "reason": done.objects[0]["reason"]}
    assert "cut off" in done.objects[0]["reason"]
    assert done.objects[1]["agreement"] == "agreed"


def test_a_session_that_continues_in_a_later_file_repeats_nothing(run: Run, tmp_path: Path) -> None:
    first = recorded(tmp_path, *GOOD).rename(tmp_path / "first.jsonl")
    second = recorded(tmp_path, *GOOD, *edit("7", "app.py", "port = 8080\n", "port = 8080", "port = 1"), {"a": 1})

    done = run("run", first, second, "--save", tmp_path / "s.json", "--json")

    assert done.status == 0
    calls = [one for one in done.objects if one["type"] == "call"]
    assert [(Path(one["transcript"]).name, one["line"]) for one in calls] == [("first.jsonl", 1), ("session.jsonl", 3)]
    assert InMemoryFilesystem(Session.load(tmp_path / "s.json")).read("/app.py").content == "port = 1\n"


def test_the_unknown_one_of_several_transcripts_is_named(run: Run, tmp_path: Path) -> None:
    unknown = tmp_path / "unknown.jsonl"
    unknown.write_text('{"a": 1}\n')

    done = run("run", unknown, recorded(tmp_path, *GOOD))

    assert done.status == 1
    assert done.lines[0].startswith(f"{unknown}, line 1 no known format")
    assert done.lines[1].split()[1] == "agreed"


def test_a_session_may_come_through_a_pipe(tmp_path: Path) -> None:
    data = recorded(tmp_path, *GOOD).read_text()

    done = run_command("run", "-", "--json", given=data)

    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout.splitlines()[0])["agreement"] == "agreed"


@pytest.mark.parametrize("text", ['{"a": 1}\n{"b": 2}\n', '[1]\n"x"\n', '{"type": "other"}\n{}\n'])
def test_a_file_in_no_known_format_is_refused(run: Run, tmp_path: Path, text: str) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text(text)

    done = run("run", path, "--save", tmp_path / "s.json")

    assert done.status == 1
    assert "2 lines read, none in a known format" in done.err
    assert not (tmp_path / "s.json").exists()


def test_a_session_without_calls_is_not_an_error(run: Run, tmp_path: Path) -> None:
    done = run("run", recorded(tmp_path, {"type": "summary", "summary": "Shop", "leafUuid": "u"}))

    assert done.status == 0


def test_texts_in_a_recording_cannot_control_the_terminal(run: Run, tmp_path: Path) -> None:
    evil = "\x1b]0;owned\x07"
    lines = [*claude("1", evil, evil, file_path=evil), *claude("2", "Read", None, file_path=f"/{evil}")]
    lines += claude("3", "Write", None, file_path=f"{ROOT}/{evil}", content="x")

    done = run("run", recorded(tmp_path, *lines))

    assert "\x1b" not in done.out + done.err


def test_commands_are_run_where_they_are_asked_for(run: Run, tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    lines = claude("1", "Bash", {"stdout": "", "stderr": ""}, command="echo made > made.txt")

    done = run("run", recorded(tmp_path, *lines), "--root", place, "--store", tmp_path / "store", "--sandbox", "off")

    assert done.status == 0
    assert (place / "made.txt").read_text() == "made\n"
    assert done.lines[2].split()[:4] == ["1", "not", "checked", "Bash"]
