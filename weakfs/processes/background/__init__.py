"""Background processes: commands that outlive the call that starts them, such as servers and watchers.

A `Launcher` starts programs and a `Workplace` finds out what they changed: these two are what a filesystem provides,
whether its files are in a directory of the host or in a container. The rest is the same everywhere.
"""

from weakfs.processes.background.errors import (
    InputClosed,
    NotRunning,
    ProcessesRunning,
    TooManyProcesses,
    UnknownProcess,
)
from weakfs.processes.background.host_launcher import HostLauncher
from weakfs.processes.background.launcher import Launcher, Program, ProgramEnd
from weakfs.processes.background.process import BackgroundProcess, ProcessEnding, ProcessLimits
from weakfs.processes.background.ring import Excerpt, OutputRing
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
