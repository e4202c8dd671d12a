"""Classes whose comparison is compiled when it is first used: they behave like those of attrs."""

from __future__ import annotations

import pickle
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weakfs.class_decorators import define, frozen


@frozen
class Point:
    x: int
    y: int = 0
    note: str = attrs.field(default="", eq=False)
    data: bytes = attrs.field(default=b"", repr=False)


@frozen
class Point3(Point):
    z: int = 0


@frozen
class Nothing:
    pass


@define
class Place:
    name: str
    inside: list[Any] = attrs.field(factory=list[Any])


@frozen(eq=False)
class Identity:
    x: int


@frozen(kw_only=True)
class Own:
    """A class with methods of its own."""

    x: int

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 7

    def __repr__(self) -> str:
        return "own"


def compiled(ours: type) -> type:
    """Return the class that attrs makes of the same fields."""
    made = {one.name: attrs.field(default=one.default, eq=one.eq, repr=one.repr) for one in attrs.fields(ours)}
    return attrs.make_class(ours.__name__, made, frozen=ours is not Place, slots=True)


VALUES = st.tuples(st.integers(0, 1), st.integers(0, 1), st.sampled_from(["", "a"]), st.sampled_from([b"", b"a"]))


@given(VALUES, VALUES)
def test_instances_compare_and_look_like_those_of_attrs(one: tuple[Any, ...], other: tuple[Any, ...]) -> None:
    theirs = compiled(Point)
    ours = Point(*one), Point(*other)
    assert (ours[0] == ours[1]) is (theirs(*one) == theirs(*other))
    assert (ours[0] != ours[1]) is (theirs(*one) != theirs(*other))
    assert ours[0] != ours[1] or hash(ours[0]) == hash(ours[1])
    assert repr(ours[0]) == repr(theirs(*one))


def test_methods_are_compiled_when_they_are_first_called() -> None:
    @frozen
    class Fresh:
        x: int

    late = vars(Fresh)["__eq__"], vars(Fresh)["__hash__"]
    assert (Fresh(1) == Fresh(1), hash(Fresh(1)) == hash(Fresh(1))) == (True, True)
    made = vars(Fresh)["__eq__"], vars(Fresh)["__hash__"]
    assert all(one is not other for one, other in zip(late, made, strict=True))
    assert (Fresh(1) == Fresh(2), {Fresh(1), Fresh(1)}) == (False, {Fresh(1)})


def test_a_subclass_that_is_not_decorated_shares_the_methods() -> None:
    class Plain(Point):
        pass

    assert Plain(1, 2) == Plain(1, 2) != Point(1, 2)
    assert repr(Plain(1)).endswith("Plain(x=1, y=0, note='')")


def test_other_classes_are_never_equal() -> None:
    assert Point(1, 2) != Point3(1, 2)
    assert Point3(1, 2) != Point(1, 2)
    assert Point3(1, 2, z=3) == Point3(1, 2, z=3) != Point3(1, 2, z=4)
    assert Point(1).__eq__(object()) is NotImplemented
    assert Nothing() == Nothing()
    assert Nothing().__eq__(Point(1)) is NotImplemented
    assert repr(Nothing()) == "Nothing()"


def test_a_mutable_class_cannot_be_hashed() -> None:
    assert Place("a") == Place("a") != Place("b")
    with pytest.raises(TypeError, match="unhashable type: 'Place'"):
        hash(Place("a"))


def test_a_class_without_equality_compares_by_identity() -> None:
    one = Identity(1)
    assert one == one != Identity(1)
    assert len({one, Identity(1)}) == 2
    assert repr(one) == "Identity(x=1)"


def test_the_methods_of_a_class_itself_stay() -> None:
    assert (repr(Own(x=1)), hash(Own(x=1)), Own(x=1) == 5) == ("own", 7, True)


def test_an_instance_that_holds_itself_can_be_shown() -> None:
    place = Place("a")
    place.inside.append(place)
    assert repr(place) == "Place(name='a', inside=[Place(name='a', inside=[Place(...)])])"


def test_what_else_attrs_does_stays() -> None:
    point = attrs.evolve(Point(1), y=2)
    assert pickle.loads(pickle.dumps(point)) == point == Point(1, 2)
    assert attrs.asdict(point) == {"x": 1, "y": 2, "note": "", "data": b""}
    assert not hasattr(point, "__dict__")
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        point.x = 3  # type: ignore[misc]  # the test
    match point:
        case Point(x, y):
            assert (x, y) == (1, 2)
