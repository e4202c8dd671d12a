"""Limits of sandboxed commands: each is tried by a command that exceeds it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from weakfs import Session, Toolset
from weakfs.processes import Bubblewrap, CommandLimits, CompletedCommand, run_command
from weakfs.tools.handlers import ShellOptions, ShellReceipt, shell_tool

BUBBLEWRAP = Bubblewrap()
MIB = 1 << 20

pytestmark = [
    pytest.mark.usefixtures("never_hung"),
    pytest.mark.skipif(BUBBLEWRAP.problem() is not None, reason=f"no sandbox: {BUBBLEWRAP.problem()}"),
]


def run(command: str, place: Path, **limits: Any) -> CompletedCommand:
    return run_command(
        command, str(place), sandbox="required", bubblewrap=BUBBLEWRAP, timeout=300, limits=CommandLimits(**limits)
    )


# Only the first process forks, so it is the one that fails, which ends the command. All others stay.
FORK_BOMB = """
import os, sys, time
for _ in range(300):
    try:
        if os.fork() == 0:
            time.sleep(1000)
            os._exit(0)
    except OSError as error:
        print(error, file=sys.stderr)
        sys.exit(1)
time.sleep(1000)
"""


def test_a_fork_bomb_ends_with_its_sandbox(tmp_path: Path) -> None:
    (tmp_path / "bomb.py").write_text(FORK_BOMB)

    done = run("python3 bomb.py; exit 1", tmp_path, max_processes=60)

    assert done.exit_code not in (0, None)
    assert done.limits_hit == ("max_processes=60",)
    if os.getuid() == 0:
        assert "the command was killed: it had more than 60 processes" in done.stderr


def test_a_command_that_was_killed_for_one_limit_reached_no_other() -> None:
    limits = CommandLimits(max_processes=60)
    said = "[Errno 12] Cannot allocate memory"

    assert limits.likely_hit(137, said, "max_processes") == ("max_processes=60",)
    assert limits.likely_hit(1, said, None) == (f"max_memory={limits.max_memory}",)


def test_a_command_within_its_number_of_processes_runs(tmp_path: Path) -> None:
    done = run("for i in 1 2 3 4 5 6 7 8 9 10; do sleep 0.2 & done; wait; echo done", tmp_path, max_processes=60)

    assert (done.exit_code, done.stdout, done.limits_hit) == (0, "done\n", ())


@pytest.mark.slow
def test_a_process_cannot_allocate_more_memory_than_the_limit(tmp_path: Path) -> None:
    done = run("python3 -c 'bytearray(300 << 20)'", tmp_path, max_memory=200 * MIB)

    assert done.exit_code == 1
    assert "MemoryError" in done.stderr
    assert done.limits_hit == (f"max_memory={200 * MIB}",)
    assert run("python3 -c 'bytearray(300 << 20)'", tmp_path).exit_code == 0


# Both exist at once before either ends.
TWO_LARGE = """
import os
first, second = os.pipe(), os.pipe()
child = os.fork()
mine, other = (first, second) if child else (second, first)
held = bytearray(150 << 20)
os.write(mine[1], b"x")
os.read(other[0], 1)
os._exit(0) if not child else os.wait()
print(len(held))
"""


def test_memory_is_limited_per_process_and_not_in_total(tmp_path: Path) -> None:
    (tmp_path / "two.py").write_text(TWO_LARGE)

    done = run("python3 two.py", tmp_path, max_memory=200 * MIB)

    assert (done.exit_code, done.stdout) == (0, f"{150 << 20}\n")


@pytest.mark.parametrize("command", ["truncate -s 20M large", "dd if=/dev/zero of=large bs=1M count=20 status=none"])
def test_a_program_gets_an_error_when_it_writes_a_file_that_is_too_large(tmp_path: Path, command: str) -> None:
    done = run(command, tmp_path, max_file_size=10 * MIB)

    assert done.exit_code == 1
    assert "File too large" in done.stderr
    assert done.limits_hit == (f"max_file_size={10 * MIB}",)
    assert (tmp_path / "large").stat().st_size <= 10 * MIB


@pytest.mark.skipif(not BUBBLEWRAP.can_limit_tmpfs(), reason="this bubblewrap cannot limit the size of /tmp")
@pytest.mark.parametrize("where", ["/tmp", "/dev/shm"])
def test_scratch_space_is_limited(tmp_path: Path, where: str) -> None:
    done = run(f"head -c 20M /dev/zero > {where}/large", tmp_path, max_tmp_size=10 * MIB)

    assert done.exit_code == 1
    assert "No space left on device" in done.stderr
    assert done.limits_hit == (f"max_tmp_size={10 * MIB}",)


def test_a_process_cannot_open_too_many_files(tmp_path: Path) -> None:
    done = run("python3 -c 'held = [open(\"/dev/null\") for _ in range(200)]'", tmp_path, max_open_files=100)

    assert done.exit_code == 1
    assert "Too many open files" in done.stderr
    assert done.limits_hit == ("max_open_files=100",)


@pytest.mark.slow
def test_a_process_that_computes_too_long_is_ended(tmp_path: Path) -> None:
    done = run("while :; do :; done", tmp_path, max_cpu_seconds=1)

    assert (done.exit_code, done.timed_out) == (128 + 24, False)
    assert done.limits_hit == ("max_cpu_seconds=1",)


def test_there_are_limits_unless_the_runtime_sets_others(tmp_path: Path) -> None:
    names = ("file size", "data size", "open files")
    usual = run("cat /proc/self/limits", tmp_path).stdout.lower()
    free = run(
        "cat /proc/self/limits", tmp_path, max_file_size=None, max_memory=None, max_processes=None, max_tmp_size=None
    ).stdout.lower()

    found = {name: line.split()[3] for name in names for line in usual.splitlines() if line.startswith(f"max {name}")}
    defaults = CommandLimits()
    assert found["file size"] == str(defaults.max_file_size)
    assert found["data size"] == str(defaults.max_memory)
    assert int(found["open files"]) <= 4096
    assert "max file size             unlimited" in free


def test_the_receipt_names_the_limit_that_a_command_seems_to_have_hit(tmp_path: Path) -> None:
    options = ShellOptions(bubblewrap=BUBBLEWRAP, limits=CommandLimits(max_file_size=10 * MIB))
    tools = Toolset(Session(), tools=[shell_tool(options)])

    result = tools.call("shell", {"command": "truncate -s 20M large"})

    assert isinstance(result.value, ShellReceipt)
    assert (result.status, result.value.exit_code) == ("ok", 1)
    assert result.value.limits_hit == (f"max_file_size={10 * MIB}",)
    assert f"limits that may have been reached: max_file_size={10 * MIB}" in result.summary_text


@pytest.mark.parametrize("value", [0, -1, 1.5, True])
def test_an_invalid_limit_is_refused_when_it_is_created(value: Any) -> None:
    with pytest.raises(ValueError, match=r"max_memory is .*; give a whole number of at least 1, or None for no limit"):
        CommandLimits(max_memory=value)
