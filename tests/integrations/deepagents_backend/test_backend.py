"""Backends of deepagents: each operation is one call of the session, and can be undone."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from deepagents.backends.composite import CompositeBackend
from deepagents.backends.protocol import BackendProtocol, SandboxBackendProtocol
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.sampling import share
from weakfs import Capability, HostFilesystem, InMemoryFilesystem, Policy, PolicyRule, Session
from weakfs.integrations.deepagents import WeakfsBackend, WeakfsSandbox
from weakfs.integrations.fair_lock import Turns
from weakfs.processes import Bubblewrap, command_watch
from weakfs.processes.output import HeadAndTail
from weakfs.tools import ToolCall
from weakfs.tools.handlers import ShellOptions

pytestmark = pytest.mark.usefixtures("never_hung")

needs_sandbox = pytest.mark.skipif(Bubblewrap().problem() is not None, reason="there is no sandbox")


@pytest.fixture
def backend() -> WeakfsBackend:
    return WeakfsBackend(Session())


def calls(backend: WeakfsBackend) -> list[tuple[str, str]]:
    return [(call.tool, call.status) for call in backend.session[ToolCall].all()]


def test_they_implement_the_protocols_of_deepagents() -> None:
    assert isinstance(WeakfsBackend(Session()), BackendProtocol)
    assert not isinstance(WeakfsBackend(Session()), SandboxBackendProtocol)
    assert isinstance(WeakfsSandbox(Session(session_id="s")), SandboxBackendProtocol)
    assert WeakfsSandbox(Session(session_id="s")).id == "s"


def test_each_operation_is_a_call_that_can_be_undone_alone(backend: WeakfsBackend) -> None:
    assert backend.write("/a.py", "one\ntwo\n").path == "/a.py"
    assert backend.edit("/a.py", "one", "1").occurrences == 1
    assert backend.delete("/a.py").error is None
    assert backend.upload_files([("/b", b"1"), ("/c", b"2")])[1].error is None
    assert calls(backend) == [("write", "ok"), ("edit", "ok"), ("delete", "ok"), ("upload_files", "ok")]
    backend.session.undo()
    assert not backend.files.exists("/b")
    assert not backend.files.exists("/c")
    backend.session.undo()
    assert backend.files.read("/a.py").content == "1\ntwo\n"
    backend.session.undo()
    assert backend.files.read("/a.py").content == "one\ntwo\n"


def test_an_operation_that_fails_changes_nothing_and_says_why(backend: WeakfsBackend) -> None:
    backend.write("/a.py", "x\nx\n")
    backend.write("/dir/b.py", "")
    before = backend.files.tree().digest
    errors = [
        backend.edit("/a.py", "x", "y").error,
        backend.edit("/a.py", "z", "y").error,
        backend.edit("/a.py", "", "y").error,
        backend.edit("/a.py", "x", "x").error,
        backend.edit("/b.py", "x", "y").error,
        backend.write("/dir", "").error,
        backend.write("/a.py/b", "").error,
        backend.write("/\ud800", "").error,
        backend.delete("/missing").error,
        backend.delete("/").error,
        backend.read("/missing").error,
        backend.read("/dir").error,
        backend.ls("/missing").error,
        backend.ls("/../..").error,
        backend.grep("x", "/missing").error,
        backend.glob("../*").error,
    ]
    assert all(isinstance(error, str) and error for error in errors), errors
    assert "appears 2 times" in str(errors[0])
    assert "String not found in file: 'z'" in str(errors[1])
    assert "Error: File '/b.py' not found" in str(errors[4])
    assert backend.files.tree().digest == before


def test_the_dialects() -> None:
    protocol, sandbox = WeakfsBackend(Session()), WeakfsBackend(Session(), dialect="sandbox")
    for backend in (protocol, sandbox):
        backend.write("/src/a.py", "1\n2\n")
    assert protocol.write("/src/a.py", "1\n2\n").error is None
    assert "already exists" in str(sandbox.write("/src/a.py", "").error)
    assert [one["path"] for one in protocol.glob("*", "/src").matches or ()] == ["/src/a.py"]
    assert [one["path"] for one in sandbox.glob("*", "/src").matches or ()] == ["a.py"]
    assert [one["path"] for one in protocol.glob("*").matches or ()] == ["/src/a.py"]
    assert [one["path"] for one in sandbox.glob("*").matches or ()] == ["src", "src/a.py"]
    for backend, line in ((protocol, "1\n"), (sandbox, "1")):
        page = backend.read("/src/a.py", limit=1)
        assert page.file_data is not None
        assert (page.file_data["content"], page.next_offset) == (line, 1)
    with pytest.raises(ValueError, match="use 'protocol' or 'sandbox'"):
        WeakfsBackend(Session(), dialect="other")  # type: ignore[arg-type]  # a mistake


def test_globs_are_those_of_deepagents(backend: WeakfsBackend) -> None:
    for path in ("/top.py", "/src/app/main.py", "/.github/ci.yml", "/.env", "/src/.hidden.py"):
        backend.write(path, "text\n")

    def found(pattern: str, path: str | None = None) -> list[str]:
        return [one["path"] for one in backend.glob(pattern, path).matches or ()]

    assert found("*.py") == ["/src/app/main.py", "/top.py"]
    assert found("/*.py") == ["/top.py"]
    assert found("*.yml") == ["/.github/ci.yml"]
    assert found("**/*.yml") == []
    assert found(".env") == ["/.env"]
    assert found("app/*.{py,txt}", "/src") == ["/src/app/main.py"]
    assert [one["path"] for one in backend.grep("text", glob="*.yml").matches or ()] == ["/.github/ci.yml"]
    assert [one["path"] for one in backend.grep("text", "/src", "app/*").matches or ()] == ["/src/app/main.py"]
    assert [one["path"] for one in backend.grep("text", "/top.py", "*.py").matches or ()] == ["/top.py"]
    cut = backend.grep("text", max_count=2)
    assert (len(cut.matches or ()), cut.truncated) == (2, True)
    assert backend.grep("text", max_count=5).truncated is False


@settings(max_examples=share(60))
@given(
    st.lists(st.sampled_from(["a", "(", "\\", "é", "[", ".", "*", " ", "\u2028", "#", "{2}", "\\E", "$"]), min_size=1)
)
def test_grep_finds_literal_text_whatever_it_holds(parts: list[str]) -> None:
    text, backend = "".join(parts), WeakfsBackend(Session())
    backend.write("/a", f"x{text}y\nnothing\n")
    assert [(one["line"], one["text"]) for one in backend.grep(text).matches or ()][:1] == [(1, f"x{text}y")]


@settings(max_examples=share(60))
@given(st.text("aé\n\U0001f30d", max_size=12), st.text("aé\n", min_size=1, max_size=2), st.text("bü", max_size=3))
def test_an_edit_replaces_the_same_text_as_python(text: str, old: str, new: str) -> None:
    backend = WeakfsBackend(Session())
    backend.write("/a", text)
    done = backend.edit("/a", old, new, replace_all=True)
    assert done.occurrences == (text.count(old) or None)
    assert backend.files.read("/a").content == text.replace(old, new)


def test_binary_files_are_read_as_base64(backend: WeakfsBackend) -> None:
    backend.upload_files([("/a.bin", b"\0\xff"), ("/b.png", b"text"), ("/c.svg", b"<svg/>\n"), ("/d", b"\xff")])
    kinds = [backend.read(path).file_data for path in ("/a.bin", "/b.png", "/c.svg", "/d")]
    assert [one and one["encoding"] for one in kinds] == ["base64", "base64", "utf-8", "base64"]


def test_unavailable_files_are_reported_with_the_codes_of_deepagents(backend: WeakfsBackend) -> None:
    backend.write("/dir/a", "")
    backend.write("/locked", "secret")
    backend.files.chmod("/locked", 0)
    paths = ["/missing", "/dir", "relative", "/locked", "/a\0"]
    codes = [one.error for one in backend.download_files(paths)]
    assert codes == ["file_not_found", "is_directory", "invalid_path", "permission_denied", "invalid_path"]
    uploads = backend.upload_files([("/dir", b""), ("relative", b""), ("/dir/a/b", b""), ("/fine", b"1")])
    assert [one.error for one in uploads] == ["is_directory", "invalid_path", "invalid_path", None]
    assert backend.files.read("/fine").content == "1"


def test_a_policy_applies_to_every_operation() -> None:
    session = Session()
    InMemoryFilesystem(session).write("/secret/key", "the key\n")
    rule = PolicyRule(effect="deny", operations=["read", "write", "search", "edit"], paths="/secret", reason="hidden")
    backend = WeakfsBackend(session, policy=Policy([rule]))
    assert "hidden" in str(backend.read("/secret/key").error)
    assert "hidden" in str(backend.write("/secret/key", "").error)
    assert "hidden" in str(backend.edit("/secret/key", "the", "a").error)
    assert "hidden" in str(backend.delete("/secret").error)
    assert backend.grep("key").matches == []
    assert backend.download_files(["/secret/key"])[0].error == "permission_denied"
    reading = WeakfsBackend(session, capability=Capability(allowed_fs_ops=["read"]))
    assert "not among the allowed operations" in str(reading.write("/a", "").error)
    assert reading.upload_files([("/a", b"")])[0].error == "permission_denied"


def test_coroutines_do_the_same() -> None:
    async def work(backend: WeakfsBackend) -> list[Any]:
        return [
            (await backend.awrite("/a", "one\n")).path,
            (await backend.aedit("/a", "one", "two")).occurrences,
            (await backend.aread("/a")).file_data,
            (await backend.agrep("two")).matches,
            len((await backend.aglob("*")).matches or ()),
            len((await backend.als("/")).entries or ()),
            (await backend.aupload_files([("/b", b"2")]))[0].error,
            (await backend.adownload_files(["/b"]))[0].content,
            (await backend.adelete("/a")).error,
        ]

    done = asyncio.run(work(WeakfsBackend(Session())))
    assert done[:2] == ["/a", 1]
    assert done[3] == [{"path": "/a", "line": 1, "text": "two"}]
    assert done[4:] == [1, 1, None, b"2", None]


# Commands


@pytest.fixture(params=["memory", "host"])
def sandbox(request: pytest.FixtureRequest, tmp_path: Path) -> WeakfsSandbox:
    session = Session()
    if request.param == "memory":
        return WeakfsSandbox(session)
    (tmp_path / "root").mkdir()
    return WeakfsSandbox(session, HostFilesystem(tmp_path / "root", session=session, store=tmp_path / "store"))


@needs_sandbox
def test_a_command_is_a_call_and_is_undone(sandbox: WeakfsSandbox) -> None:
    sandbox.write("/workspace/a.py", "one\n")
    done = sandbox.execute("cat /workspace/a.py; echo err >&2; echo out; rm /workspace/a.py; exit 3")
    assert (done.output, done.exit_code, done.truncated) == ("one\nerr\nout\n", 3, False)
    assert not sandbox.files.exists("/workspace/a.py")
    sandbox.session.undo()
    assert sandbox.files.read("/workspace/a.py").content == "one\n"


@needs_sandbox
def test_a_command_that_times_out_is_undone(sandbox: WeakfsSandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    sandbox.write("/workspace/a.py", "one\n")
    options = ShellOptions(timeout=100)
    quick = WeakfsSandbox(sandbox.session, sandbox.files, shell=options)
    monotonic, add, said = time.monotonic, HeadAndTail.add, bytearray()

    def hear(kept: HeadAndTail, data: bytes) -> None:
        said.extend(data)
        add(kept, data)

    # Its time is up once it has printed something, however slow the machine is.
    monkeypatch.setattr(HeadAndTail, "add", hear)
    monkeypatch.setattr(command_watch, "monotonic", lambda: monotonic() + 1000 * (b"begun" in said))
    done = quick.execute("rm a.py; echo begun; sleep 1000")
    assert done.exit_code == 124
    assert done.output.startswith("begun\nError: The command was stopped because it ran for 100 s")
    assert sandbox.files.exists("/workspace/a.py")


def test_a_command_that_cannot_run_says_why(sandbox: WeakfsSandbox) -> None:
    for command, timeout in (("", None), ("a\0b", None), ("true", -1)):
        done = sandbox.execute(command, timeout=timeout)
        assert done.exit_code is None
        assert done.output.startswith("Error: ")
    capable = WeakfsSandbox(Session(), capability=Capability(allowed_fs_ops=["read"]))
    assert "not among the allowed operations" in capable.execute("true").output


@pytest.mark.slow
@needs_sandbox
def test_concurrent_calls_run_one_after_another(sandbox: WeakfsSandbox) -> None:
    async def work() -> list[Any]:
        many = [sandbox.aexecute("cat n 2>/dev/null >> m; echo 1 >> n") for _ in range(8)]
        return await asyncio.gather(*many, *(sandbox.awrite(f"/workspace/f{n}", "") for n in range(8)))

    thread = Thread(target=sandbox.execute, args=("echo 1 >> n",))
    thread.start()
    assert all(getattr(one, "error", None) is None for one in asyncio.run(work()))
    thread.join()
    assert sandbox.files.read("/workspace/n").content == "1\n" * 9


@needs_sandbox
def test_a_cancelled_command_is_undone_and_the_next_one_runs(sandbox: WeakfsSandbox) -> None:
    async def work() -> Any:
        running = asyncio.create_task(sandbox.aexecute("touch /workspace/new; sleep 60"))
        waiting = asyncio.create_task(sandbox.aexecute("touch /workspace/other"))
        await asyncio.sleep(0.3)
        waiting.cancel()
        running.cancel()
        await asyncio.gather(running, waiting, return_exceptions=True)
        return await sandbox.aexecute("ls /workspace")

    done = asyncio.run(work())
    assert (done.output, done.exit_code) == ("", 0)


def test_a_cancelled_waiter_passes_its_turn_on() -> None:
    turns = Turns()

    async def take() -> None:
        async with turns.aturn():
            return

    async def work() -> None:
        async with turns.aturn():
            tasks = [asyncio.create_task(take()) for _ in range(3)]
            await asyncio.sleep(0)
            tasks[0].cancel()
        # The second task gets the turn, and is cancelled at the same moment.
        tasks[1].cancel()
        done = await asyncio.gather(*tasks, return_exceptions=True)
        assert [type(one) for one in done] == [asyncio.CancelledError, asyncio.CancelledError, type(None)]

    asyncio.run(asyncio.wait_for(work(), 60))
    with turns.turn():
        thread = Thread(target=lambda: asyncio.run(take()))
        thread.start()
        time.sleep(0.01)
    thread.join(60)
    assert not thread.is_alive()


@needs_sandbox
def test_messages_of_the_middleware_can_be_kept_below_the_mount_point() -> None:
    sandbox = WeakfsSandbox(Session())
    backend = CompositeBackend(sandbox, routes={}, artifacts_root="/workspace/.deepagents")
    assert backend.write(f"{backend.artifacts_root}/large", "text").error is None
    assert "the files are below '/workspace'" in str(sandbox.write("/large_tool_results/1", "text").error)


def test_without_the_package_the_error_names_the_extra() -> None:
    code = "import sys; sys.modules['deepagents'] = None; import weakfs.integrations.deepagents"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "run: pip install 'weakfs[deepagents]'" in done.stderr
