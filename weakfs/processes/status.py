"""What is told about a running command, by our supervisor and by bubblewrap below it."""

from __future__ import annotations

import errno
import json


class Status:
    """Reads JSON, a line each. Bubblewrap tells of `first` and `exit_code`, the supervisor of the others.

    `started` and `ended` are the supervisor's child, which is the command or bubblewrap, and its exit code.
    `first` is the first process in the sandbox, `exit_code` that of the command in it. `failure` is why nothing could
    be started, `left` how many processes could not be ended, `exceeded` the limit that the command was killed for.
    """

    def __init__(self) -> None:
        self._rest = b""
        self.started: int | None = None
        self.ended: int | None = None
        self.first: int | None = None
        self.exit_code: int | None = None
        self.failure: OSError | None = None
        self.left = 0
        self.exceeded: str | None = None
        self.closed = False

    @property
    def is_final(self) -> bool:
        """Whether there is nothing more to wait for."""
        return self.closed or self.ended is not None or self.failure is not None

    def add(self, data: bytes) -> None:
        """Take the next bytes of the pipe; none stand for its end."""
        self.closed = not data
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            try:
                told = json.loads(line)
            except ValueError:
                # Nothing, or the half line of a bubblewrap that was killed; what that means is told otherwise.
                continue
            self.started = told.get("started", self.started)
            self.ended = told.get("ended", self.ended)
            self.first = told.get("child-pid", self.first)
            self.exit_code = told.get("exit-code", self.exit_code)
            self.left = told.get("left", self.left)
            self.exceeded = told.get("exceeded", self.exceeded)
            if "failed" in told:
                self.failure = OSError(told["errno"] or errno.EIO, told["failed"])
