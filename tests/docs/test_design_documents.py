"""The page that maps the names of the design documents: it is complete, and every name that it leads to exists."""

from __future__ import annotations

import re
from importlib import import_module

import pytest

import weakfs
from docs.generate import renamed
from tests.docs.test_pages import DOCS
from weakfs._name_hints import RENAMED, hint

PAGE = (DOCS / "explanation" / "design-documents.md").read_text(encoding="utf-8") + renamed.page()

# The classes and functions that the documents define or call, one paragraph for each document.
NAMES = """
    ClaudeAgentWorkspaceSection ContainerBackend ExternalFsSnapshot FileContent FileEntry Filesystem FilesystemSection
    GrepMatch HostBackend HostMount InMemoryBackend InMemoryState PodmanSandboxSection RenderedPrompt RestoreSnapshot
    ToolContext VfsSection VirtualFileSystem WorkspaceSection _FileRecord _build_tool_context _create_container
    _create_workspace _deserialize_state _execute_tool_call _find_section_for_tool _hydrate_mounts _normalize _paginate
    _require_filesystem _serialize_state _set_state _state append_all build_tool_context delete edit_file_handler
    glob glob_handler grep grep_handler host_fs list ls_handler memory_fs read read_file_handler restore rm_handler
    rollback snapshot test_delete test_snapshot_restore test_write_read_roundtrip write write_file_handler

    FileStat FilesystemProtocolTests FilesystemSnapshot GlobMatch HostFilesystem InMemoryFilesystem MockFilesystem
    ReadBytesResult ReadResult SnapshotableFilesystem WriteResult commit_ref created_at mkdir write_bytes

    apply_patch edit_file exists list_dir read_file stat write_file spawn_agent send_input wait close_agent

    FilesystemToolHandlers ListDirectoryParams MarkdownSection PodmanSection VfsSectionParams VfsToolsSection
    _build_tools _execute_tool _normalize_optional_path list_directory list_directory_handler make_stub_context remove
    remove_handler test_list_directory

    CreateSnapshot DirectoryCount FileCount MaxFileSize MaxNodeCount MaxTotalSize NodeCount TotalSize
"""


@pytest.mark.parametrize("name", NAMES.split())
def test_every_name_of_the_design_documents_is_on_the_page(name: str) -> None:
    assert re.search(rf"\b{name}\b", PAGE)


# Names that somebody may type after `weakfs.`: classes, and functions that are not methods.
TYPED = [name for name in NAMES.split() if name[0].isupper() or name.endswith("_handler")]


@pytest.mark.parametrize("name", [*TYPED, "list_directory", "remove"])
def test_every_class_or_function_of_the_design_documents_exists_or_names_its_equivalent(name: str) -> None:
    assert hasattr(weakfs, name) or hint(name)


@pytest.mark.parametrize("name", sorted(RENAMED))
def test_every_renamed_name_leads_to_an_existing_one(name: str) -> None:
    assert not hasattr(weakfs, name)
    for found in re.findall(r"\bweakfs((?:\.[A-Za-z_]+)+)", RENAMED[name]):
        *packages, last = found[1:].split(".")
        home = import_module(".".join(("weakfs", *packages)))
        assert hasattr(home, last) or import_module(f"{home.__name__}.{last}")
