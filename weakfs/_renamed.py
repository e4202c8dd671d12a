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
    "weakfs.transcripts",
)

# Names that the design documents use, and older names, with what stands for each of them.
RENAMED = {
    "BridgedTool": "weakfs.Tool",
    "ClaudeAgentWorkspaceSection": "weakfs.tools.sections.WorkspaceSection",
    "ContainerBackend": "ContainerFilesystem, which is not part of this version",
    "CreateSnapshot": "Session.snapshot()",
    "ExternalFilesystemSnapshot": "weakfs.reducers.ExternalFsSnapshot",
    "FileContent": "weakfs.filesystem.ReadResult",
    "FileInfo": "weakfs.filesystem.FileStat",
    "FileSystem": "weakfs.Filesystem",
    "FilesystemProtocol": "weakfs.Filesystem",
    "FilesystemProtocolTests": "weakfs.testing.FilesystemConformance",
    "FilesystemToolHandlers": "the functions in weakfs.tools.handlers",
    "HostBackend": "weakfs.HostFilesystem",
    "HostSnapshotableFilesystem": "weakfs.HostFilesystem",
    "InMemoryBackend": "weakfs.InMemoryFilesystem",
    "InMemoryState": "weakfs.reducers.FileTree",
    "PodmanConfig": "the arguments of ContainerFilesystem, which is not part of this version",
    "PodmanSandboxSection": "PodmanSection, which is not part of this version",
    "ProviderAdapter": "Toolset.definitions(provider)",
    "ProviderAdapterProtocol": "the argument adapter of weakfs.tools.build_tool_context, passed on unchanged",
    "RestoreSnapshot": "Session.rollback()",
    "SessionProtocol": "weakfs.Session",
    "SessionSnapshot": "weakfs.Snapshot",
    "SnapshotableFilesystem": "weakfs.Filesystem; every filesystem has snapshot() and restore()",
    "VfsToolsSection": "weakfs.tools.sections.VfsSection",
    "VirtualFileSystem": "weakfs.InMemoryFilesystem",
    "VirtualFilesystem": "weakfs.InMemoryFilesystem",
    "about": "weakfs.param",
    "commit_ref": "the field ref of weakfs.filesystem.FilesystemSnapshot",
    "host_fs": "weakfs.HostFilesystem(path)",
    "memory_fs": "weakfs.InMemoryFilesystem()",
    "pack": "weakfs.snapshots.to_tar",
    "tagged": "weakfs.event",
    "unpack": "weakfs.snapshots.from_tar",
}


def hint(name: str) -> str:
    """Return the end of an error message about a missing name; empty if nothing is known of it."""
    known = RENAMED.get(name)
    if known is not None:
        return f"; here it is {known}"
    if name.startswith("_"):
        return ""
    if find_spec(f"weakfs.{name}") is not None:
        # `from weakfs import session` asks for the name before it imports the module.
        return f"; it is a module: import weakfs.{name}"
    for package in PACKAGES:
        if name in import_module(package).__all__:
            return f"; it is defined in {package}: from {package} import {name}"
    return ""
