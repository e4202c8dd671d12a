"""A root with a secret next to it, and all operations that can be tried with a path that leads there."""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Literal

from tests.models.host import Record, record
from weakfs.backends import HostFilesystem
from weakfs.backends.container import Container, ContainerFilesystem
from weakfs.filesystem import SymlinkPolicy

SECRET = "the secret of the house"


class House:
    """A root, and next to it files that nobody may see: `house/root` and `house/beside`."""

    def __init__(self, folder: Path) -> None:
        self.root, self.beside, self.store = folder / "root", folder / "beside", folder / "store"
        (self.root / "dir").mkdir(parents=True)
        (self.root / "dir" / "file").write_text("inside")
        (self.beside / "sub").mkdir(parents=True)
        for name in ("secret", "sub/secret"):
            (self.beside / name).write_text(SECRET)
            # On disks that record access times, a file that is read from now on gets a newer one.
            os.utime(self.beside / name, ns=(1, 1))
        (folder / "root-beside").write_text(SECRET)
        (folder / "secret").write_text(SECRET)
        self.folder = folder
        self.before = self.outside()

    def outside(self) -> Record:
        """Record everything except the root and the store."""
        return {
            path: seen
            for path, seen in record(self.folder).items()
            if path and path.split(b"/")[0] not in (b"root", b"store")
        }

    @property
    def names(self) -> dict[str, str]:
        """The names of these places for programs that work in the root."""
        return {"root": str(self.root), "beside": str(self.beside)}

    def open(self, policy: SymlinkPolicy = "deny") -> HostFilesystem:
        return HostFilesystem(self.root, store=self.store, follow_symlinks=policy)


class ContainerHouse(House):
    """The same in a container: a directory of the container that is the root, and the files next to it."""

    numbers = count()

    def __init__(self, container: Container, store: Path) -> None:
        self.inside = f"/places/house{next(self.numbers)}"
        self.container = container
        folder = Path(container.path_of_files() + self.inside)
        folder.mkdir()
        super().__init__(folder)
        self.store = store

    @property
    def names(self) -> dict[str, str]:
        return {"root": f"{self.inside}/root", "beside": f"{self.inside}/beside"}

    def open(self, policy: SymlinkPolicy = "deny") -> HostFilesystem:
        root = self.names["root"]
        return ContainerFilesystem(container=self.container, root=root, store=self.store, follow_symlinks=policy)


# What is tried with such a path.
TRIED: dict[str, Callable[[HostFilesystem, str], object]] = {
    "read": lambda fs, path: fs.read(path).content,
    "read_bytes": lambda fs, path: fs.read_bytes(path),
    "read_lines": lambda fs, path: list(fs.read_lines(path)),
    "open to read": lambda fs, path: fs.open(path, "r").read(),
    "open to write": lambda fs, path: _written(fs, path, "w"),
    "open to append": lambda fs, path: _written(fs, path, "a"),
    "open to create": lambda fs, path: _written(fs, path, "x"),
    "write": lambda fs, path: fs.write(path, "spoiled"),
    "create": lambda fs, path: fs.write(path, "spoiled", mode="create"),
    "write below": lambda fs, path: fs.write(f"{path}/new", "spoiled"),
    "write_bytes": lambda fs, path: fs.write_bytes(path, b"spoiled"),
    "write_lines": lambda fs, path: fs.write_lines(path, ["spoiled"]),
    "append": lambda fs, path: fs.append(path, "spoiled"),
    "mkdir": lambda fs, path: fs.mkdir(path),
    "mkdir below": lambda fs, path: fs.mkdir(f"{path}/new/dir"),
    "chmod": lambda fs, path: fs.chmod(path, 0o777),
    "list": lambda fs, path: [entry.name for entry in fs.list(path)],
    "walk": lambda fs, path: [entry.path for entry in fs.walk(path)],
    "glob": lambda fs, path: fs.glob("**", path=path),
    "grep": lambda fs, path: fs.grep("secret", path=path),
    "move here": lambda fs, path: fs.move("/dir/file", f"{path}/moved"),
    "copy here": lambda fs, path: fs.copy("/dir/file", f"{path}/copied"),
    "symlink here": lambda fs, path: fs.symlink("x", f"{path}/link"),
    "copy away": lambda fs, path: fs.copy(f"{path}/secret", "/stolen"),
    "move away": lambda fs, path: fs.move(f"{path}/secret", "/stolen"),
    "delete below": lambda fs, path: fs.delete(f"{path}/secret", recursive=True),
    "stat below": lambda fs, path: fs.stat(f"{path}/secret"),
}


def _written(fs: HostFilesystem, path: str, mode: Literal["w", "a", "x"]) -> None:
    with fs.open(path, mode) as stream:
        stream.write("spoiled")


def assert_no_secret(house: House, *answers: object) -> None:
    """Check that nothing from outside is in an answer or in the root."""
    assert not any(SECRET in str(answer) for answer in answers)
    for seen in record(house.root).values():
        assert SECRET.encode() not in seen.content
    assert house.outside() == house.before
