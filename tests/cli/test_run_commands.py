"""`weakfs run` performs calls that change files, but runs no commands from a transcript."""

from __future__ import annotations

import json
from pathlib import Path

from .conftest import Run


def test_a_command_in_a_transcript_is_not_run(run: Run, tmp_path: Path) -> None:
    command = {"id": "c1", "tool": "shell", "arguments": {"command": f"touch {tmp_path}/ran"}}
    (tmp_path / "t.jsonl").write_text(json.dumps(command) + "\n")

    done = run("run", tmp_path / "t.jsonl", "--json")

    (call,) = [one for one in done.objects if one["type"] == "call"]
    assert call["success"] is False
    assert not (tmp_path / "ran").exists()


def test_the_help_says_that_commands_are_not_run_by_default(run: Run) -> None:
    printed = " ".join(run("run", "--help").out.split())

    option = printed.partition("--sandbox")[2].partition("--save")[0]
    assert option.endswith("[default: do not run them] ")
