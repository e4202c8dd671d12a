"""An environment of Google's ADK: what its operations answer and raise, and what can be undone."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from weakfs import Capability, HostFilesystem, InMemoryFilesystem, MountedFilesystem, Session
from weakfs.processes import Bubblewrap
from weakfs.session import Session as AnySession
from weakfs.tools import ToolCall
from weakfs.tools.handlers import ShellOptions

if TYPE_CHECKING:
    from weakfs.integrations.google_adk import WeakfsEnvironment

pytestmark = pytest.mark.usefixtures("never_hung")

needs_sandbox = pytest.mark.skipif(Bubblewrap().problem() is not None, reason="there is no sandbox")


def environment(*arguments: Any, **options: Any) -> WeakfsEnvironment:
    from weakfs.integrations.google_adk import WeakfsEnvironment

    return WeakfsEnvironment(*arguments, **options)


def calls(session: AnySession) -> list[tuple[str, str]]:
    return [(call.tool, call.status) for call in session[ToolCall].all()]


def test_a_file_is_written_and_read_and_each_operation_is_a_call() -> None:
    env = environment(Session(), caller="agent")

    async def work() -> bytes:
        await env.write_file(Path("src/app.py"), "port = 80\r\n")
        await env.write_file("/workspace/src/app.py", b"\x00\xff")
        return await env.read_file("src/app.py")

    assert asyncio.run(work()) == b"\x00\xff"
    assert calls(env.session) == [("write_file", "ok"), ("write_file", "ok"), ("read_file", "ok")]
    assert {call.caller for call in env.session[ToolCall].all()} == {"agent"}
    env.session.undo()
    assert env.files.read_bytes("/workspace/src/app.py").content == b"port = 80\r\n"
    env.session.undo()
    assert not env.files.exists("/workspace/src")


def test_errors_are_the_exceptions_of_python() -> None:
    session = Session()
    InMemoryFilesystem(session).write("/d/a", "")
    env = environment(session)
    for path, error in (
        ("nope", FileNotFoundError),
        ("/etc/passwd", FileNotFoundError),
        ("d", IsADirectoryError),
        ("../../etc/passwd", PermissionError),
    ):
        with pytest.raises(error):
            asyncio.run(env.read_file(path))
    before = env.files.tree().fingerprint
    for path, refusal in (("d/a/b", NotADirectoryError), ("d", IsADirectoryError), ("/etc/x", PermissionError)):
        with pytest.raises(refusal):
            asyncio.run(env.write_file(path, "x"))
    assert env.files.tree().fingerprint == before


def test_forbidden_operations_are_refused() -> None:
    session = Session()
    InMemoryFilesystem(session).write("/a", "x")
    env = environment(session, capability=Capability(allowed_fs_ops=frozenset({"read"})))
    assert asyncio.run(env.read_file("a")) == b"x"
    with pytest.raises(PermissionError):
        asyncio.run(env.write_file("a", "y"))
    done = asyncio.run(env.execute("rm a"))
    assert (done.exit_code, done.timed_out) == (126, False)
    assert "the allowed operations, which are read" in done.stderr
    assert asyncio.run(env.read_file("a")) == b"x"


@needs_sandbox
def test_commands_and_files_have_the_same_paths() -> None:
    env = environment(Session())

    async def work() -> Any:
        await env.write_file("a.txt", "one\n")
        return await env.execute("cat /workspace/a.txt; pwd; echo oops >&2; echo two > b.txt; exit 3")

    done = asyncio.run(work())
    assert (done.exit_code, done.stdout, done.stderr, done.timed_out) == (3, "one\n/workspace\n", "oops\n", False)
    assert env.files.read("/workspace/b.txt").content == "two\n"
    env.session.undo()
    assert not env.files.exists("/workspace/b.txt")


@needs_sandbox
def test_a_command_that_times_out_is_undone(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("one\n")
    session = Session()
    env = environment(session, HostFilesystem(tmp_path, session=session))
    done = asyncio.run(env.execute("echo began; rm a; sleep 60", timeout=0.5))
    assert (done.exit_code, done.timed_out) == (124, True)
    assert "undone" in done.stderr
    assert (tmp_path / "a").read_text() == "one\n"


def test_a_command_that_cannot_run_says_why() -> None:
    env = environment(Session())
    done = asyncio.run(env.execute("   "))
    assert (done.exit_code, done.timed_out) == (126, False)
    assert "it is empty" in done.stderr


def test_a_mounted_filesystem_keeps_its_mount_point() -> None:
    session = Session()
    env = environment(session, MountedFilesystem(InMemoryFilesystem(session), "/repo"), shell=ShellOptions(timeout=5))
    assert env.working_dir == Path("/repo")
    asyncio.run(env.write_file("a", "x"))
    assert InMemoryFilesystem(session).read("/a").content == "x"


def test_closing_leaves_the_session_open() -> None:
    env = environment(Session())

    async def work() -> tuple[bool, bool]:
        await env.initialize()
        began = env.is_initialized
        await env.close()
        return began, env.is_initialized

    assert asyncio.run(work()) == (True, False)
    env.session.snapshot("open")
