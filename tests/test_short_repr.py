"""Tracebacks and debuggers show only the beginning of values, at a cost that does not grow with the value."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from functools import cache, partial
from types import BuiltinFunctionType, FunctionType, MappingProxyType, ModuleType
from typing import Any

import attrs
import pytest
from pyrsistent import pmap

from tests.models.cost import calls_of
from weakfs import InMemoryFilesystem, OverlayFilesystem, Session, Toolset
from weakfs.class_decorators import frozen
from weakfs.reducers import FileTree
from weakfs.short_repr import CHARACTERS, clipped_repr, short_repr
from weakfs.tools import ToolCalls

CALLS = 600
# None of these is followed: they lead to everything that the process has loaded.
ENDS = (type, ModuleType, FunctionType, BuiltinFunctionType)


def work(calls: int) -> list[object]:
    """Return a session with many records, and the values that a program gets from it."""
    session = Session(session_id="s")
    files = InMemoryFilesystem(session)
    toolset = Toolset(session, files)
    for number in range(calls):
        path = f"/{number % 50}/{number}.txt"
        toolset.call("write_file", {"path": path, "content": f"line {number}\n" * 100})
        if number % 10 == 0:
            session.snapshot(f"tag {number}")
    fork = session.fork()
    fork[FileTree].latest()
    return [
        *(session, fork, files, files.bind(fork), toolset, OverlayFilesystem(files, Session(session_id="o"))),
        *(session.records, *session.snapshots, session.at(5), session[ToolCalls], session.at(5)[FileTree]),
        *(session.registry, files.tree(), files.snapshot(), files.read("/0/0.txt"), *files.list("/0")),
        *(files.glob("**/*.txt"), files.grep("line"), toolset.call("read_file", {"path": "/0/0.txt"})),
    ]


def one_of_each_class(roots: list[object]) -> Iterator[object]:
    """Yield one instance of each class of weakfs that can be reached."""
    seen, classes, waiting = {id(one) for one in roots}, set[type](), list(roots)
    while waiting:
        one = waiting.pop()
        if type(one) not in classes and type(one).__module__.startswith("weakfs"):
            classes.add(type(one))
            yield one
        for other in gc.get_referents(one):
            is_namespace = isinstance(other, dict) and "__builtins__" in other
            if id(other) not in seen and not isinstance(other, ENDS) and not is_namespace:
                seen.add(id(other))
                waiting.append(other)


@cache
def shown(calls: int) -> dict[str, tuple[str, int]]:
    return {type(one).__qualname__: (repr(one), calls_of(partial(repr, one))) for one in one_of_each_class(work(calls))}


def test_nothing_reachable_from_a_session_has_a_long_or_slow_repr() -> None:
    found = shown(CALLS)
    assert {"Session", "Timeline", "Point", "Log", "Keyframes", "Records", "Rules", "GrepResult"} <= set(found)
    assert {name: len(text) for name, (text, _) in found.items() if len(text) > 3_000} == {}
    assert {name: calls for name, (_, calls) in found.items() if calls > 10_000} == {}


@pytest.mark.parametrize("name", sorted(shown(100)))
def test_a_repr_does_not_grow_with_the_session(name: str) -> None:
    few, many = shown(100)[name], shown(CALLS).get(name, ("", 0))
    # Six times as many calls. Which items of a set are shown depends on the hash seed.
    assert len(many[0]) <= 2 * len(few[0]) + CHARACTERS
    assert many[1] <= 2 * few[1] + 100


def test_accessors_say_what_they_access() -> None:
    session = Session(session_id="s")
    toolset = Toolset(session)
    toolset.call("write_file", {"path": "/a", "content": "x"})
    assert repr(session) == "<Session 's' at record 2>"
    assert repr(session.records) == "<Records 1 to 2>"
    assert repr(session.at(1)) == "<SessionView at record 1>"
    assert repr(session[ToolCalls]) == "<Slice of ToolCall: 1 value>"
    assert repr(session.at(1)[ToolCalls]) == "<SliceView of ToolCall: 0 values>"
    session.compact(keep=1)
    assert repr(session.records) == "<Records 2 to 2>"
    assert repr(Session().records) == "<Records: none>"


@frozen
class Held:
    name: str
    value: Any = None
    hidden: int = attrs.field(default=0, repr=False)
    size: int = attrs.field(default=1, repr=lambda size: f"{size} bytes")


@pytest.mark.parametrize(
    "value",
    ["a", b"a", 5, None, (), (1,), (1, 2), [], [1], {}, {1: "a"}, set(), {1}, frozenset(), frozenset({1}), "x" * 300],
    ids=repr,
)
def test_a_small_value_is_shown_as_repr_shows_it(value: object) -> None:
    assert short_repr(value) == repr(value)
    assert repr(Held("n", value)) == f"Held(name='n', value={value!r}, size=1 bytes)"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("x" * 301, f"{'x' * 300!r}..."),
        (b"x" * 10**6, f"{b'x' * 300!r}..."),
        ([*range(100)], "[0, 1, 2, 3, 4, 5, ... 94 more]"),
        (dict.fromkeys(range(7)), "{0: None, 1: None, 2: None, 3: None, 4: None, 5: None, ... 1 more}"),
        (MappingProxyType({"a": 1}), "{'a': 1}"),
        (pmap({"a": [1]}), "{'a': [1]}"),
        ([[[[[[1]]]]]], "[[[[[...]]]]]"),
        (Held("a", Held("b", Held("c", Held("d", Held("e"))))), None),
    ],
    ids=["text", "bytes", "list", "dict", "proxy", "pmap", "nested", "instances"],
)
def test_only_the_beginning_of_a_large_value_is_shown(value: object, text: str | None) -> None:
    assert short_repr(value) == (text or short_repr(value))
    assert len(short_repr(value)) <= CHARACTERS + 10
    assert calls_of(partial(repr, Held("n", value))) < 250


def test_an_incomplete_instance_has_a_repr() -> None:
    assert repr(Held.__new__(Held)) == "Held(name=NOTHING, value=NOTHING, size=NOTHING)"


class Broken:
    def __repr__(self) -> str:
        raise RuntimeError("no repr")


def test_a_message_shows_the_class_of_a_value_whose_repr_raises() -> None:
    assert clipped_repr("x" * 100) == f"{'x' * 100!r:.60}"
    assert clipped_repr(Broken()) == "<Broken object>"
    assert clipped_repr([Broken()]) == "<list object>"
