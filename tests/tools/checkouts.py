"""A filesystem in memory that lays its files out in a directory, as simply as it can be done."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from attrs import define

from weakfs.backends import InMemoryFilesystem
from weakfs.filesystem import Checkout


@define
class Work:
    directory: str
    changed: tuple[str, ...] = ()


class Laid(InMemoryFilesystem):
    """Files and directories only: no links, and times are not kept."""

    __slots__ = ("places",)

    @contextmanager
    def checkout(self, path: str = "/") -> Generator[Checkout]:
        top = Path(tempfile.mkdtemp(prefix="laid-"))
        try:
            for entry in self.walk(path):
                place = top / entry.path[1:]
                if entry.is_directory:
                    place.mkdir(parents=True, exist_ok=True)
                else:
                    place.parent.mkdir(parents=True, exist_ok=True)
                    place.write_bytes(self.read_bytes(entry.path).content)
                    place.chmod(self.stat(entry.path).mode)
            work = Work(str(top))
            yield work
            work.changed = self._read_back(top)
        finally:
            shutil.rmtree(top)

    def _read_back(self, top: Path) -> tuple[str, ...]:
        there = {"/" + str(place.relative_to(top)): place for place in sorted(top.rglob("*"))}
        changed: set[str] = set()
        for path in [entry.path for entry in self.walk()]:
            if path not in there and self.exists(path):
                self.delete(path, recursive=True)
                changed.add(path)
        for path, place in there.items():
            if place.is_dir():
                if not self.exists(path):
                    self.mkdir(path)
                    changed.add(path)
                continue
            mode = stat.S_IMODE(os.lstat(place).st_mode)
            content = place.read_bytes()
            if not self.exists(path) or self.read_bytes(path).content != content:
                self.write_bytes(path, content)
                changed.add(path)
            if self.stat(path).mode != mode:
                self.chmod(path, mode)
                changed.add(path)
        return tuple(sorted(changed))
