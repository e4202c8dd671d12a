"""The files before and after one call of a session, as `weakfs diff --call` compares them."""

from __future__ import annotations

from weakfs.cli.calls import NumberedCall, call_named
from weakfs.cli.errors import Failure, as_failure
from weakfs.cli.formatting import shown
from weakfs.cli.sessions import Trees, chosen
from weakfs.cli.states import steps_of
from weakfs.platforms import garbage_collection_paused
from weakfs.reducers import FileTree
from weakfs.reducers.tree.node import EMPTY_TREE
from weakfs.session import Session, SessionView


def trees_of_call(session: Session, wanted: str, filesystem: str | None) -> tuple[FileTree, FileTree]:
    """Return the files before and after a call, given by its id or number.

    If there are several filesystems, use the one that the call changed. Raise `Failure` if there is no such call or
    its records were compacted away.
    """
    call = call_named(session, wanted)
    meant = chosen(session, filesystem) if filesystem is not None else None
    if call.first is None:
        if call.record is None or call.call.first_seq is not None:
            raise _gone(call)
        # The call changed nothing.
        return EMPTY_TREE, EMPTY_TREE
    before, after = _sides(session, call)
    trees = Trees(session)
    if meant is not None:
        return trees.at(before, meant), trees.at(after, meant)
    changed = trees.changed(before, after)
    if len(changed) == 1:
        return next(iter(changed.values()))
    own = chosen(session, None) if changed else None
    return trees.at(before, own), trees.at(after, own)


def _sides(session: Session, call: NumberedCall) -> tuple[SessionView, SessionView]:
    before = after = None
    with as_failure(f"read the history of call {call.number}"), garbage_collection_paused():
        for step in steps_of(session):
            if step.record.seq == call.first:
                before = step.before
            if step.record.seq == call.last_state:
                after = step.after
                break
    if before is None or after is None:
        raise _gone(call)
    return before, after


def _gone(call: NumberedCall) -> Failure:
    return Failure(
        f"cannot show what call {call.number} ({shown(call.call.call_id)}) changed: its records were compacted away; "
        f"name a later call"
    )
