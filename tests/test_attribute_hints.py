"""Hints for attributes that users of other libraries expect."""

from __future__ import annotations

from pathlib import Path

import pytest
from attrs import frozen

from weakfs import (
    HostFilesystem,
    InMemoryFilesystem,
    MountedFilesystem,
    OverlayFilesystem,
    Session,
    Tool,
    ToolContext,
    ToolResult,
    Toolset,
)
from weakfs.attribute_hints import attribute_hints
from weakfs.reducers import ExternalFsSnapshot
from weakfs.tools import ToolCalls


@attribute_hints(size="length()", name="title")
class Book:
    name = "its own"

    def length(self) -> int:
        return 1


class Sized(Book):
    def size(self) -> int:
        return 2


def test_a_missing_attribute_says_what_to_use() -> None:
    with pytest.raises(AttributeError, match=r"^'Book' object has no attribute 'size'; use length\(\)$"):
        Book().size  # type: ignore[attr-defined]  # noqa: B018  # asked for on purpose
    with pytest.raises(AttributeError, match=r"^type object 'Book' has no attribute 'size'; use length\(\)$"):
        Book.size  # type: ignore[attr-defined]  # noqa: B018  # as above


def test_attributes_of_the_class_and_of_its_subclasses_stay() -> None:
    assert Book().name == "its own"
    assert Sized().size() == 2


def test_names_with_a_hint_are_neither_found_nor_listed() -> None:
    assert not hasattr(Book(), "size")
    assert {"length", "name"} <= set(dir(Book()))
    assert "size" not in dir(Book())
    assert "size" in dir(Sized())


@pytest.mark.parametrize("name", ["listdir", "ls", "isdir", "makedirs", "remove", "rename", "read_text", "unlink"])
def test_filesystems_say_what_replaces_the_names_of_other_libraries(name: str, tmp_path: Path) -> None:
    session = Session()
    files = InMemoryFilesystem(session)
    (tmp_path / "project").mkdir()
    host = HostFilesystem(tmp_path / "project", store=tmp_path / "store")
    for filesystem in (files, host, OverlayFilesystem(files, Session()), MountedFilesystem(files, "/workspace")):
        with pytest.raises(AttributeError, match=rf"no attribute '{name}'; use \w+\(.*\)"):
            getattr(filesystem, name)


def test_an_overlay_has_commit_and_memory_says_so() -> None:
    overlay = OverlayFilesystem(InMemoryFilesystem(), Session())
    assert overlay.commit().added == ()
    with pytest.raises(AttributeError, match="use an OverlayFilesystem"):
        InMemoryFilesystem().commit  # type: ignore[attr-defined]  # noqa: B018  # as above


@frozen
class NoParams:
    pass


def test_the_filesystem_of_a_handler_says_it_too() -> None:
    def names(params: NoParams, *, context: ToolContext) -> ToolResult[None]:
        context.filesystem.listdir("/")  # type: ignore[union-attr]  # as above
        return ToolResult("", None)

    with pytest.raises(AttributeError, match=r"use list\(path\)"):
        Toolset(Session(), tools=[Tool("names", "List names.", NoParams, names)]).call("names", {})


@pytest.mark.parametrize("name", ["commit", "events", "files", "savepoint", "state"])
def test_sessions_say_it(name: str) -> None:
    with pytest.raises(AttributeError, match=rf"'Session' object has no attribute '{name}'; use "):
        getattr(Session(), name)


def test_toolsets_results_and_slices_say_it() -> None:
    session = Session()
    tools = Toolset(session)
    for value, name, hint in (
        (tools, "execute", r"call\(name, arguments\)"),
        (tools.call("ls", {}), "output", "message"),
        (session[ToolCalls], "get", r"latest\(\)"),
    ):
        with pytest.raises(AttributeError, match=f"no attribute '{name}'; use {hint}"):
            getattr(value, name)


def test_values_say_what_a_field_of_the_design_documents_is_called_here(tmp_path: Path) -> None:
    files = InMemoryFilesystem()
    files.write("/a", "x")
    host = HostFilesystem(tmp_path, store=tmp_path.with_name("store"))
    host.snapshot()
    for value, name, hint in (
        (files.list()[0], "kind", "is_file and is_directory"),
        (files.list()[0], "size_bytes", r"stat\(path\)\.size_bytes"),
        (files.snapshot(), "commit_ref", "ref"),
        (host.session[ExternalFsSnapshot].latest(), "commit_ref", "ref"),
    ):
        with pytest.raises(AttributeError, match=f"no attribute '{name}'; use {hint}$"):
            getattr(value, name)
