"""Reading files and waiting for frames if the system or another thread is slow."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import pytest

from weakfs.storage.folder import FolderEventStore, files
from weakfs.storage.keys import KEY_BYTES


def test_a_read_that_the_system_cuts_short_is_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = bytes(range(100))
    (tmp_path / "file").write_bytes(data)
    folder = files.Descriptor(os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY))
    read, sizes = os.pread, [7, 1, 30, 5]

    def short(number: int, size: int, offset: int) -> bytes:
        return read(number, min(size, sizes.pop() if sizes else size), offset)

    monkeypatch.setattr(os, "pread", short)
    assert files.read_all("file", folder) == data
    sizes = [7, 1, 30, 5]
    assert files.read_at(files.open_file("file", folder), 90, 50) == data[90:]


def test_a_wait_lasts_until_a_frame_arrives_or_it_times_out(tmp_path: Path) -> None:
    store = FolderEventStore(tmp_path)
    store.append("s", 0, [b"a"])
    assert store.wait("s", 1, 0) == 1
    assert store.wait("s", 0, 60) == 1

    def append_later() -> None:
        # Whatever the timeout, the wait ends with the frame.
        time.sleep(0.05)
        store.append("s", 1, [b"b"])

    thread = threading.Thread(target=append_later)
    thread.start()
    assert store.wait("s", 1, 60) == 2
    thread.join()
    store.close()


def test_directories_that_are_deeper_than_any_name_are_not_searched(tmp_path: Path) -> None:
    deep = tmp_path.joinpath(*("a" * (KEY_BYTES // 2 + 1)))
    (deep / "b.stream").mkdir(parents=True)
    with FolderEventStore(tmp_path) as store:
        assert store.streams() == []
