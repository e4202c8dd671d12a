"""Sessions, files in memory and tools work on systems other than Linux and POSIX; the rest says what it needs."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path

import pytest

import weakfs
from tests.other_platforms import Platform, run_on
from tests.sampling import is_exhaustive
from weakfs import HostFilesystem, Session

PLATFORMS: tuple[Platform, ...] = ("win32", "darwin")

CONFORMANCE = """
from itertools import count
from weakfs import InMemoryFilesystem, Limits, OverlayFilesystem, Session
from weakfs.testing import FilesystemConformance


def session():
    ticks = count(1_700_000_000_000_000_000, 1_000_000)
    return Session(clock=lambda: next(ticks))


class TestMemory(FilesystemConformance):
    def make_fs(self, *, prepare=None, limits=None, read_only=False, follow_symlinks="deny"):
        own = session()
        if prepare is not None:
            prepare(InMemoryFilesystem(own))
        return InMemoryFilesystem(
            own, limits=limits or Limits(), read_only=read_only, follow_symlinks=follow_symlinks
        )
"""

RUN_CONFORMANCE = """
import pytest


class OneOfEach:
    @pytest.hookimpl(wrapper=True)
    def pytest_generate_tests(self, metafunc):
        yield
        del metafunc._calls[1:]


plugins = [] if IS_EXHAUSTIVE else [OneOfEach()]
sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", "--capture=sys", "test_memory.py"], plugins))
"""

WORK = """
import weakfs
from weakfs.reducers import FileTree

session = weakfs.Session()
files = weakfs.InMemoryFilesystem(session)
toolset = weakfs.Toolset(session, files)
calls = [
    ("write_file", {"path": "/src/app.py", "content": "port = 80\\n"}),
    ("edit_file", {"path": "/src/app.py", "old_string": "80", "new_string": "8080"}),
    ("apply_patch", {"patch": "*** Begin Patch\\n*** Add File: /a\\n+one\\n*** End Patch"}),
    ("read_file", {"path": "/a"}),
    ("ls", {"path": "/"}),
    ("glob", {"pattern": "**/*.py"}),
    ("grep", {"pattern": "port"}),
    ("mkdir", {"path": "/docs"}),
    ("cp", {"source": "/a", "destination": "/docs/a"}),
    ("mv", {"source": "/docs/a", "destination": "/docs/b"}),
    ("stat", {"path": "/docs/b"}),
    ("exists", {"path": "/docs/a"}),
    ("rm", {"path": "/a"}),
]
for name, arguments in calls:
    result = toolset.call(name, arguments)
    assert result.success, (name, result.message)
assert {name for name, _ in calls} == {tool.name for tool in weakfs.DEFAULT_TOOLS} - {"shell"}
assert not toolset.call("edit_file", {"path": "/src/app.py", "old_string": "x = 1", "new_string": "x"}).success

session.snapshot("worked")
large = bytes(range(256)) * 50_000
files.write_bytes("/large", large)
session.save("session.json")
session.save("session.json")
loaded = weakfs.Session.load("session.json")
again = weakfs.InMemoryFilesystem(loaded)
assert again.read_bytes("/large").content == large
assert again.tree().fingerprint == files.tree().fingerprint
loaded.rollback("worked")
assert not again.exists("/large")
assert sorted(os.listdir()) == ["session.json"]

overlay = weakfs.OverlayFilesystem(again, weakfs.Session())
overlay.write("/src/app.py", "port = 81\\n")
overlay.session.save("overlay.json")
resumed = weakfs.OverlayFilesystem(again, weakfs.Session.load("overlay.json"))
assert resumed.read("/src/app.py").content == "port = 81\\n"
assert again.read("/src/app.py").content == "port = 8080\\n"
resumed.commit()
assert again.read("/src/app.py").content == "port = 81\\n"
archive = again.export_bytes()
files.import_bytes(archive)
assert files.tree().fingerprint == again.tree().fingerprint
"""


SAVE_WITH_SIDECAR = """
import weakfs
from weakfs.reducers.events import TreeSeen
from weakfs.snapshots import to_tar

loaded = weakfs.Session.load("host.json")
loaded.save("again.json")
loaded.save("again.json")
assert {"again.json", "again.json.blobs"} <= set(os.listdir()), os.listdir()
again = weakfs.Session.load("again.json")
files = weakfs.InMemoryFilesystem(again)
seen = [record.event for record in again.records if isinstance(record.event, TreeSeen)]
files.import_bytes(to_tar(seen[-1].tree))
print(files.tree().digest)
"""

COMMANDS = """
import contextlib, io, weakfs
from weakfs.cli import main

session = weakfs.Session()
weakfs.Toolset(session).call("write_file", {"path": "/a", "content": "one"})
session.save("session.json")
for words in (["--version"], ["log", "session.json"], ["ls", "session.json"], ["stats", "session.json"]):
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        assert main(words) == 0, words
    assert printed.getvalue(), words
"""

REFUSED = """
import weakfs, errno, json
from weakfs.processes import run_command
from weakfs.tools.sections import WorkspaceSection


def said(call):
    try:
        call()
    except OSError as error:
        assert error.errno == errno.ENOTSUP
        return str(error)


session = weakfs.Session()
toolset = weakfs.Toolset(session)
print(json.dumps({
    "host": said(lambda: weakfs.HostFilesystem(".")),
    "mount": said(lambda: weakfs.InMemoryFilesystem(mounts=[weakfs.HostMount(".")])),
    "command": said(lambda: run_command("true", ".", sandbox="off")),
    "section": said(lambda: WorkspaceSection(session=session)),
    "shell": toolset.call("shell", {"command": "true"}).message,
}))
"""


def test_files_in_memory_pass_the_conformance_suite_on_windows(tmp_path: Path) -> None:
    (tmp_path / "test_memory.py").write_text(CONFORMANCE)
    printed = run_on("win32", f"IS_EXHAUSTIVE = {is_exhaustive()}\n{RUN_CONFORMANCE}", tmp_path)
    assert " passed" in printed


@pytest.mark.sampled(by_rule=True)
@pytest.mark.parametrize("platform", PLATFORMS)
def test_the_command_line_shows_sessions(platform: Platform, tmp_path: Path) -> None:
    run_on(platform, COMMANDS, tmp_path)


@pytest.mark.sampled(by_rule=True)
@pytest.mark.parametrize("platform", PLATFORMS)
def test_every_package_can_be_imported(platform: Platform, tmp_path: Path) -> None:
    root = Path(weakfs.__file__).parent
    packages = [".".join(path.parent.relative_to(root.parent).parts) for path in root.rglob("__init__.py")]
    # Packages of other projects import modules that only the real platform has.
    packages = [name for name in packages if not name.startswith("weakfs.integrations.")]
    if find_spec("textual") is None:
        packages.remove("weakfs.cli.terminal")
    run_on(platform, "".join(f"import {name}\n" for name in packages), tmp_path)


@pytest.mark.parametrize("platform", PLATFORMS)
def test_errors_for_features_that_need_linux_name_the_platform_and_the_alternative(
    platform: Platform, tmp_path: Path
) -> None:
    said: dict[str, str] = json.loads(run_on(platform, REFUSED, tmp_path))
    for message in said.values():
        assert f"that needs Linux (open with O_PATH, flock, fork), and this platform is {platform!r}; " in message
    assert said["host"].startswith("cannot open '.' as a HostFilesystem: ")
    assert said["host"].endswith("use an InMemoryFilesystem, with import_bytes and export_bytes for tar archives")
    assert said["mount"].startswith("cannot mount '.': ")
    assert said["shell"].startswith("cannot run a command: ")


@pytest.mark.parametrize("platform", PLATFORMS)
def test_contents_in_a_sidecar_directory_are_read_and_saved(platform: Platform, tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    # More files than are synced one by one, one of them with a hole, and one that is copied by the system.
    for number in range(20):
        (root / f"{number}.txt").write_text(f"number {number}\r\n", newline="")
    (root / "large").write_bytes(bytes(1 << 20) + bytes(range(256)) * (1 << 13))
    session = Session()
    host = HostFilesystem(root, session=session, store=tmp_path / "store")
    session.snapshot("start")
    session.save(tmp_path / "host.json")
    assert (tmp_path / "host.json.blobs").is_dir()
    printed = run_on(platform, SAVE_WITH_SIDECAR, tmp_path)
    assert printed.split() == [host.tree().digest]


@pytest.mark.sampled(by_rule=True)
@pytest.mark.parametrize("platform", PLATFORMS)
def test_tools_overlays_saving_and_loading_work(platform: Platform, tmp_path: Path) -> None:
    run_on(platform, WORK, tmp_path)
