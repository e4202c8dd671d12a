"""Changes by commands in a container are recorded, and undone exactly."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from attrs import evolve

from tests.containers import IMAGE, state
from tests.sampling import sample
from weakfs import Limits, Session
from weakfs.backends.container import ContainerFilesystem, Podman
from weakfs.backends.container.layers.attributes import AttributeRestore
from weakfs.processes import CommandLimits
from weakfs.reducers.events import EntryDeleted, FileWritten
from weakfs.snapshots import restore
from weakfs.snapshots.undo_journal.cross_device_rename import rename_or_create

# Each changes the image's files in a way that an overlay mount stores differently.
CHANGES = {
    "a new file": "echo new > /workspace/new",
    "a changed file": "echo more >> /etc/motd",
    "a deleted file": "rm /etc/motd",
    "a deleted directory": "rm -r /usr/lib/pkg",
    "a directory created again": "rm -r /usr/lib/pkg; mkdir /usr/lib/pkg; echo b > /usr/lib/pkg/b",
    "directories created again": "rm -r /usr; mkdir -p /usr/lib/pkg; echo b > /usr/lib/pkg/b",
    "a file in place of a directory": "rm -r /usr/lib/pkg; echo f > /usr/lib/pkg",
    "a directory in place of a file": "rm /etc/motd; mkdir /etc/motd; echo f > /etc/motd/f",
    "a moved directory": "mv /usr/lib/pkg /var/pkg",
    "permission bits": "chmod 751 /usr/lib/pkg; chmod 4711 /usr/lib/pkg/a",
    "an owner": "chown 5:6 /etc/motd; chown -R 7:8 /usr/lib/pkg",
    "a link": "ln -s /etc/passwd /workspace/link; ln -sfn nowhere /usr/lib/pkg/a",
    "a hard link": "ln /etc/motd /workspace/motd; echo x > /workspace/x; ln /workspace/x /workspace/y",
    "a FIFO": "mkfifo /workspace/fifo",
    "the root": "chmod 711 /; echo top > /top",
    "odd names": "touch '/workspace/a b' \"/workspace/$(printf 'new\\nline')\"; mkdir '/workspace/\\back'",
    "times": "touch -t 200001010000 /etc/motd /usr/lib/pkg",
}


@pytest.mark.sampled(by_rule=True)
@pytest.mark.parametrize("change", sample(list(CHANGES)))
def test_a_restore_is_exact(files: ContainerFilesystem, change: str) -> None:
    before, tree = state(files), files.tree()
    snapshot = files.snapshot()
    assert files.exec(f"set -e; {CHANGES[change]}").exit_code == 0
    changed = state(files)
    assert changed != before
    after = files.snapshot()
    files.restore(snapshot)
    assert state(files) == before
    assert files.tree().fingerprint == tree.fingerprint
    files.restore(after)
    assert state(files) == changed


@pytest.mark.parametrize("change", sample(list(CHANGES)))
def test_a_command_that_times_out_is_undone(files: ContainerFilesystem, change: str) -> None:
    before = state(files)
    with pytest.raises(TimeoutError, match="were undone"):
        files.exec(f"{CHANGES[change]}; sleep 60", timeout=0.2)
    assert state(files) == before


# Two files with equal contents, permission bits and times, each with two names.
EQUAL = "echo same > a; ln a b; cp -p a x; touch -r a x; ln x y"


@pytest.mark.parametrize("change", ["ln -f x a", "ln -f y b; ln -f a x", "cp -p b q; mv q a; touch -r b a"])
def test_hard_links_and_separate_files_are_restored(files: ContainerFilesystem, change: str) -> None:
    files.exec(EQUAL)
    before, names = state(files), names_of_files(files)
    snapshot = files.snapshot()
    files.exec(change)
    assert names_of_files(files) != names
    files.restore(snapshot)
    assert (state(files), names_of_files(files)) == (before, names)
    with pytest.raises(TimeoutError):
        files.exec(f"{change}; sleep 60", timeout=0.2)
    assert (state(files), names_of_files(files)) == (before, names)


def names_of_files(files: ContainerFilesystem) -> list[list[str]]:
    """Return the names of each file in the working directory."""
    found: dict[int, list[str]] = {}
    for entry in os.scandir(f"{files.container.path_of_files()}/workspace"):
        found.setdefault(entry.inode(), []).append(entry.name)
    return sorted(sorted(names) for names in found.values())


@pytest.mark.parametrize("prefix", ["user.overlay.", "user.fuseoverlayfs."])
def test_a_command_cannot_hide_files_of_the_image_with_an_attribute(files: ContainerFilesystem, prefix: str) -> None:
    files.exec("echo new > /usr/lib/pkg/new")
    # A program in the container may set this attribute.
    os.setxattr(f"{files.container.path_of_files()}/usr/lib/pkg", f"{prefix}opaque", b"y")
    files.exec("true")
    before, snapshot = state(files), files.snapshot()
    files.exec("rm /usr/lib/pkg/a")
    files.restore(snapshot)
    assert state(files) == before
    assert files.read("/usr/lib/pkg/a").content == "a of the image\n"


@pytest.mark.slow
@pytest.mark.parametrize("options", ["metacopy=on", "redirect_dir=on"])
def test_layers_that_refer_to_the_image_are_restored(podman: Podman, tmp_path: Path, options: str) -> None:
    referring = evolve(podman, options=(*podman.options, "--storage-opt", f"overlay.mountopt=nodev,{options}"))
    files = ContainerFilesystem(Session(), image=IMAGE, store=tmp_path, runtime=referring)
    try:
        files.exec("chmod 600 /etc/motd; mv /usr/lib/pkg /usr/lib/moved")
        before, snapshot = state(files), files.snapshot()
        files.exec("echo other > /etc/motd; rm -r /usr/lib/moved")
        with pytest.raises(TimeoutError, match="were undone"):
            files.exec("chmod 700 /etc/motd; mv /usr/lib /usr/other; sleep 60", timeout=0.3)

        files.restore(snapshot)

        assert state(files) == before
        assert files.read("/etc/motd").content == "from the image\n"
        assert files.read("/usr/lib/moved/a").content == "a of the image\n"
    finally:
        files.container.remove()


def test_extended_attributes_are_restored(files: ContainerFilesystem) -> None:
    place = f"{files.container.path_of_files()}/etc/motd"
    files.write("/workspace/a", "a")
    os.setxattr(f"{files.container.path_of_files()}/workspace/a", "user.origin", b"a test")
    before, snapshot = state(files), files.snapshot()
    os.setxattr(place, "user.origin", b"another")
    files.delete("/workspace/a")
    assert state(files) != before
    files.restore(snapshot)
    assert state(files) == before


def test_the_changes_of_a_command_are_events_of_the_session(files: ContainerFilesystem) -> None:
    records = len(files.session.records)
    done = files.exec("echo hello > new; rm /etc/motd; exit 3")
    assert (done.exit_code, done.changed) == (3, ("/etc/motd", "/workspace/new"))
    events = [record.event for record in files.session.records[records:]]
    assert [one.path for one in events if isinstance(one, FileWritten)] == ["/workspace/new"]
    assert [one.path for one in events if isinstance(one, EntryDeleted)] == ["/etc/motd"]


def test_going_back_to_a_record_undoes_a_command(files: ContainerFilesystem) -> None:
    before, seq = files.tree().fingerprint, files.session.seq
    files.exec("echo hello > new; rm -r /usr/lib/pkg; echo more >> /etc/motd")
    files.session.rollback(seq)
    assert files.tree().fingerprint == before


def test_an_error_in_a_transaction_undoes_a_command(files: ContainerFilesystem) -> None:
    before = state(files)
    with pytest.raises(ZeroDivisionError), files.session.transaction():
        files.exec("rm -r /usr/lib/pkg")
        files.write("/etc/motd", "changed")
        raise ZeroDivisionError
    assert state(files) == before


@pytest.mark.slow
@pytest.mark.usefixtures("never_hung")
def test_a_sparse_file_that_takes_hours_to_read_is_refused_at_once(podman: Podman, tmp_path: Path) -> None:
    files = ContainerFilesystem(
        image=IMAGE, store=tmp_path, runtime=podman, limits=Limits(max_file_size=None), max_layer_size=None
    )
    message = f"cannot scan '/workspace/big': it is a sparse file of {4 << 40} bytes"
    try:
        before = files.session.snapshot()
        files.exec("echo after > small")
        unlimited = CommandLimits(max_file_size=None)
        # Made by a command, which is undone.
        with pytest.raises(OSError, match=message):
            files.exec(f"echo data > small; busybox truncate -s {4 << 40} big", limits=unlimited)
        assert not files.exists("big")
        assert files.read("small").content == "after\n"
        # Set from outside.
        big = Path(files.container.path_of_files(), "workspace/big")
        os.truncate(os.open(big, os.O_CREAT | os.O_WRONLY), 4 << 40)
        for step in (lambda: files.exec("true"), files.snapshot, lambda: files.session.rollback(before)):
            with pytest.raises(OSError, match=message):
                step()
        big.unlink()
        files.session.rollback(before)
        assert not files.exists("small")
    finally:
        files.container.remove()


def test_a_restore_that_fails_halfway_changes_nothing(
    files: ContainerFilesystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot = files.snapshot()
    for change in ("a directory created again", "an owner", "a deleted file", "a hard link"):
        files.exec(CHANGES[change])
    before = state(files)

    def fail_once(*arguments: object) -> None:
        # Undoing the changes calls this function as well.
        monkeypatch.undo()
        raise OSError("the disk is full")

    monkeypatch.setattr(AttributeRestore, "run", fail_once)
    with pytest.raises(OSError, match="the disk is full"):
        files.restore(snapshot)
    assert state(files) == before


@pytest.mark.parametrize("error", [OSError("the disk is full"), KeyboardInterrupt()])
def test_a_restore_that_ends_between_two_entries_leaves_nothing(
    files: ContainerFilesystem, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    snapshot = files.snapshot()
    files.exec("echo 1 > a; echo 2 > b; rm /etc/motd; echo x >> /usr/lib/pkg/a")
    before, created = state(files), [0]

    def create_once(*arguments: object) -> None:
        created[0] += 1
        if created[0] == 2:
            raise error
        rename_or_create(*arguments)  # type: ignore[arg-type]  # as they were passed

    monkeypatch.setattr(restore, "rename_or_create", create_once)
    with pytest.raises(type(error)):
        files.restore(snapshot)
    assert created[0] > 2
    assert state(files) == before


@pytest.mark.slow
def test_a_directory_of_the_image_is_not_undone_with_the_entry_put_in_it(podman: Podman, tmp_path: Path) -> None:
    files = ContainerFilesystem(image=IMAGE, store=tmp_path, runtime=podman)
    try:
        before = files.tree().fingerprint
        files.exec("echo x > /etc/new; mkdir /usr/lib/pkg/made; echo x > /usr/lib/pkg/made/new")
        files.session.rollback(0)
        assert files.tree().fingerprint == before
    finally:
        files.container.remove()


def test_changes_by_a_command_can_be_reverted_and_undone(files: ContainerFilesystem) -> None:
    session = files.session
    files.write("/workspace/a", "1\n2\n3\n4\n5\n")
    with session.transaction(cause="command"):
        files.exec(
            "echo new > /workspace/made; rm -rf /etc/gone; echo 1 > /workspace/b; cd /workspace; mkdir d; chmod 600 a"
        )
    files.append("/workspace/a", "6\n")
    before = state(files)
    preview = session.revert("command", preview=True)
    assert state(files) == before
    assert session.revert("command").changes == preview.changes
    assert preview.paths == ("/workspace/a", "/workspace/b", "/workspace/d", "/workspace/made")
    assert (files.read("/workspace/a").content, files.stat("/workspace/a").mode) == ("1\n2\n3\n4\n5\n6\n", 0o644)
    assert files.exec("ls /workspace").stdout == "a\n"
    session.undo()
    assert state(files) == before


def test_a_command_and_a_restore_are_each_undone_as_one_operation(files: ContainerFilesystem) -> None:
    before, snapshot = files.tree().fingerprint, files.snapshot()
    files.exec("mkdir /workspace/d; echo 1 > /workspace/d/a; echo 1 > /workspace/b; rm /etc/motd")
    after = files.tree().fingerprint
    files.session.undo()
    assert files.tree().fingerprint == before
    files.session.redo()
    assert files.tree().fingerprint == after
    files.restore(snapshot)
    files.session.undo()
    assert files.tree().fingerprint == after
