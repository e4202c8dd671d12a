"""The files of one command: a directory with its script, and the FIFOs for its input, outputs and status."""

from __future__ import annotations

import os
import secrets
import shlex
from collections.abc import Mapping
from contextlib import suppress

from weakfs.platforms import O_CLOEXEC, O_NOFOLLOW, O_NONBLOCK
from weakfs.processes import CommandLimits
from weakfs.snapshots.directory.entries import DIRECTORY
from weakfs.snapshots.directory.entries import remove as remove_entry

CHUNK = 1 << 16

# The maximum length of a status in bytes. If a command writes more, it has forged its status.
MOST_STATUS = 16

EXIT_CODE_DIGITS = 3

# In an attached container, its processes may put links in place of the files.
READING = os.O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW
WRITING = os.O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW


# In the container, an unprivileged user opens the FIFOs. On the host, the directories above them are private.
OPEN_TO_ALL = 0o666


def make_fifo(name: str, directory: int) -> int:
    """Make a FIFO in an open directory, and open it for reading."""
    os.mkfifo(name, dir_fd=directory)
    descriptor = os.open(name, READING, dir_fd=directory)
    os.fchmod(descriptor, OPEN_TO_ALL)
    return descriptor


class CommandFiles:
    """The directory of one command below the open directory `control`. The descriptors of its FIFOs do not block.

    With `takes_input`, its input is a FIFO, and both outputs share one.
    """

    def __init__(self, control: int, script: str, *, takes_input: bool) -> None:
        self.name = secrets.token_hex(8)
        self._control = control
        self._said = b""
        self.has_ended = False
        self._open: list[int] = []
        os.mkdir(self.name, 0o755, dir_fd=control)
        try:
            self._directory = os.open(self.name, DIRECTORY, dir_fd=control)
            self._open.append(self._directory)
            self._write("script", script.encode("utf-8", "surrogateescape"))
            self.status, self.out = self._fifo("status"), self._fifo("out")
            if takes_input:
                os.link("out", "err", src_dir_fd=self._directory, dst_dir_fd=self._directory)
                # A FIFO without a reader cannot be opened for writing.
                self._reader = self._fifo("in")
                self.stdin = os.open("in", WRITING, dir_fd=self._directory)
                self._open.append(self.stdin)
            else:
                self._write("in", b"")
                self.err = self._fifo("err")
        except BaseException:
            self.remove()
            raise

    def _write(self, name: str, data: bytes) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        with open(os.open(name, flags, 0o644, dir_fd=self._directory), "wb") as file:
            os.fchmod(file.fileno(), 0o644)
            file.write(data)

    def _fifo(self, name: str) -> int:
        descriptor = make_fifo(name, self._directory)
        self._open.append(descriptor)
        return descriptor

    def close(self, *descriptors: int) -> None:
        """Close some of the descriptors."""
        for descriptor in descriptors:
            self._open.remove(descriptor)
            os.close(descriptor)

    def disown(self, *descriptors: int) -> None:
        """Hand over some of the descriptors to callers who close them."""
        for descriptor in descriptors:
            self._open.remove(descriptor)

    def remove(self) -> None:
        """Close everything that is open and remove the directory."""
        self.close(*self._open)
        with suppress(OSError):
            remove_entry(self._control, self.name.encode())

    def remove_script(self) -> None:
        """Remove the script: a command that has not begun will not begin."""
        with suppress(FileNotFoundError):
            os.unlink("script", dir_fd=self._directory)

    def read_status(self) -> None:
        """Read the new part of the status."""
        with suppress(BlockingIOError):
            data = os.read(self.status, CHUNK)
            self._said += data
            self.has_ended |= not data or len(self._said) > MOST_STATUS

    @property
    def exit_code(self) -> int | None:
        """The exit code; `None` until it is reported, or if the shell that reports it was killed too."""
        line = self._said.strip()
        return int(line) if self._said.endswith(b"\n") and line.isdigit() and len(line) <= EXIT_CODE_DIGITS else None

    def close_reader(self) -> None:
        """Leave the command as the only reader of its input, so that the end of the command is noticed."""
        if self._reader in self._open:
            self.close(self._reader)

    def end_status(self) -> None:
        """End the status of a command that never begins."""
        os.close(os.open("status", WRITING, dir_fd=self._directory))


def script_of(words: list[str], workdir: str, environment: Mapping[str, str], limits: CommandLimits) -> str:
    """Return the script that sets up a command and then replaces itself with it.

    Raises `ValueError` for variables that a shell cannot set.
    """
    for name, value in environment.items():
        if not is_variable(name):
            raise ValueError(
                f"cannot set the variable {name!r} for a command: a shell allows only letters, "
                f"digits and _ in names; rename it"
            )
        if "\0" in value:
            raise ValueError(
                f"cannot set the variable {name} for a command: its value holds a NUL character; leave it out"
            )
    found = (
        ("d", limits.max_memory, 1024),
        ("f", limits.max_file_size, 512),
        ("n", limits.max_open_files, 1),
        ("t", limits.max_cpu_seconds, 1),
    )
    lines = ["echo >&4; exec 4>&-"]
    lines += [f"ulimit -{letter} {value // unit} 2>/dev/null" for letter, value, unit in found if value is not None]
    lines += [f"export {name}={shlex.quote(value)}" for name, value in environment.items()]
    return "\n".join((*lines, f"cd -- {shlex.quote(workdir)} || exit", f"exec {shlex.join(words)}", ""))


def is_variable(name: str) -> bool:
    """Return whether a shell can set a variable of that name."""
    return name.isascii() and name.isidentifier()


def has_reader(descriptor: int) -> bool:
    """Return whether any process has the other end of a FIFO open for reading, given the end for writing."""
    import select  # imported here because Windows has only a part of it

    poll = select.poll()
    poll.register(descriptor, 0)
    return not poll.poll(0)


def is_readable(descriptor: int) -> bool:
    """Return whether data or the end of the stream can be read; for a process, whether it has ended."""
    import select  # imported here because Windows has only a part of it

    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(0))
