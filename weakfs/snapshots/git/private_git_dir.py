"""Git directories with our own configuration, for the objects and refs of a repository.

The configuration of a repository can name commands to run, hooks and transports among them, and others with each new
version of git. So git never reads the configuration of a store's repository, which may have come from elsewhere: it
runs in a git directory of ours. Nor is it started if a FIFO or a device has the name of a file that it would read, for
which it could wait forever.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress

from weakfs.platforms import NOT_A_REGULAR_FILE
from weakfs.snapshots.errors import StoreDamaged
from weakfs.snapshots.git.command import writing
from weakfs.snapshots.store import atomic_files as disk

# A git directory for reading objects that are elsewhere.
READER = os.path.join(os.path.dirname(__file__), "reader")

# What git reads of a repository besides its objects, its HEAD and its configuration.
PACKED_REFS = "packed-refs"
SHARED = (PACKED_REFS, "refs", "logs", "worktrees")
# Git reads each of these files into memory.
LARGEST = 1 << 28

SUFFIX = ".git"


@contextmanager
def private_git_dir(
    repository: str, folder: str, configuration: bytes, *, shared: Sequence[str] = SHARED
) -> Generator[str]:
    """Yield a git directory with a configuration and the refs of a repository, whose objects `check_objects` accepts.

    It is created in `folder`, which is created if it is missing. Raises `StoreDamaged` naming what is not a file.
    """
    with writing(repository):
        disk.make_folder(folder)
    with temporary_git_dir(repository, folder) as made:
        with writing(repository):
            _make(made, repository, configuration, shared)
        yield made


@contextmanager
def temporary_git_dir(repository: str, folder: str) -> Generator[str]:
    """Yield an unused path for a git directory of a repository. What is left there is removed at the end."""
    with writing(repository):
        lock, path = disk.open_temporary(folder)
    try:
        yield path + SUFFIX
    finally:
        shutil.rmtree(path + SUFFIX, ignore_errors=True)
        disk.remove(path)
        os.close(lock)


def _make(made: str, repository: str, configuration: bytes, names: Sequence[str]) -> None:
    os.mkdir(made, 0o700)
    for name, content in (("HEAD", _head(repository)), ("config", configuration)):
        with open(os.path.join(made, name), "xb") as stream:
            stream.write(content)
    for name in names:
        shared = os.path.join(repository, name)
        check = _check_file if name == PACKED_REFS else check_files
        check(repository, shared, LARGEST)
        # Git may create the file later.
        if name == PACKED_REFS or os.path.lexists(shared):
            os.symlink(os.path.abspath(shared), os.path.join(made, name))


def _head(repository: str) -> bytes:
    path = os.path.join(repository, "HEAD")
    try:
        return disk.read_small(path)
    except (FileNotFoundError, ValueError) as error:
        cause = "it is missing" if isinstance(error, FileNotFoundError) else str(error)
        raise _damaged(repository, path, cause) from None


def check_objects(repository: str) -> None:
    """Raise `StoreDamaged` if git cannot read the objects of a repository without waiting, or reads others as well."""
    objects = os.path.join(repository, "objects")
    check_files(repository, objects)
    alternates = os.path.join(objects, "info", "alternates")
    if os.path.lexists(alternates):
        raise _damaged(repository, alternates, "it names objects outside the store")


def check_files(repository: str, path: str, largest: int | None = None) -> None:
    """Raise `StoreDamaged` if there is anything but directories and files, of at most `largest` bytes, at a path."""
    waiting = [path]
    try:
        is_directory = stat.S_ISDIR(os.stat(path).st_mode)
    except FileNotFoundError:
        return
    except OSError as error:
        if error.errno not in NOT_A_REGULAR_FILE:
            raise
        raise _damaged(repository, path, "it is not a regular file") from None
    if not is_directory:
        _check_file(repository, path, largest)
        return
    while waiting:
        with suppress(FileNotFoundError, NotADirectoryError), os.scandir(waiting.pop()) as listing:
            for entry in listing:
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                elif largest is not None or not entry.is_file(follow_symlinks=False):
                    _check_file(repository, entry.path, largest)


def _check_file(repository: str, path: str, largest: int | None) -> None:
    with suppress(FileNotFoundError):
        status = os.lstat(path)
        if not stat.S_ISREG(status.st_mode):
            raise _damaged(repository, path, "it is not a regular file")
        if largest is not None and status.st_size > largest:
            raise _damaged(repository, path, f"it has {status.st_size} bytes")


def _damaged(repository: str, path: str, cause: str) -> StoreDamaged:
    return StoreDamaged(
        f"cannot use the repository {repository!r}: cannot use {path!r}: {cause}; restore it from a copy, or remove it"
    )
