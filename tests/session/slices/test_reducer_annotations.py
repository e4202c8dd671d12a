"""Annotations of marked reducers: what cannot be right is an error when the slice is installed."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve, frozen

from weakfs import Registry, Session, event, reducer


@event("test/counted")
@frozen
class Counted:
    by: int


@event("test/named")
@frozen
class Named:
    name: str


def install(type_: type) -> Session:
    session = Session(registry=Registry.empty().with_types(Counted, Named))
    session.install(type_, tag="test/slice", initial=type_)
    return session


def test_a_reducer_that_takes_another_event_is_refused() -> None:
    @frozen
    class Counter:
        count: int = 0

        @reducer(on=Counted)  # type: ignore[arg-type]  # the mistake, which type checkers find too
        def add(self, event: Named) -> Counter:
            return self

    # Its own name is not found in the function that it is defined in.
    Counter.add.__annotations__["return"] = Counter
    with pytest.raises(TypeError, match="its reducer 'add' of Counted takes a Named; annotate its event as Counted"):
        install(Counter)


@pytest.mark.parametrize(("result", "name"), [(int, "an int"), (type(None), "None"), (Named, "a Named")])
def test_a_reducer_that_returns_another_type_is_refused(result: type, name: str) -> None:
    @frozen
    class Counter:
        count: int = 0

        @reducer(on=Counted)
        def add(self, event: Counted) -> Any:
            return self

    Counter.add.__annotations__["return"] = result
    with pytest.raises(TypeError, match=rf"'add' of Counted returns {name}; return the new Counter"):
        install(Counter)


def test_type_checkers_find_a_reducer_of_another_event_or_result() -> None:
    # mypy reports an `ignore` that is not needed.
    class Counter:
        @reducer(on=Counted)  # type: ignore[arg-type]  # another event
        def one(self, event: Named) -> Counter:
            return self

        @reducer(on=Counted)  # type: ignore[misc]  # another result
        def two(self, event: Counted) -> int:
            return 1

        @reducer(on=Counted)
        @reducer(on=Named)
        def both(self, event: Counted | Named) -> Counter:
            return self

    assert vars(Counter)["both"].__reduces__ == (Named, Counted)


def test_missing_wide_or_unknown_annotations_are_accepted() -> None:
    @frozen
    class Counter:
        count: int = 0

        @reducer(on=Counted)
        def add(self, event):  # type: ignore[no-untyped-def]  # as many people write it
            return evolve(self, count=self.count + event.by)

        @reducer(on=Named)  # type: ignore[misc]  # type checkers want the slice itself
        def name(self, event: Named | Counted) -> object:
            return self

    session = install(Counter)
    session.dispatch(Counted(2))

    latest = session[Counter].latest()
    assert latest is not None
    assert latest.count == 2
