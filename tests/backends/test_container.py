"""Files and commands of a container: what commands change is recorded, and undone exactly."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from attrs import evolve

from tests.containers import IMAGE
from tests.sampling import sample
from weakfs import Limits, Session
from weakfs.backends.container import ContainerFilesystem, Podman, container
from weakfs.backends.container.commands import supervisor as commands
from weakfs.backends.container.commands.command_files import is_readable
from weakfs.backends.container.commands.supervisor import Supervisor
from weakfs.backends.container.layers.attributes import AttributeRestore
from weakfs.processes import CommandLimits, StopEvent
from weakfs.reducers.events import EntryDeleted, FileWritten
from weakfs.tools import DEFAULT_TOOLS, Toolset
from weakfs.tools.handlers import ShellReceipt


@pytest.fixture(scope="module")
def opened(podman: Podman, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ContainerFilesystem]:
    store = tmp_path_factory.mktemp("store")
    files = ContainerFilesystem(
        image=IMAGE, store=store, runtime=podman, capabilities=("chown", "dac_override", "fowner", "mknod", "setfcap")
    )
    yield files
    files.container.remove()


@pytest.fixture
def files(opened: ContainerFilesystem) -> Iterator[ContainerFilesystem]:
    """The container as it was before the tests."""
    before = opened.snapshot()
    yield opened
    opened.restore(before)


def state(files: ContainerFilesystem) -> list[tuple[object, ...]]:
    """What a program in the container can see of its files, by walking all of them."""
    root = files.container.path_of_files()
    found: list[tuple[object, ...]] = []
    for folder, _, names in os.walk(root):
        for path in (folder, *(os.path.join(folder, name) for name in names)):
            status = os.lstat(path)
            shown = path.removeprefix(root)
            if shown.startswith("/run") or status.st_mode & 0o170000 == 0o020000:
                continue
            content = Path(path).read_bytes() if os.path.isfile(path) and not os.path.islink(path) else b""
            target = os.readlink(path) if os.path.islink(path) else ""
            xattrs = {name: os.getxattr(path, name, follow_symlinks=False) for name in _names(path)}
            links = 0 if os.path.isdir(path) else status.st_nlink
            owner, at = (status.st_uid, status.st_gid), status.st_mtime_ns
            found.append((shown, oct(status.st_mode), owner, at, links, content, target, xattrs))
    return sorted(found, key=lambda entry: str(entry[0]))


def _names(path: str) -> list[str]:
    return [name for name in os.listxattr(path, follow_symlinks=False) if not name.startswith("trusted.overlay")]


# Each changes the image's files in a way that an overlay mount keeps differently.
CHANGES = {
    "a new file": "echo new > /workspace/new",
    "a changed file": "echo more >> /etc/motd",
    "a deleted file": "rm /etc/motd",
    "a deleted directory": "rm -r /usr/lib/pkg",
    "a directory made again": "rm -r /usr/lib/pkg; mkdir /usr/lib/pkg; echo b > /usr/lib/pkg/b",
    "directories made again": "rm -r /usr; mkdir -p /usr/lib/pkg; echo b > /usr/lib/pkg/b",
    "a file in place of a directory": "rm -r /usr/lib/pkg; echo f > /usr/lib/pkg",
    "a directory in place of a file": "rm /etc/motd; mkdir /etc/motd; echo f > /etc/motd/f",
    "a moved directory": "mv /usr/lib/pkg /var/pkg",
    "permission bits": "chmod 751 /usr/lib/pkg; chmod 4711 /usr/lib/pkg/a",
    "an owner": "chown 5:6 /etc/motd; chown -R 7:8 /usr/lib/pkg",
    "a link": "ln -s /etc/passwd /workspace/link; ln -sfn nowhere /usr/lib/pkg/a",
    "a hard link": "ln /etc/motd /workspace/motd; echo x > /workspace/x; ln /workspace/x /workspace/y",
    "a FIFO": "mkfifo /workspace/fifo",
    "the root": "chmod 711 /; echo top > /top",
    "odd names": "touch '/workspace/a b' \"/workspace/$(printf 'new\\nline')\"; mkdir '/workspace/\\back'",
    "times": "touch -t 200001010000 /etc/motd /usr/lib/pkg",
}


@pytest.mark.sampled(by_rule=True)
@pytest.mark.parametrize("change", sample(list(CHANGES)))
def test_a_restore_is_exact(files: ContainerFilesystem, change: str) -> None:
    before, tree = state(files), files.tree()
    snapshot = files.snapshot()
    assert files.exec(f"set -e; {CHANGES[change]}").exit_code == 0
    changed = state(files)
    assert changed != before
    after = files.snapshot()
    files.restore(snapshot)
    assert state(files) == before
    assert files.tree().fingerprint == tree.fingerprint
    files.restore(after)
    assert state(files) == changed


@pytest.mark.parametrize("change", sample(list(CHANGES)))
def test_a_command_that_times_out_is_undone(files: ContainerFilesystem, change: str) -> None:
    before = state(files)
    with pytest.raises(TimeoutError, match="were undone"):
        files.exec(f"{CHANGES[change]}; sleep 60", timeout=0.2)
    assert state(files) == before


# Files with equal contents, permission bits and times, apart from names of one file.
EQUAL = "echo same > a; ln a b; cp -p a x; touch -r a x; ln x y"


@pytest.mark.parametrize("change", ["ln -f x a", "ln -f y b; ln -f a x", "cp -p b q; mv q a; touch -r b a"])
def test_names_of_one_file_and_of_several_are_restored(files: ContainerFilesystem, change: str) -> None:
    files.exec(EQUAL)
    before, names = state(files), names_of_files(files)
    snapshot = files.snapshot()
    files.exec(change)
    assert names_of_files(files) != names
    files.restore(snapshot)
    assert (state(files), names_of_files(files)) == (before, names)
    with pytest.raises(TimeoutError):
        files.exec(f"{change}; sleep 60", timeout=0.2)
    assert (state(files), names_of_files(files)) == (before, names)


def names_of_files(files: ContainerFilesystem) -> list[list[str]]:
    """The names of each file of the working directory."""
    found: dict[int, list[str]] = {}
    for entry in os.scandir(f"{files.container.path_of_files()}/workspace"):
        found.setdefault(entry.inode(), []).append(entry.name)
    return sorted(sorted(names) for names in found.values())


@pytest.mark.parametrize("prefix", ["user.overlay.", "user.fuseoverlayfs."])
def test_a_command_cannot_hide_files_of_the_image_by_an_attribute(files: ContainerFilesystem, prefix: str) -> None:
    files.exec("echo new > /usr/lib/pkg/new")
    # As a program in the container may set it.
    os.setxattr(f"{files.container.path_of_files()}/usr/lib/pkg", f"{prefix}opaque", b"y")
    files.exec("true")
    before, snapshot = state(files), files.snapshot()
    files.exec("rm /usr/lib/pkg/a")
    files.restore(snapshot)
    assert state(files) == before
    assert files.read("/usr/lib/pkg/a").content == "a of the image\n"


@pytest.mark.slow
@pytest.mark.parametrize("options", ["metacopy=on", "redirect_dir=on"])
def test_layers_that_refer_to_the_image_are_restored(podman: Podman, tmp_path: Path, options: str) -> None:
    referring = evolve(podman, options=(*podman.options, "--storage-opt", f"overlay.mountopt=nodev,{options}"))
    files = ContainerFilesystem(Session(), image=IMAGE, store=tmp_path, runtime=referring)
    try:
        files.exec("chmod 600 /etc/motd; mv /usr/lib/pkg /usr/lib/moved")
        before, snapshot = state(files), files.snapshot()
        files.exec("echo other > /etc/motd; rm -r /usr/lib/moved")
        with pytest.raises(TimeoutError, match="were undone"):
            files.exec("chmod 700 /etc/motd; mv /usr/lib /usr/other; sleep 60", timeout=0.3)

        files.restore(snapshot)

        assert state(files) == before
        assert files.read("/etc/motd").content == "from the image\n"
        assert files.read("/usr/lib/moved/a").content == "a of the image\n"
    finally:
        files.container.remove()


def test_extended_attributes_are_restored(files: ContainerFilesystem) -> None:
    place = f"{files.container.path_of_files()}/etc/motd"
    files.write("/workspace/a", "a")
    os.setxattr(f"{files.container.path_of_files()}/workspace/a", "user.origin", b"a test")
    before, snapshot = state(files), files.snapshot()
    os.setxattr(place, "user.origin", b"another")
    files.delete("/workspace/a")
    assert state(files) != before
    files.restore(snapshot)
    assert state(files) == before


def test_what_a_command_did_are_events_of_the_session(files: ContainerFilesystem) -> None:
    records = len(files.session.records)
    done = files.exec("echo hello > new; rm /etc/motd; exit 3")
    assert (done.exit_code, done.changed) == (3, ("/etc/motd", "/workspace/new"))
    events = [record.event for record in files.session.records[records:]]
    assert [one.path for one in events if isinstance(one, FileWritten)] == ["/workspace/new"]
    assert [one.path for one in events if isinstance(one, EntryDeleted)] == ["/etc/motd"]


def test_going_back_to_a_record_undoes_a_command(files: ContainerFilesystem) -> None:
    before, seq = files.tree().fingerprint, files.session.seq
    files.exec("echo hello > new; rm -r /usr/lib/pkg; echo more >> /etc/motd")
    files.session.rollback(seq)
    assert files.tree().fingerprint == before


def test_an_error_in_a_transaction_undoes_a_command(files: ContainerFilesystem) -> None:
    before = state(files)
    with pytest.raises(ZeroDivisionError), files.session.transaction():
        files.exec("rm -r /usr/lib/pkg")
        files.write("/etc/motd", "changed")
        raise ZeroDivisionError
    assert state(files) == before


@pytest.mark.slow
@pytest.mark.usefixtures("never_hung")
def test_a_sparse_file_that_takes_hours_to_read_is_refused_at_once(podman: Podman, tmp_path: Path) -> None:
    files = ContainerFilesystem(
        image=IMAGE, store=tmp_path, runtime=podman, limits=Limits(max_file_size=None), max_layer_size=None
    )
    message = f"cannot scan '/workspace/big': it is a sparse file of {4 << 40} bytes"
    try:
        before = files.session.snapshot()
        files.exec("echo after > small")
        unlimited = CommandLimits(max_file_size=None)
        # Made by a command, which is undone.
        with pytest.raises(OSError, match=message):
            files.exec(f"echo data > small; busybox truncate -s {4 << 40} big", limits=unlimited)
        assert not files.exists("big")
        assert files.read("small").content == "after\n"
        # Set from outside.
        big = Path(files.container.path_of_files(), "workspace/big")
        os.truncate(os.open(big, os.O_CREAT | os.O_WRONLY), 4 << 40)
        for step in (lambda: files.exec("true"), files.snapshot, lambda: files.session.rollback(before)):
            with pytest.raises(OSError, match=message):
                step()
        big.unlink()
        files.session.rollback(before)
        assert not files.exists("small")
    finally:
        files.container.remove()


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
    # The capability `dac_override`, which these containers have, would bypass that.
    alone = ContainerFilesystem(image=IMAGE, store=files.store, runtime=files.container.podman, name="alone")
    try:
        for place in ("/run/weakfs/requests", "/proc/1/fd/3"):
            for way in ("<", ">", "<>"):
                assert alone.exec(f"(: 9{way}{place}) && echo opened").stdout == ""
        alone.container.stop()
        assert alone.exec("echo again").stdout == "again\n"
    finally:
        alone.container.remove()


def test_what_a_command_writes_into_the_requests_hinders_no_other(files: ContainerFilesystem) -> None:
    files.exec("printf 'half a line' > /run/weakfs/requests")
    assert files.exec("echo on", timeout=5).stdout == "on\n"


def test_a_command_that_forges_its_status_without_end_is_an_error(files: ContainerFilesystem) -> None:
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


def test_a_container_that_is_ending_is_waited_for(files: ContainerFilesystem, monkeypatch: pytest.MonkeyPatch) -> None:
    files.exec("echo kept > new")
    supervisor = files.container._supervisor
    assert supervisor.end_container()
    # The kernel reports the end of its first process only when all others are reaped.
    reaping = iter(range(30))
    monkeypatch.setattr(container, "is_readable", lambda process: next(reaping, None) is None and is_readable(process))
    assert files.exec("cat new").stdout == "kept\n"


def test_a_container_that_ends_before_a_command_is_named_with_the_remedy(files: ContainerFilesystem) -> None:
    supervisor = files.container._supervisor
    assert supervisor.end_container()
    with pytest.raises(BrokenPipeError, match="its supervisor has ended; try again"):
        supervisor.request("")
    supervisor.send(9, [1])
    assert files.exec("true").exit_code == 0


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


def test_a_command_that_forks_without_end_is_killed(files: ContainerFilesystem) -> None:
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


def test_a_quota_holds_for_what_a_command_leaves(podman: Podman, files: ContainerFilesystem) -> None:
    before = state(files)
    small = files.limits
    try:
        files.limits = Limits(max_total_size=files.statistics().total_size + 1000)
        with pytest.raises(OSError, match="are allowed"):
            files.exec("dd if=/dev/zero of=big bs=1000 count=5")
    finally:
        files.limits = small
    assert state(files) == before


def test_commands_of_a_container_of_somebody_else_leave_its_own_processes_alone(podman: Podman, tmp_path: Path) -> None:
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


def test_a_restore_that_fails_halfway_changes_nothing(
    files: ContainerFilesystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot = files.snapshot()
    for change in ("a directory made again", "an owner", "a deleted file", "a hard link"):
        files.exec(CHANGES[change])
    before = state(files)

    def fail_once(*arguments: object) -> None:
        # The undo uses it as well.
        monkeypatch.undo()
        raise OSError("the disk is full")

    monkeypatch.setattr(AttributeRestore, "run", fail_once)
    with pytest.raises(OSError, match="the disk is full"):
        files.restore(snapshot)
    assert state(files) == before


@pytest.mark.slow
def test_a_directory_of_the_image_is_not_undone_with_the_entry_put_in_it(podman: Podman, tmp_path: Path) -> None:
    files = ContainerFilesystem(image=IMAGE, store=tmp_path, runtime=podman)
    try:
        before = files.tree().fingerprint
        files.exec("echo x > /etc/new; mkdir /usr/lib/pkg/made; echo x > /usr/lib/pkg/made/new")
        files.session.rollback(0)
        assert files.tree().fingerprint == before
    finally:
        files.container.remove()


def test_what_a_command_changed_is_reverted_and_undone(files: ContainerFilesystem) -> None:
    session = files.session
    files.write("/workspace/a", "1\n2\n3\n4\n5\n")
    with session.transaction(cause="command"):
        files.exec(
            "echo new > /workspace/made; rm -rf /etc/gone; echo 1 > /workspace/b; cd /workspace; mkdir d; chmod 600 a"
        )
    files.append("/workspace/a", "6\n")
    before = state(files)
    preview = session.revert("command", preview=True)
    assert state(files) == before
    assert session.revert("command").changes == preview.changes
    assert preview.paths == ("/workspace/a", "/workspace/b", "/workspace/d", "/workspace/made")
    assert (files.read("/workspace/a").content, files.stat("/workspace/a").mode) == ("1\n2\n3\n4\n5\n6\n", 0o644)
    assert files.exec("ls /workspace").stdout == "a\n"
    session.undo()
    assert state(files) == before
