"""Processes that are killed: before one of their changing system calls, or at any moment."""

from __future__ import annotations

import os
import signal
import traceback
from collections.abc import Callable
from typing import Any

# Calls that change files, directories or their attributes, and calls that make these changes durable.
CHANGING = (
    "chmod",
    "fchmod",
    "fdatasync",
    "fsync",
    "ftruncate",
    "link",
    "mkdir",
    "mkfifo",
    "open",
    "pwrite",
    "pwritev",
    "rename",
    "replace",
    "rmdir",
    "symlink",
    "unlink",
    "utime",
    "write",
    "writev",
)


class Death:
    """The death of the process that installs it, before its system call number `moment`."""

    def __init__(self, moment: int) -> None:
        self.left = moment
        self.process = 0

    def install(self) -> None:
        """Intercept the system calls of this process, for the rest of its life."""
        self.process = os.getpid()
        for name in CHANGING:
            setattr(os, name, self._watched(name, getattr(os, name)))

    def _watched(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            changes = name != "open" or bool(arguments[1] & (os.O_CREAT | os.O_TRUNC))
            if changes and os.getpid() == self.process:
                if not self.left:
                    os.kill(self.process, signal.SIGKILL)
                self.left -= 1
            return function(*arguments, **options)

        return call


def dying(work: Callable[[Callable[[str], None]], None], kill_after: int | None = None) -> tuple[list[str], bool]:
    """Run `work` in a separate process; return what it acknowledged, and whether it was killed.

    `work` gets a function that acknowledges a word. After `kill_after` words, this process kills the other.
    """
    ours, theirs = os.pipe()
    # Taken before `work` may install a death: an acknowledgement is not part of the work.
    write = os.write
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.close(ours)
            work(lambda word: (write(theirs, word.encode() + b"\n"), None)[1])
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    os.close(theirs)
    words: list[str] = []
    with os.fdopen(ours) as lines:
        while True:
            if kill_after is not None and len(words) == kill_after:
                os.kill(child, signal.SIGKILL)
            line = lines.readline()
            if not line.endswith("\n"):
                break
            words.append(line.strip())
    _, status = os.waitpid(child, 0)
    if os.WIFEXITED(status) and os.WEXITSTATUS(status):
        raise RuntimeError(f"the process failed after {words}")
    return words, os.WIFSIGNALED(status)
