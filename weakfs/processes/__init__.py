"""Running commands: in a sandbox by default, with limits on time and output, leaving no process behind.

It deals with directories of the host, not with filesystems; the tool on top of it is in `weakfs.tools.handlers`.
"""

from weakfs.processes.command_options import CommandOptions
from weakfs.processes.directory_paths import host_path
from weakfs.processes.environment import ENVIRONMENT
from weakfs.processes.pipes import StopEvent
from weakfs.processes.resource_limits import CommandLimits
from weakfs.processes.runner import CompletedCommand, SandboxMode, check_command, run_command
from weakfs.processes.sandbox import Bubblewrap, SandboxUnavailable

__all__ = [
    "ENVIRONMENT",
    "Bubblewrap",
    "CommandLimits",
    "CommandOptions",
    "CompletedCommand",
    "SandboxMode",
    "SandboxUnavailable",
    "StopEvent",
    "check_command",
    "host_path",
    "run_command",
]
