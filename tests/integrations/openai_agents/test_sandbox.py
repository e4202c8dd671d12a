"""Sandboxes of the OpenAI Agents SDK over sessions: files and commands, resuming, snapshots, hostile archives."""

from __future__ import annotations

import asyncio
import gzip
import io
import json
import os
import signal
import subprocess
import sys
import tarfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from weakfs import InMemoryFilesystem, Session
from weakfs.processes import Bubblewrap
from weakfs.tools import Capability, ToolCall

if TYPE_CHECKING:
    from agents.sandbox.session import SandboxSession

    from weakfs.integrations.openai_agents import WeakfsSandboxClient

pytestmark = pytest.mark.usefixtures("never_hung")

needs_sandbox = pytest.mark.skipif(Bubblewrap().problem() is not None, reason="there is no sandbox")

Act = Callable[["SandboxSession", Session], Awaitable[None]]


def client(location: Path | None = None, **options: Any) -> WeakfsSandboxClient:
    from weakfs.integrations.openai_agents import WeakfsSandboxClient

    return WeakfsSandboxClient(location, **options)


def drive(act: Act, *, using: WeakfsSandboxClient | None = None, **options: Any) -> dict[str, object]:
    """Make a sandbox, act in it, and return its state as JSON."""

    async def run() -> dict[str, object]:
        made = client() if using is None else using
        sandbox = await made.create(**options)
        async with sandbox:
            await act(sandbox, made.session_of(sandbox))
        return made.serialize_session_state(sandbox.state)

    return json.loads(json.dumps(asyncio.run(run())))  # type: ignore[no-any-return]


def resume(using: WeakfsSandboxClient, state: dict[str, object], act: Act) -> None:
    """Resume a sandbox from its state as JSON, and act in it."""

    async def run() -> None:
        async with await using.resume(using.deserialize_session_state(state)) as sandbox:
            await act(sandbox, using.session_of(sandbox))

    asyncio.run(run())


def files_of(session: Session) -> dict[str, bytes]:
    fs = InMemoryFilesystem(session)
    return {entry.path: fs.read_bytes(entry.path).content for entry in fs.walk() if entry.is_file}


def tar(*members: tuple[str, bytes | str | None]) -> io.BytesIO:
    """Make an archive: contents are files, texts are targets of links, `None` is a device."""
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as made:
        for name, content in members:
            member = tarfile.TarInfo(name)
            if isinstance(content, bytes):
                member.size = len(content)
                made.addfile(member, io.BytesIO(content))
                continue
            member.type = tarfile.CHRTYPE if content is None else tarfile.SYMTYPE
            member.linkname = content or ""
            made.addfile(member)
    archive.seek(0)
    return archive


@needs_sandbox
def test_files_and_commands_have_the_same_paths_and_each_is_a_call() -> None:
    from agents.sandbox.entries import File
    from agents.sandbox.manifest import Manifest

    async def act(sandbox: SandboxSession, session: Session) -> None:
        done = await sandbox.exec("pwd; cat note; echo more >> note; echo $COLOR >&2; exit 3")
        assert (done.exit_code, done.stdout, done.stderr) == (3, b"/workspace\nfirst\n", b"red\n")
        # Its changes stay, whatever its exit code.
        assert (await sandbox.read(Path("/workspace/note"))).read() == b"first\nmore\n"
        await sandbox.write(Path("deep/er/new"), io.BytesIO(b"\0\xff"))
        assert (await sandbox.exec("od -An -tx1 /workspace/deep/er/new")).stdout == b" 00 ff\n"
        assert [call.tool for call in session[ToolCall].all()] == [
            *("make_directory", "write_file", "change_mode", "execute", "read_file", "write_file", "execute")
        ]

    manifest = Manifest(entries={"note": File(content=b"first\n")}, environment={"value": {"COLOR": "red"}})  # type: ignore[arg-type]
    drive(act, manifest=manifest)


@needs_sandbox
def test_a_command_that_times_out_or_cannot_run_is_undone() -> None:
    from agents.sandbox.errors import ExecTimeoutError, ExecTransportError

    async def act(sandbox: SandboxSession, session: Session) -> None:
        before = InMemoryFilesystem(session).tree().fingerprint
        with pytest.raises(ExecTimeoutError):
            await sandbox.exec("echo half > half; sleep 60", timeout=0.2)
        with pytest.raises(ExecTransportError, match="NUL"):
            await sandbox.exec("echo \0 > half")
        assert InMemoryFilesystem(session).tree().fingerprint == before

    drive(act)


def test_entries_are_listed_moved_compared_and_removed() -> None:
    from agents.sandbox.errors import ExecNonZeroError, WorkspaceArchiveWriteError, WorkspaceReadNotFoundError

    async def act(sandbox: SandboxSession, session: Session) -> None:
        await sandbox.write(Path("a"), io.BytesIO(b"12345"))
        await sandbox.mkdir("d/e", parents=True)
        InMemoryFilesystem(session).symlink("a", "/l")
        listed = {entry.path: (entry.kind.value, entry.size, str(entry.is_dir())) for entry in await sandbox.ls(".")}
        assert listed == {
            "/workspace/a": ("file", 5, "False"),
            "/workspace/d": ("directory", 0, "True"),
            "/workspace/l": ("symlink", 0, "False"),
        }
        assert await sandbox._inner.read_bounded(Path("a"), max_bytes=3) == b"123"
        assert await sandbox.same_file("a", "./d/../a")
        assert await sandbox.same_file("a", "l")
        assert not await sandbox.same_file("a", "l", follow_symlinks=False)
        assert not await sandbox.same_file("a", "none")
        for source, destination in (("a", "d"), ("d", "x"), ("none", "x")):
            with pytest.raises(ExecNonZeroError):
                await sandbox.mv(source, destination)
        await sandbox.mv("a", "d/e/b")
        with pytest.raises(WorkspaceArchiveWriteError):
            await sandbox.rm("d")
        with pytest.raises(WorkspaceReadNotFoundError):
            await sandbox.read(Path("a"))
        with pytest.raises(ExecNonZeroError):
            await sandbox.rm("none")
        await sandbox.rm("none", recursive=True)
        with pytest.raises(ExecNonZeroError):
            await sandbox.ls("none")
        with pytest.raises(WorkspaceArchiveWriteError):
            await sandbox.mkdir("d")
        assert files_of(session) == {"/d/e/b": b"12345"}
        await sandbox.rm("d", recursive=True)
        assert files_of(session) == {}

    drive(act)


@pytest.mark.parametrize("path", ["../x", "/etc/passwd", "d/../../x", "/workspace/../x"])
def test_paths_outside_the_workspace_are_refused(path: str) -> None:
    from agents.sandbox.errors import InvalidManifestPathError

    async def act(sandbox: SandboxSession, session: Session) -> None:
        for work in (
            sandbox.read(Path(path)),
            sandbox.write(Path(path), io.BytesIO(b"")),
            sandbox.mkdir(path),
            sandbox.rm(path, recursive=True),
            sandbox.ls(path),
            sandbox.mv("a", path),
        ):
            with pytest.raises(InvalidManifestPathError):
                await work

    drive(act)


def test_links_out_of_the_workspace_are_not_followed() -> None:
    from agents.sandbox.errors import SandboxError

    async def act(sandbox: SandboxSession, session: Session) -> None:
        InMemoryFilesystem(session).symlink("/etc", "/out")
        for work in (sandbox.read(Path("out/passwd")), sandbox.write(Path("out/x"), io.BytesIO(b"x"))):
            with pytest.raises(SandboxError):
                await work

    drive(act)


async def test_operations_that_a_capability_forbids_are_refused() -> None:
    from agents.sandbox.errors import ExecTransportError, WorkspaceArchiveWriteError

    async def act(sandbox: SandboxSession, session: Session) -> None:
        with pytest.raises(WorkspaceArchiveWriteError, match="not among the allowed operations"):
            await sandbox.write(Path("a"), io.BytesIO(b""))
        with pytest.raises(ExecTransportError, match="cannot run"):
            await sandbox.exec("true")
        assert files_of(session) == {}

    made = client(capability=Capability(allowed_fs_ops=["read", "list", "stat"]))
    sandbox = await made.create()
    await act(sandbox, made.session_of(sandbox))


def test_unsupported_parts_of_a_manifest_are_refused() -> None:
    from agents.sandbox import SandboxPathGrant
    from agents.sandbox.entries import InContainerMountStrategy, MountpointMountPattern, S3Mount
    from agents.sandbox.manifest import Manifest
    from agents.sandbox.types import User

    with pytest.raises(ValueError, match="one user"):
        asyncio.run(client().create(manifest=Manifest(users=[User(name="ann")])))
    mount = S3Mount(bucket="b", mount_strategy=InContainerMountStrategy(pattern=MountpointMountPattern()))
    with pytest.raises(ValueError, match="cannot mount storage"):
        asyncio.run(client().create(manifest=Manifest(entries={"data": mount})))
    with pytest.raises(ValueError, match="shows only its workspace"):
        asyncio.run(client().create(manifest=Manifest(extra_path_grants=(SandboxPathGrant(path="/opt"),))))

    async def act(sandbox: SandboxSession, session: Session) -> None:
        with pytest.raises(ValueError, match="one user"):
            await sandbox.exec("id", user="ann")

    drive(act)


def test_a_sandbox_continues_in_another_client_at_the_same_location(tmp_path: Path) -> None:
    async def write(sandbox: SandboxSession, session: Session) -> None:
        await sandbox.write(Path("a"), io.BytesIO(b"a"))

    async def read(sandbox: SandboxSession, session: Session) -> None:
        assert (await sandbox.read(Path("a"))).read() == b"a"
        session.undo()

    async def gone(sandbox: SandboxSession, session: Session) -> None:
        assert files_of(session) == {}

    state = drive(write, using=client(tmp_path / "sessions"))
    assert str(tmp_path) not in json.dumps(state)
    resume(client(tmp_path / "sessions"), dict(state), read)
    resume(client(tmp_path / "sessions"), dict(state), gone)


KILLED = """
import asyncio, io, json, sys, time
from pathlib import Path
from weakfs.integrations.openai_agents import WeakfsSandboxClient

async def main():
    client = WeakfsSandboxClient(sys.argv[1])
    sandbox = await client.create()
    await sandbox.start()
    await sandbox.write(Path("a"), io.BytesIO(b"a"))
    print(json.dumps(client.serialize_session_state(sandbox.state)), flush=True)
    time.sleep(600)

asyncio.run(main())
"""


@pytest.mark.slow
def test_a_sandbox_whose_process_was_killed_is_resumed(tmp_path: Path) -> None:
    command = [sys.executable, "-c", KILLED, str(tmp_path / "sessions")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        state = json.loads(process.stdout.readline())
        os.kill(process.pid, signal.SIGKILL)

    async def act(sandbox: SandboxSession, session: Session) -> None:
        assert (await sandbox.read(Path("a"))).read() == b"a"

    resume(client(tmp_path / "sessions"), state, act)


def test_a_sandbox_in_memory_is_resumed_from_its_snapshot_exactly(tmp_path: Path) -> None:
    from agents.sandbox.entries import File
    from agents.sandbox.manifest import Manifest
    from agents.sandbox.types import Permissions

    from weakfs.integrations.openai_agents import WeakfsSnapshotSpec

    found: list[str] = []

    async def work(sandbox: SandboxSession, session: Session) -> None:
        fs = InMemoryFilesystem(session)
        await sandbox.write(Path("d/\u00e9 name\n"), io.BytesIO(bytes(range(256))))
        fs.chmod("/d/\u00e9 name\n", 0o755)
        fs.symlink("../nowhere", "/d/link")
        fs.mkdir("/empty")
        assert fs.stat("/once").mode == 0o640
        fs.delete("/once")
        found.append(fs.tree().digest)
        fs.write("/once", "ephemeral")

    async def compare(sandbox: SandboxSession, session: Session) -> None:
        fs = InMemoryFilesystem(session)
        assert fs.read("/once").content == "ephemeral"
        fs.delete("/once")
        assert fs.tree().digest == found[0]

    state = drive(
        work,
        snapshot=WeakfsSnapshotSpec(location=str(tmp_path / "snapshots")),
        manifest=Manifest(
            entries={"once": File(content=b"ephemeral", ephemeral=True, permissions=Permissions(owner=6, group=4))}
        ),
    )
    resume(client(), dict(state), compare)
    resume(client(), dict(state), compare)


async def test_a_snapshot_works_with_any_client_and_keeps_its_history(tmp_path: Path) -> None:
    from agents.sandbox.errors import SnapshotNotRestorableError, SnapshotPersistError

    from weakfs.integrations.openai_agents import WeakfsSnapshot

    snapshot = WeakfsSnapshot(id="s", location=str(tmp_path / "snapshots"))
    assert not await snapshot.restorable()
    with pytest.raises(SnapshotNotRestorableError):
        await snapshot.restore()
    await snapshot.persist(tar(("a", b"1"), ("b", b"same")))
    await snapshot.persist(tar(("a", b"2"), ("b", b"same")))
    with pytest.raises(SnapshotPersistError):
        await snapshot.persist(io.BytesIO(b"no archive"))
    again = WeakfsSnapshot.parse(json.loads(snapshot.model_dump_json()))
    with tarfile.open(fileobj=await again.restore()) as archive:
        assert archive.extractfile("a").read() == b"2"  # type: ignore[union-attr]
    with Session.open(tmp_path / "snapshots", "s") as session:
        assert len(session.snapshots) == 2
        session.rollback(session.snapshots[0])
        assert files_of(session) == {"/a": b"1", "/b": b"same"}


@pytest.mark.parametrize(
    "archive",
    [
        tar(("good", b"x"), ("../evil", b"x")),
        tar(("good", b"x"), ("/evil", b"x")),
        tar(("good", b"x"), ("device", None)),
        tar(("good", b"x"), ("good/below", b"x")),
        io.BytesIO(b"no archive"),
    ],
    ids=["above", "absolute", "device", "below a file", "none"],
)
def test_a_hostile_archive_changes_nothing(archive: io.BytesIO) -> None:
    from agents.sandbox.errors import WorkspaceArchiveWriteError

    async def act(sandbox: SandboxSession, session: Session) -> None:
        await sandbox.write(Path("mine"), io.BytesIO(b"mine"))
        with pytest.raises(WorkspaceArchiveWriteError):
            await sandbox.hydrate_workspace(archive)
        assert files_of(session) == {"/mine": b"mine"}

    drive(act)


def test_an_archive_is_unpacked_over_the_files_within_the_limits() -> None:
    from agents.run_config import SandboxArchiveLimits
    from agents.sandbox.errors import WorkspaceArchiveWriteError

    async def act(sandbox: SandboxSession, session: Session) -> None:
        await sandbox.hydrate_workspace(tar(("d/a", b"1"), ("d/b", b"2"), ("link", "d/a")))
        await sandbox.hydrate_workspace(tar(("d/a", b"3"), ("d/c/x", b"4")))
        assert files_of(session) == {"/d/a": b"3", "/d/b": b"2", "/d/c/x": b"4"}
        assert InMemoryFilesystem(session).readlink("/link") == "d/a"
        sandbox._inner._set_archive_limits(SandboxArchiveLimits(max_input_bytes=1000))
        with pytest.raises(WorkspaceArchiveWriteError, match="more than 1000 bytes; raise max_input_bytes"):
            await sandbox.hydrate_workspace(tar(("d/a", b"5")))
        sandbox._inner._set_archive_limits(SandboxArchiveLimits(max_input_bytes=None, max_extracted_bytes=1000))
        for archive in (tar(("d/a", b"5")), io.BytesIO(gzip.compress(tar(("d/a", b"5")).read()))):
            with pytest.raises(WorkspaceArchiveWriteError, match="more than 1000 bytes; raise max_extracted_bytes"):
                await sandbox.hydrate_workspace(archive)
        assert files_of(session)["/d/a"] == b"3"

    drive(act)


@needs_sandbox
def test_the_session_records_all_work_of_an_agent_in_a_sandbox(tmp_path: Path) -> None:
    from agents import RunConfig, Runner, set_tracing_disabled
    from agents.run_config import SandboxRunConfig
    from agents.sandbox import SandboxAgent
    from agents.sandbox.entries import File
    from agents.sandbox.manifest import Manifest
    from agents.testing import ScriptedModel, assistant_message, function_call

    set_tracing_disabled(True)
    calls = ["sed -i s/80/8080/ app.py && python3 --version; cat app.py", "rm app.py"]
    steps: list[Any] = [
        [function_call("exec_command", {"cmd": command}, call_id=f"c{number}")] for number, command in enumerate(calls)
    ]
    model = ScriptedModel([*steps, [assistant_message("done")]])
    agent = SandboxAgent(
        name="coder", model=model, default_manifest=Manifest(entries={"app.py": File(content=b"port = 80\n")})
    )
    config = RunConfig(sandbox=SandboxRunConfig(client=client(tmp_path / "sessions", caller="coder")))
    result = asyncio.run(Runner.run(agent, "go", run_config=config))
    outputs = [item.output for item in result.new_items if item.type == "tool_call_output_item"]
    assert "port = 8080" in str(outputs[0])
    with Session.open(tmp_path / "sessions") as session:
        commands = [call for call in session[ToolCall].all() if call.tool == "execute"]
        assert {call.caller for call in commands} == {"coder"}
        session.revert(commands[-1].call_id)
        assert files_of(session)["/app.py"] == b"port = 8080\n"
