"""The status of a running command, as reported by its supervisor and by bubblewrap."""

from __future__ import annotations

import errno
import json


class Status:
    """Reads lines of JSON. Bubblewrap reports `first` and `exit_code`, the supervisor the other fields.

    `started` is the id of the supervisor's child, which is the command or bubblewrap, and `ended` its exit code.
    `first` is the id of the first process in the sandbox, `exit_code` the exit code of the command in it. `failure`
    says why nothing could be started, `left` how many processes could not be killed, and `exceeded` which limit the
    command was killed for.
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
        """Add the next bytes from the pipe; empty bytes mean its end."""
        self.closed = not data
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            try:
                report = json.loads(line)
            except ValueError:
                # An empty line, or a partial line of a killed bubblewrap, whose end is reported in another way.
                continue
            self.started = report.get("started", self.started)
            self.ended = report.get("ended", self.ended)
            self.first = report.get("child-pid", self.first)
            self.exit_code = report.get("exit-code", self.exit_code)
            self.left = report.get("left", self.left)
            self.exceeded = report.get("exceeded", self.exceeded)
            if "failed" in report:
                self.failure = OSError(report["errno"] or errno.EIO, report["failed"])
