"""Tools on mounted files: a file has the same path in calls, commands, messages and rules."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.backends.mounted.conftest import Mount, call, toolset
from tests.containers import IMAGE
from weakfs import (
    DEFAULT_TOOLS,
    Capability,
    HostFilesystem,
    InMemoryFilesystem,
    MountedFilesystem,
    Policy,
    PolicyRule,
    Session,
    Toolset,
)
from weakfs.backends import ContainerFilesystem, Podman
from weakfs.filesystem import Limits
from weakfs.processes import Bubblewrap
from weakfs.tools import HISTORY_TOOLS
from weakfs.tools.handlers import ProcessOptions, ShellOptions, process_tools, shell_tool

pytestmark = pytest.mark.usefixtures("never_hung")

BUBBLEWRAP = Bubblewrap()
needs_sandbox = pytest.mark.skipif(BUBBLEWRAP.problem() is not None, reason="there is no sandbox")

# Commands


@needs_sandbox
def test_commands_and_calls_find_a_file_at_the_same_path(mount: Mount) -> None:
    tools = toolset(mount())
    call(tools, "write_file", path="/workspace/dir/a.py", content="one\n")
    done = call(tools, "shell", command="pwd; cat /workspace/dir/a.py; echo two > /workspace/dir/b.py; ls -d /*")
    assert done.stdout.startswith("/workspace\none\n")
    assert done.changed_paths == ("/workspace/dir/b.py",)
    assert call(tools, "read_file", path="/workspace/dir/b.py").content == "two\n"
    assert call(tools, "shell", command="pwd", workdir="/workspace/dir").stdout == "/workspace/dir\n"
    assert call(tools, "shell", command="pwd", workdir="dir").stdout == "/workspace/dir\n"
    refused = tools.call("shell", {"command": "pwd", "workdir": "/"})
    assert "cannot run a command in '/': the files are below '/workspace'" in refused.message


@needs_sandbox
def test_a_command_sees_neither_the_directory_of_the_host_nor_the_mount_point_of_others(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    session = Session()
    tools = Toolset(session, MountedFilesystem(HostFilesystem(tmp_path / "root", session=session), "/tmp/w/x"))
    done = call(tools, "shell", command=f"ls {tmp_path}; touch /tmp/w/x/a /tmp/w/lost; pwd; echo $HOME $TMPDIR")
    assert "No such file" in done.stderr
    assert "Read-only file system" in done.stderr
    assert done.stdout == "/tmp/w/x\n/tmp/home /tmp\n"
    assert done.changed_paths == ("/tmp/w/x/a",)


@needs_sandbox
def test_a_file_beyond_a_limit_that_a_command_leaves_is_refused_by_its_mounted_path(mount: Mount) -> None:
    tools = toolset(mount(limits=Limits(max_file_size=10)))
    result = tools.call("shell", {"command": "seq 100 > big"})
    assert "'/workspace/big'" in result.message
    assert not tools.filesystem.exists("big")


def test_without_a_sandbox_the_answer_says_that_nothing_is_mounted(mount: Mount) -> None:
    shell = shell_tool(ShellOptions(sandbox="off"))
    tools = toolset(mount("/no-such-workspace"), tools=[*(one for one in DEFAULT_TOOLS if one.name != "shell"), shell])
    call(tools, "write_file", path="a.py", content="a\n")
    done = tools.call("shell", {"command": "cat a.py; cat /no-such-workspace/a.py"})
    assert done.value_as(type(call(tools, "shell", command="true"))).stdout == "a\n"
    assert "so /no-such-workspace does not exist for the command; use relative paths" in done.message
    assert "relative paths" in shell.description
    assert "relative paths" not in shell_tool().description


@needs_sandbox
def test_background_processes_and_calls_find_a_file_at_the_same_path(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    session = Session()
    files = MountedFilesystem(
        HostFilesystem(tmp_path / "root", session=session, store=tmp_path / "store"), "/workspace"
    )
    tools = toolset(files, tools=[*DEFAULT_TOOLS, *process_tools()])
    call(tools, "write_file", path="/workspace/dir/a.py", content="one\n")
    command = "pwd; cat /workspace/dir/a.py; echo two > /workspace/b.py"
    started = call(tools, "process_start", command=command, workdir="/workspace/dir")
    ended = call(tools, "process_wait", process_id=started.process_id, timeout=300)
    assert ended.changed_paths == ("/workspace/b.py",)
    assert call(tools, "process_output", process_id=started.process_id).output == "/workspace/dir\none\n"
    assert call(tools, "process_list").processes[0].workdir == "/workspace/dir"


def test_a_background_process_needs_files_that_are_in_a_directory() -> None:
    files = MountedFilesystem(InMemoryFilesystem(), "/workspace")
    tools = toolset(files, tools=process_tools(ProcessOptions(sandbox="off")))
    assert "cannot start a process on an InMemoryFilesystem" in tools.call("process_start", {"command": "true"}).message


def test_a_container_uses_the_paths_that_its_programs_see(podman: Podman, tmp_path: Path) -> None:
    session = Session()
    files = ContainerFilesystem(session, image=IMAGE, root="/workspace", store=tmp_path / "store", runtime=podman)
    try:
        with pytest.raises(ValueError, match="its programs see them at '/workspace'"):
            MountedFilesystem(files, "/other")
        tools = Toolset(session, MountedFilesystem(files, "/workspace"))
        call(tools, "write_file", path="/workspace/dir/a.py", content="one\n")
        done = call(tools, "shell", command="pwd; cat /workspace/dir/a.py; echo 2 > b", workdir="/workspace/dir")
        assert done.stdout == "/workspace/dir\none\n"
        assert done.changed_paths == ("/workspace/dir/b",)
    finally:
        files.container.remove()


# Calls


def test_a_patch_names_files_by_any_form_of_their_path(mount: Mount) -> None:
    tools = toolset(mount())
    call(tools, "write_file", path="a.py", content="one\n")
    patch = "*** Begin Patch\n*** Update File: {}\n@@\n-{}\n+{}\n*** Add File: {}\n+new\n*** End Patch"
    done = call(tools, "apply_patch", patch=patch.format("/workspace/a.py", "one", "two", "b/c.py"))
    assert done.changed_paths == ("/workspace/a.py", "/workspace/b/c.py")
    result = tools.call("apply_patch", {"patch": patch.format("a.py", "two", "three", "/b.py")})
    assert "'/workspace/b.py'" in result.message
    assert call(tools, "read_file", path="a.py").content == "two\n"


def test_a_stale_write_is_refused_by_the_mounted_path(mount: Mount) -> None:
    tools = toolset(mount())
    tools.call("write_file", {"path": "a.py", "content": "one\n"}, caller="ann")
    tools.call("read_file", {"path": "/workspace/a.py"}, caller="bob")
    tools.call("write_file", {"path": "/workspace/a.py", "content": "two\n"}, caller="ann")
    refused = tools.call("write_file", {"path": "a.py", "content": "three\n"}, caller="bob")
    assert refused.error_code == "changed_by_another"
    assert "cannot change '/workspace/a.py': 'ann' has changed it" in refused.message
    assert "-one\n+two" in refused.message


def test_messages_of_undo_and_revert_use_mounted_paths(mount: Mount) -> None:
    tools = toolset(mount(), tools=[*DEFAULT_TOOLS, *HISTORY_TOOLS])
    tools.call("write_file", {"path": "a.py", "content": "one\n"}, call_id="first")
    tools.call("write_file", {"path": "b.py", "content": "one\n"})
    tools.call("write_file", {"path": "a.py", "content": "two\n"}, call_id="second")
    assert [change.path for change in call(tools, "undo").changes] == ["/workspace/a.py"]
    call(tools, "redo")
    conflict = tools.call("revert", {"call_id": "first"})
    assert "/workspace/a.py" in conflict.message
    assert "outside '/workspace'" in tools.call("revert", {"call_id": "second", "paths": ["/a.py"]}).message
    done = call(tools, "revert", call_id="second", paths=["/workspace/a.py"])
    assert [change.path for change in done.changes] == ["/workspace/a.py"]
    assert call(tools, "read_file", path="a.py").content == "one\n"


def test_policies_judge_undo_and_revert_by_mounted_paths() -> None:
    session = Session()
    files = MountedFilesystem(InMemoryFilesystem(session), "/workspace")
    Toolset(session, files).call("write_file", {"path": "secret/a", "content": "one\n"})
    rule = PolicyRule(effect="deny", operations=["write"], paths="/workspace/secret", reason="kept")
    tools = Toolset(session, files, tools=HISTORY_TOOLS, policy=Policy([rule]))
    assert tools.call("undo", {}).error_code == "policy_denied"
    assert files.exists("secret/a")


# Permissions


@pytest.mark.parametrize(
    "pattern",
    ["/src", "src/a.py", "/*.py", "/files/**", "/{src,lib}/a", "{/workspace/a,/src}", "/workspac?s/a", "./src"],
)
def test_a_policy_pattern_that_cannot_match_is_refused(pattern: str) -> None:
    files = MountedFilesystem(InMemoryFilesystem(), "/workspace")
    rule = PolicyRule(effect="deny", operations=["read"], paths=pattern, reason="no")
    with pytest.raises(ValueError, match="would match nothing, because the files are below '/workspace'"):
        toolset(files, policy=Policy([rule]))


@pytest.mark.parametrize(
    "pattern", ["/", "/workspace", "/workspace/src", "/w*/src", "*.key", "**/src/*", "/**/a", "/*"]
)
def test_a_policy_pattern_that_can_match_is_accepted(pattern: str) -> None:
    files = MountedFilesystem(InMemoryFilesystem(), "/workspace")
    rule = PolicyRule(effect="deny", operations=["read"], paths=pattern, reason="no")
    toolset(files, policy=Policy([rule]))


def test_roots_are_paths_below_the_mount_point(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    files = MountedFilesystem(HostFilesystem(tmp_path / "root"), "/workspace")
    files.write("a.py", "a\n")
    files.write("src/a.py", "a\n")
    for root in ("/workspace/src", "src", f"{tmp_path}/root/src"):
        tools = toolset(files, capability=Capability(fs_roots=[root]))
        assert tools.call("read_file", {"path": "/workspace/src/a.py"}).success
        assert tools.call("read_file", {"path": "a.py"}).error_code == "path_forbidden"
    with pytest.raises(ValueError, match="contains none of the files"):
        toolset(files, capability=Capability(fs_roots=["/src"]))
