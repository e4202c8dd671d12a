"""Positions: the record of the session to which a checkpoint's files belong, and rolling back to it."""

from __future__ import annotations

import re
from hashlib import blake2b
from threading import Lock
from typing import Annotated, Any, NotRequired, TypedDict

from langchain.agents.middleware import AgentState
from langchain.agents.middleware.types import PrivateStateAttr
from langgraph.runtime import ExecutionInfo

from weakfs.class_decorators import frozen
from weakfs.integrations.langchain.outer_graph import Ancestor, is_in_graph, root_checkpoint
from weakfs.messages import one_line
from weakfs.session import Record, RolledBack, Session, SessionError
from weakfs.session.undo.reversion import Foreign
from weakfs.tools import ToolCall
from weakfs.tools.slices import FilesSeen

# The key of the position in the graph's state.
POSITION = "weakfs_position"

# The status of a call that was interrupted but keeps its changes, because an agent inside it continues later.
INTERRUPTED = "interrupted"

# The text before the suffix in the cause of a rollback, and before the id of a call in the cause of a reversion.
_GOING_BACK = "langchain"
_REVERTING = "revert "
_REVERSIONS = (_REVERTING, "undo ", "redo ", "restore ")

# The suffix of a call's id and of a rollback's cause: the thread, the step and the number of the attempt.
_MARK = re.compile(r"(.*)@([0-9a-f]{8})\.([0-9a-f]{8})(?:\.\d+)?", re.DOTALL)


class Position(TypedDict):
    """The last record of a session that is included in the files of a checkpoint."""

    session: str
    record: int


def newest(left: Position, right: Position) -> Position:
    """Return the later of two positions that tools of one step reached."""
    is_older = bool(left) and left["session"] == right["session"] and left["record"] > right["record"]
    return left if is_older else right


class PositionState(AgentState[Any]):
    """The state of an agent, with the position of the session."""

    weakfs_position: NotRequired[Annotated[Position, PrivateStateAttr, newest]]


@frozen
class Step:
    """A step of a graph's thread. Tools that run at the same time share a step."""

    # Digests of the thread's id and of the step.
    thread: str
    step: str
    # The caller of the thread's calls.
    caller: str
    # For an agent that is part of a larger graph, the step of the agent itself; `step` is the step of the whole graph.
    inner: str | None = None

    def __str__(self) -> str:
        return f"@{self.thread}.{self.step}"


def step_of(info: ExecutionInfo | None) -> Step | None:
    """Return the current step; for an agent in a larger graph, the step of the whole graph.

    It is `None` without a thread.
    """
    if info is None or info.thread_id is None:
        return None
    # LangGraph accepts thread ids that are not strings.
    thread, own, caller = _digest(str(info.thread_id)), _digest(info.checkpoint_id), caller_of(info)
    if not is_in_graph(info):
        return Step(thread, own, caller)
    root = root_checkpoint()
    return None if root is None else Step(thread, _digest(root), caller, own)


def caller_of(info: ExecutionInfo | None) -> str:
    """Return the caller of a thread's calls."""
    return "langchain" if info is None or info.thread_id is None else one_line(f"langchain/{info.thread_id}")


@frozen
class Past:
    """What has happened since a position."""

    # Whether the thread changed something in another step, so that it has left the branch of its state.
    has_left: bool
    # Whether another thread changed something.
    has_others: bool
    # The calls of this step that changed something, newest first.
    done: tuple[str, ...]
    # The ids of all calls of this step.
    known: frozenset[str]


class Positions:
    """The positions of one session, and rolling the session back to them."""

    def __init__(self, session: Session, foreign: Foreign | None) -> None:
        self._session = session
        self._foreign: Foreign | None = foreign
        self._lock = Lock()

    def here(self) -> Position:
        """Return the position of the session now."""
        return Position(session=self._session.session_id, record=self._session.seq)

    def go_back(self, step: Step | None, position: Position | None) -> bool:
        """Roll back to a position if the thread has changed anything since; return whether that was necessary.

        Changes of tools of the same step stay. Raises `SessionError` if another thread changed something meanwhile.
        """
        number = self._own_record(position)
        if step is None or number is None:
            return False
        with self._lock:
            self._session.refresh()
            past = self._past(step, number)
            if not past.has_left:
                return False
            if past.has_others:
                raise SessionError(
                    f"cannot roll session {self._session.session_id!r} back to record {number}: another "
                    f"thread has worked in it since; use a separate session for each thread, or session.revert"
                )
            seen = self._session.at(number)[FilesSeen].latest()
            self._session.rollback(number, cause=f"{_GOING_BACK}{step}", foreign=self._foreign)
            self._forget(step.caller, seen)
            return True

    def begin_call(self, tool_call_id: str, step: Step | None, position: Position | None) -> str:
        """Return the id for a call. If the call was made before in this step, its earlier changes are reverted first.

        A call is made again if the process ended before its answer was stored, or if the step is repeated.
        """
        if step is None:
            return self._session.next_id(f"{tool_call_id}@")
        if step.inner is not None:
            # An agent takes many steps in one step of the whole graph.
            tool_call_id = f"{tool_call_id}/{step.inner}"
        wanted = f"{tool_call_id}{step}"
        number = self._own_record(position)
        if number is None:
            return wanted
        with self._lock:
            past = self._past(step, number)
            before = next((one for one in past.done if _marked(one) == (tool_call_id, step.thread, step.step)), None)
            if before is not None:
                self._session.revert(before, on_conflict="theirs", foreign=self._foreign or "keep")
        attempt, call_id = 1, wanted
        while call_id in past.known:
            attempt += 1
            call_id = f"{wanted}.{attempt}"
        return call_id

    def position_of(self, step: Step, lineage: list[Ancestor]) -> Position | None:
        """Return the position of a checkpoint of the graph around an agent, whose state has no position.

        `lineage` has the checkpoint and its ancestors. The ids of the calls tell what was done in each of them.
        """
        steps, first = self._steps_of(step.thread)
        at_end = False
        for ancestor in lineage:
            known = steps.get(_digest(ancestor.checkpoint))
            if known is not None:
                return Position(session=self._session.session_id, record=known[at_end])
            # A checkpoint stored at the end of this step includes its changes; any other begins like this one.
            at_end = ancestor.is_next
        is_whole = bool(lineage) and lineage[-1].is_first
        return Position(session=self._session.session_id, record=first) if is_whole and first is not None else None

    def _steps_of(self, thread: str) -> tuple[dict[str, tuple[int, int]], int | None]:
        """Return the last record before and in each step of a thread, and the one before its first step. O(records)."""
        found: dict[str, tuple[int, int]] = {}
        for one in self._session.records:
            marked = _marked(one.cause)
            if marked is None or marked[1] != thread or not _is_by_thread(one, marked[0]):
                continue
            event = one.event
            # Calls inside the call have their own causes.
            first = one.seq if not isinstance(event, ToolCall) or event.first_seq is None else event.first_seq
            before = one.seq if isinstance(event, RolledBack) and not event.failed else min(first, one.seq) - 1
            begin, _ = found.get(marked[2], (before, 0))
            found[marked[2]] = (min(begin, before), one.seq)
        return found, min((begin for begin, _ in found.values()), default=None)

    def _own_record(self, position: Position | None) -> int | None:
        # The position is empty if nothing has been noted in the state yet.
        return position["record"] if position and position["session"] == self._session.session_id else None

    def _forget(self, caller: str, then: FilesSeen | None) -> None:
        """Reset the versions of files that a caller has seen: its conversation no longer contains the later ones."""
        known = self._session[FilesSeen]
        now = known.latest()
        # A key is a filesystem and a caller.
        sights = {
            key: value
            for one, is_then in ((now, False), (then, True))
            for key, value in (one.sights if one is not None else {}).items()
            if key.endswith(f"\n{caller}") is is_then
        }
        if now is not None and sights != now.sights:
            known.seed(FilesSeen(sights))

    def _past(self, step: Step, record: int) -> Past:
        has_left = has_others = went_back = False
        done: list[str] = []
        known: set[str] = set()
        reverted: set[str] = set()
        for one in reversed([*self._session.records.since(record)]):
            text, changed = _text_and_change(one)
            marked = _marked(text)
            if text is None or marked is None:
                continue
            name, thread, number = marked
            if isinstance(one.event, RolledBack) and name != _GOING_BACK:
                # Work that was undone in another way: by this middleware before it makes a call again, or by a person.
                reverted.add(text)
            elif (thread, number) == (step.thread, step.step):
                if isinstance(one.event, RolledBack):
                    # What came before was undone by this record.
                    went_back = True
                    continue
                known.add(text)
                if changed and not went_back and f"{_REVERTING}{text}" not in reverted:
                    done.append(text)
            elif changed and not went_back:
                is_own = thread == step.thread
                has_left, has_others = has_left or is_own, has_others or not is_own
        return Past(has_left, has_others, tuple(done), frozenset(known))


def _is_by_thread(record: Record, name: str) -> bool:
    """Return whether the thread made the record: causes of reversions have suffixes too."""
    return isinstance(record.event, ToolCall) or not name.startswith(_REVERSIONS)


def _text_and_change(record: Record) -> tuple[str | None, bool]:
    """Return the text of a record that may have the suffix, and whether the record is a change."""
    event = record.event
    if isinstance(event, RolledBack):
        # The rollback of a failed call has the call's id as its cause.
        return None if event.failed else record.cause, True
    if isinstance(event, ToolCall):
        return event.call_id, event.status == "ok" and event.first_seq is not None and event.error_code != INTERRUPTED
    return None, False


def _marked(text: str | None) -> tuple[str, str, str] | None:
    """Return a text without its suffix, and the thread and the step in the suffix."""
    found = None if text is None else _MARK.fullmatch(text)
    return None if found is None else (found[1], found[2], found[3])


def _digest(text: str) -> str:
    return blake2b(text.encode(errors="replace"), digest_size=4).hexdigest()
