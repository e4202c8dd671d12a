"""A table of every operation that takes a path, so that one test covers a rule for all of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import PurePath
from typing import Literal, TypeAlias, cast

from weakfs.filesystem import Filesystem

__all__ = ["CHANGING", "EVERY", "READING", "write_stream"]

Operation: TypeAlias = Callable[[Filesystem, str | PurePath], object]

READING: dict[str, Operation] = {
    "read": lambda fs, path: fs.read(path),
    "read_bytes": lambda fs, path: fs.read_bytes(path),
    "read_lines": lambda fs, path: fs.read_lines(path),
    "open_r": lambda fs, path: fs.open(path, "r"),
    "open_rb": lambda fs, path: fs.open(path, "rb"),
    "exists": lambda fs, path: fs.exists(path),
    "is_file": lambda fs, path: fs.is_file(path),
    "is_directory": lambda fs, path: fs.is_directory(path),
    "stat": lambda fs, path: fs.stat(path),
    "list": lambda fs, path: fs.list(path),
    "walk": lambda fs, path: list(fs.walk(path)),
    "glob": lambda fs, path: fs.glob("*", path=path),
    "grep": lambda fs, path: fs.grep("x", path=path),
    "readlink": lambda fs, path: fs.readlink(path),
}


def write_stream(fs: Filesystem, path: str | PurePath, mode: str = "w", content: str = "x") -> None:
    """Write a file by a stream; a mode with `b` writes bytes."""
    with fs.open(path, cast(Literal["w"], mode)) as stream:
        stream.write(cast(str, content.encode()) if "b" in mode else content)


CHANGING: dict[str, Operation] = {
    "write": lambda fs, path: fs.write(path, "x"),
    "write_create": lambda fs, path: fs.write(path, "x", mode="create"),
    "write_append": lambda fs, path: fs.write(path, "x", mode="append"),
    "write_bytes": lambda fs, path: fs.write_bytes(path, b"x"),
    "append": lambda fs, path: fs.append(path, "x"),
    "write_lines": lambda fs, path: fs.write_lines(path, ["x\n"]),
    "splice": lambda fs, path: fs.splice(path, [(0, 0, b"x")]),
    "open_w": write_stream,
    "open_a": lambda fs, path: write_stream(fs, path, "a"),
    "mkdir": lambda fs, path: fs.mkdir(path),
    "delete": lambda fs, path: fs.delete(path),
    "delete_recursive": lambda fs, path: fs.delete(path, recursive=True),
    "move_from": lambda fs, path: fs.move(path, "/moved"),
    "move_to": lambda fs, path: fs.move("/here.txt", path),
    "copy_from": lambda fs, path: fs.copy(path, "/copied"),
    "copy_to": lambda fs, path: fs.copy("/here.txt", path),
    "chmod": lambda fs, path: fs.chmod(path, 0o600),
    "symlink": lambda fs, path: fs.symlink("here.txt", path),
}

EVERY: dict[str, Operation] = {**READING, **CHANGING}
