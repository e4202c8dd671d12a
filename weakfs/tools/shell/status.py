"""What is told about a running command: by bubblewrap, and in the same words by our supervisor."""

from __future__ import annotations

import errno
import json


class Status:
    """Reads JSON, a line each: the command's process, its exit code, and what went wrong."""

    def __init__(self) -> None:
        self._rest = b""
        self.child: int | None = None
        self.exit_code: int | None = None
        self.failure: OSError | None = None
        self.left = 0
        self.closed = False

    @property
    def ended(self) -> bool:
        """Whether there is nothing more to wait for."""
        return self.closed or self.exit_code is not None or self.failure is not None

    def add(self, data: bytes) -> None:
        """Take the next bytes of the pipe; none stand for its end."""
        self.closed = not data
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            told = json.loads(line)
            self.child = told.get("child-pid", self.child)
            self.exit_code = told.get("exit-code", self.exit_code)
            self.left = told.get("left", self.left)
            if "failed" in told:
                self.failure = OSError(told["errno"] or errno.EIO, told["failed"])
