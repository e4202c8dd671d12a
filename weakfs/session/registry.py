"""Types under explicit tags: what a session file may name, and nothing else.

A file says `"fs/file_written"`, never a class path; a tag that is not registered is an error, so that no
file can make a program import or construct anything that its author did not list.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from operator import attrgetter
from typing import Any, TypeVar, cast

import attrs
from attrs import evolve, frozen

from weakfs.session.errors import UnknownType

C = TypeVar("C", bound=type)


def tagged(tag: str) -> Callable[[C], C]:
    """Mark a class with the tag that stands for it in records and files."""

    def mark(cls: C) -> C:
        cls.__tag__ = tag  # type: ignore[attr-defined]  # attrs' slotted classes take class attributes
        return cls

    return mark


def tag_of(cls: type) -> str:
    """Give the tag that a class was marked with, else its name."""
    return cast(str, cls.__dict__.get("__tag__", cls.__name__))


def _no_fields(event: object) -> tuple[object, ...]:
    return ()


@frozen(eq=False)
class Shape:
    """How values of one registered type are taken apart into a plain tuple and put together again."""

    cls: type
    tag: str
    names: tuple[str, ...]
    pack: Callable[[Any], tuple[Any, ...]]
    build: Callable[..., Any]

    @classmethod
    def of(cls, type_: type, tag: str) -> Shape:
        """Read a class's fields; `TypeError` if it is not an attrs class."""
        if not attrs.has(type_):
            raise TypeError(
                f"cannot register {type_.__name__}: it is not an attrs class; decorate it with @attrs.frozen"
            )
        fields = [field for field in attrs.fields(type_) if field.init]
        names = tuple(field.name for field in fields)
        pack: Callable[[Any], tuple[Any, ...]]
        if not names:
            pack = _no_fields
        elif len(names) == 1:
            single = attrgetter(names[0])
            pack = lambda event: (single(event),)  # noqa: E731  # one of three shapes of one function
        else:
            pack = attrgetter(*names)
        if any(field.kw_only for field in fields):
            aliases = tuple(cast(str, field.alias) for field in fields)
            build = lambda *values: type_(**dict(zip(aliases, values, strict=True)))  # noqa: E731
            return cls(type_, tag, names, pack, build)
        return cls(type_, tag, names, pack, type_)


@frozen(eq=False)
class Registry:
    """An immutable table of types by tag.

    `Registry.standard()` holds weakfs's own types; `with_types` gives a registry that has yours as well.
    """

    by_tag: Mapping[str, Shape] = attrs.field(factory=dict)
    by_type: Mapping[type, Shape] = attrs.field(factory=dict)
    # Slice types that every session with this registry has: see weakfs.session.slices.Declaration.
    slices: tuple[Any, ...] = ()
    # Types whose values a file holds once and refers to: see weakfs.session.pools.
    pools: tuple[Any, ...] = ()

    @classmethod
    def empty(cls) -> Registry:
        """Give a registry with the session's own events only."""
        from weakfs.session.events import EVENTS

        return cls().with_types(*EVENTS)

    @classmethod
    def standard(cls) -> Registry:
        """Give the registry of the whole library, asked of its composition root.

        The root is looked up by name and late: this package knows nothing of what the types are about.
        """
        return cast(Registry, import_module("weakfs.builtin").registry())

    def with_types(self, *types: type) -> Registry:
        """Give a registry that also knows `types`, each under its tag (see `tagged`), else its class name.

        Raises `ValueError` if a tag already stands for another class, `TypeError` for a class that is not
        an attrs class.
        """
        return self.with_tags({tag_of(type_): type_ for type_ in _distinct(types)})

    def with_tags(self, types: Mapping[str, type]) -> Registry:
        """Give a registry that also knows `types` under the given tags."""
        by_tag, by_type = dict(self.by_tag), dict(self.by_type)
        for tag, type_ in types.items():
            known = by_tag.get(tag)
            if known is not None and known.cls is not type_:
                raise ValueError(
                    f"cannot register {type_.__qualname__} as {tag!r}: the tag stands for "
                    f"{known.cls.__qualname__}; give one of them another tag with @tagged"
                )
            if known is None:
                by_tag[tag] = by_type[type_] = Shape.of(type_, tag)
        return evolve(self, by_tag=by_tag, by_type=by_type)

    def with_slices(self, *declarations: Any) -> Registry:
        """Give a registry whose sessions also have the declared slices (`weakfs.session.slices.Declaration`)."""
        known = self.with_types(*(declaration.cls for declaration in declarations))
        return evolve(known, slices=(*self.slices, *declarations))

    def with_pools(self, *pools: Any) -> Registry:
        """Give a registry whose files also keep the values of `pools` once each."""
        return evolve(self, pools=(*self.pools, *pools))

    def shape(self, tag: str) -> Shape:
        """Give the type that `tag` stands for; `UnknownType` if there is none."""
        shape = self.by_tag.get(tag)
        if shape is None:
            raise UnknownType(
                f"no type is registered under the tag {tag!r}; pass "
                f"registry=Registry.standard().with_types(YourType), where YourType has that tag or name"
            )
        return shape


def _distinct(types: Iterable[type]) -> Iterable[type]:
    seen: dict[str, type] = {}
    for type_ in types:
        tag = tag_of(type_)
        if seen.setdefault(tag, type_) is not type_:
            raise ValueError(
                f"cannot register two types as {tag!r}: {seen[tag].__qualname__} and {type_.__qualname__}; "
                f"give one of them another tag with @tagged"
            )
    return types
