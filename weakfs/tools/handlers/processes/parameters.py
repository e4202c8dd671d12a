"""The parameters of the tools for background processes, and their options."""

from __future__ import annotations

from math import inf

from attrs import field

from weakfs.class_decorators import frozen
from weakfs.processes import CommandOptions
from weakfs.processes.background import ProcessLimits
from weakfs.tools.schemas.arguments import param

DEFAULT_WAIT = 120
MAX_WAIT = 600

_ABOUT_ID = param("the id of the process")


@frozen(kw_only=True)
class ProcessOptions(CommandOptions):
    """Options for background processes, set by the runtime and never by a model; see also `CommandOptions`.

    `process_limits` bounds how many there are, and how long each may run. One answer has at most `max_output` bytes of
    output, and waits for at most `max_wait` seconds.
    """

    process_limits: ProcessLimits = field(factory=ProcessLimits)
    max_output: int = 32 * 1024
    max_wait: float = MAX_WAIT

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        if self.max_output < 1:
            raise ValueError(f"max_output is {self.max_output!r}; give a number of bytes above 0")
        if not 0 < self.max_wait < inf:
            raise ValueError(f"max_wait is {self.max_wait!r}; give a number of seconds above 0")


@frozen
class ProcessStartParams:
    """The parameters of `process_start`."""

    command: str = field(metadata=param("the command, for /bin/sh"))
    workdir: str = field(default=".", metadata=param("the directory to run it in"))


@frozen
class ProcessOutputParams:
    """The parameters of `process_output`. A `timeout` above the tool's maximum is reduced to it."""

    process_id: str = field(metadata=_ABOUT_ID)
    since: int | None = field(
        default=None, metadata=param("show what follows this position; the newest output by default", at_least=0)
    )
    timeout: float = field(default=0, metadata=param("seconds to wait for more output", at_least=0))


@frozen
class ProcessInputParams:
    """The parameters of `process_input`."""

    process_id: str = field(metadata=_ABOUT_ID)
    text: str = field(default="", metadata=param("what to write to its standard input"))
    close: bool = field(default=False, metadata=param("end its input after the text"))


@frozen
class ProcessSignalParams:
    """The parameters of `process_signal`."""

    process_id: str = field(metadata=_ABOUT_ID)
    signal: str = field(default="TERM", metadata=param("the name of the signal"))


@frozen
class ProcessWaitParams:
    """The parameters of `process_wait`. A `timeout` above the tool's maximum is reduced to it."""

    process_id: str = field(metadata=_ABOUT_ID)
    timeout: float = field(default=DEFAULT_WAIT, metadata=param("seconds to wait", at_least=0))


@frozen
class ProcessListParams:
    """The parameters of `process_list`: none."""
