"""The filesystem that an agent runtime embeds: every change an event, every call undoable.

Every public name can be taken from here. It is imported from its home when it is first used, so that
`import weakfs` costs little.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from weakfs.backends import (
        Call as Call,
    )
    from weakfs.backends import (
        HostMount as HostMount,
    )
    from weakfs.backends import (
        InMemoryFilesystem as InMemoryFilesystem,
    )
    from weakfs.backends import (
        MockFilesystem as MockFilesystem,
    )
    from weakfs.backends import (
        UnansweredCallError as UnansweredCallError,
    )
    from weakfs.editing import (
        AmbiguousTarget as AmbiguousTarget,
    )
    from weakfs.editing import (
        EditError as EditError,
    )
    from weakfs.editing import (
        EmptyOldString as EmptyOldString,
    )
    from weakfs.editing import (
        NoChange as NoChange,
    )
    from weakfs.editing import (
        Replacement as Replacement,
    )
    from weakfs.editing import (
        TargetNotFound as TargetNotFound,
    )
    from weakfs.editing import (
        replace as replace,
    )
    from weakfs.filesystem import (
        BaseFilesystem as BaseFilesystem,
    )
    from weakfs.filesystem import (
        FileEntry as FileEntry,
    )
    from weakfs.filesystem import (
        FileStat as FileStat,
    )
    from weakfs.filesystem import (
        Filesystem as Filesystem,
    )
    from weakfs.filesystem import (
        FilesystemSnapshot as FilesystemSnapshot,
    )
    from weakfs.filesystem import (
        GlobMatch as GlobMatch,
    )
    from weakfs.filesystem import (
        GlobResult as GlobResult,
    )
    from weakfs.filesystem import (
        GrepMatch as GrepMatch,
    )
    from weakfs.filesystem import (
        GrepResult as GrepResult,
    )
    from weakfs.filesystem import (
        Limits as Limits,
    )
    from weakfs.filesystem import (
        ReadBytesResult as ReadBytesResult,
    )
    from weakfs.filesystem import (
        ReadResult as ReadResult,
    )
    from weakfs.filesystem import (
        RestoreReport as RestoreReport,
    )
    from weakfs.filesystem import (
        Statistics as Statistics,
    )
    from weakfs.filesystem import (
        SymlinkPolicy as SymlinkPolicy,
    )
    from weakfs.filesystem import (
        WriteMode as WriteMode,
    )
    from weakfs.filesystem import (
        WriteResult as WriteResult,
    )
    from weakfs.filesystem import (
        normalize as normalize,
    )
    from weakfs.reducers import (
        DirectoryMade as DirectoryMade,
    )
    from weakfs.reducers import (
        EntryCopied as EntryCopied,
    )
    from weakfs.reducers import (
        EntryDeleted as EntryDeleted,
    )
    from weakfs.reducers import (
        EntryMoved as EntryMoved,
    )
    from weakfs.reducers import (
        FileAppended as FileAppended,
    )
    from weakfs.reducers import (
        FileSpliced as FileSpliced,
    )
    from weakfs.reducers import (
        FileTree as FileTree,
    )
    from weakfs.reducers import (
        FileWritten as FileWritten,
    )
    from weakfs.reducers import (
        LinkMade as LinkMade,
    )
    from weakfs.reducers import (
        ModeChanged as ModeChanged,
    )
    from weakfs.reducers import (
        MountReport as MountReport,
    )
    from weakfs.reducers import (
        TreeDiff as TreeDiff,
    )
    from weakfs.reducers import (
        TreeMounted as TreeMounted,
    )
    from weakfs.reducers import (
        TreeRestored as TreeRestored,
    )
    from weakfs.reducers import (
        diff as diff,
    )
    from weakfs.reducers import (
        merge as merge,
    )
    from weakfs.reducers import (
        reduce as reduce,
    )
    from weakfs.session import (
        Bus as Bus,
    )
    from weakfs.session import (
        Conflict as Conflict,
    )
    from weakfs.session import (
        External as External,
    )
    from weakfs.session import (
        Journal as Journal,
    )
    from weakfs.session import (
        Log as Log,
    )
    from weakfs.session import (
        MergeConflict as MergeConflict,
    )
    from weakfs.session import (
        Merged as Merged,
    )
    from weakfs.session import (
        MissingBlob as MissingBlob,
    )
    from weakfs.session import (
        Record as Record,
    )
    from weakfs.session import (
        Records as Records,
    )
    from weakfs.session import (
        Registry as Registry,
    )
    from weakfs.session import (
        RollbackIncomplete as RollbackIncomplete,
    )
    from weakfs.session import (
        RolledBack as RolledBack,
    )
    from weakfs.session import (
        Session as Session,
    )
    from weakfs.session import (
        SessionClosed as SessionClosed,
    )
    from weakfs.session import (
        SessionError as SessionError,
    )
    from weakfs.session import (
        SessionFileError as SessionFileError,
    )
    from weakfs.session import (
        SessionSnapshot as SessionSnapshot,
    )
    from weakfs.session import (
        SessionView as SessionView,
    )
    from weakfs.session import (
        Slice as Slice,
    )
    from weakfs.session import (
        SliceAppended as SliceAppended,
    )
    from weakfs.session import (
        SliceCleared as SliceCleared,
    )
    from weakfs.session import (
        SliceSeeded as SliceSeeded,
    )
    from weakfs.session import (
        SliceView as SliceView,
    )
    from weakfs.session import (
        UnknownSnapshot as UnknownSnapshot,
    )
    from weakfs.session import (
        UnknownType as UnknownType,
    )
    from weakfs.session import (
        UnsupportedVersion as UnsupportedVersion,
    )
    from weakfs.session import (
        append_all as append_all,
    )
    from weakfs.session import (
        merge_appended as merge_appended,
    )
    from weakfs.session import (
        reducer as reducer,
    )
    from weakfs.session import (
        replace_latest as replace_latest,
    )
    from weakfs.session import (
        replace_latest_by as replace_latest_by,
    )
    from weakfs.session import (
        tagged as tagged,
    )
    from weakfs.session import (
        upsert_by as upsert_by,
    )
    from weakfs.tools import (
        DEFAULT_TOOLS as DEFAULT_TOOLS,
    )
    from weakfs.tools import (
        DeadlineExceeded as DeadlineExceeded,
    )
    from weakfs.tools import (
        Handler as Handler,
    )
    from weakfs.tools import (
        Receipt as Receipt,
    )
    from weakfs.tools import (
        Skipped as Skipped,
    )
    from weakfs.tools import (
        Tool as Tool,
    )
    from weakfs.tools import (
        ToolCall as ToolCall,
    )
    from weakfs.tools import (
        ToolCalls as ToolCalls,
    )
    from weakfs.tools import (
        ToolContext as ToolContext,
    )
    from weakfs.tools import (
        ToolResult as ToolResult,
    )
    from weakfs.tools import (
        Toolset as Toolset,
    )
    from weakfs.tools import (
        ToolValidationError as ToolValidationError,
    )
    from weakfs.tools import (
        Transcript as Transcript,
    )
    from weakfs.tools import (
        TranscriptCall as TranscriptCall,
    )
    from weakfs.tools import (
        about as about,
    )
    from weakfs.tools import (
        build_tool_context as build_tool_context,
    )
    from weakfs.tools import (
        read_transcript as read_transcript,
    )
    from weakfs.tools import (
        require_filesystem as require_filesystem,
    )

__version__ = "0.1.0"

_HOMES = {
    "weakfs.backends": (
        "Call",
        "HostMount",
        "InMemoryFilesystem",
        "MockFilesystem",
        "UnansweredCallError",
    ),
    "weakfs.editing": (
        "AmbiguousTarget",
        "EditError",
        "EmptyOldString",
        "NoChange",
        "Replacement",
        "TargetNotFound",
        "replace",
    ),
    "weakfs.filesystem": (
        "BaseFilesystem",
        "FileEntry",
        "FileStat",
        "Filesystem",
        "FilesystemSnapshot",
        "GlobMatch",
        "GlobResult",
        "GrepMatch",
        "GrepResult",
        "Limits",
        "ReadBytesResult",
        "ReadResult",
        "RestoreReport",
        "Statistics",
        "SymlinkPolicy",
        "WriteMode",
        "WriteResult",
        "normalize",
    ),
    "weakfs.reducers": (
        "DirectoryMade",
        "EntryCopied",
        "EntryDeleted",
        "EntryMoved",
        "FileAppended",
        "FileSpliced",
        "FileTree",
        "FileWritten",
        "LinkMade",
        "ModeChanged",
        "MountReport",
        "TreeDiff",
        "TreeMounted",
        "TreeRestored",
        "diff",
        "merge",
        "reduce",
    ),
    "weakfs.session": (
        "Bus",
        "Conflict",
        "External",
        "Journal",
        "Log",
        "MergeConflict",
        "Merged",
        "MissingBlob",
        "Record",
        "Records",
        "Registry",
        "RollbackIncomplete",
        "RolledBack",
        "Session",
        "SessionClosed",
        "SessionError",
        "SessionFileError",
        "SessionSnapshot",
        "SessionView",
        "Slice",
        "SliceAppended",
        "SliceCleared",
        "SliceSeeded",
        "SliceView",
        "UnknownSnapshot",
        "UnknownType",
        "UnsupportedVersion",
        "append_all",
        "merge_appended",
        "reducer",
        "replace_latest",
        "replace_latest_by",
        "tagged",
        "upsert_by",
    ),
    "weakfs.tools": (
        "DEFAULT_TOOLS",
        "DeadlineExceeded",
        "Handler",
        "Receipt",
        "Skipped",
        "Tool",
        "ToolCall",
        "ToolCalls",
        "ToolContext",
        "ToolResult",
        "ToolValidationError",
        "Toolset",
        "Transcript",
        "TranscriptCall",
        "about",
        "build_tool_context",
        "read_transcript",
        "require_filesystem",
    ),
}

_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = sorted(_HOME_OF)  # the table above is the list


def __getattr__(name: str) -> object:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'weakfs' has no attribute {name!r}")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*globals(), *_HOME_OF]
