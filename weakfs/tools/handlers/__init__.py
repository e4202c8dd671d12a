"""The handlers of the built-in tools: functions that take the filesystem from the context.

Each module has, for each of its tools, the parameters, the receipt and the function itself. A handler raises built-in
errors; `weakfs.tools.errors` maps them to statuses and error codes.

Names are imported from their modules when they are first used, as most processes call few tools.
"""

from typing import TYPE_CHECKING

from weakfs.lazy_names import lazy_names

if TYPE_CHECKING:
    from weakfs.tools.handlers.apply_patch import ApplyPatchParams, ApplyPatchReceipt, apply_patch_handler
    from weakfs.tools.handlers.edit_file import Edit, EditFileParams, EditFileReceipt, edit_file_handler
    from weakfs.tools.handlers.entries import (
        MkdirParams,
        MkdirReceipt,
        RmParams,
        RmReceipt,
        TransferParams,
        TransferReceipt,
        cp_handler,
        mkdir_handler,
        mv_handler,
        rm_handler,
    )
    from weakfs.tools.handlers.evaluate import EvalParams, eval_handler, eval_tool
    from weakfs.tools.handlers.glob import GlobParams, GlobReceipt, glob_handler
    from weakfs.tools.handlers.grep import GrepParams, GrepReceipt, grep_handler
    from weakfs.tools.handlers.ls import (
        ExistsParams,
        ExistsReceipt,
        LsParams,
        LsReceipt,
        StatParams,
        StatReceipt,
        exists_handler,
        ls_handler,
        stat_handler,
    )
    from weakfs.tools.handlers.processes.handlers import (
        process_input_handler,
        process_list_handler,
        process_output_handler,
        process_signal_handler,
        process_start_handler,
        process_tools,
        process_wait_handler,
    )
    from weakfs.tools.handlers.processes.parameters import (
        ProcessInputParams,
        ProcessListParams,
        ProcessOptions,
        ProcessOutputParams,
        ProcessSignalParams,
        ProcessStartParams,
        ProcessWaitParams,
    )
    from weakfs.tools.handlers.processes.receipts import (
        ProcessListReceipt,
        ProcessOutputReceipt,
        ProcessReceipt,
        ProcessStartReceipt,
        ProcessWaitReceipt,
    )
    from weakfs.tools.handlers.read_file import ReadFileParams, ReadFileReceipt, read_file_handler
    from weakfs.tools.handlers.shell import ShellOptions, ShellParams, ShellReceipt, shell_handler, shell_tool
    from weakfs.tools.handlers.write_file import InlineBytes, WriteFileParams, WriteFileReceipt, write_file_handler

__all__ = [
    "ApplyPatchParams",
    "ApplyPatchReceipt",
    "Edit",
    "EditFileParams",
    "EditFileReceipt",
    "EvalParams",
    "ExistsParams",
    "ExistsReceipt",
    "GlobParams",
    "GlobReceipt",
    "GrepParams",
    "GrepReceipt",
    "InlineBytes",
    "LsParams",
    "LsReceipt",
    "MkdirParams",
    "MkdirReceipt",
    "ProcessInputParams",
    "ProcessListParams",
    "ProcessListReceipt",
    "ProcessOptions",
    "ProcessOutputParams",
    "ProcessOutputReceipt",
    "ProcessReceipt",
    "ProcessSignalParams",
    "ProcessStartParams",
    "ProcessStartReceipt",
    "ProcessWaitParams",
    "ProcessWaitReceipt",
    "ReadFileParams",
    "ReadFileReceipt",
    "RmParams",
    "RmReceipt",
    "ShellOptions",
    "ShellParams",
    "ShellReceipt",
    "StatParams",
    "StatReceipt",
    "TransferParams",
    "TransferReceipt",
    "WriteFileParams",
    "WriteFileReceipt",
    "apply_patch_handler",
    "cp_handler",
    "edit_file_handler",
    "eval_handler",
    "eval_tool",
    "exists_handler",
    "glob_handler",
    "grep_handler",
    "ls_handler",
    "mkdir_handler",
    "mv_handler",
    "process_input_handler",
    "process_list_handler",
    "process_output_handler",
    "process_signal_handler",
    "process_start_handler",
    "process_tools",
    "process_wait_handler",
    "read_file_handler",
    "rm_handler",
    "shell_handler",
    "shell_tool",
    "stat_handler",
    "write_file_handler",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "apply_patch": "ApplyPatchParams ApplyPatchReceipt apply_patch_handler",
        "edit_file": "Edit EditFileParams EditFileReceipt edit_file_handler",
        "entries": (
            "MkdirParams MkdirReceipt RmParams RmReceipt TransferParams TransferReceipt cp_handler mkdir_handler "
            "mv_handler rm_handler"
        ),
        "evaluate": "EvalParams eval_handler eval_tool",
        "glob": "GlobParams GlobReceipt glob_handler",
        "grep": "GrepParams GrepReceipt grep_handler",
        "ls": (
            "ExistsParams ExistsReceipt LsParams LsReceipt StatParams StatReceipt exists_handler ls_handler "
            "stat_handler"
        ),
        "processes.handlers": (
            "process_input_handler process_list_handler process_output_handler process_signal_handler "
            "process_start_handler process_tools process_wait_handler"
        ),
        "processes.parameters": (
            "ProcessInputParams ProcessListParams ProcessOptions ProcessOutputParams ProcessSignalParams "
            "ProcessStartParams ProcessWaitParams"
        ),
        "processes.receipts": (
            "ProcessListReceipt ProcessOutputReceipt ProcessReceipt ProcessStartReceipt ProcessWaitReceipt"
        ),
        "read_file": "ReadFileParams ReadFileReceipt read_file_handler",
        "shell": "ShellOptions ShellParams ShellReceipt shell_handler shell_tool",
        "write_file": "InlineBytes WriteFileParams WriteFileReceipt write_file_handler",
    },
)
