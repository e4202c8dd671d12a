"""The process that runs the hooks of a session of Claude Code; when it ends, the tools of that session end too."""

from __future__ import annotations

import os
import socket
import struct

from weakfs.class_decorators import frozen

# What identifies a hook of ours in a command line.
MARK = "claude_code/hook.py"
# `struct ucred` of unix(7): the process, the user and the group of the other end of a socket.
_PEER = struct.Struct("3i")


@frozen
class Owner:
    """A process, and its start time, which distinguishes it from a later one with the same id."""

    pid: int
    started: bytes

    @property
    def has_ended(self) -> bool:
        """Whether the process has ended, even if its parent has not waited for it yet."""
        try:
            state, _, started = _status(self.pid)
        except OSError:
            return True
        return started != self.started or state in (b"Z", b"X")


def owner_of(hook: socket.socket) -> Owner | None:
    """Return the process that runs the hook at the other end of a connection.

    That is its nearest ancestor whose command line does not contain the hook: Claude Code runs hooks in a shell. Return
    `None` if it cannot be found, for example from another PID namespace.
    """
    pid, _, _ = _PEER.unpack(hook.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size))
    try:
        while pid > 1:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                is_hook = os.fsencode(MARK) in file.read()
            _, parent, started = _status(pid)
            if not is_hook:
                return Owner(pid, started)
            pid = parent
    except OSError:
        pass  # It has ended.
    return None


def _status(pid: int) -> tuple[bytes, int, bytes]:
    """Return the state, the parent and the start time of a process; see proc_pid_stat(5)."""
    with open(f"/proc/{pid}/stat", "rb") as file:
        # The program's name is in parentheses and may itself contain parentheses.
        fields = file.read().rpartition(b")")[2].split()
    return fields[0], int(fields[1]), fields[19]
