"""The life cycle of containers: stopped when idle, limited in size, shared by filesystems, run by other programs."""

from __future__ import annotations

import gc
import os
import select
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from tests.containers import IMAGE, Said, state
from weakfs import HostFilesystem, InMemoryFilesystem, Session, Toolset
from weakfs.backends.container import Container, ContainerFilesystem, ContainerOptions, Podman
from weakfs.backends.container.layers.layer_size import LayerSize, size_of_layer
from weakfs.backends.container.lifecycle.podman import Inspected, inspect
from weakfs.backends.container.restore import ContainerRoot
from weakfs.composition_root import Registry
from weakfs.processes import CommandLimits
from weakfs.processes.background import ProcessesRunning, ProcessLimits
from weakfs.tools.handlers import ProcessOptions, process_tools
from weakfs.tools.sections import PODMAN_TOOLS, PodmanSection

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("never_hung")]

TOP = Path(__file__).parents[3]


@pytest.fixture
def files(podman: Podman, tmp_path: Path) -> Iterator[ContainerFilesystem]:
    found = ContainerFilesystem(Session(), image=IMAGE, store=tmp_path / "store", runtime=podman)
    yield found
    found.container.remove()


def tools_of(files: ContainerFilesystem, **options: object) -> Toolset:
    made = ProcessOptions(process_limits=ProcessLimits(grace=0.1), **options)  # type: ignore[arg-type]  # by name
    return Toolset(files.session, files, tools=process_tools(made))


def started(tools: Toolset, command: str) -> str:
    done = tools.call("process_start", {"command": command})
    assert done.success, done.message
    return str(done.value.process_id)  # type: ignore[attr-defined]  # its receipt


# Idle containers


def test_an_idle_container_is_stopped_and_started_when_it_is_used(files: ContainerFilesystem) -> None:
    files.exec("echo kept > kept")
    files.container.idle_after = 0.05
    files.container.stop()
    for _ in range(2):
        assert files.exec("cat kept").stdout == "kept\n"
        while files.container.is_running:
            time.sleep(0.01)
    # Podman notices a moment later.
    while inspect(files.container.podman, files.container.container_id).is_running:
        time.sleep(0.01)
    assert files.read("kept").content == "kept\n"


def test_a_container_in_use_is_not_idle(files: ContainerFilesystem) -> None:
    container, tools = files.container, tools_of(files)
    process = started(tools, "exec sleep 1000")
    starts, container.idle_after = container.starts, 1e-9

    container.stop_if_idle()
    assert container.is_running
    tools.call("process_signal", {"process_id": process})
    tools.call("process_wait", {"process_id": process})
    with files.checkout():
        container.stop_if_idle()
        assert container.is_running
    container.idle_after = 1000
    container.stop_if_idle()
    assert (container.is_running, container.starts) == (True, starts)
    container.idle_after = 1e-9
    container.stop_if_idle()
    assert not container.is_running


def test_threads_that_find_a_container_stopped_open_its_files_once(
    files: ContainerFilesystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    files.write("a", "a")
    root, opened, others = files._root, [], []
    number, open_files, inspect_container = root.directory.descriptor, ContainerRoot._open_files, Container._inspect

    def open_once(self: ContainerRoot) -> int:
        opened.append(threading.get_ident())
        return open_files(self)

    def look(self: Container) -> Inspected:
        # Another file that is opened meanwhile must not be taken for the directory.
        others.append(other := os.open("/", os.O_RDONLY))
        with root.lock.attempt():
            os.close(other)
        return inspect_container(self)

    files.container.stop()
    monkeypatch.setattr(ContainerRoot, "_open_files", open_once)
    monkeypatch.setattr(Container, "_inspect", look)
    with ThreadPoolExecutor(4) as pool:
        assert [*pool.map(lambda _: files.read("a").content, range(4))] == ["a"] * 4
    assert len(opened) == 1
    assert root.directory.descriptor == number
    assert number not in others


def test_a_container_that_nothing_refers_to_ends_and_can_be_opened_again(podman: Podman, tmp_path: Path) -> None:
    session = Session()
    files = ContainerFilesystem(session, image=IMAGE, store=tmp_path / "store", runtime=podman)
    files.exec("echo kept > kept")
    saved, process = session.to_bytes(), os.pidfd_open(files.container._inspect().pid)
    del files, session
    gc.collect()
    ended = select.poll()
    ended.register(process, select.POLLIN)
    assert ended.poll(600_000)
    os.close(process)
    again = ContainerFilesystem(Session.from_bytes(saved), image=IMAGE, store=tmp_path / "store", runtime=podman)
    try:
        assert again.exec("cat kept").stdout == "kept\n"
    finally:
        again.container.remove()


@pytest.mark.parametrize("name", ["idle_after", "max_layer_size"])
def test_a_limit_of_zero_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} is 0; pass a number above 0, or None"):
        ContainerOptions(image=IMAGE, **{name: 0})  # type: ignore[arg-type]  # by name


# The size of the layer


@pytest.mark.exhaustive
def test_a_command_that_writes_too_much_is_killed_and_undone(files: ContainerFilesystem) -> None:
    files.exec("echo kept > kept")
    before = state(files)
    files.container.max_layer_size = 4 << 20
    files.container.stop()
    # Each file alone is small enough.
    with pytest.raises(OSError, match="take up more than the 4194304 bytes that are allowed; its changes were undone"):
        files.exec("i=0; while :; do dd if=/dev/zero of=big$i bs=1M count=1 2>/dev/null; i=$((i + 1)); done")
    assert state(files) == before
    assert files.exec("cat kept").stdout == "kept\n"


def test_a_process_that_writes_too_much_is_killed(files: ContainerFilesystem) -> None:
    files.container.max_layer_size = 4 << 20
    tools = tools_of(files)
    process = started(tools, "i=0; while :; do dd if=/dev/zero of=big$((i % 8)) bs=1M count=1; i=$((i + 1)); done")

    assert files.background.get(process).wait(None)

    (info,) = files.background.infos()
    assert "take up more than the 4194304 bytes" in str(info.reason)


def test_a_layer_is_measured_only_if_it_may_have_grown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from weakfs.backends.container.layers import layer_size

    free, measured = [1 << 30], [0]
    monkeypatch.setattr(layer_size, "free_space", lambda directory: free[0])
    monkeypatch.setattr(layer_size, "SELDOM", 1000.0)

    def measure(directory: int) -> int:
        measured[0] += 1
        return size_of_layer(directory)

    monkeypatch.setattr(layer_size, "size_of_layer", measure)
    directory = os.open(tmp_path, os.O_RDONLY)
    try:
        size = LayerSize(1 << 20)
        assert [size.is_exceeded(directory) for _ in range(3)] == [False] * 3
        assert measured == [1]
        (tmp_path / "big").write_bytes(bytes(2 << 20))
        (tmp_path / "same").hardlink_to(tmp_path / "big")
        assert 2 << 20 <= size_of_layer(directory) < 3 << 20
        assert not size.is_exceeded(directory)
        free[0] -= 2 << 20
        assert size.is_exceeded(directory)
    finally:
        os.close(directory)


# Processes


@pytest.mark.exhaustive
def test_too_many_processes_are_ended(files: ContainerFilesystem) -> None:
    process = started(
        tools_of(files, limits=CommandLimits(max_processes=20)), "for i in $(seq 60); do sleep 1000 & done; wait"
    )

    assert files.background.get(process).wait(None)

    (info,) = files.background.infos()
    assert info.reason == "it was killed: it had more than 20 processes"
    assert files.container._supervisor.processes() == []


def test_detached_processes_end_with_the_last_program(files: ContainerFilesystem) -> None:
    tools = tools_of(files)
    one, two = started(tools, "exec sleep 1000"), started(tools, "(env -i setsid sleep 1000 &) ; echo ready; read x")
    assert tools.call("process_output", {"process_id": two, "since": 0, "timeout": 500}).success

    tools.call("process_input", {"process_id": two, "close": True})
    tools.call("process_wait", {"process_id": two})
    assert files.background.get(one).state == "running"
    tools.call("process_signal", {"process_id": one})
    tools.call("process_wait", {"process_id": one})

    assert files.container._supervisor.processes() == []


def test_a_container_that_stops_ends_its_processes(files: ContainerFilesystem) -> None:
    tools = tools_of(files)
    one = started(tools, "exec sleep 1000")
    files.container.stop()
    assert files.background.get(one).wait(None)
    (info,) = files.background.infos()
    assert info.reason == "it was killed from outside, or its container was stopped"

    two = started(tools, "exec sleep 1000")
    files.close()

    assert {info.process_id: info.reason for info in files.background.infos()}[two] == "its container was stopped"


def test_an_ended_process_keeps_nothing_of_its_container_open(files: ContainerFilesystem) -> None:
    tools, upper = tools_of(files), files.container._inspect().upper
    process = started(tools, "exec sleep 1000")
    tools.call("process_signal", {"process_id": process})
    tools.call("process_wait", {"process_id": process})
    files.container.stop()
    links = [os.path.realpath(f"/proc/self/fd/{name}") for name in os.listdir("/proc/self/fd")]
    # One is that of the scanner, which the next start replaces.
    assert links.count(str(upper)) == 1


def test_a_process_of_one_filesystem_blocks_commands_of_another(shared_container: Container, tmp_path: Path) -> None:
    for name in ("one", "two"):
        Path(f"{shared_container.path_of_files()}/places/{name}").mkdir()
    one, two = (
        ContainerFilesystem(container=shared_container, root=f"/places/{name}", store=tmp_path / name)
        for name in ("one", "two")
    )
    tools = tools_of(one)
    process = started(tools, "exec sleep 1000")
    with pytest.raises(ProcessesRunning, match="started through another of its filesystems"):
        two.exec("true")
    tools.call("process_signal", {"process_id": process})
    tools.call("process_wait", {"process_id": process})
    assert two.exec("true").exit_code == 0


def test_a_process_in_a_foreign_container_leaves_its_other_processes_alone(podman: Podman, tmp_path: Path) -> None:
    words = ("run", "--detach", "--network", "none", *podman.creation, IMAGE, "/bin/sh", "-c", "sleep 2000; :")
    name = podman.run(*words).decode().strip()
    files = ContainerFilesystem(container=name, store=tmp_path, runtime=podman)
    try:
        tools = tools_of(files)
        process = started(tools, "(setsid sleep 1000 &) ; echo x > new; echo ready; read x")
        tools.call("process_output", {"process_id": process, "since": 0, "timeout": 500})
        tools.call("process_signal", {"process_id": process, "signal": "KILL"})
        done = tools.call("process_wait", {"process_id": process})
        assert done.value.changed_paths == ("/workspace/new",)  # type: ignore[attr-defined]  # its receipt
        assert files.container._supervisor.processes() == []
        assert "sleep 2000" in podman.run("exec", name, "ps").decode()
    finally:
        files.container.close()
        podman.run("rm", "--force", "--time", "0", name)


@pytest.mark.parametrize("command", ["kill -9 -1; sleep 1", "rm -r /.weakfs"])
def test_a_command_that_ends_the_supervisor_of_a_foreign_container_leaves_it_usable(
    podman: Podman, tmp_path: Path, command: str
) -> None:
    main = ("/bin/sh", "-c", "while :; do sleep 2000; done")
    name = podman.run("run", "--detach", "--network", "none", *podman.creation, IMAGE, *main).decode().strip()
    files = ContainerFilesystem(container=name, store=tmp_path, runtime=podman)
    try:
        files.exec("echo kept > kept")
        with suppress(OSError):
            files.exec(command)
        assert files.exec("cat kept").stdout == "kept\n"
        files.container.close()
        assert ".weakfs" not in podman.run("exec", name, "ls", "-a", "/").decode().split()
    finally:
        files.container.close()
        podman.run("rm", "--force", "--time", "0", name)


def test_a_section_with_processes_says_so(shared_container: Container, tmp_path: Path) -> None:
    section = PodmanSection(
        session=Session(), container=shared_container, root="/workspace", store=tmp_path, tools=PODMAN_TOOLS
    )
    assert "nothing that a command\nstarts keeps running.\n" in section.render()
    more = PodmanSection(
        session=Session(),
        container=shared_container,
        root="/workspace",
        store=tmp_path,
        tools=[*PODMAN_TOOLS, *process_tools()],
    )
    assert "starts keeps running, except what `process_start` starts." in more.render()


# Other programs


def test_docker_is_called_with_the_same_commands_but_without_podman_options(podman: Podman, tmp_path: Path) -> None:
    log, real = tmp_path / "log", shutil.which("podman")
    docker = tmp_path / "docker"
    options = " ".join(podman.options)
    # Only this program knows where the storage is, and believes that there are no cgroups here.
    docker.write_text(
        f"""#!/bin/sh
echo "$@" >> {log}
case "$*" in
mount*|umount*|"rm --force --time"*|commit*--quiet*|*--cgroups*|*--image-volume*)
    echo 'unknown command or flag' >&2
    exit 125;;
esac
case $1 in create) shift; set -- create --cgroups=disabled "$@";; esac
test -d /sys/fs/cgroup/unified && umount /sys/fs/cgroup/unified 2>/dev/null
exec {real} {options} "$@"
"""
    )
    docker.chmod(0o755)
    files = ContainerFilesystem(image=IMAGE, store=tmp_path / "store", runtime=Podman(str(docker)), snapshots="image")
    images: list[str] = []
    try:
        assert files.exec("echo x > a; cat a").stdout == "x\n"
        snapshot = files.snapshot()
        images.append(snapshot.ref)
        files.exec("rm a /bin/sh")
        files.container.stop()
        assert not files.exists("a")
        files.restore(snapshot)
        assert files.exec("cat a").stdout == "x\n"
    finally:
        files.container.remove()
        for image in images:
            podman.run("rmi", "--force", image)
    assert {line.split()[0] for line in log.read_text().splitlines() if line[:1].isalpha()} >= {
        *("image", "create", "container", "start", "stop", "rm", "commit")
    }


# A new process


RESUMED = """
import sys
from tests.containers import Said
from weakfs import HostFilesystem, InMemoryFilesystem, Session
from weakfs.backends.container import ContainerFilesystem, Podman
from weakfs.composition_root import Registry

image, folder, *options = sys.argv[1:]
session = Session.load(f"{folder}/session.json", registry=Registry.with_types(Said))
memory = InMemoryFilesystem(session)
host = HostFilesystem(f"{folder}/host", session=session, store=f"{folder}/host-store")
podman = Podman(options=tuple(options))
files = ContainerFilesystem(session, image=image, store=f"{folder}/store", runtime=podman)

def show():
    print([one.read("/workspace/a").content for one in (memory, host, files)], files.exists("/usr/lib/pkg"))
    print([said.text for said in session[Said].all()])

show()
session.rollback("before")
show()
print(*(one.tree().fingerprint for one in (memory, host, files)))
files.container.close()
"""


def test_one_rollback_covers_everything_in_a_new_interpreter(podman: Podman, tmp_path: Path) -> None:
    (tmp_path / "host").mkdir()
    session = Session(registry=Registry.with_types(Said))
    session[Said].append(Said("hello"))
    memory = InMemoryFilesystem(session)
    host = HostFilesystem(tmp_path / "host", session=session, store=tmp_path / "host-store")
    files = ContainerFilesystem(session, image=IMAGE, store=tmp_path / "store", runtime=podman)
    try:
        for one in (memory, host, files):
            one.write("/workspace/a", "before")
        session.snapshot("before")
        trees = [one.tree().fingerprint for one in (memory, host, files)]
        for one in (memory, host, files):
            one.write("/workspace/a", "after")
        session[Said].append(Said("goodbye"))
        files.exec("rm -r /usr/lib/pkg")
        session.save(tmp_path / "session.json")
        files.container.close()

        words = [sys.executable, "-c", RESUMED, IMAGE, str(tmp_path), *podman.options]
        done = subprocess.run(words, cwd=TOP, capture_output=True, text=True, check=False)

        assert done.stdout.splitlines() == [
            *("['after', 'after', 'after'] False", "['hello', 'goodbye']"),
            *("['before', 'before', 'before'] True", "['hello']"),
            " ".join(trees),
        ], done.stderr
    finally:
        files.container.remove()
