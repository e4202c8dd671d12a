"""Commands in a container: their output, their processes, and what they can reach."""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Iterable
from pathlib import Path
from time import monotonic

import pytest
from attrs import evolve

from tests.containers import IMAGE, state
from weakfs import Limits
from weakfs.backends.container import ContainerFilesystem, Podman
from weakfs.backends.container.commands import command
from weakfs.backends.container.commands import supervisor as commands
from weakfs.backends.container.commands.command import Command
from weakfs.backends.container.commands.command_files import is_readable
from weakfs.backends.container.commands.supervisor import Supervisor
from weakfs.backends.container.lifecycle import container
from weakfs.backends.container.lifecycle.conmon import has_monitor
from weakfs.processes import CommandLimits, StopEvent
from weakfs.tools import DEFAULT_TOOLS, Toolset
from weakfs.tools.handlers import ShellReceipt


def test_relative_paths_start_in_the_directory_where_commands_start(files: ContainerFilesystem) -> None:
    files.write("sub/a.txt", "a\n")
    assert files.exec("pwd; cat sub/a.txt").stdout == "/workspace\na\n"
    assert files.read("/workspace/sub/a.txt").content == "a\n"
    assert files.exec(["cat", "a.txt"], workdir="sub").stdout == "a\n"


def test_output_is_bounded_and_both_streams_are_kept(files: ContainerFilesystem) -> None:
    done = files.exec("seq 100000; echo error >&2", max_output=1000)
    assert done.stdout.startswith("1\n2\n")
    assert done.stdout.endswith("100000\n")
    assert len(done.stdout) < 1200
    assert done.truncated
    assert done.stderr == "error\n"


def test_bytes_that_are_not_text_are_shown(files: ContainerFilesystem) -> None:
    assert files.exec("printf 'a\\377b\\0c'").stdout == "a\N{REPLACEMENT CHARACTER}b\0c"


@pytest.mark.parametrize("escape", ["sleep 60 &", "(setsid sleep 60 &) ; sleep 0.1", "nc -l -p 9 & setsid sleep 60 &"])
def test_nothing_that_a_command_started_is_left_running(files: ContainerFilesystem, escape: str) -> None:
    assert files.exec(escape).exit_code == 0
    assert files.container._supervisor.processes() == []


@pytest.mark.slow
def test_a_command_cannot_read_or_change_the_requests_to_its_supervisor(files: ContainerFilesystem) -> None:
    # These containers have the capability `dac_override`, which would bypass this restriction.
    alone = ContainerFilesystem(image=IMAGE, store=files.store, runtime=files.container.podman, name="alone")
    try:
        for place in ("/run/weakfs/requests", "/proc/1/fd/3"):
            for way in ("<", ">", "<>"):
                assert alone.exec(f"(: 9{way}{place}) && echo opened").stdout == ""
        alone.container.stop()
        assert alone.exec("echo again").stdout == "again\n"
    finally:
        alone.container.remove()


def test_garbage_that_a_command_writes_into_the_requests_does_not_disturb_others(files: ContainerFilesystem) -> None:
    files.exec("printf 'half a line' > /run/weakfs/requests")
    assert files.exec("echo on", timeout=60).stdout == "on\n"


def test_a_command_that_keeps_forging_its_status_is_an_error(files: ContainerFilesystem) -> None:
    with pytest.raises(OSError, match="killed from outside"):
        files.exec("echo x > new; for status in /run/weakfs/*/status; do yes > $status; done; sleep 60")
    assert not files.exists("new")


def test_a_container_ends_if_something_in_it_cannot_be_killed(
    files: ContainerFilesystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    files.exec("true")
    supervisor = files.container._supervisor
    monkeypatch.setattr(commands, "KILLING", 0.1)
    monkeypatch.setattr(Supervisor, "send", lambda *_: None)
    done = files.exec("sleep 60 & echo kept > new")
    assert (done.exit_code, done.changed) == (0, ("/workspace/new",))
    monkeypatch.undo()
    assert not supervisor.is_alive
    assert files.exec("cat new; rm new").stdout == "kept\n"


def test_a_container_survives_a_pause_of_its_host_process(
    files: ContainerFilesystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    files.exec("true")
    supervisor = files.container._supervisor
    kill, late = Supervisor.kill, [0.0]

    def kill_and_lose_time(self: Supervisor, pids: Iterable[int]) -> None:
        kill(self, pids)
        while self.processes():
            pass
        late[0] += 1000

    monkeypatch.setattr(Supervisor, "kill", kill_and_lose_time)
    monkeypatch.setattr(commands, "monotonic", lambda: monotonic() + late[0])
    assert files.exec("sleep 60 & echo said").stdout == "said\n"
    assert late[0] > 0
    assert supervisor.is_alive


def test_output_and_exit_code_are_read_however_late(
    files: ContainerFilesystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    done_at = Path(f"{files.container.path_of_files()}/workspace/done")
    until_ended = Command.until_ended

    def wait_late(self: Command, timeout: float, stop: StopEvent | None, most: int | None) -> None:
        while not done_at.exists() or self._supervisor.processes():
            pass
        until_ended(self, timeout, stop, most)

    monkeypatch.setattr(Command, "until_ended", wait_late)
    monkeypatch.setattr(command, "DRAINING", -1.0)
    done = files.exec("echo said; touch done; exit 3", timeout=1e-9)
    assert (done.exit_code, done.stdout) == (3, "said\n")


def test_a_command_waits_for_a_container_that_is_ending(
    files: ContainerFilesystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    files.exec("echo kept > new")
    supervisor = files.container._supervisor
    assert supervisor.end_container()
    # The kernel reports the end of its first process only when all others are reaped.
    reaping = iter(range(30))
    monkeypatch.setattr(container, "is_readable", lambda process: next(reaping, None) is None and is_readable(process))
    assert files.exec("cat new").stdout == "kept\n"


def test_the_error_for_a_container_that_ends_before_a_command_names_the_remedy(files: ContainerFilesystem) -> None:
    supervisor = files.container._supervisor
    assert supervisor.end_container()
    # The kernel closes the reading end a moment after it has removed the process's root.
    closed = select.poll()
    closed.register(supervisor._requests, 0)
    assert closed.poll(600_000)
    with pytest.raises(BrokenPipeError, match="its supervisor has ended; try again"):
        supervisor.request("")
    supervisor.send(9, [1])
    assert files.exec("true").exit_code == 0


def test_another_process_with_the_id_of_an_ended_container_is_not_taken_for_it(files: ContainerFilesystem) -> None:
    inspected, supervisor = files.container._inspect(), files.container._supervisor
    files.container._end()
    while files.container.is_running:
        pass
    supervisor._pid = os.getpid()
    assert not supervisor.is_alive
    assert supervisor.end_container()
    assert has_monitor(files.container._inspect())
    assert not has_monitor(evolve(inspected, monitor=os.getpid()))
    assert files.exec("echo on").stdout == "on\n"


def test_a_command_that_was_stopped_before_it_began_never_begins(
    files: ContainerFilesystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    files.exec("true")
    first, drain, began = files.container._inspect().pid, Command.drain, list[bool]()

    def let_the_supervisor_go_on(self: Command) -> None:
        os.kill(first, signal.SIGCONT)
        while self._supervisor._unread() or self._supervisor.processes():
            pass
        began.append(Path(f"{files.container.path_of_files()}/workspace/late").exists())
        drain(self)

    monkeypatch.setattr(Command, "drain", let_the_supervisor_go_on)
    os.kill(first, signal.SIGSTOP)
    with pytest.raises(TimeoutError):
        files.exec("echo x > /workspace/late", timeout=0.05)
    assert began == [False]
    monkeypatch.undo()
    assert files.exec("echo on").stdout == "on\n"


def test_a_command_ends_if_its_caller_is_interrupted_before_it_waits(
    files: ContainerFilesystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    supervisor, request = files.container._supervisor, Supervisor.request
    begun = Path(f"{files.container.path_of_files()}/workspace/begun")

    def request_and_interrupt(self: Supervisor, line: str) -> None:
        request(self, line)
        if line.startswith("run"):
            while not begun.exists():
                pass
            raise KeyboardInterrupt

    monkeypatch.setattr(Supervisor, "request", request_and_interrupt)
    with pytest.raises(KeyboardInterrupt):
        files.exec("echo x > begun; sleep 1000")
    assert supervisor.processes() == []
    assert not begun.exists()


def test_a_command_that_kills_everything_is_an_error(files: ContainerFilesystem) -> None:
    before = state(files)
    with pytest.raises(OSError, match="killed from outside"):
        files.exec("echo x > new; kill -9 -1; sleep 1")
    assert state(files) == before
    assert files.exec("echo on").stdout == "on\n"


def test_a_command_can_be_stopped_from_another_thread(files: ContainerFilesystem) -> None:
    with StopEvent() as stop:
        stop.set()
        with pytest.raises(TimeoutError):
            files.exec("sleep 60", stop=stop)


def test_a_command_that_forks_endlessly_is_killed(files: ContainerFilesystem) -> None:
    done = files.exec("for i in $(seq 200); do sleep 60 & done; wait", limits=CommandLimits(max_processes=50))
    assert done.exit_code == 137
    assert done.limits_hit == ("max_processes=50",)


@pytest.mark.slow
def test_a_command_has_no_network_no_capabilities_and_no_way_to_gain_any(podman: Podman, tmp_path: Path) -> None:
    files = ContainerFilesystem(image=IMAGE, store=tmp_path, runtime=podman)
    try:
        shown = files.exec("cat /proc/self/status; ls /sys/class/net; nc -w 1 1.1.1.1 80 </dev/null; echo $?").stdout
        lines = dict(line.split(":\t", 1) for line in shown.splitlines() if ":\t" in line)
        assert lines["CapEff"] == lines["CapBnd"] == "0" * 16
        assert lines["NoNewPrivs"] == "1"
        assert lines["Seccomp"] == "2"
        assert shown.endswith("lo\n1\n")
        assert files.exec("mknod /workspace/device c 1 3; chown 5 /etc/motd").exit_code == 1
    finally:
        files.container.remove()


def test_a_command_sees_only_the_variables_that_are_listed(
    files: ContainerFilesystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_TOKEN", "hidden")
    assert "hidden" not in files.exec("env").stdout
    assert files.exec("echo $TOKEN", environment={"TOKEN": "it's listed"}).stdout == "it's listed\n"


def test_mounts_are_hidden_and_refuse_changes(files: ContainerFilesystem) -> None:
    assert not files.exists("/proc/self")
    assert "proc" not in [entry.name for entry in files.list("/")]
    with pytest.raises(PermissionError, match="is a mount of the container"):
        files.write("/proc/new", "x")
    with pytest.raises(PermissionError, match="is a mount of the container"):
        files.delete("/run", recursive=True)


def test_links_never_lead_out_of_the_container(files: ContainerFilesystem, tmp_path: Path) -> None:
    outside = tmp_path / "secret"
    outside.write_text("of the host")
    files.exec(f"ln -s {outside} file; ln -s {tmp_path} directory; ln -s ../../../../../../.. up")
    for path in ("file", "directory/secret", f"up{outside}"):
        with pytest.raises((PermissionError, FileNotFoundError)):
            files.read(path)
        with pytest.raises((PermissionError, FileNotFoundError)):
            files.write(path, "changed", create_parents=False)
    files.restore(files.snapshot())
    assert outside.read_text() == "of the host"


def test_shell_and_eval_are_tools_over_the_container(files: ContainerFilesystem) -> None:
    tools = Toolset(files.session, files, tools=DEFAULT_TOOLS)
    done = tools.call("shell", {"command": "echo hello > out; pwd"})
    assert done.success
    assert isinstance(done.value, ShellReceipt)
    assert (done.value.stdout, done.value.changed_paths) == ("/workspace\n", ("/workspace/out",))
    assert "hello" in tools.call("read_file", {"path": "out"}).message
    before = state(files)
    late = tools.call("shell", {"command": "rm -r /usr; sleep 60", "timeout": 0.3})
    assert not late.success
    assert late.error_code == "timed_out"
    assert state(files) == before


def test_quotas_apply_to_files_that_a_command_leaves(podman: Podman, files: ContainerFilesystem) -> None:
    before = state(files)
    small = files.limits
    try:
        files.limits = Limits(max_total_size=files.statistics().total_size + 1000)
        with pytest.raises(OSError, match="are allowed"):
            files.exec("dd if=/dev/zero of=big bs=1000 count=5")
    finally:
        files.limits = small
    assert state(files) == before


def test_commands_in_a_foreign_container_leave_its_other_processes_alone(podman: Podman, tmp_path: Path) -> None:
    name = (
        podman.run(
            *("run", "--detach", "--network", "none", *podman.creation, IMAGE),
            *("/bin/sh", "-c", "echo own > /var/own; sleep 1000"),
        )
        .decode()
        .strip()
    )
    files = ContainerFilesystem(container=name, store=tmp_path, runtime=podman)
    try:
        assert files.exec("cat /var/own; ls -a /; (setsid sleep 60 &) ; echo x > /var/own").stdout.startswith("own\n")
        assert files.read("/var/own").content == "x\n"
        assert files.container._supervisor.processes() == []
        with pytest.raises(TimeoutError):
            files.exec("rm -r /usr; sleep 60", timeout=0.3)
        files.session.rollback(0)
        assert files.read("/var/own").content == "own\n"
        files.container.close()
        found = podman.run("exec", name, "ps").decode()
        assert "sleep 1000" in found
        assert "sleep 60" not in found
        assert "requests" not in found
    finally:
        podman.run("rm", "--force", "--time", "0", name)
