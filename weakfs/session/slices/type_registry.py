"""The registry: types under explicit tags, the only types that a session file may name.

A file contains `"fs/file_written"`, never a class path, and a tag that is not registered is an error: no file can make
a program import or construct a type that its author did not list.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from operator import attrgetter
from types import MappingProxyType
from typing import Any, ClassVar, Self, TypeVar, cast

import attrs
from attrs import evolve

from weakfs.class_decorators import frozen, is_complete
from weakfs.messages import a_type, plural
from weakfs.session.errors import UnknownType
from weakfs.session.slices.events import EVENTS
from weakfs.session.slices.tags import fields_of, is_dataclass, tag_of
from weakfs.short_repr import clipped_repr

R = TypeVar("R", bound="Registry")


def _record_numbers(cls: type) -> tuple[str, ...]:
    """Return the fields that a class declares to hold record numbers."""
    return cast("tuple[str, ...]", getattr(cls, "__record_numbers__", ()))


def _places_of_numbers(cls: type, names: Sequence[str]) -> tuple[int, ...]:
    declared = _record_numbers(cls)
    unknown = [name for name in declared if name not in names]
    if unknown:
        raise ValueError(
            f"cannot register {cls.__qualname__}: it declares record numbers in {unknown[0]!r}, which is not one of "
            f"its fields; name fields that its constructor takes in @event(..., numbers=...)"
        )
    return tuple(names.index(name) for name in declared)


def _no_fields(event: object) -> tuple[object, ...]:
    return ()


class Shape:
    """How values of one registered type are converted to plain tuples and back.

    `names` are the fields, `pack` returns their values and `build` makes an instance from them. `numbers` are the
    positions of the fields that hold record numbers: see `event`. All four are computed when first read: most types
    that a session knows never occur in it.
    """

    __slots__ = ("build", "cls", "fitting", "names", "numbers", "pack", "tag")

    names: tuple[str, ...]
    pack: Callable[[Any], tuple[Any, ...]]
    build: Callable[..., Any]
    numbers: tuple[int, ...]

    def __init__(self, cls: type, tag: str) -> None:
        self.cls = cls
        self.tag = tag
        if not _record_numbers(cls):
            self.numbers = ()
        elif is_complete(cls):
            # Refuse unknown fields immediately.
            self.numbers = _places_of_numbers(cls, self.names)
        # What is known about the combinations of types that the fields have held, filled in as events arrive. See
        # weakfs.session.codec.savable_events.
        self.fitting: dict[tuple[type, ...], Any] = {}

    @classmethod
    def of(cls, type_: type, tag: str) -> Shape:
        """Return the shape of an attrs class, dataclass or enum. Raises `TypeError` for any other class."""
        if not isinstance(type_, type) or not (issubclass(type_, Enum) or _has_fields(type_)):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(
                f"cannot register {getattr(type_, '__name__', type_)}: it is neither an attrs class nor a dataclass; "
                f"decorate it with @attrs.frozen"
            )
        return _FreshShape(type_, tag)


class _FreshShape(Shape):
    """A shape that turns into a plain `Shape` once it is computed: `__getattr__` slows down every attribute."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        if name not in ("build", "names", "numbers", "pack"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        self.names, self.pack, self.build = _conversions(self.cls)
        self.numbers = _places_of_numbers(self.cls, self.names)
        self.__class__ = Shape  # type: ignore[assignment]  # both have the same slots
        return getattr(self, name)


def check_event(event: object) -> None:
    """Raise `TypeError` for a value that cannot be an event, such as the class of an event."""
    if isinstance(event, type):
        raise TypeError(
            f"cannot dispatch the class {event.__name__}: an event is an object; dispatch {event.__name__}(...)"
        )
    if not isinstance(event, Enum) and not _has_fields(type(event)):
        raise TypeError(
            f"cannot dispatch {clipped_repr(event)}: it is {a_type(event)}; pass an object of a class that is "
            f"decorated with @attrs.frozen or @dataclass"
        )


def _has_fields(cls: type) -> bool:
    """Return whether a class is an attrs class or a dataclass, without asking attrs, which would complete it."""
    return any("__attrs_attrs__" in vars(base) for base in cls.__mro__) or is_dataclass(cls)


def _conversions(cls: type) -> tuple[tuple[str, ...], Callable[[Any], tuple[Any, ...]], Callable[..., Any]]:
    if issubclass(cls, Enum):
        return ("value",), lambda member: (member.value,), cls
    fields = [field for field in fields_of(cls) if field.init]
    names = tuple(field.name for field in fields)
    pack: Callable[[Any], tuple[Any, ...]]
    if not names:
        pack = _no_fields
    elif len(names) == 1:
        single = attrgetter(names[0])
        pack = lambda event: (single(event),)  # noqa: E731  # one of three shapes of one function
    else:
        pack = attrgetter(*names)
    if not any(field.kw_only for field in fields):
        return names, pack, cls
    aliases = tuple(cast(str, getattr(field, "alias", field.name)) for field in fields)
    return names, pack, lambda *values: cls(**dict(zip(aliases, values, strict=True)))


def _tags(given: Mapping[str, Shape]) -> Mapping[str, Shape]:
    return MappingProxyType(dict(given))


def _types(given: Mapping[type, Shape]) -> Mapping[type, Shape]:
    return MappingProxyType(dict(given))


def _standard(field: str) -> Any:
    """Return the default of a registry's field: its value in the class's standard registry."""
    return attrs.Factory(lambda self: getattr(type(self).standard(), field), takes_self=True)


class _WithTypes:
    """The method `with_types`: on a registry it extends that one; on the class it extends the standard registry."""

    def __get__(self, instance: Registry | None, owner: type[R]) -> Callable[..., R]:
        registry = owner.standard() if instance is None else instance

        def with_types(*types: type) -> R:
            """Return a registry with `types` added, each under its tag (see `event`) or else its class name.

            Raises `ValueError` if a tag already belongs to another class, and `TypeError` for a class that is neither
            an attrs class nor a dataclass.
            """
            for type_ in types:
                if not isinstance(type_, type):  # pyright: ignore[reportUnnecessaryIsInstance]
                    raise TypeError(
                        f"cannot register {type_!r:.60}: it is {a_type(type_)}; pass classes, with_types(*types)"
                    )
            return cast("R", registry.with_tags({tag_of(type_): type_ for type_ in _distinct(types)}))

        return with_types


@frozen(eq=False, repr=False)
class Registry:
    """An immutable table of types by tag.

    `Registry()` is the standard registry of its class. `Registry.with_types(*T)`, called on the class or on a registry,
    returns one that has your types as well.
    """

    by_tag: Mapping[str, Shape] = attrs.field(converter=_tags, default=_standard("by_tag"))
    by_type: Mapping[type, Shape] = attrs.field(converter=_types, default=_standard("by_type"))
    # Slice types that every session with this registry has: see weakfs.session.slices.slice.Declaration.
    slices: tuple[Any, ...] = _standard("slices")
    # Types whose values a file stores once and refers to by number: see weakfs.session.codec.blob_table.
    pools: tuple[Any, ...] = _standard("pools")

    with_types: ClassVar[_WithTypes] = _WithTypes()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {plural(len(self.by_tag), 'type')}>"

    @classmethod
    def empty(cls) -> Self:
        """Return a registry with only the session's own events."""
        return cls({}, {}, (), ()).with_types(*EVENTS)

    @classmethod
    def standard(cls) -> Self:
        """Return the registry of a session that is created without one: only the session's own events."""
        return cls.empty()

    def with_tags(self, types: Mapping[str, type]) -> Self:
        """Return a registry with `types` added under the given tags.

        Raises `ValueError` if a tag already belongs to another class, and `TypeError` for a class that is not an
        attrs class, a dataclass or an enum.
        """
        by_tag, by_type = dict(self.by_tag), dict(self.by_type)
        for tag, type_ in types.items():
            known = by_tag.get(tag)
            if known is not None and known.cls is not type_:
                raise ValueError(
                    f"cannot register {type_.__qualname__} as {tag!r}: the tag belongs to "
                    f"{known.cls.__qualname__}; give one of them another tag with @event"
                )
            if known is None:
                by_tag[tag] = by_type[type_] = Shape.of(type_, tag)
        return self if len(by_tag) == len(self.by_tag) else evolve(self, by_tag=by_tag, by_type=by_type)

    def with_slices(self, *declarations: Any) -> Self:
        """Return a registry whose sessions also have these slices (`weakfs.session.slices.slice.Declaration`)."""
        known = self.with_types(*(declaration.cls for declaration in declarations))
        return evolve(known, slices=(*self.slices, *declarations))

    def with_pools(self, *pools: Any) -> Self:
        """Return a registry whose files also store the values of `pools` once each."""
        return evolve(self, pools=(*self.pools, *pools))

    def is_safe(self, type_: type) -> bool:
        """Return whether a file can hold every value of a slice type, according to its declaration or its pool."""
        declared = any(declaration.cls is type_ and declaration.is_safe for declaration in self.slices)
        return declared or any(pool.cls is type_ for pool in self.pools)

    def shape(self, tag: str) -> Shape:
        """Return the shape of the type with a tag. Raises `UnknownType` if there is none."""
        shape = self.by_tag.get(tag)
        if shape is None:
            raise UnknownType(
                f"no type is registered under the tag {tag!r}; pass registry=Registry.with_types(YourType), where "
                f"YourType has that tag or name, or registry=Registry.standard().with_tags({{{tag!r}: YourType}})"
            )
        return shape


def _distinct(types: Iterable[type]) -> Iterable[type]:
    seen: dict[str, type] = {}
    for type_ in types:
        tag = tag_of(type_)
        if seen.setdefault(tag, type_) is not type_:
            raise ValueError(
                f"cannot register two types as {tag!r}: {seen[tag].__qualname__} and {type_.__qualname__}; "
                f"give one of them another tag with @event"
            )
    return types
