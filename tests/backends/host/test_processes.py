"""Changes by background processes on the host and in a container: how they are attributed and rolled back."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.sampling import share
from weakfs import HostFilesystem, Session, Toolset
from weakfs.backends.container import Container, ContainerFilesystem
from weakfs.processes.background import ProcessesRunning, ProcessLimits
from weakfs.reducers import diff
from weakfs.reducers.events import EntryFound
from weakfs.reducers.external_trees import ExternalTrees
from weakfs.reducers.process_events import ProcessEnded, ProcessStarted
from weakfs.reducers.tree.node import EMPTY_TREE
from weakfs.tools import DEFAULT_TOOLS
from weakfs.tools.handlers import ProcessOptions, ShellOptions, process_tools, shell_tool

pytestmark = pytest.mark.usefixtures("never_hung")

TOOLS = (
    *(tool for tool in DEFAULT_TOOLS if tool.name != "shell"),
    shell_tool(ShellOptions(sandbox="off")),
    *process_tools(ProcessOptions(sandbox="off", process_limits=ProcessLimits(grace=0.2, max_running=None))),
)

# Follows instructions line by line, and reports when each is done.
WORKER = 'while read -r line; do eval "$line"; echo done; done'


class Workspace:
    """A directory with files, its session and toolset, and workers in it."""

    def __init__(self, place: Path, session: Session | None = None) -> None:
        self.place = place / "root"
        self.place.mkdir(exist_ok=True)
        self.session = Session() if session is None else session
        self.files = HostFilesystem(self.place, session=self.session, store=place / "store")
        self.tools = Toolset(self.session, self.files, tools=TOOLS)

    def call(self, name: str, **arguments: object) -> Any:
        result = self.tools.call(name, arguments)
        assert result.success, result.message
        return result.value

    def start(self, command: str = WORKER) -> str:
        process_id: str = self.call("process_start", command=command).process_id
        return process_id

    def have(self, process_id: str, line: str) -> None:
        """Have a worker do something, and wait until it is done."""
        before = self.call("process_output", process_id=process_id).total
        self.call("process_input", process_id=process_id, text=f"{line}\n")
        self.call("process_output", process_id=process_id, since=before, timeout=500)

    def causes(self, path: str) -> list[str | None]:
        return [record.cause for record in self.session.records if getattr(record.event, "path", None) == path]

    def known(self) -> object:
        trees = self.session[ExternalTrees].latest()
        assert trees is not None
        return trees.tree(self.files.filesystem_id).fingerprint


class ContainerWorkspace(Workspace):
    """The same in a directory of a container."""

    numbers = count()

    def __init__(self, place: Path, container: Container) -> None:
        root = f"/places/workspace{next(self.numbers)}"
        self.place = Path(container.path_of_files() + root)
        self.place.mkdir()
        self.session = Session()
        self.files: Any = ContainerFilesystem(self.session, container=container, root=root, store=place / "store")
        self.tools = Toolset(self.session, self.files, tools=TOOLS)

    def known(self) -> object:
        return self.files._workplace._expected(EMPTY_TREE).fingerprint


@pytest.fixture(params=["host", "container"])
def work(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Workspace]:
    if request.param == "host":
        found = Workspace(tmp_path)
    else:
        found = ContainerWorkspace(tmp_path, request.getfixturevalue("shared_container"))
    for name in ("a", "b"):
        found.files.write(f"/{name}.txt", f"{name}\n")
    yield found
    found.session.close()


# Who made which changes


def test_changes_by_a_process_are_attributed_to_it(work: Workspace) -> None:
    process = work.start("echo new > new.txt; mkdir -p d/e; echo x > d/e/f; rm b.txt; chmod 600 a.txt")

    end = work.call("process_wait", process_id=process)

    assert end.changed_paths == ("/a.txt", "/b.txt", "/d", "/d/e", "/d/e/f", "/new.txt")
    assert all(work.causes(path)[-1] == process for path in ("/a.txt", "/b.txt", "/d", "/d/e/f", "/new.txt"))
    assert work.known() == work.files.tree().fingerprint


def test_a_snapshot_finds_what_a_running_process_changed(work: Workspace) -> None:
    process = work.start()
    work.have(process, "echo one > log")

    work.session.snapshot("then")
    work.have(process, "echo two >> log")
    work.session.snapshot("later")

    assert work.causes("/log") == [process, process]
    assert work.known() == work.files.tree().fingerprint


def test_changes_that_several_processes_may_have_made_name_all_of_them(work: Workspace) -> None:
    one, two = work.start(), work.start()
    work.have(one, "echo one > log")

    work.session.snapshot()

    assert work.causes("/log") == [f"{one} or {two}"]


def test_a_process_that_ended_earlier_is_not_named(work: Workspace) -> None:
    one, two = work.start("true"), work.start()
    work.call("process_wait", process_id=one)
    work.have(two, "echo two > log")

    work.session.snapshot()

    assert work.causes("/log") == [two]


def test_changes_by_a_process_are_not_attributed_to_a_call(work: Workspace) -> None:
    process = work.start()
    work.have(process, "echo changed > a.txt; echo made > c.txt")

    edit = {"path": "/a.txt", "old_string": "changed", "new_string": "edited"}
    edited = work.tools.call("edit_file", edit, call_id="mine")

    assert edited.success
    found = [record for record in work.session.records if isinstance(record.event, EntryFound)]
    assert [(record.event.path, record.cause) for record in found[-1:]] == [("/a.txt", process)]
    assert work.causes("/a.txt")[-2:] == [process, "mine"]
    work.session.snapshot()
    assert work.causes("/c.txt") == [process]
    assert work.causes("/a.txt")[-1] == "mine"


def test_changes_by_another_program_before_the_start_are_attributed_to_nobody(work: Workspace) -> None:
    (work.place / "foreign").write_text("by hand")

    process = work.start("true")

    assert work.call("process_wait", process_id=process).changed_paths == ()
    assert work.causes("/foreign") == []
    assert work.known() == work.files.tree().fingerprint


def test_changes_by_an_unfinished_call_are_not_attributed_to_a_process(work: Workspace) -> None:
    process = work.start()
    work.have(process, "echo it > its")

    fork = work.session.fork()
    through = work.files.bind(fork)
    with fork.transaction(cause="unfinished"):
        through.write("/a.txt", "unfinished\n")
        changed = work.files.background.scan_changes()
        assert changed == ("/its",)

    assert work.causes("/a.txt")[1:] == []


def test_a_scan_that_is_rolled_back_is_repeated(work: Workspace) -> None:
    process = work.start("echo it > its")
    assert work.files.background.get(process).wait(None)
    with pytest.raises(RuntimeError), work.session.transaction():
        assert work.files.background.scan_changes() == ("/its",)
        raise RuntimeError

    assert work.files.background.scan_changes() == ("/its",)
    assert work.files.background.scan_changes() == ()


def test_set_id_bits_are_removed_from_files_that_a_process_leaves_on_the_host(work: Workspace) -> None:
    process = work.start("echo x > tool; chmod 6755 tool")

    work.call("process_wait", process_id=process)

    # In a container these bits have no effect, so they are kept.
    bits = 0o6755 if isinstance(work, ContainerWorkspace) else 0o755
    assert os.stat(work.place / "tool").st_mode & 0o7777 == bits


# Commands that need the files to themselves


def test_a_command_waits_for_processes_to_end(work: Workspace) -> None:
    process = work.start()

    refused = work.tools.call("shell", {"command": "echo x > x"})

    assert (refused.status, refused.error_code) == ("conflict", "processes_running")
    assert process in refused.message
    assert not (work.place / "x").exists()
    with pytest.raises(ProcessesRunning), work.files.checkout():
        pass
    work.have(process, "echo its > its")
    work.call("process_input", process_id=process, close=True)
    assert work.files.background.get(process).wait(None)
    assert work.call("shell", command="echo x > x").changed_paths == ("/x",)
    assert work.causes("/its") == [process]


def test_no_process_starts_while_a_command_has_the_files(work: Workspace) -> None:
    fork = work.session.fork()
    other = Toolset(fork, work.files.bind(fork), tools=TOOLS)
    with work.files.checkout():
        refused = other.call("process_start", {"command": "true"})

    assert (refused.status, refused.error_code) == ("conflict", "path_in_use")
    assert work.files.background.infos() == ()


# Rollbacks


def test_a_rollback_to_a_snapshot_ends_processes_first_and_is_exact(work: Workspace) -> None:
    work.session.snapshot("then")
    before = work.files.tree().fingerprint
    process = work.start(f"trap '' TERM; {WORKER}")
    work.have(process, "echo more >> a.txt; echo log > log")

    work.session.rollback("then")

    assert work.files.tree().fingerprint == before
    (ended,) = [record.event for record in work.session.records if isinstance(record.event, ProcessEnded)]
    assert (ended.process_id, ended.reason) == (process, "the session was rolled back")
    assert work.causes("/log")[0] == process
    assert work.session[ProcessStarted].all() == ()


def test_a_rollback_to_a_record_undoes_later_changes_by_processes(work: Workspace) -> None:
    process = work.start()
    work.have(process, "echo first > log")
    work.session.snapshot()
    seq, before = work.session.seq, work.files.tree().fingerprint
    work.have(process, "echo second >> log; rm a.txt; echo x > x")

    work.session.rollback(seq)

    assert work.files.tree().fingerprint == before
    listed = work.tools.call("process_list", {})
    assert "the session was rolled back" in listed.message
    last = work.session.records[-1].seq
    work.session.rollback(last)
    assert work.files.tree().fingerprint == before


def test_a_rollback_can_be_undone_including_the_changes_by_processes(work: Workspace) -> None:
    work.session.snapshot("then")
    process = work.start()
    work.have(process, "echo log > log")

    record = work.session.rollback("then")
    assert not (work.place / "log").exists()
    work.session.rollback(record.seq - 1)

    assert (work.place / "log").read_text() == "log\n"


def test_a_restore_says_which_processes_it_ended(work: Workspace) -> None:
    snapshot = work.files.snapshot()
    process = work.start()
    work.have(process, "echo log > log")

    assert not work.files.restore(snapshot, dry_run=True).notes
    report = work.files.restore(snapshot)

    assert [str(note) for note in report.notes] == [f"/: process {process} was stopped first"]
    assert not (work.place / "log").exists()


def test_a_rollback_that_is_refused_ends_nothing(work: Workspace) -> None:
    process = work.start()

    with pytest.raises(Exception, match="no snapshot"):
        work.session.rollback("no such snapshot")

    assert work.files.background.get(process).state == "running"


def test_a_call_that_fails_undoes_its_own_changes_only(work: Workspace) -> None:
    process = work.start()
    with pytest.raises(RuntimeError), work.session.transaction():
        work.files.write("/a.txt", "failed\n")
        work.files.write("/mine.txt", "failed\n")
        work.have(process, "echo its > its; echo more >> b.txt")
        raise RuntimeError

    assert {one.name: one.read_text() for one in work.place.iterdir()} == {
        "a.txt": "a\n",
        "b.txt": "b\nmore\n",
        "its": "its\n",
    }
    assert work.files.background.get(process).state == "running"
    work.session.snapshot()
    assert work.causes("/its")[-1] == process


def test_a_rollback_while_other_threads_write_is_exact(work: Workspace) -> None:
    work.session.snapshot("then")
    before = work.files.tree().fingerprint
    count = share(10)
    for i in range(count):
        work.start(
            f"i=0; while :; do i=$((i+1)); echo $i >> a.txt; mkdir -p d{i}/$((i % 7)); echo $i > d{i}/$((i % 7))/f; "
            f"rm -rf d{i}/$(((i + 3) % 7)); done"
        )
    for i in range(count):
        while not (work.place / f"d{i}").exists():
            time.sleep(0.01)
    work.session.snapshot("while they write")

    work.session.rollback("then")

    assert work.files.tree().fingerprint == before
    assert work.files.background.infos() == ()


def test_a_call_fails_while_other_threads_write(work: Workspace) -> None:
    for i in range(share(10)):
        work.start(f"while :; do echo {i} >> log{i}; rm -f log{i}; done")
    for _ in range(share(20)):
        with pytest.raises(RuntimeError), work.session.transaction():
            work.files.write("/a.txt", "failed\n")
            work.files.delete("/b.txt")
            work.files.move("/a.txt", "/c.txt")
            raise RuntimeError
        assert sorted(one.name for one in work.place.iterdir() if not one.name.startswith("log")) == ["a.txt", "b.txt"]
        assert (work.place / "a.txt").read_text() == "a\n"


def test_a_durable_session_records_the_same(tmp_path: Path) -> None:
    session = Session.open(tmp_path / "sessions", "s")
    work = Workspace(tmp_path, session)
    work.files.write("/a.txt", "a\n")
    session.snapshot("then")
    process = work.start("echo log > log")
    assert work.call("process_wait", process_id=process).changed_paths == ("/log",)
    session.rollback("then")
    running = work.start("sleep 1000")
    session.close()

    again = Workspace(tmp_path, Session.open(tmp_path / "sessions", "s"))

    (info,) = again.files.background.infos()
    assert (info.process_id, info.state, info.reason) == (running, "ended", "its session was closed")
    assert again.causes("/log")[0] == process
    assert sorted(one.name for one in work.place.iterdir()) == ["a.txt"]
    again.session.close()


def test_changes_by_a_process_can_be_reverted_and_undone(work: Workspace) -> None:
    process = work.start("echo new > new.txt; rm b.txt; echo more >> a.txt")
    work.call("process_wait", process_id=process)
    work.files.write("/later", "x\n")
    before = work.files.tree()

    assert work.session.revert(process).paths == ("/a.txt", "/b.txt", "/new.txt")
    assert {entry.path: work.files.read(entry.path).content for entry in work.files.walk()} == {
        "/a.txt": "a\n",
        "/b.txt": "b\n",
        "/later": "x\n",
    }
    assert work.tools.call("process_list", {}).message.count(process) == 1
    work.session.undo()
    assert not diff(work.files.tree(), before)


def test_an_undo_undoes_changes_by_a_running_process(work: Workspace) -> None:
    process = work.start()
    work.have(process, "echo one > log")

    assert work.session.undo().paths == ("/log",)
    assert not work.files.exists("/log")
    # In a container, a restore is recorded entry by entry.
    assert work.causes("/log") == [process, *([f"undo {process}"] if isinstance(work, ContainerWorkspace) else [])]
