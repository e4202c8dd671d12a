"""Every system call fails once: the state is unchanged or completely changed, and work continues."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from tests.sampling import is_exhaustive
from tests.storage.folder.histories import STEPS, finish, models, open_store, position
from tests.storage.folder.journals import STREAM, newest_segment
from tests.storage.folder.system import Call, System
from weakfs.storage import OutcomeUnknown, StorageError
from weakfs.storage.folder import Durability, FolderEventStore

STATES = models()


@pytest.mark.slow
@pytest.mark.parametrize("durability", ["process", "power"])
@pytest.mark.parametrize("is_halved", [False, True], ids=["whole", "half"])
def test_a_full_disk_at_any_moment_leaves_the_state_before_or_after(
    tmp_path: Path, durability: Durability, is_halved: bool
) -> None:
    number, failed = 0, True
    while failed:
        failed, folder, told = False, tmp_path / str(number), None
        store, model, done = open_store(folder, durability), STATES[0].copy(), 0

        def fail(call: Call, number: int = number) -> None:
            nonlocal failed
            # A write that takes half of the data is followed by one that fails.
            if call.number == number + is_halved and call.name not in ("fsync", "fdatasync", "unlink", "ftruncate"):
                failed = True
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        system = System(before=fail, halved=number if is_halved else -1)
        with system.in_force():
            for step in STEPS:
                try:
                    step(store, model)
                except StorageError as error:
                    told = error
                    break
                done += 1
        if told is not None:
            assert told.errno == errno.ENOSPC
            assert "No space left" in str(told)
        failed = failed or number < system.count
        at = position(store, STATES)
        assert done in at or done + 1 in at, (number, done, at)
        # With the same store, and with another one.
        found = open_store(folder, "process")
        assert position(found, STATES) == at
        finish(store if number % 2 and durability == "process" else found, at[-1], STATES)
        number += 1 if is_exhaustive() else 13
    assert number > 100


def test_an_append_that_finds_the_disk_full_leaves_the_journal_byte_for_byte(tmp_path: Path) -> None:
    store = FolderEventStore(tmp_path)
    store.append(STREAM, 0, [b"a"])
    path = newest_segment(tmp_path)
    before = path.read_bytes()

    def fail(call: Call) -> None:
        if call.number == 1:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with System(before=fail, halved=0).in_force(), pytest.raises(StorageError, match="No space left on device"):
        store.append(STREAM, 1, [b"b" * 1000])
    assert path.read_bytes() == before
    assert store.append(STREAM, 1, [b"b"]) == 2


def test_after_a_failed_sync_the_stream_refuses_appends_and_never_syncs_again(tmp_path: Path) -> None:
    store = FolderEventStore(tmp_path, "power")
    store.append(STREAM, 0, [b"a"])
    syncs = 0

    def fail(call: Call) -> None:
        nonlocal syncs
        if call.name == "fdatasync":
            syncs += 1
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    with System(before=fail).in_force():
        with pytest.raises(OutcomeUnknown, match="Input/output error"):
            store.append(STREAM, 1, [b"b"])
        for _ in range(3):
            with pytest.raises(StorageError, match=r"failed to keep an earlier append .*open the store again"):
                store.append(STREAM, 2, [b"c"])
        with pytest.raises(OutcomeUnknown):
            store.flush()
            store._stream(STREAM).flush()
    assert syncs == 1
    assert store.head(STREAM) == 2
    store.append("t", 0, [b"another stream"])
    again = FolderEventStore(tmp_path, "power")
    assert again.append(STREAM, again.head(STREAM), [b"c"]) == 3
