"""Rewinding a conversation of Google's ADK restores its files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.integrations.google_adk.conftest import Conversation
from weakfs import HostFilesystem, InMemoryFilesystem, Session
from weakfs.processes import Bubblewrap

pytestmark = pytest.mark.usefixtures("never_hung")

WRITE: tuple[str, dict[str, Any]] = ("WriteFile", {"path": "a.txt", "content": "one\n"})
EDIT: tuple[str, dict[str, Any]] = ("EditFile", {"path": "a.txt", "old_string": "one", "new_string": "two"})
MISS: tuple[str, dict[str, Any]] = ("EditFile", {"path": "a.txt", "old_string": "none", "new_string": "two"})
READ: tuple[str, dict[str, Any]] = ("ReadFile", {"path": "a.txt"})


def host(session: Session, directory: Path) -> HostFilesystem:
    return HostFilesystem(directory, session=session)


def talk(session: Session, files: Any = None) -> tuple[Conversation, Any]:
    from weakfs.integrations.google_adk import RewindPlugin, WeakfsEnvironment

    plugin = RewindPlugin(session)
    return Conversation(WeakfsEnvironment(session, files), plugins=(plugin,)), plugin


@pytest.mark.slow
@pytest.mark.parametrize("where", ["memory", "host"])
async def test_the_next_run_after_a_rewind_sees_the_earlier_files(where: str, tmp_path: Path) -> None:
    session = Session()
    files = InMemoryFilesystem(session) if where == "memory" else host(session, tmp_path)
    conversation, _ = talk(session, files)

    await conversation.run(WRITE)
    second, answers = await conversation.run(EDIT, MISS)
    assert [answer["status"] for answer in answers] == ["ok", "error"]
    third, _ = await conversation.run(("WriteFile", {"path": "b.txt", "content": "b\n"}))
    for invocation in (third, second):
        await conversation.runner.rewind_async(user_id="ann", session_id="chat", rewind_before_invocation_id=invocation)
    _, (answer,) = await conversation.run(READ)
    assert "one" in answer["content"]
    assert not files.exists("/b.txt")
    # The files are restored only once: what a later run does stays.
    await conversation.run(EDIT)
    await conversation.run(READ)
    assert files.read("/a.txt").content == "two\n"


async def test_a_rewind_by_the_plugin_is_immediate_and_can_be_undone(tmp_path: Path) -> None:
    session = Session()
    files = host(session, tmp_path)
    conversation, plugin = talk(session, files)

    first, _ = await conversation.run(WRITE)
    (tmp_path / "mine.txt").write_text("by hand\n")
    await conversation.run(EDIT)
    await plugin.rewind(conversation.runner, user_id="ann", session_id="chat", rewind_before_invocation_id=first)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine.txt"]
    session.undo()
    assert (tmp_path / "a.txt").read_text() == "two\n"


@pytest.mark.parametrize("where", ["memory", "host"])
async def test_changes_after_a_rewind_by_the_plugin_are_kept_by_the_next_run(where: str, tmp_path: Path) -> None:
    session = Session()
    files = InMemoryFilesystem(session) if where == "memory" else host(session, tmp_path)
    conversation, plugin = talk(session, files)

    await conversation.run(WRITE)
    second, _ = await conversation.run(EDIT)
    await plugin.rewind(conversation.runner, user_id="ann", session_id="chat", rewind_before_invocation_id=second)
    files.write("/a.txt", "corrected\n")
    # Another process of the runtime takes over.
    again, _ = talk(session, files)
    again.runner.session_service = conversation.runner.session_service
    _, (answer,) = await again.run(READ)
    assert "corrected" in answer["content"]
    assert files.read("/a.txt").content == "corrected\n"


async def test_a_conversation_without_rewinds_restores_nothing() -> None:
    session = Session()
    conversation, _ = talk(session)

    await conversation.run(WRITE)
    before = len(session.records)
    await conversation.run()
    assert len(session.records) == before


@pytest.mark.skipif(Bubblewrap().problem() is not None, reason="there is no sandbox")
async def test_files_deleted_by_a_command_are_restored(tmp_path: Path) -> None:
    session = Session()
    conversation, plugin = talk(session, host(session, tmp_path))

    await conversation.run(WRITE)
    second, (answer,) = await conversation.run(("Execute", {"command": "rm -r /workspace/*; echo gone"}))
    assert answer == {"status": "ok", "stdout": "gone\n"}
    assert not (tmp_path / "a.txt").exists()
    await plugin.rewind(conversation.runner, user_id="ann", session_id="chat", rewind_before_invocation_id=second)
    assert (tmp_path / "a.txt").read_text() == "one\n"
