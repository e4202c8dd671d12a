"""The command in a pipe, whose reader may stop early, and on a terminal of 80 columns."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
from pathlib import Path

import pytest
from rich.cells import cell_len

from tests.forked_command import start_command, wait_for
from weakfs import InMemoryFilesystem, Session, Toolset

from .conftest import COMMAND, TRANSCRIPTS, WORKSPACE

# The codes that rich writes to color text; nothing else may control a terminal on standard output.
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def on_a_terminal(*arguments: str | Path, columns: int = 80, only_errors: bool = False) -> tuple[int, str, str]:
    """Run the command on a terminal; return its status, what it showed, and the same without colours.

    With `only_errors` standard output goes elsewhere.
    """
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES", "NO_COLOR")}
    environment["TERM"] = "xterm-256color"
    with open(os.devnull, "wb") as elsewhere:
        stdout = elsewhere.fileno() if only_errors else slave
        child = start_command([*map(str, arguments)], stdout=stdout, stderr=slave, environment=environment)
    os.close(slave)
    shown = b""
    while True:
        try:
            part = os.read(master, 65536)
        except OSError:
            # Linux reports a closed terminal as an error.
            break
        if not part:
            break
        shown += part
    status = wait_for(child)
    os.close(master)
    text = shown.decode()
    return status, text, COLOUR.sub("", text)


def in_a_pipe_that_closes(*arguments: str | Path) -> tuple[int, bytes]:
    """Run the command with a reader that has closed the pipe before the first word."""
    read_end, write_end = os.pipe()
    os.close(read_end)
    words = [*COMMAND, *map(str, arguments)]
    done = subprocess.run(words, stdout=write_end, stderr=subprocess.PIPE)
    os.close(write_end)
    return done.returncode, done.stderr


@pytest.mark.sampled(by_rule=True)
@pytest.mark.parametrize(
    "words",
    [
        ["log"],
        *(
            pytest.param(words, marks=pytest.mark.exhaustive)
            for words in (["log", "--json"], ["ls"], ["diff"], ["stats"])
        ),
    ],
)
def test_a_reader_that_stops_early_is_not_an_error(saved: Path, words: list[str]) -> None:
    assert in_a_pipe_that_closes(words[0], saved, *words[1:]) == (0, b"")


def test_cat_to_a_reader_that_stops_early_is_not_an_error(tmp_path: Path) -> None:
    session = Session()
    InMemoryFilesystem(session).write("/large.txt", "line\n" * 100_000)
    session.save(tmp_path / "s.json")
    assert in_a_pipe_that_closes("cat", tmp_path / "s.json", "/large.txt") == (0, b"")


@pytest.mark.slow
def test_a_run_whose_reader_stops_early_is_completed_and_saved(tmp_path: Path) -> None:
    target = tmp_path / "s.json"
    done = in_a_pipe_that_closes("run", TRANSCRIPTS / "shop.jsonl", "--mount", WORKSPACE, "--save", target)
    assert done == (0, b"")
    assert InMemoryFilesystem(Session.load(target)).exists("/config/vouchers.json")


@pytest.mark.slow
def test_a_pipe_gets_neither_colours_nor_a_progress_bar(tmp_path: Path) -> None:
    words = [*COMMAND, "run", str(TRANSCRIPTS / "shop.jsonl"), "--mount", str(WORKSPACE)]
    done = subprocess.run(words, capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"\x1b" not in done.stdout


def test_a_terminal_gets_colours_and_lines_that_fit(tmp_path: Path) -> None:
    status, shown, plain = on_a_terminal("run", TRANSCRIPTS / "shop.jsonl")
    assert status == 0
    assert COLOUR.search(shown)
    long = [line for line in plain.splitlines() if len(line) > 80]
    # Only the line for each call is left for the terminal to wrap; explanations of failures are wrapped here.
    assert all(re.match(r" *\d+  ok ", line) for line in long)


def test_a_progress_bar_on_standard_error_shows_the_progress_of_a_run() -> None:
    transcript = TRANSCRIPTS / "shop.jsonl"
    status, _, plain = on_a_terminal("run", transcript, "--mount", WORKSPACE, only_errors=True)
    assert status == 0
    assert "mounting" in plain
    assert "106/106" in plain


def test_stats_fit_a_narrow_terminal(saved: Path) -> None:
    _, _, plain = on_a_terminal("stats", saved, columns=40)
    assert max(map(len, plain.splitlines())) <= 40


@pytest.mark.parametrize(("columns", "expected"), [(80, 80), (120, 120), (60, 80)])
def test_log_uses_the_width_of_a_wide_terminal(tmp_path: Path, columns: int, expected: int) -> None:
    session = Session()
    tools = Toolset(session)
    tools.call("write_file", {"path": "/" + "long/" * 30 + "name.py", "content": ""})
    tools.call("read_file", {"path": "/" + "語/" * 60 + "name.py"})
    session.save(tmp_path / "s.json")
    _, _, plain = on_a_terminal("log", tmp_path / "s.json", columns=columns)
    rows = plain.splitlines()
    assert len(rows) == 2
    assert max(map(cell_len, rows)) <= expected
    assert all("name.py" in row for row in rows)


def test_a_file_is_escaped_on_a_terminal_and_unchanged_in_a_pipe(saved: Path) -> None:
    words = ["cat", str(saved), "/line\nbreak \x1b[31mred.txt"]
    status, shown, _ = on_a_terminal(*words)
    assert (status, shown) == (0, "evil \\x1b[32m\r\n")
    assert subprocess.run([*COMMAND, *words], stdout=subprocess.PIPE).stdout == b"evil \x1b[32m\n"


@pytest.mark.parametrize("words", [["log"], ["ls"], ["diff"], ["stats"]])
def test_a_session_cannot_control_the_terminal(saved: Path, words: list[str]) -> None:
    status, shown, plain = on_a_terminal(words[0], saved, *words[1:])
    assert status == 0
    assert "\x1b" not in plain
    assert "\x1b[31mred" not in shown
    assert "\x1b[32m\n" not in shown


def test_an_ascii_terminal_shows_what_it_can(tmp_path: Path) -> None:
    session = Session()
    InMemoryFilesystem(session).write("/grün.txt", "")
    session.save(tmp_path / "s.json")
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    done = subprocess.run([*COMMAND, "ls", str(tmp_path / "s.json")], capture_output=True, env=environment)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.endswith(b"gr\\xfcn.txt\n")
