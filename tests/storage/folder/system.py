"""The system calls of the folder engine: stopped, made to fail, or recorded and replayed with a power failure."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

from attrs import define, field

from weakfs.storage.folder.files import _FOLDER

NAMES = ("open", "pwrite", "ftruncate", "fsync", "fdatasync", "rename", "link", "unlink", "mkdir", "rmdir")
assert _FOLDER & os.O_DIRECTORY


@define
class Call:
    """One call: its place in the sequence, from 0, its name, and what it was called with."""

    number: int
    name: str
    arguments: tuple[Any, ...]
    options: dict[str, Any]


@define
class System:
    """What happens to calls while it is in force."""

    before: Callable[[Call], None] = lambda _: None
    after: Callable[[Call, Any], None] = lambda _, __: None
    # The write of which only half of the data is written.
    halved: int = -1
    count: int = 0

    @contextmanager
    def in_force(self) -> Generator[System, None, None]:
        """Intercept the system calls of the engine."""
        real = {name: getattr(os, name) for name in NAMES}
        try:
            for name, function in real.items():
                setattr(os, name, self._watched(name, function))
            yield self
        finally:
            for name, function in real.items():
                setattr(os, name, function)

    def _watched(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            made = Call(self.count, name, arguments, options)
            # Only calls that change something are boundaries.
            if name == "open" and not arguments[1] & os.O_CREAT:
                return function(*arguments, **options)
            self.count += 1
            self.before(made)
            if made.number == self.halved and name == "pwrite":
                arguments = (arguments[0], bytes(arguments[1])[: len(arguments[1]) // 2], arguments[2])
            # What a sync does to the disk is not visible, and takes a long time.
            result = None if name in ("fsync", "fdatasync") else function(*arguments, **options)
            self.after(made, result)
            return result

        return call


# Power loss


@define
class _File:
    """A file or directory of the recorded disk: what is on the platter, and what only the system's memory holds."""

    is_folder: bool
    data: bytes = b""
    entries: dict[str, int] = field(factory=dict[str, int])
    # Changes since the last sync: an offset with data, or a size.
    unsynced: list[tuple[int, bytes | None]] = field(factory=list[tuple[int, "bytes | None"]])


@define
class Disk:
    """A log of the changes below a folder, from which a disk that lost its power at any moment is built.

    The model: of the writes to a file since its last sync, each sector of 512 bytes may or may not have arrived, in any
    order. The changes of names since the last sync of a directory have arrived up to some moment, in their order, as in
    a filesystem that journals them. A file that was not synced may be empty under its new name.
    """

    root: Path
    log: list[tuple[Any, ...]] = field(factory=list[tuple[Any, ...]])
    _ids: dict[int, int] = field(factory=dict[int, int])

    def system(self) -> System:
        self._ids[os.stat(self.root).st_ino] = 0
        return System(before=self._before, after=self._after)

    def _id(self, status: os.stat_result, *, is_new: bool = False) -> int:
        if is_new or status.st_ino not in self._ids:
            self._ids[status.st_ino] = len(self.log) + 1
        return self._ids[status.st_ino]

    def _folder(self, descriptor: int | None) -> int:
        assert descriptor is not None
        return self._id(os.fstat(descriptor))

    def _before(self, call: Call) -> None:
        name, options = call.name, call.options
        if name == "rename":
            source = os.stat(call.arguments[0], dir_fd=options["src_dir_fd"], follow_symlinks=False)
            own, old, new = self._id(source), options["src_dir_fd"], options["dst_dir_fd"]
            self.log.append(
                ("name", self._folder(old), call.arguments[0], None, self._folder(new), call.arguments[1], own)
            )

    def _after(self, call: Call, result: Any) -> None:
        name, arguments, options = call.name, call.arguments, call.options
        if name == "open":
            folder = self._folder(options["dir_fd"])
            self.log.append(("create", folder, arguments[0], self._id(os.fstat(result), is_new=True), False))
        elif name == "mkdir":
            path = arguments[0]
            if "dir_fd" in options:
                folder = self._folder(options["dir_fd"])
                made = os.stat(path, dir_fd=options["dir_fd"])
            else:
                folder, made = self._id(os.stat(os.path.dirname(path))), os.stat(path)
            self.log.append(("create", folder, os.path.basename(path), self._id(made, is_new=True), True))
        elif name == "pwrite":
            own = self._id(os.fstat(arguments[0]))
            self.log.append(("write", own, arguments[2], bytes(arguments[1])[:result]))
        elif name == "ftruncate":
            self.log.append(("cut", self._id(os.fstat(arguments[0])), arguments[1]))
        elif name in ("fsync", "fdatasync"):
            status = os.fstat(arguments[0])
            kind = "sync names" if stat.S_ISDIR(status.st_mode) else "sync"
            self.log.append((kind, self._id(status)))
        elif name in ("unlink", "rmdir"):
            self.log.append(("remove", self._folder(options["dir_fd"]), arguments[0]))

    def without_power(self, moment: int, chance: Random, target: Path) -> None:
        """Build the disk as it may be after the power failed at a moment of the log."""
        files: dict[int, _File] = {0: _File(True)}
        names: list[tuple[Any, ...]] = []
        for event in self.log[:moment]:
            match event:
                case ("write", own, offset, data):
                    files[own].unsynced.append((offset, data))
                case ("cut", own, size):
                    files[own].unsynced.append((size, None))
                case ("sync", own):
                    _settle(files[own], None)
                case ("sync names", _):
                    # The journal of the filesystem has been written up to here.
                    _rename(files, names)
                    names.clear()
                case ("create", _, _, own, is_folder):
                    files[own] = _File(is_folder)
                    names.append(event)
                case _:
                    names.append(event)
        _rename(files, names[: chance.randint(0, len(names))])
        for file in files.values():
            _settle(file, chance)
        shutil.rmtree(target, ignore_errors=True)
        _build(files, 0, target)


def _rename(files: dict[int, _File], names: list[tuple[Any, ...]]) -> None:
    for event in names:
        match event:
            case ("create", folder, name, own, _):
                files[folder].entries[name] = own
            case ("name", old, name, _, new, new_name, own):
                files[old].entries.pop(name, None)
                files[new].entries[new_name] = own
            case ("remove", folder, name):
                files[folder].entries.pop(name, None)


def _settle(file: _File, chance: Random | None) -> None:
    """Apply the unsynced changes of a file: all, or a random part of their sectors."""
    data = bytearray(file.data)
    for offset, change in file.unsynced:
        if change is None:
            if chance is None or chance.random() < 0.5:
                del data[offset:]
            continue
        if chance is not None and chance.random() < 0.3:
            continue
        end = offset + len(change)
        if chance is None:
            data[len(data) :] = bytes(max(end - len(data), 0))
            data[offset:end] = change
            continue
        for start in range(offset - offset % 512, end, 512):
            low, high = max(start, offset), min(start + 512, end)
            if chance.random() < 0.6:
                data[len(data) :] = bytes(max(high - len(data), 0))
                data[low:high] = change[low - offset : high - offset]
    file.data = bytes(data)
    file.unsynced.clear()


def _build(files: dict[int, _File], own: int, target: Path) -> None:
    if not files[own].is_folder:
        target.write_bytes(files[own].data)
        return
    target.mkdir()
    for name, below in files[own].entries.items():
        _build(files, below, target / name)
