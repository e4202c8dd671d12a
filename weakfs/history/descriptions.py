"""Short descriptions of calls and events: their targets and outcomes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import cast

from weakfs.messages import one_line
from weakfs.reducers import EntryCopied, EntryMoved, TreeMounted
from weakfs.session import Merged, RolledBack, SliceAppended, SliceCleared, SliceSeeded
from weakfs.tools import ToolCall


def status_of(call: ToolCall) -> str:
    """Describe how a call ended: its status, with the error code if that says more."""
    code = call.error_code
    if code is None or code == call.status:
        return one_line(call.status)
    return one_line(code if call.status == "error" or call.status in code else f"{call.status}: {code}")


def target_of_call(call: ToolCall) -> str:
    """Describe what a call worked on: what its arguments name or, failing that, the changed paths in its receipt."""
    arguments = _read(call.read_arguments)
    target = target_of(arguments)
    paths = () if target else _read(call.read_receipt).get("changed_paths")
    named = [one_line(path) for path in cast("list[object]", paths) if isinstance(path, str)] if paths else []
    return f"{named[0]} and {len(named) - 1} more" if len(named) > 1 else named[0] if named else target


def target_of_event(event: object) -> str:
    """Describe what an event is about: its paths, the fork merged, the state returned to, or the slice."""
    if isinstance(event, RolledBack):
        return f"to record {event.target}" if event.snapshot_id is None else f"to {one_line(event.snapshot_id)}"
    if isinstance(event, TreeMounted):
        return f"{one_line(event.path)} from {one_line(event.source)}"
    if isinstance(event, ToolCall):
        return f"{one_line(event.tool)} {one_line(event.status)}"
    if isinstance(event, Merged):
        return f"{event.count} {'record' if event.count == 1 else 'records'} of {one_line(event.fork)}"
    if isinstance(event, SliceAppended | SliceCleared | SliceSeeded):
        return one_line(event.slice)
    return " -> ".join(map(one_line, paths_of_event(event)))


def short_action(action: str) -> str:
    """Return the tool of a call or the tag of an event as it is shown; tags of weakfs itself lose their prefix."""
    return action.removeprefix("fs/").removeprefix("session/")


def paths_of_event(event: object) -> tuple[str, ...]:
    """Return the paths that an event names."""
    if isinstance(event, EntryMoved | EntryCopied):
        return (event.source, event.destination)
    path = getattr(event, "path", None)
    return (path,) if isinstance(path, str) else ()


def _read(read: Callable[[], object]) -> Mapping[str, object]:
    try:
        value = read()
    except ValueError:
        # Data recorded by another program might not be JSON.
        return {}
    return cast("Mapping[str, object]", value) if isinstance(value, dict) else {}


def target_of(arguments: Mapping[str, object] | None) -> str:
    """Describe what a call works on: its path, pattern, source and destination, command or description."""
    arguments = arguments or {}
    path, pattern = _first(arguments, "path", "file_path"), _first(arguments, "pattern")
    if pattern:
        return f"{pattern} in {path}" if path else pattern
    source, destination = _first(arguments, "source", "src"), _first(arguments, "destination", "dst")
    if source or destination:
        return f"{source} to {destination}"
    return path or _first(arguments, "command", "description")


def _first(arguments: Mapping[str, object], *names: str) -> str:
    """Return the first of these arguments that is a string, in printable form."""
    given = (arguments.get(name) for name in names)
    return next((one_line(value) for value in given if isinstance(value, str) and value), "")
