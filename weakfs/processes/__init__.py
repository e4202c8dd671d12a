"""Running commands: in a sandbox by default, with limits on time and output, leaving no process behind.

This package deals with host directories, not with filesystems; the tools that use it are in `weakfs.tools.handlers`.

Names are imported from their modules when they are first used: a process that runs no commands needs none of them.
"""

from typing import TYPE_CHECKING

from weakfs.lazy_names import lazy_names

if TYPE_CHECKING:
    from weakfs.processes.command_options import ENVIRONMENT, CommandOptions
    from weakfs.processes.command_watch import StopEvent
    from weakfs.processes.errors import SandboxUnavailable
    from weakfs.processes.resource_limits import CommandLimits
    from weakfs.processes.runner import (
        CompletedCommand,
        RunsCommands,
        check_bounds,
        check_command,
        host_path,
        run_command,
    )
    from weakfs.processes.sandbox import Bubblewrap, SandboxMode, check_mount_point

__all__ = [
    "ENVIRONMENT",
    "Bubblewrap",
    "CommandLimits",
    "CommandOptions",
    "CompletedCommand",
    "RunsCommands",
    "SandboxMode",
    "SandboxUnavailable",
    "StopEvent",
    "check_bounds",
    "check_command",
    "check_mount_point",
    "host_path",
    "run_command",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "command_options": "ENVIRONMENT CommandOptions",
        "errors": "SandboxUnavailable",
        "command_watch": "StopEvent",
        "resource_limits": "CommandLimits",
        "runner": "CompletedCommand RunsCommands check_bounds check_command host_path run_command",
        "sandbox": "Bubblewrap SandboxMode check_mount_point",
    },
)
