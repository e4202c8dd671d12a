"""Reverting each call of a recorded session, compared with replaying the session without the call."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from random import Random

import pytest

from tests.property.agent_work import Agent, Call
from tests.sampling import sample
from weakfs import HostMount, InMemoryFilesystem, MergeConflict, Session, SessionError, Toolset
from weakfs.reducers import FileTree, diff, find
from weakfs.reducers.apply import segments_of
from weakfs.tools import ToolCalls
from weakfs.transcripts import read_transcript

FIXTURES = Path(__file__).parents[2] / "fixtures"
# The table in docs/howto/undo.md: a recorded session, and sessions like those of an agent, by their number of calls.
OUTCOMES = {
    "recorded": {"applied": 55, "conflict": 5},
    "40": {"applied": 15, "conflict": 2},
    "300": {"applied": 103, "conflict": 38},
    "1000": {"applied": 309, "conflict": 190},
}
# A session is replayed without each of at most this many calls: more of them take minutes.
MOST_REPLAYS = 100


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    workspace = tmp_path_factory.mktemp("shop") / "shop"
    shutil.copytree(FIXTURES / "workspaces/shop", workspace, symlinks=True)
    return InMemoryFilesystem(Session(), mounts=[HostMount(str(workspace))]).export_bytes()


def calls_of(name: str, archive: bytes) -> list[Call]:
    if name == "recorded":
        calls = read_transcript(FIXTURES / "transcripts/shop.jsonl").calls
        return [Call(call.tool, call.arguments or {}, call.call_id or "") for call in calls]
    _, files, tools = project(archive)
    return Agent(Random(int(name)), files, tools).work(int(name))


def project(archive: bytes) -> tuple[Session, InMemoryFilesystem, Toolset]:
    session = Session(session_id="shop", clock=lambda: 0)
    files = InMemoryFilesystem(session)
    files.import_bytes(archive)
    return session, files, Toolset(session, files)


def performed(archive: bytes, calls: Iterable[Call]) -> Session:
    session, _, tools = project(archive)
    for call in calls:
        tools.call(call.tool, call.arguments, call_id=call.call_id)
    return session


def tree(session: Session) -> FileTree:
    return InMemoryFilesystem(session).tree()


def touched(before: FileTree, after: FileTree) -> set[str]:
    found = diff(before, after)
    return {*found.added, *found.removed, *found.changed, *(path for pair in found.moved for path in pair)}


def outcome(session: Session, call_id: str) -> tuple[str, FileTree]:
    """Revert a call in a fork, and return the outcome with the files."""
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


def effects(session: Session) -> dict[str, object]:
    """Return the answer of each call, and what the call copied, which the answer does not show."""
    found: dict[str, object] = {}
    for call in session[ToolCalls].all():
        found[call.call_id] = call.status, call.summary
        if call.tool == "cp" and call.status == "ok":
            files = session.at(call.last_seq or 0)[FileTree].latest() or FileTree()
            copied = json.loads(call.arguments)["destination"]
            found[call.call_id] = call.summary, find(files, segments_of(copied))
    return found


@pytest.mark.parametrize(
    "name", [*(name for name in OUTCOMES if name != "1000"), pytest.param("1000", marks=pytest.mark.exhaustive)]
)
def test_each_call_is_reverted_or_conflicts_and_no_file_is_wrong(archive: bytes, name: str) -> None:
    calls = calls_of(name, archive)
    session = performed(archive, calls)
    changes: dict[str, set[str]] = {}
    for call in session[ToolCalls].all():
        if call.first_seq is not None and call.last_seq is not None and call.status == "ok":
            views = [session.at(seq)[FileTree].latest() for seq in (call.first_seq - 1, call.last_seq)]
            if views[0] is not None and views[1] is not None and (paths := touched(views[0], views[1])):
                changes[call.call_id] = paths
    outcomes = {call_id: outcome(session, call_id) for call_id in changes}
    assert Counter(name for name, _ in outcomes.values()) == OUTCOMES[name]
    known = effects(session)
    applied = [call_id for call_id, (name, _) in outcomes.items() if name == "applied"]
    for call_id in sample(applied)[:: 1 + len(applied) // MOST_REPLAYS]:
        without = performed(archive, (call for call in calls if call.call_id != call_id))
        # If a later call then has another effect, it depended on this one.
        if effects(without).items() <= known.items():
            found = diff(outcomes[call_id][1], tree(without))
            assert not found, (call_id, found)
