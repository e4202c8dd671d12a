"""Commands: how they end, how much of their output is kept, and that nothing keeps running."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.descriptors import no_descriptor_left
from tests.processes.conftest import BUBBLEWRAP
from tests.tools.witness import Witness
from weakfs.processes import CompletedCommand, SandboxMode, run_command
from weakfs.processes import command_watch as watching
from weakfs.processes import process as processes
from weakfs.processes.runner import MAX_COMMAND

pytestmark = pytest.mark.usefixtures("never_hung")


@pytest.fixture
def witness(tmp_path: Path) -> Iterator[Witness]:
    found = Witness(tmp_path)
    yield found
    found.close()


@pytest.fixture
def until_begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> float:
    """A timeout that ends when something is printed after the file `begun` exists, however slow the machine is."""
    monotonic = time.monotonic

    def jumping() -> float:
        return monotonic() + (1000 if (tmp_path / "begun").exists() else 0)

    monkeypatch.setattr(watching, "monotonic", jumping)
    return 999


def run(command: str, directory: Path, mode: SandboxMode, **options: Any) -> CompletedCommand:
    options = {"timeout": 300, "grace": 0.2, **options}
    return run_command(command, str(directory), sandbox=mode, bubblewrap=BUBBLEWRAP, **options)


# How a command ends


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


# Nothing keeps running


# It prints before and after the moment for which `until_begun` waits: the first output is seen, the second wakes the
# runtime.
STUBBORN = f"trap '' TERM; echo awake; {Witness.HOLD}; echo busy; while :; do sleep 1; done"
DAEMON = f"(setsid sh -c '{{ trap \"\" TERM HUP; {Witness.HOLD}; while :; do sleep 1; done; }} >/dev/null 2>&1' &) &"


def test_a_command_that_times_out_is_ended_whatever_signals_it_ignores(
    tmp_path: Path, mode: SandboxMode, witness: Witness, until_begun: float
) -> None:
    done = run(STUBBORN, tmp_path, mode, timeout=until_begun)

    assert (done.exit_code, done.timed_out) == (None, True)
    assert done.stdout.replace("busy\n", "") == "awake\n"
    assert witness.saw_it_end()


def test_a_command_that_times_out_can_print_before_it_is_killed(
    tmp_path: Path, mode: SandboxMode, until_begun: float
) -> None:
    # It starts no other program: until a child executes its program, it is a shell that runs the trap too.
    command = "trap 'echo bye; exit 0' TERM; echo awake; : > begun; echo busy; while :; do :; done"
    done = run(command, tmp_path, mode, timeout=until_begun, grace=20)

    assert (done.exit_code, done.timed_out) == (None, True)
    assert done.stdout.replace("busy\n", "") == "awake\nbye\n"


def test_the_whole_process_tree_is_ended(
    tmp_path: Path, mode: SandboxMode, witness: Witness, until_begun: float
) -> None:
    tree = f"sh -c 'sh -c \"{Witness.HOLD}; echo awake; sleep 1000\" & sleep 1000' & sleep 1000"
    done = run(tree, tmp_path, mode, timeout=until_begun)

    assert done.timed_out
    assert witness.saw_it_end()


def test_a_daemon_in_its_own_session_is_ended_at_the_timeout(
    tmp_path: Path, mode: SandboxMode, witness: Witness, until_begun: float
) -> None:
    done = run(f"{DAEMON} {Witness.AWAIT}; echo awake; sleep 1000", tmp_path, mode, timeout=until_begun)

    assert done.timed_out
    assert witness.saw_it_end()


def test_a_daemon_in_its_own_session_does_not_outlive_its_command(
    tmp_path: Path, mode: SandboxMode, witness: Witness
) -> None:
    done = run(f"{DAEMON} {Witness.AWAIT}; exit 4", tmp_path, mode)

    assert (done.exit_code, done.timed_out) == (4, False)
    assert witness.saw_it_end()


def test_a_child_that_keeps_the_output_open_does_not_delay_the_call(
    tmp_path: Path, mode: SandboxMode, witness: Witness
) -> None:
    done = run(f"sh -c '{Witness.HOLD}; sleep 1000' & {Witness.AWAIT}; echo done", tmp_path, mode)

    assert (done.exit_code, done.stdout, done.timed_out) == (0, "done\n", False)
    assert witness.saw_it_end()


def test_a_command_that_stops_itself_is_ended(
    tmp_path: Path, mode: SandboxMode, witness: Witness, until_begun: float
) -> None:
    when_stopped = "until grep -q 'State:.T' /proc/$PPID/status; do sleep 0.01; done; touch begun; echo awake"
    hold, _, _ = Witness.HOLD.rpartition("; ")
    done = run(
        f'{hold}; sh -c "{when_stopped}" & kill -STOP $$'.replace("$PPID", "\\$PPID"),
        tmp_path,
        mode,
        timeout=until_begun,
    )

    assert done.timed_out
    assert witness.saw_it_end()


def test_a_timeout_of_zero_ends_before_the_command_starts(tmp_path: Path, mode: SandboxMode) -> None:
    assert run("sleep 1000", tmp_path, mode, timeout=1e-6).timed_out


def test_an_interrupt_ends_the_command_before_it_propagates(
    tmp_path: Path, mode: SandboxMode, witness: Witness
) -> None:
    def interrupt() -> None:
        while not (tmp_path / "begun").exists():
            threading.Event().wait(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        run(STUBBORN, tmp_path, mode)
        thread.join()
    thread.join()

    assert witness.saw_it_end()


def test_a_command_that_kills_its_process_group_affects_only_itself(tmp_path: Path, mode: SandboxMode) -> None:
    assert run("trap 'exit 9' TERM; kill 0; sleep 1000", tmp_path, mode).exit_code == 9


def test_a_command_that_kills_its_supervisor_fails_and_ends(tmp_path: Path, witness: Witness) -> None:
    with pytest.raises(OSError, match="killed from outside"):
        run(f"{Witness.HOLD}; kill -9 $PPID; sleep 1000", tmp_path, "off")

    assert witness.waited_for_its_end()


def test_processes_that_cannot_be_ended_are_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The supervisor has no time to kill anything. In the sandbox, the kernel eventually does.
    monkeypatch.setattr(processes, "_KILLING", 0.0)

    with pytest.raises(OSError, match=r"\d+ of its processes could not be killed; kill them by hand"):
        run("sleep 1000 & echo $! > left; exit 0", tmp_path, "off", grace=0.0)

    with suppress(ProcessLookupError):
        os.kill(int((tmp_path / "left").read_text()), signal.SIGKILL)


# A supervisor that does not run for a while, between asking a process to end and looking at the clock again.
LATE = """
import itertools, os, signal, subprocess, time
from types import SimpleNamespace
from weakfs.processes import supervisor

words = ["sh", "-c", "trap '' TERM; echo; exec sleep 1000"]
child = subprocess.Popen(words, start_new_session=True, stdout=-1, stderr=-3)
child.stdout.readline()
ticks = itertools.chain([0.0], itertools.repeat(1000.0))
supervisor.time = SimpleNamespace(monotonic=lambda: next(ticks))
supervisor.signal.signal(signal.SIGCHLD, supervisor._woken)
woken, waking = os.pipe()
os.set_blocking(woken, False)
print(supervisor._end_all(child.pid, woken, 1.0, 5.0))
"""


def test_a_late_supervisor_still_kills() -> None:
    done = subprocess.run([sys.executable, "-c", LATE], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("0\n", "")


def test_without_an_interpreter_nothing_is_run(
    tmp_path: Path, mode: SandboxMode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "")
    with pytest.raises(OSError, match="there is no Python interpreter to watch over it"):
        run("touch ran", tmp_path, mode)

    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(OSError, match="cannot start the command: the supervisor says"):
        run("touch ran", tmp_path, mode)

    assert not (tmp_path / "ran").exists()


@pytest.mark.sampled(by_rule=True)
def test_calls_leave_no_descriptors_and_no_zombies(tmp_path: Path, mode: SandboxMode) -> None:
    run("true", tmp_path, mode)
    others = {int(pid) for task in os.listdir("/proc/self/task") for pid in _children_of(task)}

    with no_descriptor_left():
        for timeout in (1e-6, 60, 60):
            run("sleep 1000 & exit 1", tmp_path, mode, timeout=timeout)
        with pytest.raises(OSError, match="cannot start"):
            run("true", tmp_path, mode, shell="/no/shell")

    children = {int(pid) for task in os.listdir("/proc/self/task") for pid in _children_of(task)}
    assert children <= others


def _children_of(task: str) -> list[str]:
    return Path(f"/proc/self/task/{task}/children").read_text().split()


@pytest.mark.slow
@pytest.mark.sampled(by_rule=True)
def test_many_commands_run_concurrently(tmp_path: Path, mode: SandboxMode) -> None:
    def one(number: int) -> CompletedCommand:
        return run(f"echo {number} > {number}; echo {number}; sleep 1000 & exit {number}", tmp_path, mode)

    with ThreadPoolExecutor(8) as pool:
        done = list(pool.map(one, range(16)))

    assert [(found.exit_code, found.stdout) for found in done] == [(number, f"{number}\n") for number in range(16)]
    assert {path.name for path in tmp_path.iterdir()} == {str(number) for number in range(16)}


def test_ending_a_command_from_outside_leaves_no_descriptor_open() -> None:
    with no_descriptor_left(), watching.StopEvent() as stop:
        stop.set()
