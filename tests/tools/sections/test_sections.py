"""Sections: what a model reads, what tools it has, and on which files they work."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from weakfs import DEFAULT_TOOLS, Capability, Session
from weakfs.backends import HostFilesystem, HostMount, InMemoryFilesystem
from weakfs.filesystem import Limits
from weakfs.tools.sections import (
    FILESYSTEM_TOOLS,
    FilesystemSection,
    Prompt,
    Section,
    VfsSection,
    WorkspaceSection,
    dispatch_tool_call,
)

TASK = Section(title="Task", key="task", template="Fix the tests.\n")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "project" / "src").mkdir(parents=True)
    (tmp_path / "project" / "src" / "app.py").write_text("port = 80\n")
    (tmp_path / "project" / "src" / "app.pyc").write_bytes(b"\0")
    os.symlink("app.py", tmp_path / "project" / "src" / "link.py")
    return tmp_path / "project"


def test_a_prompt_renders_its_sections_in_order_with_their_tools() -> None:
    session = Session(session_id="s")
    prompt = Prompt(sections=[TASK, VfsSection(session=session, template="Paths start at `/`.")])

    rendered = prompt.render()

    assert rendered.text == "## Task\n\nFix the tests.\n\n## Virtual filesystem\n\nPaths start at `/`.\n"
    assert rendered.tools == prompt.tools == FILESYSTEM_TOOLS
    assert [one["name"] for one in rendered.definitions("mcp")] == [tool.name for tool in FILESYSTEM_TOOLS]


def test_a_template_is_filled_in_if_values_are_given() -> None:
    as_it_is = Section(title="T", key="t", template="Set $HOME to 100%.")
    filled_in = Section(title="T", key="t", template="Dear $name, pay $$5 to ${who}s.", values={"name": "A", "who": 3})

    assert as_it_is.render() == "## T\n\nSet $HOME to 100%.\n"
    assert filled_in.render() == "## T\n\nDear A, pay $5 to 3s.\n"
    with pytest.raises(
        ValueError, match=r"cannot fill in the section 't': its template uses \$who, which has no value"
    ):
        Section(title="T", key="t", template="$who", values={})
    with pytest.raises(ValueError, match=r"cannot fill in the section 't': Invalid placeholder .*; write \$\$"):
        Section(title="T", key="t", template="5 $ each", values={})


def test_two_sections_with_tools_of_the_same_name_are_refused() -> None:
    session = Session(session_id="s")
    vfs = VfsSection(session=session)
    more = Section(title="More", key="more", template="", tools=[DEFAULT_TOOLS[0]])

    with pytest.raises(
        ValueError, match="cannot provide the tool 'ls' in the section 'more' and the section 'vfs' too: a call names"
    ):
        Prompt(sections=[vfs, more])
    twice = Section(title="Twice", key="twice", template="", tools=[DEFAULT_TOOLS[0]] * 2)
    with pytest.raises(ValueError, match="cannot provide the tool 'ls' in the section 'twice' twice"):
        Prompt(sections=[twice])


def test_two_sections_with_the_same_key_are_refused() -> None:
    with pytest.raises(ValueError, match="cannot have two sections with the key 'task'"):
        Prompt(sections=[TASK, Section(title="Other", key="task", template="")])


def test_a_prompt_uses_the_filesystem_of_its_first_section_with_one(tmp_path: Path) -> None:
    session = Session(session_id="s")
    vfs = VfsSection(session=session)
    workspace = WorkspaceSection(session=session, root=tmp_path, store=tmp_path.parent / "store")

    assert Prompt(sections=[TASK, vfs, workspace]).filesystem() is vfs.filesystem
    assert Prompt(sections=[workspace, vfs]).filesystem() is workspace.filesystem
    assert Prompt(sections=[TASK]).filesystem() is None
    assert Prompt(sections=[workspace, vfs]).toolset("ls", session).filesystem is vfs.filesystem
    assert Prompt(sections=[workspace, vfs]).section_of("ls") is vfs
    assert Prompt(sections=[workspace]).section_of("ls") is None


def test_a_vfs_section_works_on_the_sessions_files_and_mounts_once(project: Path, tmp_path: Path) -> None:
    session = Session(session_id="s")
    section = VfsSection(session=session, mounts=[HostMount(str(project), exclude=("*.pyc",))])
    assert isinstance(section.filesystem, InMemoryFilesystem)
    assert section.filesystem.read("/src/app.py").content == "port = 80\n"
    assert not section.filesystem.exists("/src/app.pyc")
    section.filesystem.delete("/src/link.py")
    session.save(tmp_path / "session.json")

    loaded = Session.load(tmp_path / "session.json")
    again = VfsSection(session=loaded, mounts=[HostMount(str(project), exclude=("*.pyc",))])

    assert not again.filesystem.exists("/src/link.py")
    assert again.filesystem.tree().fingerprint == section.filesystem.tree().fingerprint


def test_the_filesystem_of_a_section_returns_whole_files_but_answers_are_limited(tmp_path: Path) -> None:
    session = Session(session_id="s")
    limits = Limits(default_read_limit=5, max_file_size=100_000)
    sections: list[FilesystemSection] = [
        VfsSection(session=session, limits=limits),
        WorkspaceSection(
            session=session, root=tmp_path, store=tmp_path.parent / "store", limits=limits, tools=FILESYSTEM_TOOLS
        ),
    ]
    for section in sections:
        section.filesystem.write("/long", "line\n" * 3000)

        assert section.filesystem.read("/long").content == "line\n" * 3000
        assert section.filesystem.limits.max_file_size == 100_000
        answer = dispatch_tool_call(Prompt(sections=[section]), "read_file", {"path": "/long"}, session=session)
        assert answer.message.endswith("[lines 1 to 5 of 3000; continue with offset=6]")


def test_a_vfs_section_runs_no_programs_by_default() -> None:
    session = Session(session_id="s")

    assert "shell" not in [tool.name for tool in VfsSection(session=session).tools]
    assert VfsSection(session=session, tools=DEFAULT_TOOLS).tools == DEFAULT_TOOLS


def test_a_section_without_anything_to_release_can_be_closed_too() -> None:
    with VfsSection(session=Session(session_id="s")) as section:
        section.filesystem.write("/a.txt", "text\n")
    section.close()
    assert section.filesystem.read("/a.txt").content == "text\n"


def test_a_workspace_without_a_root_is_a_directory_that_is_removed_when_closed(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    session = Session(session_id="s")

    with WorkspaceSection(
        session=session, mounts=[HostMount(str(project), mount_path="/p", exclude=("*.pyc",))], store=tmp_path / "store"
    ) as section:
        root = Path(section.root)
        assert isinstance(section.filesystem, HostFilesystem)
        assert root.parent.parent == tmp_path
        assert (root / "p" / "src" / "app.py").read_text() == "port = 80\n"
        assert os.readlink(root / "p" / "src" / "link.py") == "app.py"
        assert not (root / "p" / "src" / "app.pyc").exists()
        assert section.mount_reports[0].path == "/p"
        assert section.tools == ()

    assert not root.exists()
    section.close()
    session.save(tmp_path / "session.json")
    assert (project / "src" / "app.py").read_text() == "port = 80\n"


def test_a_workspace_that_cannot_be_created_leaves_no_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))

    with pytest.raises(FileNotFoundError):
        WorkspaceSection(session=Session(), mounts=[HostMount(str(tmp_path / "none"))], store=tmp_path / "store")

    assert list((tmp_path / "temporary").iterdir()) == []


def test_a_workspace_with_a_root_does_not_remove_it(project: Path, tmp_path: Path) -> None:
    session = Session(session_id="s")

    with WorkspaceSection(session=session, root=project, tools=FILESYSTEM_TOOLS, store=tmp_path / "store") as section:
        result = dispatch_tool_call(
            Prompt(sections=[section]), "write_file", {"path": "/new", "content": "x"}, session=session
        )

    assert result.success
    assert (project / "new").read_text() == "x"


def test_a_workspace_accepts_a_root_or_mounts(project: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="it may already contain files; leave out root to use a temporary directory"):
        WorkspaceSection(session=Session(), root=tmp_path, mounts=[HostMount(str(project))])


def test_a_section_says_what_its_tools_may_do(project: Path) -> None:
    session = Session(session_id="s")
    allowed = Capability(fs_roots=("/src",))
    prompt = Prompt(
        sections=[VfsSection(session=session, mounts=[HostMount(str(project))], capability=allowed)],
    )

    assert dispatch_tool_call(prompt, "read_file", {"path": "/src/app.py"}, session=session).success
    assert dispatch_tool_call(prompt, "write_file", {"path": "/a", "content": ""}, session=session).status == (
        "forbidden"
    )


def test_a_section_requires_a_filesystem_of_its_kind() -> None:
    class Half(FilesystemSection):
        pass

    with pytest.raises(TypeError, match="abstract"):
        Half(title="Half", key="half", template="")  # type: ignore[abstract]  # pyright: ignore[reportAbstractUsage]
