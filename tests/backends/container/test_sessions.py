"""Containers of sessions that are saved, loaded, forked and resumed."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from tempfile import mkdtemp

import pytest

from tests.containers import IMAGE, image_archive, state
from tests.containers import opened as storage
from tests.forked_command import run_command
from weakfs import HostFilesystem, HostMount, InMemoryFilesystem, MergeConflict, Session
from weakfs.backends.container import (
    ContainerFilesystem,
    ContainerNotFound,
    ImageNotFound,
    Podman,
    PodmanError,
    PodmanUnavailable,
)
from weakfs.backends.container.commands import command
from weakfs.backends.container.lifecycle.listing import containers
from weakfs.backends.container.lifecycle.podman import labelled
from weakfs.processes import CommandLimits
from weakfs.reducers import ExternalFsSnapshot
from weakfs.tools.handlers import ShellReceipt
from weakfs.tools.sections import PodmanSection, Prompt, dispatch_tool_call


@pytest.fixture(scope="module")
def _others(podman: Podman) -> set[str]:
    return set(labelled(podman, "weakfs.session"))


@pytest.fixture(autouse=True)
def _nothing_is_left(podman: Podman, _others: set[str]) -> Iterator[None]:
    yield
    left = labelled(podman, "weakfs.session")
    for one in left:
        if one not in _others:
            podman.run("rm", "--force", "--time", "0", one)


def opened(podman: Podman, session: Session, store: Path, **options: object) -> ContainerFilesystem:
    return ContainerFilesystem(session, image=IMAGE, store=store, runtime=podman, **options)  # type: ignore[arg-type]


CHANGE = "rm -r /usr/lib/pkg; mkdir /usr/lib/pkg; echo b > /usr/lib/pkg/b; rm /etc/motd; chmod 700 /var; ln -s a link"


@pytest.mark.slow
@pytest.mark.sampled(by_rule=True)
@pytest.mark.parametrize("kind", ["tree", "tar"])
def test_a_container_is_recreated_elsewhere_as_it_was(podman: Podman, tmp_path: Path, kind: str) -> None:
    session = Session()
    files = opened(podman, session, tmp_path / "one", snapshots=kind)
    files.exec(CHANGE)
    files.snapshot()
    files.exec("echo later > later; rm /bin/sleep; echo more >> /usr/lib/pkg/b; chmod 711 /usr/lib")
    before = state(files)
    session.save(tmp_path / "session.json")
    files.container.remove()

    loaded = Session.load(tmp_path / "session.json")
    again = opened(podman, loaded, tmp_path / "other", snapshots=kind)
    assert without_times(state(again)) == without_times(before)
    again.restore(loaded[ExternalFsSnapshot].all()[-1])
    assert not again.exists("later")
    assert again.read("/usr/lib/pkg/b").content == "b\n"


def without_times(found: list[tuple[object, ...]]) -> list[tuple[object, ...]]:
    return [(*entry[:3], *entry[4:]) for entry in found]


@pytest.mark.slow
@pytest.mark.parametrize("has_snapshot", [False, True])
@pytest.mark.parametrize("goes_on", [False, True])
def test_a_container_of_a_compacted_session_is_recreated_as_it_was(
    podman: Podman, tmp_path: Path, has_snapshot: bool, goes_on: bool
) -> None:
    session = Session()
    files = opened(podman, session, tmp_path / "one")
    files.exec(f"echo 1 > a; echo 2 > b; {CHANGE}")
    if has_snapshot:
        files.snapshot()
    files.exec("echo 3 > c; rm b")
    session.compact(keep=1)
    if goes_on:
        files.exec("echo 4 > a; rm c; echo 5 > /etc/motd")
    before = files.tree().fingerprint
    session.save(tmp_path / "session.json")
    files.container.remove()
    again = opened(podman, Session.load(tmp_path / "session.json"), tmp_path / "one")
    assert again.tree().fingerprint == before
    again.container.remove()


@pytest.mark.slow
def test_the_next_process_finds_the_container_of_one_that_ended(podman: Podman, tmp_path: Path) -> None:
    session = Session()
    files = opened(podman, session, tmp_path)
    files.exec("echo kept > kept")
    session.save(tmp_path / "session.json")
    with pytest.raises(OSError, match="another process uses it"):
        opened(podman, Session.load(tmp_path / "session.json"), tmp_path)
    name = files.container.name
    files.container.close()
    again = opened(podman, Session.load(tmp_path / "session.json"), tmp_path)
    assert again.container.name == name
    assert again.read("kept").content == "kept\n"


@pytest.mark.slow
def test_a_container_that_was_stopped_is_started_when_it_is_needed(podman: Podman, tmp_path: Path) -> None:
    files = opened(podman, Session(), tmp_path)
    files.exec("echo kept > kept")
    files.container.stop()
    assert not files.container.is_running
    assert files.read("kept").content == "kept\n"
    assert files.exec("cat kept").stdout == "kept\n"


def test_one_rollback_covers_memory_a_directory_a_container_and_the_conversation(
    podman: Podman, tmp_path: Path
) -> None:
    (tmp_path / "host").mkdir()
    session = Session()
    memory = InMemoryFilesystem(session)
    host = HostFilesystem(tmp_path / "host", session=session, store=tmp_path / "host-store")
    files = opened(podman, session, tmp_path / "store")
    for one in (memory, host, files):
        one.write("/workspace/a", "before")
    session.snapshot("before")
    trees = [one.tree().fingerprint for one in (memory, host, files)]
    for one in (memory, host, files):
        one.write("/workspace/a", "after")
    files.exec("rm -r /usr/lib/pkg")
    session.save(tmp_path / "session.json")
    files.container.remove()

    loaded = Session.load(tmp_path / "session.json")
    memory = InMemoryFilesystem(loaded)
    host = HostFilesystem(tmp_path / "host", session=loaded, store=tmp_path / "host-store")
    files = opened(podman, loaded, tmp_path / "other")
    assert files.read("a").content == "after"
    assert not files.exists("/usr/lib/pkg")
    loaded.rollback("before")
    assert [one.tree().fingerprint for one in (memory, host, files)] == trees


def test_missing_containers_and_images_are_named(podman: Podman, tmp_path: Path) -> None:
    with pytest.raises(ImageNotFound, match="podman pull no-such-image"):
        ContainerFilesystem(image="no-such-image", store=tmp_path, runtime=podman)
    with pytest.raises(ContainerNotFound, match="no-such-container"):
        ContainerFilesystem(container="no-such-container", store=tmp_path, runtime=podman)
    with pytest.raises(PodmanUnavailable, match="no program 'podman-that-is-missing'"):
        ContainerFilesystem(image=IMAGE, store=tmp_path, runtime=Podman("podman-that-is-missing"))
    with pytest.raises(ValueError, match="either image= to create one, or container="):
        ContainerFilesystem(store=tmp_path, runtime=podman)


@pytest.mark.exhaustive
def test_a_snapshot_of_another_image_is_refused(podman: Podman, tmp_path: Path) -> None:
    podman.run("import", "--quiet", "-", "localhost/weakfs-other:latest", input=image_archive(files=1))
    session = Session()
    files = opened(podman, session, tmp_path / "one")
    snapshot = files.snapshot()
    other = ContainerFilesystem(image="localhost/weakfs-other:latest", store=tmp_path / "other", runtime=podman)
    with pytest.raises(ValueError, match="taken in a container of the image sha256:"):
        other.restore(snapshot, foreign=True)


@pytest.mark.slow
def test_a_fork_starts_from_the_same_files_and_is_merged_back(podman: Podman, tmp_path: Path) -> None:
    session = Session()
    files = opened(podman, session, tmp_path)
    files.exec(CHANGE + "; chown -h 0:0 link; printf '1\\n2\\n3\\n4\\n5\\n' > text")
    forked = files.fork(session.fork())
    assert without_times(state(forked)) == without_times(state(files))
    forked.exec("sed -i 's/^5/five/' text 2>/dev/null || printf '1\n2\n3\n4\nfive\n' > text; echo theirs > theirs")
    files.write("text", "one\n2\n3\n4\n5\n")
    files.delete("/usr/lib/pkg/b")
    assert files.merge(forked) == ("/workspace/text", "/workspace/theirs")
    assert files.exec("cat text theirs").stdout == "one\n2\n3\n4\nfive\ntheirs\n"
    assert not files.exists("/usr/lib/pkg/b")
    assert forked.exists("/usr/lib/pkg/b")

    forked.write("text", "theirs\n")
    files.write("text", "ours\n")
    before = state(files)
    with pytest.raises(MergeConflict, match="/workspace/text"):
        files.merge(forked)
    assert state(files) == before


@pytest.mark.slow
def test_a_snapshot_can_be_an_image(podman: Podman, tmp_path: Path) -> None:
    session = Session()
    files = opened(podman, session, tmp_path, snapshots="image")
    files.exec(CHANGE)
    before = state(files)
    snapshot = files.snapshot()
    files.exec("rm -r /usr/lib/pkg /var; echo x > /etc/motd")
    files.restore(snapshot)
    # An image stores times in whole seconds.
    assert without_times(state(files)) == without_times(before)
    before = state(files)
    podman.run("rmi", "--force", snapshot.ref)
    with pytest.raises(ImageNotFound):
        files.restore(snapshot)
    assert state(files) == before


@pytest.mark.slow
def test_a_section_has_the_tools_and_the_files_of_a_container(podman: Podman, tmp_path: Path) -> None:
    session = Session()
    with PodmanSection(session=session, image=IMAGE, store=tmp_path, runtime=podman) as section:
        prompt = Prompt(sections=[section])
        text = " ".join(prompt.render().text.split())
        assert "Commands run in `/workspace`, and relative paths start there. There is no network access." in text
        done = dispatch_tool_call(prompt, "write_file", {"path": "a.txt", "content": "hello\n"}, session=session)
        assert done.success
        done = dispatch_tool_call(prompt, "shell", {"command": "cat a.txt; rm a.txt"}, session=session)
        assert isinstance(done.value, ShellReceipt)
        assert (done.value.stdout, done.value.changed_paths) == ("hello\n", ("/workspace/a.txt",))
        done = dispatch_tool_call(prompt, "eval", {"code": "1 + 1"}, session=session)
        assert isinstance(done.value, ShellReceipt)
        # The image has no Python.
        assert done.value.exit_code == 127
        assert prompt.filesystem() is section.filesystem
    assert section.filesystem.container.is_closed
    section.remove()


@pytest.mark.slow
def test_mounts_are_copied_into_a_new_container_once(podman: Podman, tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "a.txt").write_text("of the host\n")
    session = Session()
    mounts = [HostMount(tmp_path / "project")]
    files = opened(podman, session, tmp_path / "store", mounts=mounts)
    assert files.exec("cat a.txt; echo changed > a.txt").stdout == "of the host\n"
    session.save(tmp_path / "session.json")
    files.container.remove()
    again = opened(podman, Session.load(tmp_path / "session.json"), tmp_path / "other", mounts=mounts)
    assert again.read("a.txt").content == "changed\n"
    assert (tmp_path / "project" / "a.txt").read_text() == "of the host\n"


def test_files_belong_to_the_user_of_the_commands(podman: Podman, tmp_path: Path) -> None:
    files = opened(podman, Session(), tmp_path, user="1000:1000")
    files.write("a.txt", "hello\n")
    assert files.exec("id -u; echo more >> a.txt; cat a.txt; mkdir sub; rm a.txt").stdout == "1000\nhello\nmore\n"
    files.write("sub/b.txt", "b")
    assert files.exec("stat -c %u:%g sub/b.txt; echo x > sub/b.txt").exit_code == 0


def test_recording_may_be_limited_to_the_workspace(podman: Podman, tmp_path: Path) -> None:
    files = opened(podman, Session(), tmp_path, root="/workspace")
    files.write("/a.txt", "a\n")
    done = files.exec("pwd; cat a.txt; echo b > b.txt; echo x > /var/outside")
    assert (done.stdout, done.changed) == ("/workspace\na\n", ("/b.txt",))
    with pytest.raises(TimeoutError):
        files.exec("rm *.txt; sleep 60", timeout=0.3)
    assert [entry.path for entry in files.list()] == ["/a.txt", "/b.txt"]


@pytest.mark.slow
def test_the_command_lists_containers_and_removes_unused_ones(podman: Podman, tmp_path: Path) -> None:
    words = [f"--option={one}" for one in podman.options]
    printed("containers", "--remove", *words)
    others, lines = containers(podman), printed("containers", *words).splitlines()
    assert all(one.is_in_use for one in others)
    used = opened(podman, Session(session_id="used"), tmp_path / "one")
    left = opened(podman, Session(session_id="left"), tmp_path / "two")
    left.close()
    found = set(printed("containers", *words).splitlines()).difference(lines)
    assert sorted(" ".join(line.split()[1:]) for line in found) == ["in use used container", "stopped left container"]
    removed = printed("containers", "--remove", "--json", *words)
    assert [one["container"] for one in map(json.loads, removed.splitlines())] == [left.container.name]
    assert [one.session_id for one in containers(podman) if one not in others] == ["used"]
    assert used.exec("true").exit_code == 0


def printed(*words: str) -> str:
    done = run_command(*words)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.exhaustive
def test_a_storage_driver_without_layers_works_as_well(podman: Podman, tmp_path: Path) -> None:
    folder = Path(mkdtemp(prefix="wv"))
    podman = storage(folder, driver="vfs")
    podman.run("import", "--quiet", "-", IMAGE, input=image_archive())
    session = Session()
    files = opened(podman, session, tmp_path / "one")
    try:
        before, snapshot = state(files), files.snapshot()
        files.exec(CHANGE + "; chown 0:0 link")
        assert state(files) != before
        with pytest.raises(TimeoutError):
            files.exec("rm -r /usr; sleep 60", timeout=0.3)
        files.restore(snapshot)
        assert state(files) == before
    finally:
        files.container.remove()
        podman.run("rmi", "--all", "--force")
        shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.slow
def test_a_container_that_cannot_be_opened_is_not_left_behind(podman: Podman, tmp_path: Path) -> None:
    others = containers(podman)
    with pytest.raises(ValueError, match="outside '/workspace'"):
        opened(podman, Session(), tmp_path, root="/workspace", workdir="/var")
    assert containers(podman) == others
    with pytest.raises(PodmanError, match="no-such-network"):
        opened(podman, Session(), tmp_path, network="no-such-network")
    assert containers(podman) == others


@pytest.mark.slow
def test_the_examples_of_the_design_documents_work_under_our_names(podman: Podman, tmp_path: Path) -> None:
    class TestFailure(Exception):
        pass

    def run_tests() -> None:
        raise TestFailure

    session = Session()
    backend = opened(podman, session, tmp_path / "one", workdir="/workspace")
    backend.write("config.json", "old")
    # A manual snapshot before a risky operation.
    fs_snapshot = backend.snapshot()
    try:
        backend.write("config.json", "new")
        run_tests()
    except TestFailure:
        backend.restore(fs_snapshot)
    assert backend.read("config.json").content == "old"

    # The state of the container in a slice of the session, saved and loaded; the slice is filled by snapshot().
    session.save(tmp_path / "session.json")
    backend.write("config.json", "later")
    backend.container.remove()
    session = Session.load(tmp_path / "session.json")
    backend = opened(podman, session, tmp_path / "two", workdir="/workspace")
    snapshot = session.query(ExternalFsSnapshot).latest()
    assert snapshot is not None
    backend.restore(snapshot)
    assert backend.read("config.json").content == "old"


def test_a_container_may_be_read_only(podman: Podman, tmp_path: Path) -> None:
    files = opened(podman, Session(), tmp_path, read_only=True)
    assert files.read("/etc/motd").content == "from the image\n"
    for change in (lambda: files.write("a.txt", "a"), lambda: files.exec("true")):
        with pytest.raises(PermissionError):
            change()
    assert command.run_command(
        files.container._supervisor,
        "echo x > /etc/motd",
        workdir="/",
        environment={},
        timeout=300,
        max_output=1000,
        limits=CommandLimits(),
    ).stderr.endswith("Read-only file system\n")


@pytest.mark.slow
def test_the_permission_bits_of_a_directory_are_restored_after_a_command_changed_an_entry_in_it(
    podman: Podman, tmp_path: Path
) -> None:
    files = opened(podman, Session(), tmp_path / "store")
    files.exec("mkdir -p d/e; echo old > d/e/kept; chmod 2775 d; chmod 750 d/e")
    session = Session()
    again = ContainerFilesystem(session, container=files.container.name, store=tmp_path / "other", runtime=podman)
    before = again.tree().fingerprint
    again.exec("echo new > d/e/kept")
    again.exec("chmod 700 d; mv d/e moved")

    session.undo(2)

    assert again.tree().fingerprint == before
