"""Mounted files: their paths, their mount point and their tree."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tests.backends.mounted.conftest import Mount, call, toolset
from weakfs import (
    HostFilesystem,
    InMemoryFilesystem,
    MountedFilesystem,
    OverlayFilesystem,
    Session,
)
from weakfs.backends import MockFilesystem
from weakfs.filesystem import Limits
from weakfs.reducers import FilesystemMounted

pytestmark = pytest.mark.usefixtures("never_hung")


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
