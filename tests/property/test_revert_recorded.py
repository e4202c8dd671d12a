"""Each call of a recorded session, reverted: what comes of it, beside the session replayed without the call."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.sampling import sample
from weakfs import HostMount, InMemoryFilesystem, MergeConflict, Session, SessionError, Toolset
from weakfs.reducers import FileTree, diff
from weakfs.tools import ToolCalls
from weakfs.transcripts import TranscriptCall, read_transcript

FIXTURES = Path(__file__).parents[2] / "fixtures"
# The table in docs/howto/undo.md.
OUTCOMES = {"applied": 55, "conflict": 5}
CALLS = read_transcript(FIXTURES / "transcripts/shop.jsonl").calls


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    workspace = tmp_path_factory.mktemp("shop") / "shop"
    shutil.copytree(FIXTURES / "workspaces/shop", workspace, symlinks=True)
    return InMemoryFilesystem(Session(), mounts=[HostMount(str(workspace))]).export_bytes()


def performed(archive: bytes, calls: Iterable[TranscriptCall]) -> Session:
    session = Session(session_id="shop", clock=lambda: 0)
    files = InMemoryFilesystem(session)
    files.import_bytes(archive)
    tools = Toolset(session, files)
    for call in calls:
        assert call.arguments is not None
        tools.call(call.tool, call.arguments, call_id=call.call_id)
    return session


def tree(session: Session) -> FileTree:
    return InMemoryFilesystem(session).tree()


def touched(before: FileTree, after: FileTree) -> set[str]:
    found = diff(before, after)
    return {*found.added, *found.removed, *found.changed, *(path for pair in found.moved for path in pair)}


def outcome(session: Session, call_id: str) -> tuple[str, FileTree]:
    """Revert a call in a fork, and return what came of it with the files."""
    fork = session.fork()
    before = tree(fork)
    try:
        fork.revert(call_id)
    except MergeConflict:
        assert tree(fork) is before
        return "conflict", before
    except SessionError:
        assert tree(fork) is before
        return "refused", before
    return "applied", tree(fork)


def test_each_call_is_reverted_or_conflicts_and_no_file_is_wrong(archive: bytes) -> None:
    session = performed(archive, CALLS)
    changes: dict[str, set[str]] = {}
    for call in session[ToolCalls].all():
        if call.first_seq is not None and call.last_seq is not None and call.status == "ok":
            views = [session.at(seq)[FileTree].latest() for seq in (call.first_seq - 1, call.last_seq)]
            if views[0] is not None and views[1] is not None and (paths := touched(views[0], views[1])):
                changes[call.call_id] = paths
    outcomes = {call_id: outcome(session, call_id) for call_id in changes}
    assert Counter(name for name, _ in outcomes.values()) == OUTCOMES
    answers = {call.call_id: (call.status, call.summary) for call in session[ToolCalls].all()}
    for call_id in sample([call_id for call_id, (name, _) in outcomes.items() if name == "applied"]):
        without = performed(archive, (call for call in CALLS if call.call_id != call_id))
        # Where a later call then has another answer, it depended on this one.
        if all(answers[call.call_id] == (call.status, call.summary) for call in without[ToolCalls].all()):
            found = diff(outcomes[call_id][1], tree(without))
            assert not found, (call_id, found)
