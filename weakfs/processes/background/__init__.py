"""Background processes: commands that outlive the call that starts them, such as servers and watchers.

A `Launcher` starts programs and a `Workplace` finds out what they changed. A filesystem provides these two, whether its
files are in a host directory or in a container; everything else is the same for all filesystems.

Names are imported from their modules when they are first used: tools need the errors even if no process runs.
"""

from typing import TYPE_CHECKING

from weakfs.lazy_names import lazy_names

if TYPE_CHECKING:
    from weakfs.processes.background.errors import (
        InputClosed,
        NotRunning,
        ProcessesRunning,
        TooManyProcesses,
        UnknownProcess,
    )
    from weakfs.processes.background.host_launcher import HostLauncher
    from weakfs.processes.background.launcher import Launcher, Program, ProgramEnd
    from weakfs.processes.background.output_ring import Excerpt, OutputRing
    from weakfs.processes.background.process import BackgroundProcess, ProcessEnding, ProcessLimits
    from weakfs.processes.background.table import ProcessTable
    from weakfs.processes.background.workplace import (
        BackgroundProcesses,
        ProcessInfo,
        SupportsProcesses,
        Workplace,
        no_processes,
    )

__all__ = [
    "BackgroundProcess",
    "BackgroundProcesses",
    "Excerpt",
    "HostLauncher",
    "InputClosed",
    "Launcher",
    "NotRunning",
    "OutputRing",
    "ProcessEnding",
    "ProcessInfo",
    "ProcessLimits",
    "ProcessTable",
    "ProcessesRunning",
    "Program",
    "ProgramEnd",
    "SupportsProcesses",
    "TooManyProcesses",
    "UnknownProcess",
    "Workplace",
    "no_processes",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "errors": "InputClosed NotRunning ProcessesRunning TooManyProcesses UnknownProcess",
        "host_launcher": "HostLauncher",
        "launcher": "Launcher Program ProgramEnd",
        "process": "BackgroundProcess ProcessEnding ProcessLimits",
        "output_ring": "Excerpt OutputRing",
        "table": "ProcessTable",
        "workplace": "BackgroundProcesses ProcessInfo SupportsProcesses Workplace no_processes",
    },
)
