"""The end of a command: nothing that it started keeps running, whatever it does."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from tests.descriptors import no_descriptor_left
from tests.processes.conftest import run
from tests.tools.witness import Witness
from weakfs.processes import CompletedCommand, SandboxMode
from weakfs.processes import command_watch as watching
from weakfs.processes import process as processes

pytestmark = pytest.mark.usefixtures("never_hung")


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
