"""Running git with controlled options: no user, system or environment configuration takes effect.

The configuration of the git directory does: see `private_git_dir`.
"""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import IO

from weakfs.snapshots.errors import StoreDamaged, StoreUnwritable, unwritable

# Options that override the configuration of a repository, which others may have changed. The timeouts, in milliseconds,
# are for refs that another process has locked: git's default of 100 ms is not enough on a busy machine.
OPTIONS = (
    "-c",
    "core.hooksPath=/dev/null",
    "-c",
    "gc.auto=0",
    "-c",
    "maintenance.auto=false",
    "-c",
    "core.filesRefLockTimeout=10000",
    "-c",
    "core.packedRefsTimeout=10000",
)
# How much of git's error output a message quotes, from its beginning and from its end, in characters.
QUOTED = 300


class GitUnavailable(StoreUnwritable):
    """Raised if git is not installed, or is too old."""


@contextmanager
def writing(path: str) -> Generator[None]:
    """Convert the system's errors to `StoreUnwritable` for the repository at `path`."""
    try:
        yield
    except (StoreUnwritable, FileExistsError):
        raise
    except OSError as error:
        raise _unwritten(path, error.errno or errno.EIO) from error


def environment(home: str) -> dict[str, str]:
    """Return the environment that git runs in, without GIT_* variables and user or system configuration."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    kept.update(
        LC_ALL="C",
        # For versions of git that are too old for GIT_CONFIG_GLOBAL.
        HOME=home,
        XDG_CONFIG_HOME=home,
        GIT_CONFIG_NOSYSTEM="1",
        GIT_CONFIG_GLOBAL=os.devnull,
        GIT_CONFIG_SYSTEM=os.devnull,
        GIT_TERMINAL_PROMPT="0",
        GIT_OPTIONAL_LOCKS="0",
        GIT_NO_REPLACE_OBJECTS="1",
    )
    return kept


def start(
    git_dir: str,
    *arguments: str,
    stdin: int | None = None,
    stdout: int | None = None,
    stderr: int | IO[bytes] = subprocess.DEVNULL,
    pass_fds: Sequence[int] = (),
    objects: str | None = None,
) -> subprocess.Popen[bytes]:
    """Start a git command on a repository, in its own process session: interrupts reach only us, and we stop it.

    `objects` is the directory of its objects if they are not in `git_dir`.
    """
    try:
        return subprocess.Popen(
            ["git", f"--git-dir={git_dir}", *OPTIONS, *arguments],
            stdin=stdin or subprocess.DEVNULL,
            stdout=stdout or subprocess.DEVNULL,
            stderr=stderr,
            env=environment(git_dir) | ({"GIT_OBJECT_DIRECTORY": objects} if objects is not None else {}),
            cwd="/",
            bufsize=0,
            pass_fds=pass_fds,
            start_new_session=True,
        )
    except (FileNotFoundError, PermissionError, NotADirectoryError) as error:
        raise _unavailable("no executable git was found on the PATH", error.errno) from None


def run(
    git_dir: str,
    *arguments: str,
    given: bytes = b"",
    pass_fds: Sequence[int] = (),
    objects: str | None = None,
) -> bytes:
    """Run a git command to completion and return its output. Raises the error of `failure` if it fails."""
    pipe = subprocess.PIPE
    process = start(
        git_dir,
        *arguments,
        stdin=pipe,
        stdout=pipe,
        stderr=pipe,
        pass_fds=pass_fds,
        objects=objects,
    )
    with process:
        try:
            output, errors = process.communicate(given)
        except BaseException:
            process.kill()
            raise
    if process.returncode:
        raise failure(git_dir if objects is None else os.path.dirname(objects), arguments[0], errors)
    return output


def initialize(git_dir: str) -> None:
    """Create an empty bare repository with SHA-256 object ids, without a template."""
    process = start(
        git_dir, "init", "--quiet", "--bare", "--object-format=sha256", "--template=", stderr=subprocess.PIPE
    )
    with process:
        _, errors = process.communicate()
    if process.returncode == 0:
        return
    if b"object-format" in errors or b"hash algorithm" in errors:
        raise _unavailable(f"{version()} cannot create repositories with SHA-256 object ids", errno.ENOSYS)
    raise failure(git_dir, "init", errors)


def version() -> str:
    """Return the version that git reports."""
    try:
        found = subprocess.run(["git", "--version"], capture_output=True, env=environment("/"), check=False)
    except OSError:
        return "git"
    return found.stdout.decode("utf-8", "replace").strip() or "git"


def failure(git_dir: str, command: str, complained: bytes) -> StoreUnwritable | StoreDamaged:
    """Return the error to raise for git's error output."""
    message = complained.decode("utf-8", "replace").strip().replace("\n", "; ") or "it was killed"
    for number, text in (
        (errno.ENOSPC, "No space left"),
        (errno.ENOSPC, "Out of diskspace"),
        (errno.EDQUOT, "quota exceeded"),
        (errno.EROFS, "Read-only file system"),
        (errno.EACCES, "Permission denied"),
    ):
        if text in message:
            return _unwritten(git_dir, number)
    if len(message) > 2 * QUOTED:
        message = f"{message[:QUOTED]} ... {message[-QUOTED:]}"
    return StoreDamaged(
        f"cannot use the repository {git_dir!r}: 'git {command}' failed ({message}); check it with 'git fsck', and "
        f"restore damaged files from a copy"
    )


def _unwritten(path: str, number: int) -> StoreUnwritable:
    return unwritable(
        number,
        f"cannot write to the repository {path!r}: {os.strerror(number)}; free some space or remove the cause; data "
        f"stored earlier is unchanged",
    )


def _unavailable(cause: str, number: int | None) -> GitUnavailable:
    error = GitUnavailable(
        f"cannot keep snapshots as git commits: {cause}; install git 2.29 or newer, or keep them with snapshots='tree'"
    )
    error.errno = number
    return error
