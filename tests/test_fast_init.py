"""Frozen classes with a faster `__init__` behave like those of attrs."""

from __future__ import annotations

import copy
import inspect
import pickle
from typing import Any

import attrs
import pytest

from weakfs.class_decorators import frozen
from weakfs.fast_init import MANY, fast_init


def _doubled(pair: Any) -> int:
    return 2 * int(pair.first)


@fast_init
@frozen
class Pair:
    first: int
    second: str = "b"
    items: list[Any] = attrs.field(factory=list[Any])
    double: int = attrs.field(default=attrs.Factory(_doubled, takes_self=True))
    note: str | None = attrs.field(default=None, kw_only=True)


@frozen
class Triple(Pair):
    third: int = 3


class Named(Pair):
    """A subclass that is not decorated, whose instances have a `__dict__`."""


@pytest.fixture(autouse=True, params=["before", "after"])
def compiled(request: pytest.FixtureRequest) -> None:
    """Run each test before the faster `__init__` is compiled and after it."""
    if request.param == "after":
        for _ in range(MANY):
            Pair(1)


def test_fields_are_set_from_arguments_and_defaults() -> None:
    pair = Pair(1, second="c", note="n")
    assert type(pair) is Pair
    assert (pair.first, pair.second, pair.items, pair.double, pair.note) == (1, "c", [], 2, "n")
    assert Pair(1).items is not Pair(1).items
    assert Pair(1, "b", [5], 7).double == 7


def test_instances_are_frozen_from_the_start() -> None:
    pair = Pair(1)
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        pair.first = 2  # type: ignore[misc]  # this is what must fail
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        delattr(pair, "first")  # by its name, as type checkers refuse the statement


def test_wrong_arguments_are_refused() -> None:
    wrong: Any = Pair
    calls: list[tuple[tuple[Any, ...], dict[str, Any]]] = [((), {}), ((1,), {"other": 2}), ((1, "b", [], 2, "n"), {})]
    for given, named in calls:
        with pytest.raises(TypeError, match=r"__init__\(\)"):
            wrong(*given, **named)


def test_the_signature_is_that_of_attrs_before_and_after_it_is_compiled() -> None:
    @fast_init
    @frozen
    class Fresh:
        x: int
        y: str = attrs.field(default="", kw_only=True)

    before, given = inspect.signature(Fresh), vars(Fresh)["__init__"]
    assert {Fresh(1, y="a") for _ in range(MANY + 1)} == {Fresh(1, y="a")}
    assert vars(Fresh)["__init__"] is not given
    assert str(before) == str(inspect.signature(Fresh)) == "(x: 'int', *, y: 'str' = '') -> None"


def test_subclasses_are_initialized_as_before() -> None:
    triple = Triple(1, third=4)
    assert (type(triple), triple.double, triple.third) == (Triple, 2, 4)
    named = Named(1, note="n")
    assert (type(named), named.double, named.note) == (Named, 2, "n")


def test_values_are_compared_copied_and_pickled() -> None:
    pair = Pair(1, "c", [2])
    assert pair == Pair(1, "c", [2]) != Pair(1, "d", [2])
    assert repr(pair) == "Pair(first=1, second='c', items=[2], double=2, note=None)"
    assert copy.deepcopy(pair) == pickle.loads(pickle.dumps(pair)) == attrs.evolve(pair) == pair
    assert attrs.evolve(pair, first=3).first == 3


def test_derived_fields_are_computed_for_each_instance() -> None:
    @fast_init
    @frozen
    class Derived:
        first: int
        double: int = attrs.field(init=False, default=attrs.Factory(_doubled, takes_self=True))
        items: list[int] = attrs.field(init=False, factory=list[int])

    made = [Derived(number) for number in range(MANY + 2)]
    assert [one.double for one in made] == [2 * one.first for one in made]
    assert attrs.evolve(made[-1], first=3).double == 6
    assert len({id(one.items) for one in made}) == len(made)
    with pytest.raises(TypeError, match=r"__init__\(\)"):
        Derived(1, double=2)  # type: ignore[call-arg]  # this is what must fail


def test_a_class_that_leaves_out_a_field_is_refused() -> None:
    @frozen
    class Unset:
        x: int = attrs.field(init=False)

    with pytest.raises(TypeError, match="cannot give Unset a faster __init__"):
        fast_init(Unset)


def test_a_class_that_converts_or_validates_is_refused() -> None:
    @frozen
    class Converted:
        x: int = attrs.field(converter=int)

    with pytest.raises(TypeError, match="cannot give Converted a faster __init__"):
        fast_init(Converted)
