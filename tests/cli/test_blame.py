"""`weakfs blame` and `weakfs why`, on session files and in storage."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import BEGINNING, Run
from weakfs import HostFilesystem, InMemoryFilesystem, Session, Toolset

PLAIN = """\
1  04-30 09:29:33  write_file c1  1) host = 1
1  04-30 09:29:33  write_file c1  2) name = 2
4  04-30 09:29:33  edit_file c2   3) port = 8080
6  04-30 09:29:33                 4) # caf\ufffd
"""

PORCELAIN = f"""\
{"1":0>40} 2 2 1
author main
author-mail <>
author-time {BEGINNING // 1_000_000_000}
author-tz +0000
committer main
committer-mail <>
committer-time {BEGINNING // 1_000_000_000}
committer-tz +0000
summary write_file c1: Created /app.py (28 bytes)
filename app.py
\tname = 2
"""


@pytest.fixture(params=["file", "folder"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    session = Session(session_id="s", clock=lambda: BEGINNING)
    files = InMemoryFilesystem(session)
    tools = Toolset(session, files)
    content = "host = 1\nname = 2\nport = 80\n"
    tools.call("write_file", {"path": "/app.py", "content": content}, call_id="c1", caller="main")
    tools.call("edit_file", {"path": "/app.py", "old_string": "80", "new_string": "8080"}, call_id="c2")
    files.write_bytes("/app.py", b"# caf\xe9", mode="append")
    if request.param == "file":
        session.save(tmp_path / "s.json")
        return str(tmp_path / "s.json")
    session.copy_to(f"folder:{tmp_path}/store")
    return f"folder:{tmp_path}/store"


def test_each_line_is_shown_with_its_call(run: Run, place: str) -> None:
    assert run("blame", place, "app.py").out == PLAIN
    assert run("blame", place, "/app.py", "-L", "2,3").lines == PLAIN.splitlines()[1:3]
    assert run("blame", place, "/app.py", "-L", "2,+9").lines == PLAIN.splitlines()[1:]
    assert run("blame", place, "/app.py", "-L", ",1").lines == PLAIN.splitlines()[:1]
    assert run("blame", place, "/app.py", "--at", "1").lines[2].endswith("write_file c1  3) port = 80")


def test_porcelain_output_is_that_of_git(run: Run, place: str) -> None:
    assert run("blame", place, "/app.py", "--porcelain", "-L", "2,2").out == PORCELAIN
    every = run("blame", place, "/app.py", "--porcelain").lines
    assert every[0] == f"{'1':0>40} 1 1 2"
    assert every[12:14] == [f"{'1':0>40} 2 2", "\tname = 2"]


def test_json_has_every_field(run: Run, place: str) -> None:
    lines = run("blame", place, "/app.py", "--json").objects
    assert lines[0] == {
        "type": "line",
        "number": 1,
        "text": "host = 1",
        "record": 1,
        "call_id": "c1",
        "tool": "write_file",
        "caller": "main",
        "at": "2026-04-30T09:29:33.000000000Z",
        "kind": "written",
    }
    assert [line["record"] for line in lines] == [1, 1, 4, 6]


def test_why_shows_the_call_and_its_answer(run: Run, place: str) -> None:
    shown = run("why", place, "/app.py:1").out
    assert shown.startswith("1) host = 1\ncall 1  write_file  c1 by main, 2026-04-30T09:29:33Z\narguments\n{\n")
    assert '"content": "host = 1\\nname = 2\\nport = 80\\n"' in shown
    assert "answer  ok: Created /app.py (28 bytes)" in shown
    assert run("why", place, "app.py:4").lines[1:] == ["written by record 6, 2026-04-30T09:29:33Z; no call is known"]
    found = json.loads(run("why", place, "/app.py:3", "--json").out)
    assert (found["call"], found["tool"], found["arguments"]["old_string"]) == (2, "edit_file", "80")
    assert found["answer"]["replacements"] == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("blame", "/app.py", "-L", "5"), "it has 4 lines; give some of these"),
        (("blame", "/app.py", "-L", "x"), "10,20"),
        (("blame", "/app.py", "-L", "3,2"), "lines are numbered from 1"),
        (("blame", "/app.py", "-L", "0,2"), "lines are numbered from 1"),
        (("blame", "/app.py", "--at", "none"), "none"),
        (("blame", "/none"), "'/none'"),
        (("why", "/app.py"), "/app.py:12"),
        (("why", "/app.py:9"), "the file has 4 lines; give one of these"),
        (("why", "/none:1"), "'/none'"),
    ],
)
def test_missing_files_and_lines_are_named(run: Run, place: str, words: tuple[str, ...], said: str) -> None:
    outcome = run(words[0], place, *words[1:])
    assert (outcome.status > 0, outcome.out) == (True, "")
    assert said in outcome.err


@pytest.mark.parametrize("words", [("blame", "/a", "-L", "5"), ("why", "/a:9")], ids=["blame", "why"])
def test_a_file_of_one_line_is_described_in_the_singular(run: Run, tmp_path: Path, words: tuple[str, ...]) -> None:
    session = Session(session_id="s", clock=lambda: BEGINNING)
    InMemoryFilesystem(session).write("/a", "one\n")
    session.save(tmp_path / "s.json")

    assert "has 1 line; give" in run(words[0], tmp_path / "s.json", *words[1:]).err


def test_lines_that_no_call_wrote_are_marked(run: Run, tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "root/a").write_text("one\n", encoding="utf-8")
    session = Session(session_id="s", clock=lambda: BEGINNING)
    files = HostFilesystem(tmp_path / "root", session=session, store=tmp_path / "store")
    files.append("/a", "two\n")
    files.append("/a", "three\n")
    session.save(tmp_path / "s.json")
    lines = run("blame", tmp_path / "s.json", "/a").lines
    assert lines[0] == "1  04-30 09:29:33  (found)  1) one"
    assert run("why", tmp_path / "s.json", "/a:1").lines[1].startswith("found by record 1, ")
    session.compact(keep=1)
    session.save(tmp_path / "s.json")
    assert run("blame", tmp_path / "s.json", "/a").lines[0].startswith("^")
    assert "boundary" in run("blame", tmp_path / "s.json", "/a", "--porcelain").lines
    assert "the first that is kept" in run("why", tmp_path / "s.json", "/a:1").out
