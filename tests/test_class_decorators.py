"""Classes to which attrs adds methods and fields only on first use: they behave like other attrs classes."""

from __future__ import annotations

import abc
import copy
import importlib
import inspect
import pickle
import pkgutil
import pydoc
import threading
import typing
from collections.abc import Callable
from typing import Any, ClassVar, Generic, TypeVar, cast

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weakfs.class_decorators import define, frozen, is_complete, when_complete

T = TypeVar("T")


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
    """Return the class that attrs creates from the same fields."""
    made = {one.name: attrs.field(default=one.default, eq=one.eq, repr=one.repr) for one in attrs.fields(ours)}
    return attrs.make_class(ours.__name__, made, frozen=ours is not Place, slots=True)


VALUES = st.tuples(st.integers(0, 1), st.integers(0, 1), st.sampled_from(["", "a"]), st.sampled_from([b"", b"a"]))


@given(VALUES, VALUES)
def test_instances_compare_and_repr_like_those_of_attrs(one: tuple[Any, ...], other: tuple[Any, ...]) -> None:
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


def test_methods_that_a_class_defines_are_kept() -> None:
    assert (repr(Own(x=1)), hash(Own(x=1)), Own(x=1) == 5) == ("own", 7, True)


def test_a_recursive_instance_has_a_repr() -> None:
    place = Place("a")
    place.inside.append(place)
    assert repr(place) == "Place(name='a', inside=[Place(name='a', inside=[Place(...)])])"


def test_other_features_of_attrs_still_work() -> None:
    point = attrs.evolve(Point(1), y=2)
    assert pickle.loads(pickle.dumps(point)) == point == Point(1, 2)
    assert attrs.asdict(point) == {"x": 1, "y": 2, "note": "", "data": b""}
    assert not hasattr(point, "__dict__")
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        point.x = 3  # type: ignore[misc]  # the test
    match point:
        case Point(x, y):
            assert (x, y) == (1, 2)


Decorator = Callable[[type], type]


def plain_body(decorate: Decorator) -> Any:
    class Fresh:
        """A file."""

        path: str
        mode: int = 0o644
        notes: list[str] = attrs.field(factory=list, alias="remarks")
        known: ClassVar[dict[str, int]] = {}

        def describe(self) -> str:
            """Return the path."""
            return self.path

    return decorate(Fresh)


def derived_body(decorate: Decorator) -> Any:
    class Base(abc.ABC, Generic[T]):
        __slots__ = ()

        @property
        def size(self) -> int:
            return 1

        @abc.abstractmethod
        def describe(self) -> str: ...

    class Fresh(Base[int]):
        path: str
        mode: int = 0o644
        notes: tuple[str, ...] = ()

        @property
        def size(self) -> int:
            return super().size + 1

        @classmethod
        def at_root(cls: Any) -> Any:
            return cls("/")

        def describe(self) -> str:
            return f"{self.path} {super().size}"

    return decorate(Fresh)


def body_with_a_base(decorate: Decorator) -> Any:
    class Base:
        pass

    class Fresh(Base):
        path: str
        mode: int = 0o644
        notes: tuple[str, ...] = ()

        def describe(self) -> str:
            return self.path

    return decorate(Fresh)


def names_in(cls: type) -> dict[str, str]:
    """Return the names in a class and the kinds of their values, without the names that weakfs adds."""
    ours = ("__eq__", "__ne__", "__hash__", "__repr__", "_abc_impl")
    return {name: type(held).__name__ for name, held in vars(cls).items() if name not in ours}


FIRST_USES: dict[str, Callable[[Any], object]] = {
    "make": lambda cls: cls("/a"),
    "fields": attrs.fields,
    "has": attrs.has,
    "signature": inspect.signature,
    "match_args": lambda cls: cls.__match_args__,
    "help": pydoc.render_doc,
    "hints": lambda cls: typing.get_type_hints(cls.__init__),
    "state": lambda cls: cls.__getstate__,
    "restore": lambda cls: object.__new__(cls).__setstate__({"path": "/a"}),
    "subclass": lambda cls: type("Sub", (cls,), {"__slots__": (), "__init__": lambda self: cls.__init__(self, "/a")})(),
    "decorated subclass": lambda cls: frozen(type("Sub", (cls,), {"__annotations__": {"z": "int"}, "z": 1}))("/a"),
}


@pytest.mark.parametrize("decorate", ["frozen", "define"])
@pytest.mark.parametrize("use", FIRST_USES)
@pytest.mark.parametrize("body", [plain_body, derived_body, body_with_a_base])
def test_a_class_equals_that_of_attrs_whichever_method_is_used_first(
    body: Callable[[Decorator], Any], use: str, decorate: str
) -> None:
    ours: Any = body({"frozen": frozen, "define": define}[decorate])
    theirs: Any = body({"frozen": attrs.frozen, "define": attrs.define}[decorate])
    assert vars(ours)["__slots__"] == vars(theirs)["__slots__"]
    FIRST_USES[use](ours)
    ours("/a")
    assert names_in(ours) == names_in(theirs)
    assert attrs.fields(ours) == attrs.fields(theirs)
    assert inspect.signature(ours) == inspect.signature(theirs)
    assert typing.get_type_hints(ours.__init__) == typing.get_type_hints(theirs.__init__)
    assert (ours.__init__.__qualname__, ours.__init__.__doc__) == (
        theirs.__init__.__qualname__,
        theirs.__init__.__doc__,
    )
    one, other = ours("/a", 0o600), theirs("/a", 0o600)
    assert (one.describe(), attrs.asdict(one)) == (other.describe(), attrs.asdict(other))
    assert one.__getstate__() == other.__getstate__()
    assert copy.copy(one) == copy.deepcopy(one) == one != ours("/a")
    assert getattr(one, "size", None) == getattr(other, "size", None)


def test_nothing_is_added_before_it_is_used() -> None:
    @frozen
    class Fresh:
        x: int

    class Plain(Fresh):
        pass

    late = vars(Fresh)["__init__"]
    assert issubclass(Plain, Fresh)
    assert not isinstance(object(), Fresh)
    assert vars(Fresh)["__init__"] is late
    assert Plain(1).x == 1
    assert inspect.isfunction(vars(Fresh)["__init__"])


def test_threads_that_first_use_a_class_concurrently_see_one_class() -> None:
    for _ in range(20):

        @frozen
        class Fresh:
            x: int
            y: int = 2

        start = threading.Barrier(4)
        seen: list[Any] = []

        def use(cls: Any = Fresh, start: threading.Barrier = start, seen: list[Any] = seen) -> None:
            start.wait(60)
            seen.append((attrs.fields(cls), cls(1).y))

        threads = [threading.Thread(target=use) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert [y for _, y in seen] == [2] * 4
        assert all(fields is attrs.fields(Fresh) for fields, _ in seen)


def test_completion_callbacks_run_once_and_immediately_for_checked_fields() -> None:
    @frozen
    class Plain:
        x: int

    @frozen
    class Described:
        x: int = attrs.field(repr=False)

    @frozen
    class Converted:
        x: int = attrs.field(converter=int)

    done: list[type] = []
    for cls in (Plain, Described, Converted):
        when_complete(cls, done.append)
    assert done == [Converted]
    assert [Plain(1), Plain(2)] == [Plain(1), Plain(2)]
    assert done == [Converted, Plain]
    assert Described(1) == Described(1)
    assert done == [Converted, Plain, Described]


@pytest.mark.parametrize(
    ("described", "waits"),
    [
        (attrs.field(factory=int), True),
        (attrs.field(default=0, converter=int), False),
        (attrs.field(default=0, validator=attrs.validators.instance_of(int)), False),
        (attrs.field(default=0, on_setattr=attrs.setters.frozen), False),
    ],
)
def test_a_class_that_is_not_frozen_waits_unless_setting_a_field_does_more_than_set_it(
    described: Any, waits: bool
) -> None:
    @define
    class Open:
        x: int = described

    assert is_complete(Open) != waits
    one = Open()
    assert is_complete(Open)
    if waits:
        one.x = 5
        assert one == Open(5)
    elif described.on_setattr is not None:
        with pytest.raises(attrs.exceptions.FrozenAttributeError):
            one.x = 5
    else:
        with pytest.raises((TypeError, ValueError)):
            one.x = cast(Any, "five")


def test_a_mistake_in_a_class_is_reported_when_it_is_used() -> None:
    @frozen
    class Wrong:
        x: int = 1
        y: str  # type: ignore[misc]  # the test

    for _ in range(2):
        with pytest.raises(ValueError, match="No mandatory attributes allowed after an attribute with a default"):
            Wrong(1, "a")


def test_every_class_of_the_library_can_be_completed() -> None:
    found = 0
    for package in ("session", "reducers", "filesystem", "backends.memory", "storage", "snapshots", "tools", "history"):
        root = importlib.import_module(f"weakfs.{package}")
        modules = pkgutil.walk_packages(getattr(root, "__path__", []), f"{root.__name__}.")
        for module in [root, *(importlib.import_module(one.name) for one in modules)]:
            for cls in [
                one for one in vars(module).values() if isinstance(one, type) and "__attrs_attrs__" in vars(one)
            ]:
                own = {one.name for one in attrs.fields(cls) if not one.inherited}
                slots = {*vars(cls).get("__slots__", own), "__weakref__"}
                cached = {name for name in slots - own if name not in vars(cls).get("__annotations__", {})}
                assert slots == own | cached, cls
                found += cls.__module__ == module.__name__
    assert found > 200
