"""Any value that a session accepts is saved and loaded with equal value and types; refused ones change nothing."""

from __future__ import annotations

import enum
import math
import tempfile
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import attrs
from attrs import frozen
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.sampling import share
from tests.session.files.round_trips import exactly
from tests.session.files.values import Size, Text, Word
from tests.session.ledger import Clock
from weakfs import Registry, Session, event
from weakfs.session import append_all
from weakfs.session.slices.slice import Declaration


class Color(enum.Enum):
    RED = "red"
    PAIR = (1, 2)


class Access(enum.Flag):
    READ = 1
    WRITE = 2


@dataclass
class Owner:
    name: Any = ""
    sizes: list[Size] = field(default_factory=list[Size])


class Odd:
    pass


@event("property/held")
@frozen
class Held:
    """An event with fields of many types, any of which may hold the wrong thing."""

    any: Any = None
    mapping: dict[str, Any] = attrs.field(factory=dict[str, Any])
    numbers: tuple[float, ...] = ()
    many: Color | Word | int | None = None
    owners: list[Owner] = attrs.field(factory=list[Owner])
    sizes: dict[Size, str] = attrs.field(factory=dict[Size, str])
    colors: frozenset[Color] = frozenset()
    when: datetime | None = None
    access: Access | None = None


@event("property/made")
@frozen
class Made:
    """The result of a reducer for such an event."""

    value: Any = None


REGISTRY = (
    Registry.empty()
    .with_slices(
        Declaration(Held, kind="log", reducers={Held: append_all}),
        Declaration(Made, reducers={Held: lambda value, event: Made((event.any, event.mapping))}),
    )
    .with_types(Owner, Word)
)

ATOM = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.text(st.characters(), max_size=3),
    st.binary(max_size=3),
    st.sampled_from([*Color, *Size, *Word, *Access, Access(3), Text("t"), Decimal("1.0"), Odd(), print, math.inf]),
    st.sampled_from(
        [datetime(2020, 1, 1, tzinfo=UTC), datetime(2020, 1, 1, tzinfo=timezone(timedelta(hours=1), "odd"))]
    ),
)
ANY = st.recursive(
    ATOM,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(st.text(max_size=2) | st.integers(0, 2), inner, max_size=2),
        inner.map(Owner),
        st.sets(st.integers(0, 3), max_size=2),
    ),
    max_leaves=4,
)
OWNER = st.builds(Owner, ANY, st.lists(st.sampled_from([*Size, 1]), max_size=2))
EVENT = st.fixed_dictionaries(
    {},
    optional={
        "any": ANY,
        "mapping": st.dictionaries(st.text(max_size=2), ANY, max_size=2) | ATOM,
        "numbers": st.lists(st.floats() | st.integers() | st.booleans(), max_size=2).map(tuple) | ATOM,
        "many": ATOM,
        "owners": st.lists(OWNER, max_size=2) | ATOM,
        "sizes": st.dictionaries(st.sampled_from([*Size, 1, True]), st.text(max_size=2), max_size=1) | ATOM,
        "colors": st.frozensets(st.sampled_from([*Color, "red"]), max_size=2) | ATOM,
        "when": ATOM,
        "access": ATOM,
    },
).map(lambda fields: event_of(fields))


def event_of(fields: dict[str, Any]) -> Held:
    return Held(**fields)


def same(one: Any, other: Any) -> bool:
    if type(one) is Owner and type(other) is Owner:
        return same(one.name, other.name) and same(one.sizes, other.sizes)
    if isinstance(one, list | tuple):
        return type(one) is type(other) and len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return type(other) is dict and exactly(list(one), list(other)) and all(same(one[k], other[k]) for k in one)
    return exactly(one, other)


@settings(max_examples=share(800), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(EVENT, min_size=1, max_size=4))
def test_accepted_values_are_loaded_unchanged_and_refused_ones_change_nothing(events: list[Held]) -> None:
    session = Session(session_id="s", registry=REGISTRY, clock=Clock())
    with tempfile.TemporaryDirectory(prefix="weakfs-acceptance-") as folder:
        path, other = Path(folder, "s.json"), Path(folder, "other.json")
        taken: list[Held] = []
        session.save(path)
        for event in events:
            try:
                session.dispatch(event)
            except (TypeError, ValueError):
                session.save(other)
                assert other.read_bytes() == path.read_bytes()
            else:
                taken.append(event)
                session.save(path)
        loaded = Session.load(path, registry=REGISTRY)
        for found in (session, loaded):
            for one, event in zip(found[Held].all(), taken, strict=True):
                assert all(same(getattr(one, own.name), getattr(event, own.name)) for own in attrs.fields(Held))
            if taken:
                assert same(found[Made].all()[-1].value, (taken[-1].any, taken[-1].mapping))
