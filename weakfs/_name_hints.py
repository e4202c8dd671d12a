"""Hints for names that `weakfs` does not export: where each is defined, or what it is called here."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

PACKAGES = (
    "weakfs.session",
    "weakfs.reducers",
    "weakfs.filesystem",
    "weakfs.backends",
    "weakfs.snapshots",
    "weakfs.editing",
    "weakfs.search",
    "weakfs.storage",
    "weakfs.processes",
    "weakfs.tools",
    "weakfs.tools.handlers",
    "weakfs.tools.sections",
    "weakfs.history",
    "weakfs.transcripts",
    "weakfs.testing",
)

# Names from the design documents, and older names, each with its present equivalent.
RENAMED = {
    "BridgedTool": "weakfs.Tool",
    "BudgetTracker": "the argument budget_tracker of weakfs.tools.build_tool_context, passed on unchanged",
    "CapEnforceHost": "weakfs.Capability; the guard in weakfs.tools.permissions enforces it",
    "ClaudeAgentWorkspaceSection": "weakfs.tools.sections.WorkspaceSection",
    "ContainerBackend": "weakfs.ContainerFilesystem",
    "CreateSnapshot": "Session.snapshot()",
    "CreatedAt": "the fields created_at and created_ns of weakfs.filesystem.FileStat",
    "Deadline": "the argument deadline of weakfs.tools.build_tool_context, a reading of the session's clock",
    "DirectoryCount": "the field directory_count of weakfs.filesystem.Statistics",
    "EditParams": "weakfs.tools.handlers.EditFileParams",
    "ExternalFilesystemSnapshot": "weakfs.reducers.ExternalFsSnapshot",
    "FileContent": "weakfs.filesystem.ReadResult",
    "FileCount": "the field file_count of weakfs.filesystem.Statistics",
    "FileInfo": "weakfs.filesystem.FileStat",
    "FileSystem": "weakfs.Filesystem",
    "FilesystemProtocol": "weakfs.Filesystem",
    "FilesystemProtocolTests": "weakfs.testing.FilesystemConformance",
    "FilesystemToolHandlers": "the functions in weakfs.tools.handlers",
    "HostBackend": "weakfs.HostFilesystem",
    "HostCapParams": "weakfs.Capability",
    "HostSnapshotableFilesystem": "weakfs.HostFilesystem",
    "InMemoryBackend": "weakfs.InMemoryFilesystem",
    "InMemoryState": "weakfs.reducers.FileTree",
    "IsDirectory": "the field is_directory of weakfs.filesystem.FileEntry",
    "ListDirectoryParams": "weakfs.tools.handlers.LsParams",
    "MarkdownSection": "weakfs.tools.sections.Section",
    "MaxFileSize": "the field max_file_size of weakfs.Limits",
    "MaxNodeCount": "the field max_node_count of weakfs.Limits",
    "MaxTotalSize": "the field max_total_size of weakfs.Limits",
    "ModifiedAt": "the fields modified_at and modified_ns of weakfs.filesystem.FileStat",
    "NodeCount": "the field node_count of weakfs.filesystem.Statistics",
    "PodmanConfig": "the arguments of weakfs.ContainerFilesystem",
    "PodmanSandboxSection": "weakfs.tools.sections.PodmanSection",
    "PromptProtocol": "weakfs.tools.sections.Prompt",
    "ProviderAdapter": "Toolset.definitions(provider)",
    "ProviderAdapterProtocol": "the argument adapter of weakfs.tools.build_tool_context, passed on unchanged",
    "ReadParams": "weakfs.tools.handlers.ReadFileParams",
    "RenderedPromptProtocol": "weakfs.tools.sections.RenderedPrompt",
    "RestoreSnapshot": "Session.rollback()",
    "SessionProtocol": "weakfs.Session",
    "Snapshot": "weakfs.SessionSnapshot",
    "SnapshotableFilesystem": "weakfs.Filesystem; every filesystem has snapshot() and restore()",
    "TotalSize": "the field total_size of weakfs.filesystem.Statistics",
    "VfsSectionParams": "the arguments of weakfs.tools.sections.VfsSection",
    "VfsToolsSection": "weakfs.tools.sections.VfsSection",
    "VirtualFileSystem": "weakfs.InMemoryFilesystem",
    "VirtualFilesystem": "weakfs.InMemoryFilesystem",
    "WriteParams": "weakfs.tools.handlers.WriteFileParams",
    "about": "weakfs.param",
    "commit_ref": "the field ref of weakfs.filesystem.FilesystemSnapshot",
    "host_fs": "weakfs.HostFilesystem(path)",
    "list_directory": "the tool ls; its handler is weakfs.tools.handlers.ls_handler",
    "list_directory_handler": "weakfs.tools.handlers.ls_handler",
    "memory_fs": "weakfs.InMemoryFilesystem()",
    "pack": "weakfs.snapshots.to_tar",
    "remove": "the tool rm; its handler is weakfs.tools.handlers.rm_handler",
    "remove_handler": "weakfs.tools.handlers.rm_handler",
    "tagged": "weakfs.event",
    "unpack": "weakfs.snapshots.from_tar",
}


def unknown_name(name: str, *, is_import: bool) -> AttributeError | ImportError:
    """Return the error for a name that `weakfs` does not have.

    With `is_import`, `from weakfs import name` asks whether there is such an attribute before it looks for a module. It
    drops the message of an `AttributeError`, but not that of an `ImportError`.
    """
    found = hint(name)
    if is_import and found and not _is_module(name):
        return ImportError(f"cannot import name {name!r} from 'weakfs'{found}", name="weakfs")
    return AttributeError(f"module 'weakfs' has no attribute {name!r}{found}")


def _is_module(name: str) -> bool:
    return find_spec(f"weakfs.{name}") is not None


def hint(name: str) -> str:
    """Return the end of an error message about a missing name; empty if nothing is known about it."""
    known = RENAMED.get(name)
    if known is not None:
        return f"; use {known}"
    if name.startswith("_"):
        return ""
    if _is_module(name):
        # `from weakfs import session` asks for the name before it imports the module.
        return f"; it is a module: import weakfs.{name}"
    for package in PACKAGES:
        if name in import_module(package).__all__:
            return f"; it is defined in {package}: from {package} import {name}"
    return ""
