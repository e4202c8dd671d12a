"""A repository that may be hostile, read by git with a configuration of ours: see `private_git_dir`."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from weakfs.class_decorators import frozen
from weakfs.errors import WeakfsError
from weakfs.snapshots.errors import StoreDamaged
from weakfs.snapshots.git import command
from weakfs.snapshots.git.private_git_dir import READER, check_files, check_objects, private_git_dir

# What git reads of a repository besides its objects and its HEAD.
SHARED = ("packed-refs", "refs", "reftable", "shallow")
# The options of its configuration that say how to read it, with the values that we know.
FORMATS = {"objectFormat": ("sha1", "sha256"), "refStorage": ("files", "reftable")}


class ImportRefused(WeakfsError, ValueError):
    """A repository cannot be imported."""


@frozen
class ForeignRepository:
    """A repository at `path`, and the git directory through which it is read."""

    path: str
    _git_dir: str

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        """Start a git command, connected by pipes."""
        pipe = subprocess.PIPE
        return command.start(self._git_dir, *arguments, stdin=pipe, stdout=pipe, objects=self._objects)

    def run(self, *arguments: str) -> bytes:
        """Run a git command and return its output."""
        return command.run(self._git_dir, *arguments, objects=self._objects)

    @property
    def _objects(self) -> str:
        return os.path.join(self.path, "objects")


@contextmanager
def opened(path: str) -> Iterator[ForeignRepository]:
    """Yield a repository, given its git directory. Raises `ImportRefused` if git cannot read it, and it alone."""
    try:
        _check_links(path)
        check_objects(path)
        with (
            tempfile.TemporaryDirectory(prefix="weakfs-") as folder,
            private_git_dir(path, folder, _configuration(path), shared=SHARED) as git_dir,
        ):
            yield ForeignRepository(path, git_dir)
    except StoreDamaged as error:
        raise ImportRefused(str(error)) from error


def _check_links(path: str) -> None:
    """Raise `ImportRefused` if a part of a repository is elsewhere."""
    for name in ("objects", "config", *SHARED):
        part = os.path.join(path, name)
        if os.path.islink(part):
            raise ImportRefused(f"cannot import {path!r}: {part!r} is a symbolic link; clone the repository first")
    for name in ("alternates", "http-alternates"):
        part = os.path.join(path, "objects", "info", name)
        if os.path.lexists(part):
            raise ImportRefused(
                f"cannot import {path!r}: it needs the objects of another repository, which {part!r} names; clone it "
                f"without --shared or --reference first"
            )


def _configuration(path: str) -> bytes:
    """Return a configuration with the formats of a repository, and nothing else of its own configuration."""
    file = os.path.join(path, "config")
    check_files(path, file, largest=1 << 20)
    objects = os.path.join(path, "objects")
    text = "[core]\n\trepositoryFormatVersion = 1\n\tbare = true\n[extensions]\n"
    for name, known in FORMATS.items():
        key = f"extensions.{name}"
        asked = ("--no-includes", f"--default={known[0]}", "--get", key)
        found = command.run(READER, "config", f"--file={file}", *asked, objects=objects)
        value = found.decode("utf-8", "backslashreplace").strip().lower()
        if value not in known:
            raise ImportRefused(
                f"cannot import {path!r}: its {key} is {value[:40]!r}, and only {' and '.join(known)} can be read; "
                "convert it with a git that knows its format"
            )
        # Versions of git that do not know an extension refuse it, even with its default.
        text += f"\t{name} = {value}\n" if value != known[0] else ""
    return text.encode()
