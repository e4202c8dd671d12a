"""Calls whose work is done elsewhere: the changes belong to them, and are undone with them."""

from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from typing import Any, assert_type

import pytest

from tests.tools.calls.failing import last_call
from weakfs import Capability, HostFilesystem, InMemoryFilesystem, Policy, PolicyRule, Session, Tool, Toolset
from weakfs.filesystem import Limits
from weakfs.tools import READ_FILE, WRITE_FILE, ExternalCallFailed, ExternalReceipt, ToolCall, ToolResult

Make = Callable[..., Toolset]


@pytest.fixture(params=["memory", "host"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Make:
    """Make a toolset over two files."""

    def made(limits: Limits = Limits(), **options: object) -> Toolset:  # noqa: B008  # frozen
        session = Session(session_id="main")
        if request.param == "memory":
            files: InMemoryFilesystem | HostFilesystem = InMemoryFilesystem(session, limits=limits)
        else:
            (tmp_path / "work").mkdir()
            files = HostFilesystem(tmp_path / "work", session=session, store=tmp_path / "store", limits=limits)
        files.write("/a.txt", "one\n")
        files.write("/dir/b.txt", "two\n")
        return Toolset(session, files, **options)  # type: ignore[arg-type]

    return made


def test_an_external_call_accepts_a_tool_and_json_text(make: Make) -> None:
    tools = make()
    with tools.external_call(WRITE_FILE, '{"path": "/new.txt", "content": "x"}') as call:
        Path(call.directory, "new.txt").write_text("x")
    assert assert_type(call.result, ToolResult[ExternalReceipt] | None) is not None
    assert call.result is not None
    assert call.result.value.changed_paths == ("/new.txt",)
    recorded = last_call(tools)
    assert (recorded.tool, recorded.read_arguments()) == ("write_file", {"path": "/new.txt", "content": "x"})


def test_a_failed_external_call_of_a_tool_has_the_tools_receipt_and_is_recorded(make: Make) -> None:
    tools = make(tools=[])
    with pytest.raises(ExternalCallFailed, match="not valid JSON") as raised:
        tools.external_call(READ_FILE, '{"path":').begin()
    assert isinstance(raised.value.result.value, ExternalReceipt)
    assert (last_call(tools).tool, last_call(tools).error_code) == ("read_file", "invalid_arguments")
    ended = tools.external_call(READ_FILE).begin().abort("the user said no")
    assert assert_type(ended, ToolResult[ExternalReceipt]).value.changed_paths is None


@pytest.mark.parametrize("tool", [None, 5, Tool, {"name": "shell"}])
def test_an_external_call_of_neither_a_name_nor_a_tool_is_refused(make: Make, tool: Any) -> None:
    tools = make()
    with pytest.raises(TypeError, match=r"cannot make an external call to .*; give the name of a tool, or a Tool"):
        tools.external_call(tool)
    assert tools.session[ToolCall].all() == ()


def test_changes_during_the_call_belong_to_it(make: Make) -> None:
    tools = make()
    with tools.external_call("Bash", {"command": "make"}, call_id="c1", caller="ann") as call:
        subprocess.run("rm -r dir; echo 2 > a.txt; mkdir new", shell=True, cwd=call.directory, check=True)
        call.message = "made"
    assert call.result is not None
    assert call.result.message == "made"
    assert call.result.value_as(ExternalReceipt).changed_paths == ("/a.txt", "/dir", "/dir/b.txt", "/new")
    assert tools.filesystem.read("/a.txt").content == "2\n"
    recorded = last_call(tools)
    assert (recorded.call_id, recorded.tool, recorded.caller, recorded.status) == ("c1", "Bash", "ann", "ok")
    assert recorded.read_arguments() == {"command": "make"}
    assert {record.cause for record in tools.session.records if record.seq > 2} >= {"c1"}


def test_a_call_that_changes_nothing_adds_its_own_record_only(make: Make) -> None:
    tools = make()
    before = tools.session.seq
    with tools.external_call("Read", {"path": "a.txt"}):
        pass
    assert tools.session.seq == before + 1
    assert last_call(tools).first_seq is None


def test_an_exception_undoes_the_external_work(make: Make) -> None:
    tools = make()
    before = tools.filesystem.tree().fingerprint
    call = tools.external_call("Bash", {})
    with pytest.raises(KeyError), call:
        subprocess.run("rm -r *; echo x > c", shell=True, cwd=call.directory, check=True)
        raise KeyError("lost")
    assert tools.filesystem.tree().fingerprint == before
    assert (last_call(tools).status, last_call(tools).error_code) == ("error", "aborted")
    assert call.result is not None
    assert "Bash failed: KeyError: 'lost'" in call.result.message


def test_an_abort_undoes_the_work_too_and_ends_the_block(make: Make) -> None:
    tools = make()
    with tools.external_call("Bash", {}) as call:
        (Path(call.directory) / "a.txt").unlink()
        assert not call.abort("exit status 1").success
    assert tools.filesystem.read("/a.txt").content == "one\n"


def test_a_call_can_be_undone_later_like_any_other(make: Make) -> None:
    tools = make()
    with tools.external_call("Bash", {}, call_id="c1") as call:
        (Path(call.directory) / "a.txt").unlink()
    tools.session.revert("c1")
    assert tools.filesystem.read("/a.txt").content == "one\n"


def test_begin_and_end_may_be_in_different_threads(make: Make) -> None:
    tools = make()
    call = tools.external_call("Bash", {})
    for step in (call.begin, lambda: (Path(call.directory) / "a.txt").write_text("2\n"), call.end):
        thread = Thread(target=step)
        thread.start()
        thread.join()
    assert tools.filesystem.read("/a.txt").content == "2\n"
    assert not tools.session.in_transaction


def test_begin_and_end_may_be_in_different_tasks(make: Make) -> None:
    tools = make()

    async def main() -> None:
        call = tools.external_call("Bash", {})
        await asyncio.create_task(call.abegin())
        (Path(call.directory) / "a.txt").write_text("2\n")
        assert (await asyncio.create_task(call.aend("done"))).message == "done"

    asyncio.run(main())
    assert tools.filesystem.read("/a.txt").content == "2\n"


def test_a_task_that_is_cancelled_undoes_its_call(make: Make) -> None:
    tools = make()
    before = tools.filesystem.tree().fingerprint

    async def work(begun: asyncio.Event) -> None:
        async with tools.external_call("Bash", {}) as call:
            (Path(call.directory) / "a.txt").unlink()
            begun.set()
            await asyncio.Event().wait()

    async def main() -> None:
        begun = asyncio.Event()
        task = asyncio.create_task(work(begun))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert tools.filesystem.tree().fingerprint == before
    assert last_call(tools).error_code == "cancelled"


def test_a_task_cancelled_at_the_beginning_of_a_call_releases_the_files(make: Make) -> None:
    tools = make()

    async def main() -> None:
        task = asyncio.create_task(tools.external_call("Bash", {}).abegin())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert tools.call("write_file", {"path": "/a.txt", "content": "free"}).success


def test_another_call_on_the_same_directory_is_refused_meanwhile(tmp_path: Path) -> None:
    session = Session(session_id="main")
    files = HostFilesystem(tmp_path, session=session, store=tmp_path.parent / "store")
    tools = Toolset(session, files)
    files.write("/a.txt", "one\n")
    with tools.external_call("Bash", {}) as call:
        (Path(call.directory) / "a.txt").write_text("2\n")
        assert tools.call("write_file", {"path": "/a.txt", "content": "x"}).error_code == "path_in_use"
        with pytest.raises(ExternalCallFailed, match="another call that has not ended"):
            tools.external_call("Bash", {}).begin()
    assert files.read("/a.txt").content == "2\n"


def test_changes_that_a_policy_forbids_are_undone_and_reported(make: Make) -> None:
    tools = make(policy=Policy([PolicyRule(effect="deny", operations=["write"], paths="/dir", reason="frozen")]))
    call = tools.external_call("Bash", {})
    with pytest.raises(ExternalCallFailed) as failure, call:
        (Path(call.directory) / "dir" / "b.txt").write_text("evil")
    assert failure.value.result.error_code == "policy_denied"
    assert tools.filesystem.read("/dir/b.txt").content == "two\n"


def test_changes_through_the_filesystem_that_a_policy_forbids_are_undone_too(make: Make) -> None:
    tools = make(policy=Policy([PolicyRule(effect="deny", operations=["write"], paths="/dir", reason="frozen")]))
    files = tools.filesystem
    before = files.tree().fingerprint
    with pytest.raises(ExternalCallFailed, match="frozen"), tools.external_call("Write", {}) as call:
        call.run(lambda: files.write("/dir/new", "x"))
    assert files.tree().fingerprint == before
    with tools.external_call("Write", {}) as call:
        call.run(lambda: files.write("/new", "x"))
    assert files.read("/new").content == "x"


def test_no_call_begins_without_permission_to_write(make: Make) -> None:
    tools = make(capability=Capability(allowed_fs_ops=("read", "stat")))
    call = tools.external_call("Bash", {})
    with pytest.raises(ExternalCallFailed) as failure:
        call.begin()
    assert failure.value.result.error_code == "operation_forbidden"
    assert last_call(tools).tool == "Bash"
    with pytest.raises(RuntimeError, match="is not under way"):
        call.end()


def test_a_file_beyond_the_limits_fails_the_call(make: Make) -> None:
    tools = make(Limits(max_file_size=100))
    call = tools.external_call("Bash", {})
    with pytest.raises(ExternalCallFailed, match="100"), call:
        (Path(call.directory) / "big").write_bytes(bytes(101))
    assert not tools.filesystem.exists("/big")


def test_a_call_that_takes_longer_than_its_timeout_is_undone(make: Make) -> None:
    tools = make()
    session = tools.session
    call = tools.external_call("Bash", {}, timeout=10)
    now = session.now()
    with pytest.raises(ExternalCallFailed) as failure, call:
        (Path(call.directory) / "a.txt").unlink()
        session._clock = lambda: now + 11 * 10**9
    assert failure.value.result.error_code == "deadline_exceeded"
    assert tools.filesystem.read("/a.txt").content == "one\n"


def test_a_caller_that_read_a_file_before_learns_that_it_changed(make: Make) -> None:
    tools = make()
    tools.call("read_file", {"path": "/a.txt"}, caller="ann")
    with tools.external_call("Bash", {}, caller="bob") as call:
        (Path(call.directory) / "a.txt").write_text("2\n")
    done = tools.call("write_file", {"path": "/a.txt", "content": "x"}, caller="ann")
    assert not done.success


def test_a_call_can_begin_only_once_and_end_only_once(make: Make) -> None:
    tools = make()
    call = tools.external_call("Bash", {}).begin()
    with pytest.raises(RuntimeError, match="has already begun"):
        call.begin()
    call.end()
    with pytest.raises(RuntimeError, match="is not under way"):
        call.abort()
    with pytest.raises(RuntimeError, match="is not under way"):
        _ = call.directory


def test_a_closed_session_refuses_the_call(make: Make) -> None:
    tools = make()
    tools.session.close()
    with pytest.raises(ExternalCallFailed, match="closed"):
        tools.external_call("Bash", {}).begin()


def test_unfinished_work_of_a_killed_runtime_is_undone_when_the_directory_is_opened(tmp_path: Path) -> None:
    program = f"""
import os
from pathlib import Path
from weakfs import HostFilesystem, Session, Toolset
session = Session(session_id="main")
files = HostFilesystem({str(tmp_path / "work")!r}, session=session, store={str(tmp_path / "store")!r})
call = Toolset(session, files).external_call("Bash", {{}}).begin()
(Path(call.directory) / "a.txt").unlink()
os.kill(os.getpid(), 9)
"""
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "a.txt").write_text("one\n")
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == -9
    assert HostFilesystem(tmp_path / "work", store=tmp_path / "store").read("/a.txt").content == "one\n"


def test_a_session_whose_commits_are_awaited_stores_the_call(tmp_path: Path) -> None:
    async def main() -> None:
        async with await Session.aopen(tmp_path / "sessions", "main") as session:
            tools = Toolset(session)
            async with tools.external_call("Bash", {"command": "x"}, call_id="c1") as call:
                (Path(call.directory) / "a.txt").write_text("2\n")

    asyncio.run(main())
    with Session.open(tmp_path / "sessions", "main") as session:
        assert InMemoryFilesystem(session).read("/a.txt").content == "2\n"
        assert [call.call_id for call in session[ToolCall].all()] == ["c1"]


@pytest.mark.parametrize("ending", ["end", "abort"])
def test_an_answer_can_be_encoded_whatever_its_message(ending: str) -> None:
    tools = Toolset(Session())
    call = tools.external_call("Bash", {}).begin()

    result = getattr(call, ending)("half \ud800")

    assert "half ?" in result.message
    assert tools.call("write_file", {"path": "/a", "content": ""}).success


@pytest.mark.sampled(by_rule=True)
def test_a_call_that_is_dropped_without_an_end_disturbs_nobody(make: Make, capsys: pytest.CaptureFixture[str]) -> None:
    tools = make()
    call = tools.external_call("Bash", {}).begin()
    del call
    gc.collect()
    assert capsys.readouterr().err == ""


def test_a_call_records_only_its_changes_however_many_files_there_are(tmp_path: Path) -> None:
    work, history = tmp_path / "work", tmp_path / "history"
    for number in range(500):
        directory = work / f"d{number % 10}"
        directory.mkdir(parents=True, exist_ok=True)
        (directory / f"f{number}").write_text("x")

    def stored() -> int:
        return sum(path.stat().st_size for path in history.rglob("*") if path.is_file())

    with Session.open(history, "main") as session:
        tools = Toolset(session, HostFilesystem(work, session=session, store=tmp_path / "store"))

        def change(number: int) -> None:
            with tools.external_call("Bash", {"command": "make"}, call_id=f"c{number}") as call:
                (Path(call.directory) / "d1" / "f1").write_text(f"{number}")
                (Path(call.directory) / "new").write_text(f"{number}")

        change(0)
        before = stored()
        for number in range(1, 5):
            change(number)
        # A listing of the directory alone would take sixty bytes for each file.
        assert stored() - before < 4 * 4000
        session.undo(5)
        assert not (work / "new").exists()
        assert (work / "d1/f1").read_text() == "x"


def test_changes_by_others_before_a_call_are_restored_with_their_times(tmp_path: Path) -> None:
    work = tmp_path / "work"
    (work / "dir").mkdir(parents=True)
    for name in ("a", "dir/b", "dir/c"):
        (work / name).write_text("1")
    session = Session()
    tools = Toolset(session, HostFilesystem(work, session=session, store=tmp_path / "store"))

    def run(command: str, call_id: str) -> None:
        with tools.external_call("Bash", {"command": command}, call_id=call_id) as call:
            subprocess.run(command, shell=True, cwd=call.directory, check=True)

    run("echo 2 > a", "c1")
    # The same contents with another time, other contents, another mode.
    os.utime(work / "a", ns=(10**18, 10**18))
    (work / "dir/b").write_text("theirs")
    (work / "dir/c").chmod(0o600)
    os.utime(work / "dir/c", ns=(2 * 10**18, 2 * 10**18))
    run("echo 3 > a; rm -r dir", "c2")
    session.revert("c2")
    assert (work / "a").read_text() == "2\n"
    assert (work / "a").stat().st_mtime_ns == 10**18
    assert (work / "dir/b").read_text() == "theirs"
    assert (work / "dir/c").stat().st_mode & 0o777 == 0o600
    assert (work / "dir/c").stat().st_mtime_ns == 2 * 10**18
