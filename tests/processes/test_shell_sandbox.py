"""The sandbox: what a command finds there, what it cannot reach, and what happens if there is none."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from weakfs import Session, Toolset
from weakfs.processes import Bubblewrap, CompletedCommand, SandboxUnavailable, run_command
from weakfs.tools.handlers import ShellOptions, ShellReceipt, shell_tool

BUBBLEWRAP = Bubblewrap()

sandboxed = pytest.mark.skipif(BUBBLEWRAP.problem() is not None, reason=f"no sandbox: {BUBBLEWRAP.problem()}")


pytestmark = pytest.mark.usefixtures("never_hung")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A workspace, with a secret and another workspace next to it."""
    for path, text in (("workspace/file", "mine"), ("secret", "hidden"), ("other/file", "hidden")):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)
    return tmp_path / "workspace"


def inside(command: str, place: Path, **options: object) -> CompletedCommand:
    return run_command(command, str(place), sandbox="required", bubblewrap=BUBBLEWRAP, timeout=300, **options)  # type: ignore[arg-type]


def outside(command: str, place: Path) -> CompletedCommand:
    return run_command(command, str(place), sandbox="off", timeout=300)


# What cannot be reached


@sandboxed
@pytest.mark.parametrize(
    "command",
    ["cat ../secret", "cat {0}/secret", "ls ../other", "cat link", "cat links/secret", "cd .. && cat secret"],
)
def test_nothing_outside_the_workspace_can_be_seen(place: Path, command: str) -> None:
    (place / "link").symlink_to("../secret")
    (place / "links").symlink_to(place.parent)
    command = command.format(place.parent)

    assert outside(command, place).exit_code == 0
    done = inside(command, place)

    assert done.exit_code != 0
    assert "hidden" not in done.stdout + done.stderr


@sandboxed
def test_home_directories_and_other_places_with_secrets_do_not_exist(place: Path) -> None:
    names = ["/home", "/root", "/run", "/var", "/opt", "/srv", "/mnt", "/sys", "/boot", str(Path.home())]
    # The directories above the workspace exist, with nothing else in them.
    places = [name for name in names if not place.is_relative_to(name)]
    secrets = ["/etc/shadow", "/etc/gshadow", "/etc/ssh", "/etc/ssl/private", "/etc/sudoers", "/etc/npmrc"]

    done = inside(f"for path in {' '.join(places + secrets)}; do test -e $path && echo $path; done; true", place)

    assert done.stdout == ""
    assert inside('test "$HOME" = /tmp/home -a "$TMPDIR" = /tmp && touch ~/x', place).exit_code == 0


@sandboxed
@pytest.mark.parametrize("where", ["/", "/usr", "/usr/bin", "/etc", "/proc", "/proc/sys/kernel", "/home", "/dev/.."])
def test_nothing_can_be_written_outside_the_workspace(place: Path, where: str) -> None:
    done = inside(f"touch {where}/weakfs-was-here", place)

    assert done.exit_code != 0
    assert not (place / where / "weakfs-was-here").exists()


@sandboxed
@pytest.mark.parametrize("where", ["..", "../..", "/", "/dev", "/home", "/var/tmp"])
def test_writing_next_to_the_workspace_fails_instead_of_being_lost(place: Path, where: str) -> None:
    # This workspace is below /tmp, whose private replacement is writable.
    done = inside(f"mkdir -p {where}; echo x > {where}/weakfs-was-here", place)

    assert done.exit_code != 0
    assert "Read-only file system" in done.stderr
    assert sorted(path.name for path in place.parent.iterdir()) == ["other", "secret", "workspace"]


@sandboxed
def test_the_workspace_of_files_in_memory_has_no_writable_parent(tmp_path: Path) -> None:
    tools = Toolset(Session(), tools=[shell_tool(ShellOptions(bubblewrap=BUBBLEWRAP))])

    result = tools.call("shell", {"command": "echo x > file; echo x > ../lost"})

    assert isinstance(result.value, ShellReceipt)
    assert (result.value.exit_code, result.value.changed_paths) == (2, ("/file",))
    assert "Read-only file system" in str(result.value.stderr)


@sandboxed
@pytest.mark.parametrize("where", ["/tmp", "/dev/shm", "$HOME", "$TMPDIR"])
def test_scratch_space_is_writable_and_removed_afterwards(place: Path, where: str) -> None:
    assert inside(f"echo x > {where}/weakfs-was-here && cat {where}/weakfs-was-here", place).stdout == "x\n"
    assert inside(f"test ! -e {where}/weakfs-was-here && echo x > /dev/null", place).exit_code == 0


@sandboxed
def test_temporary_files_are_private_and_removed_afterwards(
    place: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    other = tmp_path_factory.mktemp("neighbor")

    assert (
        inside(f"test ! -e {other} && echo x > /tmp/weakfs-was-here && cat /tmp/weakfs-was-here", place).stdout == "x\n"
    )

    assert not Path("/tmp/weakfs-was-here").exists()
    assert inside("ls /tmp/weakfs-was-here", place).exit_code != 0


@sandboxed
def test_the_settings_of_the_machine_cannot_be_changed(place: Path) -> None:
    done = inside("cat /proc/sys/kernel/panic > x && cat x > /proc/sys/kernel/panic", place)

    assert done.exit_code != 0
    assert "Read-only" in done.stderr


@sandboxed
def test_there_are_no_privileges_and_none_can_be_gained(place: Path) -> None:
    done = inside("grep -E '^Cap(Prm|Eff|Bnd|Amb)' /proc/self/status", place)

    assert {line.split()[1] for line in done.stdout.splitlines()} == {"0" * 16}
    for command in ("mount -o remount,bind,rw /usr", "mount -t tmpfs none /mnt", "chroot /", "unshare -m true"):
        assert inside(command, place).exit_code != 0


@sandboxed
def test_other_processes_cannot_be_seen_or_signalled(place: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        assert outside(f"kill -0 {process.pid}", place).exit_code == 0
        # Process ids start again in the sandbox; this one is not among the first.
        assert process.pid < 20 or inside(f"kill -0 {process.pid}", place).exit_code != 0
        listed = inside("ls /proc | grep -c '^[0-9]'", place)
        process.communicate(b"\n")

    assert int(listed.stdout) < 10


CONNECT = "exec 3<>/dev/tcp/127.0.0.1/{} && echo connected"


@sandboxed
def test_there_is_no_network_not_even_localhost(place: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        command = CONNECT.format(server.getsockname()[1])
        reached = run_command(command, str(place), sandbox="off", shell="/bin/bash")
        refused = inside(command, place, shell="/bin/bash")

    assert reached.stdout == "connected\n"
    assert refused.stdout == ""
    assert inside("tail -n +3 /proc/net/dev | cut -d: -f1", place).stdout.split() == ["lo"]


@sandboxed
def test_abstract_sockets_of_the_machine_cannot_be_reached(place: Path) -> None:
    name = f"weakfs-{os.getpid()}"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("\0" + name)
        server.listen()

        assert name in outside("cat /proc/net/unix", place).stdout
        assert name not in inside("cat /proc/net/unix", place).stdout


# What exists


@sandboxed
def test_the_workspace_has_its_own_path_and_can_be_changed(place: Path) -> None:
    done = inside(f"cat {place}/file && echo new > {place}/new && rm file && pwd", place)

    assert done.stdout == f"mine{place}\n"
    assert (place / "new").read_text() == "new\n"
    assert not (place / "file").exists()


@sandboxed
def test_ordinary_programs_run(place: Path) -> None:
    done = inside(
        "sh -c 'id -un; ls | sort; date +%Z; getent hosts localhost; mktemp; echo a | tee b > /dev/null'", place
    )

    assert (done.exit_code, done.stderr) == (0, "")


@sandboxed
def test_readable_directories_can_be_read_but_not_written(place: Path) -> None:
    other = place.parent / "other"

    done = inside(f"cat {other}/file; touch {other}/new", place, readable=(str(other), "/no/such/directory"))

    assert done.stdout == "hidden"
    assert "Read-only" in done.stderr
    assert not (other / "new").exists()


@sandboxed
@pytest.mark.parametrize("name", ["tmp", "home/user", "usr/local/weakfs", "-dash", "new\nline"])
def test_a_workspace_may_have_any_location_and_name(tmp_path: Path, name: str) -> None:
    place = tmp_path / name
    place.mkdir(parents=True)

    assert inside("echo x > file", place).exit_code == 0
    assert (place / "file").read_text() == "x\n"


# Without a sandbox


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A PATH of its own, without bwrap until a test puts one there."""
    found = tmp_path / "bin"
    found.mkdir()
    monkeypatch.setenv("PATH", str(found))
    return found


def install(programs: Path, script: str) -> None:
    (programs / "bwrap").write_text(f"#!/bin/sh\n{script}\n")
    (programs / "bwrap").chmod(0o755)


def test_without_bubblewrap_a_command_runs_and_says_so(tmp_path: Path, programs: Path) -> None:
    done = run_command("echo hello", str(tmp_path), sandbox="auto")

    assert (done.stdout, done.sandboxed) == ("hello\n", False)
    assert done.unsandboxed_because == "bwrap is not on the PATH"


def test_without_bubblewrap_a_command_that_needs_it_does_not_run(tmp_path: Path, programs: Path) -> None:
    with pytest.raises(SandboxUnavailable, match=r"in a sandbox: bwrap is not on the PATH; install bubblewrap"):
        run_command("touch ran", str(tmp_path), sandbox="required")

    assert not (tmp_path / "ran").exists()


def test_a_bubblewrap_that_does_not_work_says_why(tmp_path: Path, programs: Path) -> None:
    install(programs, "echo 'bwrap: No permissions to create new namespace' >&2; exit 1")

    done = run_command("echo hello", str(tmp_path), sandbox="auto")

    assert done.stdout == "hello\n"
    assert "does not work here (bwrap: No permissions to create new namespace)" in str(done.unsandboxed_because)
    with pytest.raises(SandboxUnavailable, match="No permissions"):
        run_command("true", str(tmp_path), sandbox="required")


def test_a_program_that_only_calls_itself_bubblewrap_is_not_trusted(tmp_path: Path, programs: Path) -> None:
    install(programs, "exit 0")

    assert "does not work here (exit code 0)" in str(Bubblewrap().problem())

    (programs / "bwrap").write_bytes(b"\x7fELF nonsense")
    assert "does not run" in str(Bubblewrap().problem())


def test_bubblewrap_is_tested_once(tmp_path: Path, programs: Path) -> None:
    install(programs, f"echo tried >> {tmp_path}/tries; exit 1")
    bubblewrap = Bubblewrap()

    for _ in range(3):
        run_command("true", str(tmp_path), sandbox="auto", bubblewrap=bubblewrap)

    assert (tmp_path / "tries").read_text() == "tried\n"


def test_bubblewrap_installed_later_is_found(tmp_path: Path, programs: Path) -> None:
    bubblewrap = Bubblewrap()
    assert bubblewrap.problem() == "bwrap is not on the PATH"

    install(programs, "echo no >&2; exit 1")

    assert bubblewrap.problem() == f"{programs}/bwrap does not work here (no)"


def test_a_sandbox_that_fails_to_start_is_an_error_and_not_skipped(tmp_path: Path, programs: Path) -> None:
    # This bwrap works in the trial run, which asks for a status on descriptor 1, but not for a command.
    install(
        programs,
        'case "$*" in *"--json-status-fd 1 "*) echo "{\\"exit-code\\": 0}";; *) echo broken >&2; exit 1;; esac',
    )

    with pytest.raises(OSError, match="cannot start the command: bwrap says 'broken'"):
        run_command("touch ran", str(tmp_path), sandbox="auto")

    assert not (tmp_path / "ran").exists()


def test_the_root_directory_of_the_machine_cannot_be_a_sandboxed_workspace() -> None:
    assert (
        run_command("pwd", "/", sandbox="auto").unsandboxed_because == "the directory is the root of the whole machine"
    )
    with pytest.raises(SandboxUnavailable, match="root of the whole machine"):
        run_command("true", "/", sandbox="required")
