"""The built-in tools; the modules of `weakfs.tools.handlers` that define them are imported when they are used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weakfs.tools.tool import BuiltinTool, Tool

if TYPE_CHECKING:
    from weakfs.tools import handlers

LS: Tool[handlers.LsReceipt] = BuiltinTool.of("ls", "weakfs.tools.handlers.ls")
READ_FILE: Tool[handlers.ReadFileReceipt] = BuiltinTool.of("read_file", "weakfs.tools.handlers.read_file")
WRITE_FILE: Tool[handlers.WriteFileReceipt] = BuiltinTool.of("write_file", "weakfs.tools.handlers.write_file")
EDIT_FILE: Tool[handlers.EditFileReceipt] = BuiltinTool.of("edit_file", "weakfs.tools.handlers.edit_file")
APPLY_PATCH: Tool[handlers.ApplyPatchReceipt] = BuiltinTool.of("apply_patch", "weakfs.tools.handlers.apply_patch")
GLOB: Tool[handlers.GlobReceipt] = BuiltinTool.of("glob", "weakfs.tools.handlers.glob")
GREP: Tool[handlers.GrepReceipt] = BuiltinTool.of("grep", "weakfs.tools.handlers.grep")
RM: Tool[handlers.RmReceipt] = BuiltinTool.of("rm", "weakfs.tools.handlers.entries")
MKDIR: Tool[handlers.MkdirReceipt] = BuiltinTool.of("mkdir", "weakfs.tools.handlers.entries")
MV: Tool[handlers.TransferReceipt] = BuiltinTool.of("mv", "weakfs.tools.handlers.entries")
CP: Tool[handlers.TransferReceipt] = BuiltinTool.of("cp", "weakfs.tools.handlers.entries")
STAT: Tool[handlers.StatReceipt] = BuiltinTool.of("stat", "weakfs.tools.handlers.ls")
EXISTS: Tool[handlers.ExistsReceipt] = BuiltinTool.of("exists", "weakfs.tools.handlers.ls")
SHELL: Tool[handlers.ShellReceipt] = BuiltinTool.of("shell", "weakfs.tools.handlers.shell")

# In the order in which they are offered to models.
DEFAULT_TOOLS: tuple[Tool, ...] = (
    LS,
    READ_FILE,
    WRITE_FILE,
    EDIT_FILE,
    APPLY_PATCH,
    GLOB,
    GREP,
    RM,
    MKDIR,
    MV,
    CP,
    STAT,
    EXISTS,
    SHELL,
)
