"""Saving one value in a session and loading it again."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, cast

from attrs import field, make_class

from tests.session.files.values import Point, Space
from weakfs import Registry, Session


def box(hint: Any) -> type[Any]:
    """Return an attrs class with one field."""
    return make_class("Box", {"held": field(type=hint)}, frozen=True)


def exactly(one: Any, other: Any) -> bool:
    """Return whether two values are equal and have the same types at every level."""
    if type(one) is not type(other):
        return False
    if isinstance(one, tuple | list | deque):
        items = cast(Sequence[object], one)
        return len(items) == len(other) and all(map(exactly, items, other)) and _limit(items) == _limit(other)
    if isinstance(one, dict):
        mine = cast(dict[object, object], one)
        return exactly(list(mine), list(other)) and all(exactly(mine[key], other[key]) for key in mine)
    if isinstance(one, float):
        return repr(one) == repr(other)
    if isinstance(one, datetime):
        return repr(one) == repr(other) or (one == other and one.utcoffset() == other.utcoffset())
    return bool(one == other)


def _limit(values: object) -> object:
    return getattr(values, "maxlen", None)


def round_trip(folder: Path, value: Any, *types: type, by_event: bool) -> Any:
    """Save and load a session with one value, and return it; refusals of saving become `SessionError`."""
    kind: type[Any] = value.__class__
    registry = Registry.standard().with_types(kind, Point, Space, *types)
    session = Session(registry=registry, session_id="s", clock=lambda: 1)
    if by_event:
        session.dispatch(value)
    else:
        session[kind].append(value)
    session.save(folder / "s.json")
    back = Session.load(folder / "s.json", registry=registry)
    return back.records[0].event if by_event else back[kind].latest()
