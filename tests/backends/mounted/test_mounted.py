"""Mounted files: a file has the same path in calls, commands, messages and sessions."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.containers import IMAGE
from weakfs import (
    DEFAULT_TOOLS,
    Capability,
    HostFilesystem,
    InMemoryFilesystem,
    MountedFilesystem,
    OverlayFilesystem,
    Policy,
    PolicyRule,
    Session,
    Toolset,
)
from weakfs.backends import ContainerFilesystem, MockFilesystem, Podman
from weakfs.filesystem import Filesystem, Limits
from weakfs.processes import Bubblewrap
from weakfs.reducers import FilesystemMounted
from weakfs.tools import HISTORY_TOOLS
from weakfs.tools.handlers import ProcessOptions, ShellOptions, process_tools, shell_tool

pytestmark = pytest.mark.usefixtures("never_hung")

BUBBLEWRAP = Bubblewrap()
needs_sandbox = pytest.mark.skipif(BUBBLEWRAP.problem() is not None, reason="there is no sandbox")

Mount = Callable[..., MountedFilesystem]


@pytest.fixture(params=["memory", "host", "overlay"])
def mount(request: pytest.FixtureRequest, tmp_path: Path) -> Mount:
    """Mount an empty filesystem: in memory, in a directory, or a layer over one."""
    (tmp_path / "root").mkdir()

    def make(mounted_at: str = "/workspace", **options: Any) -> MountedFilesystem:
        session = Session(session_id="s")
        files: Filesystem
        if request.param == "memory":
            files = InMemoryFilesystem(session, **options)
        elif request.param == "host":
            files = HostFilesystem(tmp_path / "root", session=session, store=tmp_path / "store", **options)
        else:
            files = OverlayFilesystem(HostFilesystem(tmp_path / "root", store=tmp_path / "store"), session, **options)
        return MountedFilesystem(files, mounted_at)

    return make


def toolset(files: MountedFilesystem, **options: Any) -> Toolset:
    assert files.session is not None
    return Toolset(files.session, files, **options)


def call(tools: Toolset, name: str, **arguments: object) -> Any:
    result = tools.call(name, arguments)
    assert result.success, result.message
    return result.value


# Names


def test_a_path_below_the_mount_point_names_a_file_of_the_filesystem(mount: Mount) -> None:
    files = mount()
    assert files.write("/workspace/src/a.py", "a\n").path == "/workspace/src/a.py"
    assert files.files.read("/src/a.py").content == "a\n"
    assert [entry.path for entry in files.walk("/workspace")] == ["/workspace/src", "/workspace/src/a.py"]
    assert [match.path for match in files.glob("*.py")] == ["/workspace/src/a.py"]
    assert [match.path for match in files.grep("a")] == ["/workspace/src/a.py"]
    assert files.stat("/workspace/src/a.py").path == "/workspace/src/a.py"


def test_relative_paths_start_at_the_mount_point(mount: Mount) -> None:
    files = mount()
    assert files.write("a.py", "a\n").path == "/workspace/a.py"
    assert files.stat(".").path == files.stat("").path == "/workspace"
    with pytest.raises(PermissionError, match="climbs above the root"):
        files.read("../a.py")


def test_only_the_path_to_the_mount_point_is_listed(mount: Mount) -> None:
    files = mount("/srv/agent/files")
    files.write("a.py", "a\n")
    assert [entry.path for entry in files.walk()] == ["/srv", "/srv/agent", "/srv/agent/files", "/srv/agent/files/a.py"]
    assert files.is_directory("/srv/agent")
    assert not files.exists("/srv/other")


@pytest.mark.parametrize("path", ["/a.py", "/workspaces/a.py", "/workspace/../a.py", "/"])
def test_nothing_is_created_outside_the_mount_point(mount: Mount, path: str) -> None:
    files = mount()
    with pytest.raises(OSError, match=r"use a path such as '/workspace/|name a file inside it"):
        files.write(path, "a\n")
    refusal = "the files are below '/workspace'"
    with pytest.raises(PermissionError, match=refusal):
        files.mkdir("/other")
    with pytest.raises(PermissionError, match=refusal):
        files.symlink("a", "/b")
    with pytest.raises(PermissionError, match=refusal):
        files.chmod("/", 0o700)
    files.write("a.py", "a\n")
    with pytest.raises(PermissionError, match=r"cannot move to '/b\.py'"):
        files.move("a.py", "/b.py")
    assert files.files.read("/a.py").content == "a\n"


def test_the_mount_point_cannot_be_deleted_or_moved(mount: Mount) -> None:
    files = mount()
    files.write("a.py", "a\n")
    with pytest.raises(PermissionError, match="cannot delete '/workspace': it is the root of the files"):
        files.delete("/workspace", recursive=True)
    with pytest.raises(PermissionError):
        files.delete("/", recursive=True)
    with pytest.raises((PermissionError, ValueError)):
        files.move("/workspace", "/other")
    assert files.exists("a.py")


def test_messages_have_the_mounted_path(mount: Mount) -> None:
    tools = toolset(mount(limits=Limits(max_file_size=4)))
    call(tools, "write_file", path="dir/a.py", content="a\n")
    assert "'/workspace/dir/a.py'" in tools.call("read_file", {"path": "dir/b.py"}).message
    assert "did you mean '/workspace/dir/a.py'" in tools.call("read_file", {"path": "/dir/a.py"}).message
    assert "'/workspace/dir/a.py'" in tools.call("write_file", {"path": "dir/a.py", "content": "12345"}).message
    assert "/workspace/b/c does not exist" in tools.call("exists", {"path": "b/c"}).message


def test_a_message_of_the_files_themselves_has_the_mounted_path(tmp_path: Path) -> None:
    class Broken(InMemoryFilesystem):
        def totals(self, segments: tuple[str, ...]) -> tuple[int, int, int]:
            raise PermissionError("cannot scan '/dir/a b': it may not be read; read '/host/x'")

        def _below_host_root(self, path: str) -> str | None:
            return path.removeprefix("/host") if path.startswith("/host/") else None

    files = MountedFilesystem(Broken(), "/workspace")
    files.mkdir("dir")
    with pytest.raises(PermissionError, match="cannot scan '/workspace/dir/a b': it may not be read; read '/host/x'"):
        files.delete("dir")


def test_a_message_about_the_store_keeps_its_path(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    files = HostFilesystem(tmp_path / "root", store=tmp_path / "store")
    mounted = MountedFilesystem(files, "/workspace")
    with pytest.raises(OSError, match="store") as caught, mounted._naming():  # raised by the files
        raise OSError(f"cannot read '/a' from '{files.store.path}/pack' into '{files.root}/a'")
    assert str(caught.value) == f"cannot read '/workspace/a' from '{files.store.path}/pack' into '{files.root}/a'"


def test_a_host_path_below_the_root_means_the_file_there(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "root")
    files = MountedFilesystem(HostFilesystem(tmp_path / "link"), "/workspace")
    for path in (tmp_path / "root" / "a.py", tmp_path / "link" / "a.py", f"{tmp_path}//root/./b/../a.py"):
        assert files.write(path, "a\n").path == "/workspace/a.py"
    assert files.stat(tmp_path / "root").path == "/workspace"
    with pytest.raises(PermissionError):
        files.write(f"{tmp_path}/root/../a.py", "a\n")
    assert sorted(os.listdir(tmp_path / "root")) == ["a.py"]


def test_host_links_lead_to_where_commands_find_the_same_file(tmp_path: Path) -> None:
    (tmp_path / "root" / "dir").mkdir(parents=True)
    (tmp_path / "root" / "a.py").write_text("a\n")
    for name, target in (("up", "../a.py"), ("own", "/workspace/a.py"), ("host", str(tmp_path / "root" / "a.py"))):
        (tmp_path / "root" / "dir" / name).symlink_to(target)
    (tmp_path / "root" / "dir" / "out").symlink_to("../../../etc/passwd")
    (tmp_path / "root" / "dir" / "system").symlink_to("/etc/passwd")
    files = MountedFilesystem(HostFilesystem(tmp_path / "root", follow_symlinks="within_root_only"), "/workspace")
    for name in ("up", "own", "host"):
        assert files.read(f"dir/{name}").path == "/workspace/a.py"
    for name in ("out", "system"):
        with pytest.raises(PermissionError, match="leads out of the root"):
            files.read(f"dir/{name}")


# Mount points


@pytest.mark.parametrize(
    "path",
    [
        *("/", "", "workspace", "/workspace/", "//workspace", "/a/../b", "../x", "\\workspace"),
        *("/usr", "/usr/local/x", "/etc", "/proc/1", "/dev/shm", "/tmp", "/tmp/home/x"),
        *("/a\nb", "/a\0b", "/a\ud800"),
    ],
)
def test_a_mount_point_is_a_canonical_path_outside_the_system(path: str) -> None:
    session = Session()
    with pytest.raises(ValueError, match=r"'/workspace'|cannot mount files at|has a"):
        MountedFilesystem(InMemoryFilesystem(session), path)
    assert not session[FilesystemMounted].all()


def test_a_mount_point_is_not_above_or_inside_the_host_directory(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    files = HostFilesystem(tmp_path / "root")
    for place in (tmp_path, tmp_path / "root" / "inside"):
        with pytest.raises(ValueError, match="one is inside the other"):
            MountedFilesystem(files, str(place))
    same = MountedFilesystem(files, str(tmp_path / "root"))
    assert same.write(tmp_path / "root" / "a.py", "a\n").path == f"{tmp_path}/root/a.py"


@pytest.mark.parametrize("files", [MockFilesystem(), "/tmp", None])
def test_only_weakfs_filesystems_are_mounted(files: Any) -> None:
    with pytest.raises(TypeError, match="cannot mount"):
        MountedFilesystem(files, "/workspace")


def test_mounted_files_are_not_mounted_again_or_overlaid() -> None:
    files = MountedFilesystem(InMemoryFilesystem(), "/workspace")
    with pytest.raises(TypeError, match="not mounted yet"):
        MountedFilesystem(files, "/other")
    with pytest.raises(ValueError, match="mount the overlay"):
        OverlayFilesystem(files)


def test_the_mount_point_is_saved_with_the_session(tmp_path: Path) -> None:
    session = Session()
    MountedFilesystem(InMemoryFilesystem(session), "/first")
    MountedFilesystem(InMemoryFilesystem(session), "/workspace").write("a.py", "a\n")
    seq = session.seq
    assert MountedFilesystem(InMemoryFilesystem(session), "/workspace").exists("/workspace/a.py")
    assert session.seq == seq
    session.save(tmp_path / "s.json")
    loaded = Session.load(tmp_path / "s.json")
    assert MountedFilesystem(InMemoryFilesystem(loaded)).read("/workspace/a.py").content == "a\n"
    assert MountedFilesystem(InMemoryFilesystem(loaded.fork())).mounted_at == "/workspace"
    with pytest.raises(ValueError, match="its session does not say where it was mounted"):
        MountedFilesystem(InMemoryFilesystem())


def test_a_rollback_keeps_the_mount_point() -> None:
    session = Session()
    before = session.snapshot()
    files = MountedFilesystem(InMemoryFilesystem(session), "/workspace")
    files.write("a.py", "a\n")
    session.rollback(before)
    assert MountedFilesystem(InMemoryFilesystem(session)).mounted_at == "/workspace"
    assert not files.exists("a.py")


# The whole tree


def test_snapshots_and_archives_are_those_of_the_files(mount: Mount) -> None:
    files = mount()
    files.write("a.py", "a\n")
    taken, archive = files.snapshot("before"), files.export_bytes()
    files.write("b.py", "b\n")
    assert files.restore(taken, dry_run=True).removed == ("/workspace/b.py",)
    assert files.restore(taken).removed == ("/workspace/b.py",)
    assert files.tree().digest == files.files.tree().digest
    other = InMemoryFilesystem()
    other.import_bytes(archive)
    assert other.read("/a.py").content == "a\n"
    assert files.statistics() == other.statistics()


def test_quotas_count_only_the_files() -> None:
    files = MountedFilesystem(InMemoryFilesystem(limits=Limits(max_node_count=1, max_total_size=3)), "/a/b/c")
    files.write("a", "123")
    with pytest.raises(OSError, match="'/a/b/c/b'"):
        files.write("b", "")


def test_a_read_only_filesystem_stays_read_only() -> None:
    session = Session()
    InMemoryFilesystem(session).write("/a.py", "a\n")
    files = MountedFilesystem(InMemoryFilesystem(session, read_only=True), "/workspace")
    with pytest.raises(PermissionError, match="read-only"):
        files.write("b.py", "b\n")
    assert files.read("/workspace/a.py").content == "a\n"


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
