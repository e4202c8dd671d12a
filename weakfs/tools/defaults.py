"""The built-in tools: their names, and the modules of `weakfs.tools.handlers` that define them."""

from __future__ import annotations

from weakfs.tools.tool import BuiltinTool, Tool

# In the order in which models are offered them.
_MODULES = {
    "ls": "ls",
    "read_file": "read_file",
    "write_file": "write_file",
    "edit_file": "edit_file",
    "apply_patch": "apply_patch",
    "glob": "glob",
    "grep": "grep",
    "rm": "entries",
    "mkdir": "entries",
    "mv": "entries",
    "cp": "entries",
    "stat": "ls",
    "exists": "ls",
    "shell": "shell",
}

DEFAULT_TOOLS: tuple[Tool, ...] = tuple(
    BuiltinTool.of(name, f"weakfs.tools.handlers.{module}") for name, module in _MODULES.items()
)
