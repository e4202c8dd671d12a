"""Commands: how they start, what they answer, and how much of their output is kept."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.processes.conftest import BUBBLEWRAP, run
from weakfs.processes import SandboxMode, run_command
from weakfs.processes import command_watch as watching
from weakfs.processes import process as processes
from weakfs.processes.runner import MAX_COMMAND

pytestmark = pytest.mark.usefixtures("never_hung")


def test_a_command_answers_with_its_exit_code_and_both_streams(tmp_path: Path, mode: SandboxMode) -> None:
    done = run("echo out; echo err >&2; exit 3", tmp_path, mode)

    assert (done.exit_code, done.stdout, done.stderr, done.timed_out) == (3, "out\n", "err\n", False)
    assert done.sandboxed is (mode == "required")
    assert done.unsandboxed_because == (None if done.sandboxed else "the sandbox is turned off")
    assert not done.truncated


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("true", 0),
        ("exit 256", 0),
        ("exit 255", 255),
        ("no-such-program-here", 127),
        ("kill -9 $$", 137),
        ("kill -TERM $$", 143),
        ("sh -c 'kill -SEGV $$'", 139),
    ],
)
def test_an_exit_code_is_what_a_shell_would_show(tmp_path: Path, mode: SandboxMode, command: str, code: int) -> None:
    assert run(command, tmp_path, mode).exit_code == code


def test_a_command_starts_in_the_directory_and_leaves_its_files_there(tmp_path: Path, mode: SandboxMode) -> None:
    odd = tmp_path / "-a b\n'c"
    odd.mkdir()

    assert run("pwd -P > here", tmp_path, mode, workdir=str(odd)).exit_code == 0

    assert (odd / "here").read_text() == f"{odd}\n"


def test_a_command_starts_in_a_directory_reached_through_a_link(tmp_path: Path, mode: SandboxMode) -> None:
    (tmp_path / "real" / "sub").mkdir(parents=True)
    (tmp_path / "link").symlink_to("real")

    done = run("pwd", tmp_path / "link", mode, workdir=str(tmp_path / "link" / "sub"))

    assert done.stdout == f"{tmp_path}/real/sub\n"


def test_standard_input_is_empty(tmp_path: Path, mode: SandboxMode) -> None:
    done = run("cat; read line; echo $?", tmp_path, mode)

    assert (done.exit_code, done.stdout) == (0, "1\n")


def test_another_shell_can_be_used(tmp_path: Path, mode: SandboxMode) -> None:
    assert run("echo ${BASH_VERSION:+bash}", tmp_path, mode, shell="/bin/bash").stdout == "bash\n"


def test_a_command_that_closes_its_output_is_still_awaited(tmp_path: Path, mode: SandboxMode) -> None:
    assert run("exec >&- 2>&-; sleep 0.1; exit 5", tmp_path, mode).exit_code == 5


def test_a_broken_pipe_ends_a_program_silently(tmp_path: Path, mode: SandboxMode) -> None:
    done = run("yes | head -n 1", tmp_path, mode)

    assert (done.stdout, done.stderr) == ("y\n", "")


# Commands that cannot be run


def test_a_command_does_not_ignore_the_signals_that_the_runtime_ignores(tmp_path: Path, mode: SandboxMode) -> None:
    numbers = (signal.SIGQUIT, signal.SIGINT, signal.SIGUSR1)
    before = [signal.signal(number, signal.SIG_IGN) for number in numbers]
    try:
        codes = [run(f"sh -c 'kill -{number:d} $$; echo alive'; echo $?", tmp_path, mode) for number in numbers]
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)
    assert [done.stdout for done in codes] == [f"{128 + number}\n" for number in numbers]


def test_a_command_that_cannot_be_passed_to_a_shell_is_refused(tmp_path: Path, mode: SandboxMode) -> None:
    with pytest.raises(ValueError, match="contains a NUL character at 4; leave it out"):
        run("echo\0", tmp_path, mode)
    with pytest.raises(ValueError, match=r"a command of \d+ bytes: .* write it to a file"):
        run("é" * MAX_COMMAND, tmp_path, mode)


def test_the_longest_possible_command_runs(tmp_path: Path, mode: SandboxMode) -> None:
    assert run("exit 7 #".ljust(MAX_COMMAND, "x"), tmp_path, mode).exit_code == 7


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"timeout": 0}, "timeout is 0; give"),
        ({"timeout": -1.5}, "timeout is -1.5; give"),
        ({"timeout": float("inf")}, "timeout is inf; give"),
        ({"timeout": float("nan")}, "timeout is nan; give"),
        ({"max_output": -1}, "max_output is -1; give"),
        ({"sandbox": "maybe"}, "sandbox is 'maybe'; use 'auto', 'required' or 'off'"),
        ({"workdir": "/"}, "it is not below"),
    ],
)
def test_invalid_options_are_refused(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        run_command("true", str(tmp_path), **options)


def test_a_missing_program_cannot_be_started(tmp_path: Path, mode: SandboxMode) -> None:
    with pytest.raises(OSError, match=r"cannot start .*/no/shell.* No such file"):
        run("true", tmp_path, mode, shell="/no/shell")
    with pytest.raises(OSError, match=r"cannot start .*gone.* No such file"):
        run("true", tmp_path, mode, workdir=str(tmp_path / "gone"))


# Output


def test_floods_on_both_streams_are_read_concurrently_and_keep_their_ends(tmp_path: Path, mode: SandboxMode) -> None:
    flood = "{ echo first; head -c 5000000 /dev/zero | tr '\\0' x; echo; echo last; }"
    done = run(f"{flood} & {flood} >&2; wait", tmp_path, mode, max_output=1000)

    assert done.exit_code == 0
    assert done.truncated
    for text, left_out in ((done.stdout, done.stdout_left_out), (done.stderr, done.stderr_left_out)):
        assert left_out == 6 + 5_000_000 + 1 + 5 - 1000
        assert text.startswith("first\nxxx")
        assert text.endswith("xxx\nlast\n")
        assert f"\n[{left_out} bytes are left out here]\n" in text
        assert len(text) < 1100


def test_endless_output_is_bounded_and_its_command_is_ended(
    tmp_path: Path, mode: SandboxMode, until_begun: float
) -> None:
    done = run("seq 1000; touch begun; exec yes", tmp_path, mode, timeout=until_begun, max_output=100)

    assert done.timed_out
    assert done.stdout_left_out > 0
    assert len(done.stdout) < 200


def test_output_that_is_not_text_is_shown_with_replacement_characters(tmp_path: Path, mode: SandboxMode) -> None:
    done = run("printf 'a\\377\\0\\303\\251z'", tmp_path, mode)

    assert done.stdout == "a\N{REPLACEMENT CHARACTER}\0éz"


# The environment


def test_a_command_sees_the_listed_variables_and_no_others(
    tmp_path: Path, mode: SandboxMode, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("SECRET_TOKEN", "GIT_DIR", "GIT_INDEX_FILE", "LD_SILLY", "PYTHONPATH", "LCD", "CARGO_HOME"):
        monkeypatch.setenv(name, "seen")
    for name in ("LC_TIME", "LANG", "TERM", "TZ"):
        monkeypatch.setenv(name, "C")

    plain = run("env", tmp_path, mode).stdout
    more = run("env", tmp_path, mode, environment_allow=["CARGO_*", "PATH"], environment={"CI": "a\nb=c"}).stdout

    assert "seen" not in plain
    assert {"LC_TIME=C", "LANG=C", "TERM=C", "TZ=C"} <= set(plain.splitlines())
    shown = {line.partition("=")[0] for line in more.splitlines()}
    assert shown - {"HOME", "TMPDIR", "PWD", "OLDPWD", "SHLVL", "_"} == {"CARGO_HOME", "PATH", "CI", "b"}
    assert "CI=a\nb=c\n" in more


def test_a_variable_may_hold_any_bytes(tmp_path: Path, mode: SandboxMode, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(os.environb, b"LC_NAME", b"\xff=\xe9")

    done = run('printf %s "$LC_NAME" > bytes', tmp_path, mode)

    assert done.exit_code == 0
    assert (tmp_path / "bytes").read_bytes() == b"\xff=\xe9"


def test_a_path_is_set_even_if_the_runtime_has_none(
    tmp_path: Path, mode: SandboxMode, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = BUBBLEWRAP.program
    if mode == "required" and program != "/usr/bin/bwrap":
        pytest.skip("bwrap would not be found")
    monkeypatch.delenv("PATH")

    assert run("ls / > /dev/null", tmp_path, mode).exit_code == 0


def test_a_command_inherits_no_open_files(tmp_path: Path, mode: SandboxMode) -> None:
    with open(tmp_path / "secret", "w") as file:
        os.set_inheritable(file.fileno(), True)
        done = run("ls /proc/self/fd", tmp_path, mode)

    assert done.stdout.split() == ["0", "1", "2", "3"]


def test_output_and_exit_code_are_read_however_late(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "_DRAINING", 0.0)
    job = processes.Job(lambda _: ["/bin/sh", "-c", "echo said; exit 3"], str(tmp_path), {}, 0.2, sandboxed=False)

    with watching.Watch(job, 1000) as watch:
        # As if this process had not been scheduled in the meantime.
        watch._running.process.wait()
        assert not watch.until_ended(1e-9)

    assert (watch.status.ended, watch.out.text()) == (3, "said\n")
