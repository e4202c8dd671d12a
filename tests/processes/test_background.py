"""Background processes by themselves: real programs, with and without a sandbox, that end in every way."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

import pytest

from tests.descriptors import no_descriptor_left
from tests.processes.conftest import BUBBLEWRAP, MODES
from tests.sampling import share
from tests.tools.witness import Witness
from weakfs.backends.container import Container
from weakfs.backends.container.commands.program import ContainerLauncher
from weakfs.processes import CommandLimits, CommandOptions, SandboxMode, SandboxUnavailable
from weakfs.processes.background import (
    BackgroundProcess,
    HostLauncher,
    InputClosed,
    Launcher,
    NotRunning,
    ProcessLimits,
    ProcessTable,
    TooManyProcesses,
)
from weakfs.processes.background import process as watching
from weakfs.processes.background import table as process_table

# Where a program runs: with or without a sandbox, or in a container.
Place = Literal["off", "required", "container"]

pytestmark = pytest.mark.usefixtures("never_hung")

Start = Callable[..., BackgroundProcess]


@pytest.fixture(params=[*MODES, "container"])
def where(request: pytest.FixtureRequest) -> Place:
    chosen: Place = request.param
    if chosen == "required" and BUBBLEWRAP.problem():
        pytest.skip(f"no sandbox: {BUBBLEWRAP.problem()}")
    return chosen


@pytest.fixture
def table() -> Iterator[ProcessTable]:
    found = ProcessTable()
    yield found
    found.end_all("the test is over")


@pytest.fixture
def start(table: ProcessTable, tmp_path: Path, request: pytest.FixtureRequest) -> Start:
    """Start a command in the directory of the test, by default without a sandbox."""
    numbers = iter(range(1, 1000))

    def started(command: str, where: Place = "off", is_held: bool = False, **limits: float | None) -> BackgroundProcess:
        if where == "container":
            container: Container = request.getfixturevalue("shared_container")
            launcher: Launcher = ContainerLauncher(container._supervisor, lambda path: "/tmp", {}, CommandLimits())
        else:
            launcher = HostLauncher(str(tmp_path), CommandOptions(sandbox=where, bubblewrap=BUBBLEWRAP))
        process = table.start(
            lambda: launcher.launch(["/bin/sh", "-c", command], directory="/"),
            ProcessLimits(**{"grace": 0.2, **limits}),  # type: ignore[arg-type]  # names of numbers
            new_id=lambda: f"p{next(numbers)}",
        )
        if not is_held:
            process.begin()
        return process

    return started


def printed(process: BackgroundProcess, text: str) -> str:
    """Wait until a process has printed a text, and return all that it has printed."""
    while text not in (said := process.output(0, 1 << 20).text):
        assert process.state != "ended", f"{process.ending}: {said}"
        process.wait_for_output(process.output_size, 0.05, lambda: False)
    return said


def ended(process: BackgroundProcess) -> tuple[int | None, str | None]:
    assert process.wait(None)
    assert process.ending is not None
    return process.ending.exit_code, process.ending.reason


# Its input and its output


@pytest.mark.sampled(by_rule=True)
def test_a_server_answers_repeated_requests(start: Start, where: Place) -> None:
    server = start("echo ready; while read word; do echo got $word; echo $word >> asked; done; exit 7", where)
    printed(server, "ready\n")

    for word in ("one", "two"):
        server.write(f"{word}\n".encode())
        printed(server, f"got {word}\n")
    server.write(b"", close=True)

    assert ended(server) == (7, None)
    assert server.output(0, 100).text == "ready\ngot one\ngot two\n"


@pytest.mark.slow
def test_both_streams_are_one_output_in_order(start: Start, where: Place) -> None:
    process = start("for i in 1 2 3; do echo out $i; echo err $i >&2; done", where)

    assert ended(process) == (0, None)
    assert process.output(0, 100).text == "out 1\nerr 1\nout 2\nerr 2\nout 3\nerr 3\n"


def test_a_large_input_arrives_completely(start: Start, where: Place) -> None:
    data = bytes(range(256)) * 2000
    counter = start("sha256sum | cut -c -64", where)

    counter.write(data, close=True)

    ended(counter)
    from hashlib import sha256

    assert counter.output(0, 100).text.strip() == sha256(data).hexdigest()


def test_input_that_is_not_read_is_refused_before_it_fills_the_memory(start: Start, where: Place) -> None:
    process = start("echo ready; exec sleep 1000", where)
    printed(process, "ready")
    process.write(bytes(watching.MAX_PENDING_INPUT))

    with pytest.raises(InputClosed, match="has not read"):
        process.write(bytes(watching.MAX_PENDING_INPUT))


# In a sandbox, bubblewrap holds the input open.
@pytest.mark.parametrize("where", ["off", "container"])
def test_input_for_a_program_that_has_closed_it_is_refused(start: Start, where: Place) -> None:
    process = start("exec <&-; echo ready; exec sleep 1000", where)
    printed(process, "ready")

    with pytest.raises(InputClosed, match="input is closed"):
        while True:
            process.write(b"x")
            process.wait(0.01)


@pytest.mark.slow
def test_a_flood_of_output_is_kept_in_bounded_memory(start: Start, where: Place) -> None:
    flood = start("yes 0123456789", where, max_kept_output=10_000)
    while flood.output_size < 1_000_000:
        flood.wait_for_output(flood.output_size, 1, lambda: False)

    flood.end("that is enough")

    ended(flood)
    found = flood.output(0, 100_000)
    assert found.dropped >= 990_000
    assert len(found.text) <= 10_000
    assert found.end == flood.output_size


# How it ends


def test_nothing_runs_before_the_process_is_released(start: Start, where: Place, tmp_path: Path) -> None:
    held = start("touch begun", where, is_held=True)
    assert held.state == "held"
    with pytest.raises(NotRunning, match="it starts when its transaction ends"):
        held.write(b"x")

    held.end("it is not wanted")

    assert ended(held) == (None, "it is not wanted")
    held.begin()
    assert not (tmp_path / "begun").exists()


@pytest.mark.parametrize("name", ["SIGTERM", "SIGKILL", "SIGINT", "SIGUSR1"])
def test_a_signal_ends_the_server(start: Start, where: Place, name: str) -> None:
    if (where, name) == ("container", "SIGINT"):
        pytest.skip("a POSIX shell without job control starts background commands with SIGINT ignored")
    process = start("echo ready; exec sleep 1000", where)
    printed(process, "ready")
    number = signal.Signals[name]

    process.signal(number)

    # A sandbox that is killed does not report how the command in it ended.
    assert ended(process) in [(128 + number, None), *([(None, None)] if where == "required" else [])]


def test_a_program_can_handle_signals(start: Start, where: Place) -> None:
    process = start("trap 'echo again' HUP; echo ready; while :; do read -r line && exit 9; done", where)
    printed(process, "ready")

    process.signal(signal.SIGHUP)

    # A signal may end a shell's `read`, which the loop then repeats.
    printed(process, "again")
    process.write(b"\n")
    assert ended(process) == (9, None)


@pytest.mark.sampled
@pytest.mark.parametrize("is_stopped", [False, True])
def test_a_process_that_ignores_sigterm_is_killed(start: Start, where: Place, is_stopped: bool) -> None:
    process = start("trap '' TERM; echo ready; while :; do sleep 1000; done", where)
    printed(process, "ready")
    if is_stopped:
        process.signal(signal.SIGSTOP)

    process.end("it is not wanted")

    assert ended(process)[1] == "it is not wanted"


@pytest.mark.sampled(by_rule=True)
def test_children_end_with_the_process(start: Start, tmp_path: Path, mode: SandboxMode) -> None:
    witness = Witness(tmp_path)
    process = start(f"(setsid sh -c 'trap : TERM; {Witness.HOLD}; sleep 1000; sleep 1000' &) ; {Witness.AWAIT}", mode)

    assert ended(process) == (0, None)
    assert witness.saw_it_end()
    witness.close()


def test_a_process_is_killed_at_its_timeout(start: Start, where: Place) -> None:
    assert ended(start("sleep 1000", where, max_lifetime=0.05))[1] == "it had run for 0.05 s"


def test_an_idle_process_is_ended(start: Start) -> None:
    assert ended(start("echo once; sleep 1000", max_idle=0.05))[1] == "it was idle for 0.05 s"


def test_too_many_processes_end_with_their_sandbox(tmp_path: Path, table: ProcessTable) -> None:
    """Not a true fork bomb: the supervisor counts root's processes, and a bomb could take all ids before that."""
    if BUBBLEWRAP.problem():
        pytest.skip(f"no sandbox: {BUBBLEWRAP.problem()}")
    options = CommandOptions(bubblewrap=BUBBLEWRAP, limits=CommandLimits(max_processes=40))
    launcher = HostLauncher(str(tmp_path), options)
    many = table.start(
        lambda: launcher.launch(["/bin/sh", "-c", "for i in $(seq 300); do sleep 1000 & done; wait"], directory="/"),
        ProcessLimits(max_lifetime=20),
        new_id=lambda: "p1",
    )
    many.begin()

    code, reason = ended(many)

    # Killed by the supervisor, or stopped by the kernel, which refuses forks to a user who is not root.
    assert reason is not None or code != 0


def test_killing_a_supervisor_kills_its_program(start: Start, tmp_path: Path, mode: SandboxMode) -> None:
    witness = Witness(tmp_path)
    process = start(f"{Witness.HOLD}; echo ready; exec sleep 1000", mode)
    printed(process, "ready")

    os.kill(process._program._running.process.pid, signal.SIGKILL)  # type: ignore[attr-defined]  # of the host

    assert ended(process)[1] == "it was killed from outside, together with its supervisor"
    assert witness.waited_for_its_end()
    witness.close()


def test_a_command_that_cannot_be_started_ends_with_the_cause(tmp_path: Path, table: ProcessTable) -> None:
    launcher = HostLauncher(str(tmp_path), CommandOptions(sandbox="off"))
    process = table.start(
        lambda: launcher.launch(["/no/such/shell", "-c", "true"], directory="/"), ProcessLimits(), new_id=lambda: "p1"
    )
    process.begin()

    assert ended(process)[1] == "it could not be started: No such file or directory"


def test_a_process_that_requires_a_sandbox_does_not_start_without_one(
    start: Start, table: ProcessTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")

    with pytest.raises(SandboxUnavailable, match="bwrap is not on the PATH"):
        start("true", "required")

    assert table.processes == {}


# Many processes


def test_no_more_processes_run_than_the_limit(start: Start, where: Place) -> None:
    first = start("sleep 1000", where, max_running=1)

    with pytest.raises(TooManyProcesses, match="1 are running and 1 are allowed"):
        start("true", where, max_running=1)

    first.end("it is not wanted")
    ended(first)
    assert ended(start("exit 4", where, max_running=1)) == (4, None)


def test_the_oldest_of_many_that_have_ended_are_forgotten(
    start: Start, table: ProcessTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process_table, "MAX_ENDED", 2)
    running = start("sleep 1000")
    for _ in range(4):
        ended(start("true"))
    last = start("sleep 1000")

    assert [*table.processes] == [running.process_id, "p4", "p5", last.process_id]


@pytest.mark.slow
def test_many_processes_run_and_end_concurrently(start: Start, where: Place, table: ProcessTable) -> None:
    count = share(50)
    echoes = [start(f"echo {i}; read line; echo $line {i}", where, max_running=None) for i in range(count)]
    for i, echo in enumerate(echoes):
        printed(echo, f"{i}\n")
    for echo in echoes[::2]:
        echo.write(b"hello\n")

    assert [ended(echo) for echo in echoes[::2]] == [(0, None)] * len(echoes[::2])
    assert all(f"hello {2 * i}\n" in echo.output(0, 100).text for i, echo in enumerate(echoes[::2]))
    assert len(table.end_all("the test is over")) == count - len(echoes[::2])
    assert [echo.state for echo in echoes] == ["ended"] * count


def test_input_that_is_closed_before_the_program_opens_it_is_read(start: Start, shared_container: Container) -> None:
    first = shared_container._inspect().pid
    os.kill(first, signal.SIGSTOP)
    try:
        process = start("cat", "container")
        process.write(b"all of it\n", close=True)
        while process._stdin_is_open:
            time.sleep(0.001)
    finally:
        os.kill(first, signal.SIGCONT)

    assert ended(process) == (0, None)
    assert process.output(0, 100).text == "all of it\n"


def test_a_process_may_be_used_from_any_thread(start: Start, where: Place) -> None:
    process = start("while read line; do echo $line; done", where)
    threads = [threading.Thread(target=lambda i=i: process.write(f"{i}\n".encode())) for i in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    process.write(b"", close=True)

    assert ended(process) == (0, None)
    assert sorted(process.output(0, 1000).text.split(), key=int) == [str(i) for i in range(20)]


def test_descriptors_and_threads_are_released(start: Start) -> None:
    others = {*threading.enumerate()}

    def threads_ended(process: BackgroundProcess) -> None:
        ended(process)
        for thread in {*threading.enumerate()} - others:
            thread.join()

    threads_ended(start("true"))
    with no_descriptor_left():
        for _ in range(3):
            threads_ended(start("echo x; cat", max_lifetime=0.02))
