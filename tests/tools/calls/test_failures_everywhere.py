"""The same failures on every backend: the same status and code, and nothing is changed."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from attrs import frozen

from tests.tools.calls.failing import FAILURES, SMALL, WRITING, failing_late, fill
from tests.tools.commands import TOOLS
from weakfs import (
    DEFAULT_TOOLS,
    Capability,
    Filesystem,
    HostFilesystem,
    InMemoryFilesystem,
    Limits,
    MergeConflict,
    OverlayFilesystem,
    Policy,
    PolicyRule,
    Session,
    SessionClosed,
    Tool,
    ToolContext,
    ToolResult,
    Toolset,
)
from weakfs.session import ConflictEntry
from weakfs.tools import ToolCalls, require_filesystem
from weakfs.tools.errors import BY_CLASS, BY_ERRNO

Make = Callable[..., Toolset]


@pytest.fixture(params=["host", "overlay over memory", "overlay over a host"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Make:
    """Return a function that makes a toolset over the files of `fill`, with limits and bounds."""

    def host(session: Session, limits: Limits, **options: object) -> HostFilesystem:
        (tmp_path / "root").mkdir(exist_ok=True)
        store = tmp_path / "store"
        return HostFilesystem(tmp_path / "root", session=session, store=store, limits=limits, **options)  # type: ignore[arg-type]

    def toolset(limits: Limits = Limits(), *, read_only: bool = False, **bounds: object) -> Toolset:  # noqa: B008
        session = Session(session_id="s")
        files: Filesystem
        if request.param == "host":
            fill(host(session, Limits()))
            files = host(session, limits, read_only=read_only)
        else:
            lower: Filesystem = InMemoryFilesystem() if "memory" in request.param else host(Session(), Limits())
            fill(lower)
            files = OverlayFilesystem(lower, session, limits=limits, read_only=read_only)
        return Toolset(session, files, **{"tools": TOOLS, **bounds})  # type: ignore[arg-type]  # those of a toolset

    return toolset


def state(tools: Toolset) -> str:
    return tools.filesystem.tree().fingerprint


def ids(case: object) -> str:
    return str(case)[:60]


@pytest.mark.sampled
@pytest.mark.parametrize(("name", "arguments", "status", "code"), FAILURES, ids=ids)
def test_a_call_fails_on_every_backend_as_in_memory(
    make: Make, name: str, arguments: dict[str, object], status: str, code: str
) -> None:
    tools = make(SMALL)
    before = state(tools)

    result = tools.call(name, arguments, call_id="c1")

    assert (result.success, result.status, result.error_code) == (False, status, code), result.message
    assert state(tools) == before
    (call,) = tools.session[ToolCalls].all()
    assert (call.status, call.error_code) == (status, code)


@pytest.mark.parametrize("name", WRITING)
def test_a_read_only_filesystem_refuses_every_change(make: Make, name: str) -> None:
    tools = make(read_only=True)
    before = state(tools)
    result = tools.call(name, WRITING[name])
    assert (result.status, result.error_code) == ("forbidden", "read_only")
    assert state(tools) == before


@pytest.mark.parametrize("name", WRITING)
def test_a_call_that_fails_after_its_work_was_done_is_undone(make: Make, name: str) -> None:
    (tool,) = [tool for tool in DEFAULT_TOOLS if tool.name == name]
    tools = make(tools=[failing_late(tool)])
    before = state(tools)
    assert tools.call(name, WRITING[name]).error_code == "no_space_left"
    assert state(tools) == before


@frozen
class Nothing:
    pass


RAISED: list[tuple[Exception, str, str]] = [
    (OSError(errno.EBUSY, "x"), "conflict", "path_in_use"),
    (OSError(errno.ENOSPC, "x"), "error", "no_space_left"),
    (OSError(errno.ELOOP, "x"), "error", "too_many_links"),
    (OSError("x"), "error", "io_error"),
    (TimeoutError("x"), "error", "timed_out"),
    (MergeConflict((ConflictEntry("/a", "content", "fs/tree"),)), "conflict", "merge_conflict"),
    (SessionClosed("x"), "error", "session_closed"),
]


@pytest.mark.parametrize(("error", "status", "code"), RAISED, ids=ids)
def test_an_exception_after_a_write_is_answered_and_the_write_is_undone(
    make: Make, error: Exception, status: str, code: str
) -> None:
    def handle(params: Nothing, *, context: ToolContext) -> ToolResult[None]:
        require_filesystem(context).write("/a.txt", "other")
        raise error

    tools = make(tools=[Tool("raise", "For tests.", Nothing, handle)])
    before = state(tools)
    result = tools.call("raise", {})
    assert (result.status, result.error_code) == (status, code)
    assert state(tools) == before


FROZEN = Policy([PolicyRule(effect="deny", operations=["write"], paths="/", reason="frozen")])
REQUIRED = {"path": "/a.txt", "output_mode": "require_inline"}
BOUNDED: list[tuple[dict[str, object], str, dict[str, object], str, str]] = [
    ({"policy": FROZEN}, "rm", {"path": "/a.txt"}, "forbidden", "policy_denied"),
    ({"capability": Capability(max_write_bytes=0)}, "cp", WRITING["cp"], "forbidden", "limit_exceeded"),
    ({"capability": Capability(allowed_fs_ops=["read"])}, "rm", WRITING["rm"], "forbidden", "operation_forbidden"),
    ({"capability": Capability(max_inline_bytes=0)}, "read_file", dict(REQUIRED), "error", "inline_required_too_large"),
]


@pytest.mark.parametrize(("bounds", "name", "arguments", "status", "code"), BOUNDED, ids=ids)
def test_a_call_refused_by_limits_is_answered_and_changes_nothing(
    make: Make, bounds: dict[str, object], name: str, arguments: dict[str, object], status: str, code: str
) -> None:
    tools = make(**bounds)
    before = state(tools)
    result = tools.call(name, arguments)
    assert (result.status, result.error_code) == (status, code)
    assert state(tools) == before


def test_a_call_past_its_deadline_is_answered_and_undone(make: Make) -> None:
    tools = make()
    before = state(tools)
    result = tools.call("write_file", WRITING["write_file"], deadline=tools.session.now() - 1)
    assert (result.status, result.error_code) == ("error", "deadline_exceeded")
    assert state(tools) == before


def test_a_stale_write_is_answered_and_undone(make: Make) -> None:
    tools = make()
    tools.call("read_file", {"path": "/a.txt"}, caller="ann")
    tools.call("edit_file", WRITING["edit_file"], caller="bob")
    before = state(tools)
    result = tools.call("write_file", {"path": "/a.txt", "content": ""}, caller="ann")
    assert (result.status, result.error_code) == ("conflict", "changed_by_another")
    assert state(tools) == before


def test_every_code_of_the_tables_occurs_here() -> None:
    """Every code in the tables is produced by some test."""
    here = {code for *_, code in FAILURES} | {code for *_, code in RAISED}
    here |= {code for *_, code in BOUNDED} | {"read_only", "deadline_exceeded", "changed_by_another", "not_read"}
    # In `tests/tools/handlers/test_process_tools.py` and `tests/backends/host/test_processes.py`.
    here |= {"process_not_found", "process_not_running", "too_many_processes", "processes_running", "input_closed"}
    # In `tests/tools/handlers/test_shell.py`.
    here.add("sandbox_unavailable")
    assert {code for _, code in (*BY_CLASS.values(), *BY_ERRNO.values())} <= here


@pytest.mark.skipif(os.getuid() == 0, reason="nothing is forbidden to root")
def test_operations_that_the_system_forbids_are_answered(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "a").write_text("")
    (tmp_path / "root" / "a").chmod(0)
    session = Session()
    tools = Toolset(session, HostFilesystem(tmp_path / "root", session=session, store=tmp_path / "store"))
    assert tools.call("read_file", {"path": "/a"}).error_code == "path_forbidden"
