"""Tool calls named on the command line: lookup by id or number, a call's target, and the files before and after it."""

from __future__ import annotations

from difflib import get_close_matches

from weakfs.cli.errors import Failure, as_failure, usage
from weakfs.cli.formatting import shown
from weakfs.cli.sessions import chosen
from weakfs.history.calls import NumberedCall, calls_of
from weakfs.history.record_states import steps_of
from weakfs.history.trees import Trees
from weakfs.platforms import garbage_collection_paused
from weakfs.reducers import FileTree
from weakfs.reducers.tree.node import EMPTY_TREE
from weakfs.session import Session, SessionView

# The maximum number of ids that a message lists.
NAMED = 5


def call_named(session: Session, wanted: str) -> NumberedCall:
    """Return the call with an id or a number (`7` or `#7`); raise `Failure` unless there is exactly one."""
    calls = calls_of(session)
    digits = wanted.removeprefix("#")
    number = int(digits) if digits.isascii() and digits.isdigit() else 0
    by_number = calls[number - 1 : number] if number else []
    by_id = [] if wanted.startswith("#") and by_number else [one for one in calls if one.call.call_id == wanted]
    found = {one.number: one for one in (*by_id, *by_number)}
    if len(found) == 1:
        return next(iter(found.values()))
    if found:
        numbers = ", ".join(f"#{number}" for number in sorted(found)[:NAMED])
        more = f" and {len(found) - NAMED} more" if len(found) > NAMED else ""
        raise usage(f"cannot tell which call {wanted!r} is: it may be {numbers}{more}; give one of these")
    if not calls:
        raise usage(f"the session has no call {wanted!r}: it has no calls at all; use --at and --to")
    near = get_close_matches(wanted, [one.call.call_id for one in calls], n=1)
    hint = f"did you mean {near[0]!r}?" if near else "give the id of one of them, or its number as weakfs log shows it"
    many = "1 call" if len(calls) == 1 else f"{len(calls):,} calls"
    raise usage(f"the session has no call {wanted!r}: it has {many}; {hint}")


def trees_of_call(session: Session, wanted: str, filesystem: str | None) -> tuple[FileTree, FileTree]:
    """Return the files before and after a call, given by its id or number.

    If there are several filesystems, use the one that the call changed. Raises `Failure` if there is no such call or
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
