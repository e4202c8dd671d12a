"""Running commands: in a sandbox unless told otherwise, with bounds on time and output, leaving no process behind.

Knows directories of the host and nothing of filesystems; the tool on top of it is in `weakfs.tools.handlers`.
"""

from weakfs.tools.shell.environment import ENVIRONMENT
from weakfs.tools.shell.limits import CommandLimits
from weakfs.tools.shell.runner import Finished, SandboxMode, check_command, run_command
from weakfs.tools.shell.sandbox import Bubblewrap, SandboxUnavailable
from weakfs.tools.shell.watching import Stop

__all__ = [
    "ENVIRONMENT",
    "Bubblewrap",
    "CommandLimits",
    "Finished",
    "SandboxMode",
    "SandboxUnavailable",
    "Stop",
    "check_command",
    "run_command",
]
