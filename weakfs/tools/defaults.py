"""The built-in tools: names, descriptions, aliases and operations."""

from __future__ import annotations

from weakfs.tools import handlers as h
from weakfs.tools.context import ToolContext
from weakfs.tools.handlers.apply_patch import patched_paths
from weakfs.tools.tool import Tool

_FILE = {"file_path": "path"}
_TRANSFER = {"src": "source", "dst": "destination"}


def _path(params: h.WriteFileParams | h.EditFileParams, context: ToolContext) -> tuple[str]:
    return (params.path,)


_PATCH = """\
Change several files at once, all of them or none. A patch starts with *** Begin Patch, ends with \
*** End Patch and has, in between, any number of
*** Add File: path, then each line of the file, prefixed with +
*** Delete File: path
*** Update File: path, then perhaps *** Move to: path, then hunks in the order of the file.
A hunk is @@, or @@ and a whole line of the file above the place (its class or function; several such lines nest); \
then lines prefixed with a space if they stay, - if removed, + if added. Copy old lines exactly, about three above and \
below each change: they must fit one place only. *** End of File below a hunk ties it to the end. No line numbers.
Example:
*** Begin Patch
*** Update File: src/app.py
@@ class Server:
@@     def start(self):
         self.open()
-        self.port = 80
+        self.port = 8080
         return self
*** Add File: docs/ports.md
+# Ports
+8080: the server
*** Delete File: docs/old.md
*** End Patch"""


DEFAULT_TOOLS: tuple[Tool, ...] = (
    Tool(
        "ls",
        "List a directory, one name per line; directories end in /, symbolic links in @. With depth above 1 "
        "the entries of each directory follow it, indented.",
        h.LsParams,
        h.ls_handler,
        read_only=True,
        receipt=h.LsReceipt,
        operation="list",
    ),
    Tool(
        "read_file",
        "Read a file's text exactly as it is. offset and limit choose lines, counted from 1; offset_bytes and "
        "max_bytes choose bytes instead. A line in brackets at the end says how to read on.",
        h.ReadFileParams,
        h.read_file_handler,
        read_only=True,
        aliases=_FILE,
        receipt=h.ReadFileReceipt,
        operation="read",
        is_quick=True,
    ),
    Tool(
        "write_file",
        "Write text to a file: replace all of it, create a new one (mode create), or add to its end (mode append).",
        h.WriteFileParams,
        h.write_file_handler,
        aliases=_FILE,
        receipt=h.WriteFileReceipt,
        operation="write",
        targets=_path,
        is_quick=True,
    ),
    Tool(
        "edit_file",
        "Replace old_string with new_string in a file. old_string must be in the file exactly once, to the last "
        "space and line break, unless replace_all is set. Use edits to make several such changes at once.",
        h.EditFileParams,
        h.edit_file_handler,
        aliases=_FILE,
        receipt=h.EditFileReceipt,
        operation="edit",
        targets=_path,
    ),
    Tool(
        "apply_patch",
        _PATCH,
        h.ApplyPatchParams,
        h.apply_patch_handler,
        receipt=h.ApplyPatchReceipt,
        operation="patch",
        targets=patched_paths,
    ),
    Tool(
        "glob",
        "Find files by name, newest first. * and ? stay inside one directory, ** crosses directories; a "
        "pattern without a slash matches names at any depth, one that ends in / matches directories.",
        h.GlobParams,
        h.glob_handler,
        read_only=True,
        receipt=h.GlobReceipt,
        operation="search",
    ),
    Tool(
        "grep",
        "Find lines by a regular expression (RE2 syntax, without lookaround and backreferences). The answer has "
        "path:line:text for each match and path-line-text for the lines around it. glob narrows the files.",
        h.GrepParams,
        h.grep_handler,
        read_only=True,
        aliases={
            "glob_filter": "glob",
            "-A": "context_after",
            "-B": "context_before",
            "-C": "context",
            "-i": "case_insensitive",
            "head_limit": "max_results",
        },
        receipt=h.GrepReceipt,
        operation="search",
    ),
    Tool(
        "rm",
        "Remove a file or a directory. A directory that has entries needs recursive.",
        h.RmParams,
        h.rm_handler,
        aliases=_FILE,
        receipt=h.RmReceipt,
        operation="write",
        is_quick=True,
    ),
    Tool(
        "mkdir",
        "Create a directory, with missing parents.",
        h.MkdirParams,
        h.mkdir_handler,
        receipt=h.MkdirReceipt,
        operation="write",
        is_quick=True,
    ),
    Tool(
        "mv",
        "Move or rename a file or directory; an existing file at the destination is replaced.",
        h.TransferParams,
        h.mv_handler,
        aliases=_TRANSFER,
        receipt=h.TransferReceipt,
        operation="write",
        is_quick=True,
    ),
    Tool(
        "cp",
        "Copy a file, or a directory with everything in it; an existing file at the destination is replaced.",
        h.TransferParams,
        h.cp_handler,
        aliases=_TRANSFER,
        receipt=h.TransferReceipt,
        operation="write",
        is_quick=True,
    ),
    Tool(
        "stat",
        "Show what a file or directory is: kind, size, mode, modification time.",
        h.StatParams,
        h.stat_handler,
        read_only=True,
        aliases=_FILE,
        receipt=h.StatReceipt,
        operation="stat",
        is_quick=True,
    ),
    Tool(
        "exists",
        "Check whether a file or directory exists.",
        h.ExistsParams,
        h.exists_handler,
        read_only=True,
        aliases=_FILE,
        receipt=h.ExistsReceipt,
        operation="stat",
        is_quick=True,
    ),
    # To have none: `tools=[tool for tool in DEFAULT_TOOLS if tool.name != "shell"]`.
    h.shell_tool(),
)

# For commands that keep running after the call, on a filesystem that supports them: `tools=[*DEFAULT_TOOLS,
# *PROCESS_TOOLS]`, or `process_tools(options)` for your own options.
PROCESS_TOOLS: tuple[Tool, ...] = h.process_tools()
