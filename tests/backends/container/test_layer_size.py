"""The size of a container's layer, measured in a host directory."""

from __future__ import annotations

import gc
import os
from pathlib import Path

import pytest

from weakfs.backends.container.layers import layer_size
from weakfs.backends.container.layers.layer_size import LEAST, size_of_layer
from weakfs.snapshots.directory.entries import DIRECTORY, remove

DEEP = 3_000


def on_disk(top: Path) -> int:
    return sum(max(os.lstat(path).st_blocks * 512, LEAST) for path in top.rglob("*"))


def opened(top: Path) -> int:
    return os.open(top, DIRECTORY)


def test_entries_of_all_directories_count_and_hard_links_once(tmp_path: Path) -> None:
    for name in ("a/b/c", "a/d", "e"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "file").write_bytes(b"x" * 10_000)
    expected = on_disk(tmp_path)
    os.link(tmp_path / "e/file", tmp_path / "a/link")
    (tmp_path / "out").symlink_to("/usr")

    directory = opened(tmp_path)
    try:
        assert size_of_layer(directory) == expected + LEAST
    finally:
        os.close(directory)


def test_empty_files_count_too(tmp_path: Path) -> None:
    for number in range(100):
        (tmp_path / str(number)).touch()
    directory = opened(tmp_path)
    try:
        assert size_of_layer(directory) == 100 * LEAST
    finally:
        os.close(directory)


def test_directories_may_be_nested_deeper_than_calls_and_open_files_allow(tmp_path: Path) -> None:
    directory = opened(tmp_path)
    gc.collect()
    before = len(os.listdir("/proc/self/fd"))
    here = os.dup(directory)
    try:
        for _ in range(DEEP):
            os.mkdir("d", dir_fd=here)
            below = os.open("d", DIRECTORY, dir_fd=here)
            os.close(here)
            here = below
        os.close(os.open("large", os.O_CREAT | os.O_WRONLY, dir_fd=here))
        os.close(here)
        (tmp_path / "beside").write_bytes(b"x" * 1_000_000)

        assert size_of_layer(directory) >= 1_000_000
        assert len(os.listdir("/proc/self/fd")) <= before
    finally:
        remove(directory, b"d")
        os.close(directory)


def test_entries_next_to_a_directory_that_is_moved_during_the_count_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a/b/c").mkdir(parents=True)
    for name in ("a/large", "a/b/large", "large"):
        (tmp_path / name).write_bytes(b"x" * 1_000_000)
    # The scan takes names from the end of a listing, so directories come first.
    listed = os.listdir
    monkeypatch.setattr(os, "listdir", lambda descriptor: sorted(listed(descriptor), key=len, reverse=True))
    parent = layer_size._parent

    def moving(*arguments: object) -> int:
        monkeypatch.setattr(layer_size, "_parent", parent)
        os.rename(tmp_path / "a/b/c", tmp_path / "c")
        return parent(*arguments)  # type: ignore[arg-type]  # as it was called

    monkeypatch.setattr(layer_size, "_parent", moving)
    directory = opened(tmp_path)
    try:
        assert size_of_layer(directory) >= 3_000_000
    finally:
        os.close(directory)
