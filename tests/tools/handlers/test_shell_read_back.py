"""Files that a command leaves are checked before they are read: sizes, depth, counts, bits, and the remaining time."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.models.host import record
from weakfs import Session, ToolResult, Toolset
from weakfs.backends import HostFilesystem, InMemoryFilesystem, OverlayFilesystem
from weakfs.filesystem import Filesystem, Limits, ReadBack
from weakfs.session import Cancellation
from weakfs.session.errors import TransactionCancelled
from weakfs.snapshots.scan import stable_read as contents
from weakfs.tools.handlers import ShellOptions, ShellReceipt, shell_tool
from weakfs.tools.handlers import shell as running

Make = Callable[..., Toolset]


pytestmark = pytest.mark.usefixtures("never_hung")


@pytest.fixture(params=["memory", "host", "overlay"])
def toolset(request: pytest.FixtureRequest, tmp_path: Path) -> Make:
    def make(limits: Limits = Limits(), **options: Any) -> Toolset:  # noqa: B008
        session = Session(session_id="s")
        files: Filesystem
        if request.param == "host":
            (tmp_path / "root").mkdir()
            files = HostFilesystem(tmp_path / "root", session=session, store=tmp_path / "store", limits=limits)
        elif request.param == "memory":
            files = InMemoryFilesystem(session, limits=limits)
        else:
            files = OverlayFilesystem(InMemoryFilesystem(limits=limits), session, limits=limits)
        files.write("/src/app.py", "port = 80\n")
        return Toolset(session, files, tools=[shell_tool(ShellOptions(sandbox="off", **options))])

    return make


def shell(tools: Toolset, command: str, **arguments: object) -> ToolResult[ShellReceipt]:
    result = tools.call("shell", {"command": command, **arguments})
    assert isinstance(result.value, ShellReceipt)
    return result  # type: ignore[return-value]


def refused(tools: Toolset, command: str) -> ToolResult[object]:
    before = tools.filesystem.tree().fingerprint

    result = tools.call("shell", {"command": command, "timeout": 300})

    assert not result.success
    assert tools.filesystem.tree().fingerprint == before
    return result


@pytest.fixture
def nothing_large_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail if the content of a large file is read, to store it or to compare it."""

    def read_large(*_: object) -> Any:
        raise AssertionError("a large file is read")

    monkeypatch.setattr(contents, "_read_large", read_large)


@pytest.mark.usefixtures("nothing_large_is_read")
@pytest.mark.parametrize("name", ["x", "src/app.py", "new/deep/x"])
def test_a_file_that_is_too_large_is_refused_and_undone_without_being_read(toolset: Make, name: str) -> None:
    result = refused(toolset(), f"mkdir -p new/deep; truncate -s 200G {name}")

    assert result.error_code == "file_too_large"
    assert f"/{name}" in result.message
    assert f"{200 << 30} bytes and the limit for a file is {32 << 20}" in result.message
    assert "All changes made by the program are undone" in result.message


def test_a_sparse_file_is_refused_at_once_even_if_files_of_any_size_are_allowed(toolset: Make) -> None:
    result = refused(toolset(Limits(max_file_size=None), max_changed_bytes=None), "truncate -s 4T x")

    assert result.error_code == "file_too_large"
    assert f"'/x': it is a sparse file of {4 << 40} bytes" in result.message


@pytest.mark.usefixtures("nothing_large_is_read")
def test_files_with_too_large_a_total_size_are_refused_without_being_read(toolset: Make) -> None:
    result = refused(toolset(), "for i in $(seq 100); do truncate -s 30M $i; done")

    assert result.error_code == "quota_exceeded"
    assert f"{1 << 30} are allowed" in result.message


@pytest.mark.sampled(by_rule=True)
def test_directories_that_are_nested_too_deep_are_refused_and_undone(toolset: Make) -> None:
    nest = "import os\nfor _ in range(2000):\n    os.mkdir('d'); os.chdir('d')\nopen('file', 'w')"

    result = refused(toolset(), f'python3 -c "{nest}"')

    assert result.error_code == "path_too_long"
    assert "it is 65 segments deep and 64 are allowed" in result.message


@pytest.mark.sampled(by_rule=True)
def test_long_names_below_too_many_directories_are_refused_and_undone(toolset: Make) -> None:
    name = "n" * 255
    nest = f"import os\nfor _ in range(500):\n    os.mkdir('{name}'); os.chdir('{name}')"

    tools = toolset()

    assert refused(tools, f'python3 -c "{nest}"').error_code == "path_too_long"
    assert shell(tools, f"echo x > {name}").success
    assert tools.filesystem.exists(f"/{name}")


@pytest.mark.sampled(by_rule=True)
def test_too_many_files_are_refused_and_undone(toolset: Make) -> None:
    tools = toolset(max_new_entries=100)

    result = refused(tools, "python3 -c \"for i in range(300): open(str(i), 'w')\"")

    assert result.error_code == "quota_exceeded"
    assert "left more than 100 new files and directories" in result.message
    assert shell(tools, "mkdir new && cd new && seq 50 | xargs touch").success


def test_a_command_may_fill_a_quota_but_not_exceed_it(toolset: Make) -> None:
    # There are 10 bytes in one file and one directory.
    tools = toolset(Limits(max_total_size=20, max_node_count=4))
    assert refused(tools, "printf 12345678901 > more").error_code == "quota_exceeded"
    assert refused(tools, "mkdir a b c").error_code == "quota_exceeded"
    assert shell(tools, "printf 1234567890 > more; mkdir a").success


def test_files_that_existed_before_a_command_are_not_refused(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "large").write_bytes(bytes(2000))
    limits = Limits(max_file_size=1000, max_total_size=100, max_node_count=1)
    files = HostFilesystem(tmp_path / "root", store=tmp_path / "store", limits=limits)
    (tmp_path / "root" / "more").write_text("")
    tools = Toolset(files.session, files, tools=[shell_tool(ShellOptions(sandbox="off"))])

    assert shell(tools, "rm more; touch large").success
    assert refused(tools, "echo x >> large").error_code == "file_too_large"


def test_reading_back_stops_at_the_deadline_of_the_call(toolset: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    tools = toolset()
    monkeypatch.setattr(running, "READING_BACK", -1.0)
    ticks = iter(range(0, 10**9, 1000))
    monkeypatch.setattr(running, "monotonic", lambda: next(ticks))

    before = tools.filesystem.tree().fingerprint
    result = shell(tools, "touch a b c", timeout=500)

    assert (result.success, result.error_code) == (False, "timed_out")
    assert "could not be read back within the 500 s of the call; all of them were undone" in result.summary_text
    assert tools.filesystem.tree().fingerprint == before


def test_a_scan_can_be_stopped_from_outside_and_everything_is_undone(toolset: Make) -> None:
    tools = toolset()
    before = tools.filesystem.tree().fingerprint
    cancellation = Cancellation()

    fs: Any = tools.filesystem
    with pytest.raises(TransactionCancelled), fs.checkout(read_back=ReadBack(check=cancellation.check)) as work:
        (Path(work.directory) / "new").write_text("x")
        cancellation.cancel()

    assert tools.filesystem.tree().fingerprint == before


def test_other_calls_of_the_session_continue_while_changes_are_read_back(toolset: Make) -> None:
    tools = toolset()
    fs: Any = tools.filesystem
    went_on: list[bool] = []

    def use_the_session() -> None:
        with tools.session.lock:
            went_on.append(True)

    def check() -> None:
        if not went_on:
            other = threading.Thread(target=use_the_session, daemon=True)
            other.start()
            other.join(60)
            assert went_on, "the scan holds the lock of the session"

    with fs.checkout(read_back=ReadBack(check=check)) as work:
        (Path(work.directory) / "new").write_text("x")

    assert tools.filesystem.read("/new").content == "x"


# Set-uid and set-gid


def test_set_uid_bits_of_files_that_a_command_leaves_are_removed(toolset: Make, tmp_path: Path) -> None:
    tools = toolset()

    result = shell(tools, "cp /bin/true tool; chmod 4755 tool; chmod 2700 src/app.py; mkdir d; cp -p tool d/other")

    assert result.value.set_id_removed == ("/d/other", "/src/app.py", "/tool")
    assert "set-uid and set-gid bits were removed from 3 entries: /d/other, /src/app.py, /tool" in result.summary_text
    modes = {path: tools.filesystem.stat(path).mode for path in ("/tool", "/src/app.py", "/d/other")}
    assert modes == {"/tool": 0o755, "/src/app.py": 0o700, "/d/other": 0o755}
    found = {path.name: path.stat().st_mode & 0o7000 for path in (tmp_path / "root").glob("**/*")}
    assert not any(found.values())


def test_an_existing_set_uid_bit_stays_until_the_content_changes(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    tool = tmp_path / "root" / "tool"
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o4755)
    files = HostFilesystem(tmp_path / "root", store=tmp_path / "store")
    tools = Toolset(files.session, files, tools=[shell_tool(ShellOptions(sandbox="off"))])

    assert shell(tools, "touch tool; echo x > other").value.set_id_removed == ()
    assert tool.stat().st_mode & 0o7777 == 0o4755

    assert shell(tools, "echo more >> tool; chmod 4755 tool").value.set_id_removed == ("/tool",)
    assert tool.stat().st_mode & 0o7777 == 0o755


@pytest.mark.parametrize("command", ["mv tool moved", "ln tool moved", "ln tool moved; mkdir d; ln tool d/other"])
def test_a_file_loses_its_set_uid_bit_under_all_its_names_and_an_undo_restores_it(tmp_path: Path, command: str) -> None:
    (tmp_path / "root").mkdir()
    tool, other = tmp_path / "root" / "tool", tmp_path / "root" / "other"
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o4755)
    other.hardlink_to(tool)
    files = HostFilesystem(tmp_path / "root", store=tmp_path / "store")
    tools = Toolset(files.session, files, tools=[shell_tool(ShellOptions(sandbox="off"))])
    before = {path: seen.essence for path, seen in record(tmp_path / "root").items()}

    done = shell(tools, command)

    names = {"/" + os.fsdecode(path) for path, seen in record(tmp_path / "root").items() if seen.kind == "file"}
    assert done.value.set_id_removed == tuple(sorted(names))
    assert names <= set(done.value.changed_paths or ())
    assert other.stat().st_mode & 0o7777 == files.stat("/other").mode == 0o755
    files.session.undo()
    assert {path: seen.essence for path, seen in record(tmp_path / "root").items()} == before


def test_set_gid_bits_of_directories_that_a_command_leaves_are_removed(toolset: Make, tmp_path: Path) -> None:
    tools = toolset()
    made = shell(
        tools, "mkdir -p d/inner; chmod 2755 d d/inner src; chmod 6755 .; cp /bin/true d/tool; chmod 2755 d/tool"
    )

    assert made.value.set_id_removed == ("/", "/d", "/d/inner", "/d/tool", "/src")
    modes = {path: tools.filesystem.stat(path).mode for path in ("/", "/d", "/d/inner", "/d/tool", "/src")}
    assert set(modes.values()) == {0o755}
    root = tmp_path / "root"
    assert not any(path.stat().st_mode & 0o7000 for path in (root, *root.glob("**/*")) if root.exists())


def test_the_root_of_a_checkout_is_named_by_its_path_if_it_loses_its_set_gid_bit() -> None:
    files = InMemoryFilesystem()
    files.mkdir("/src")
    with files.checkout("/src") as work:
        Path(work.directory).chmod(0o2755)
        (Path(work.directory) / "d").mkdir()
        (Path(work.directory) / "d").chmod(0o2700)
    assert work.set_id_removed == ("/src", "/src/d")
    assert (files.stat("/src").mode, files.stat("/src/d").mode) == (0o755, 0o700)


def test_an_existing_set_gid_bit_of_a_directory_stays_and_is_inherited(tmp_path: Path) -> None:
    (tmp_path / "root" / "shared").mkdir(parents=True)
    (tmp_path / "root" / "shared").chmod(0o2775)
    files = HostFilesystem(tmp_path / "root", store=tmp_path / "store")
    tools = Toolset(files.session, files, tools=[shell_tool(ShellOptions(sandbox="off"))])

    done = shell(tools, "chmod 2750 shared; mkdir -p shared/new/inner; echo x > shared/new/file; chmod 6755 shared/new")

    assert done.value.set_id_removed == ("/shared/new",)
    assert files.stat("/shared").mode == 0o2750
    assert files.stat("/shared/new").mode == 0o2755
    assert files.stat("/shared/new/inner").mode & 0o7000 == 0o2000
    assert (tmp_path / "root" / "shared" / "new").stat().st_mode & 0o7777 == 0o2755


@pytest.mark.parametrize("name", ["max_new_entries", "max_changed_bytes"])
def test_an_invalid_bound_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} is -1; give a whole number of at least 0, or None for no limit"):
        ShellOptions(**{name: -1})  # type: ignore[arg-type]
