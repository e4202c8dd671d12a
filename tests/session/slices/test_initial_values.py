"""Initial values of slices: as safe to save as every other value."""

from __future__ import annotations

from pathlib import Path

import pytest
from attrs import define, field, frozen

from weakfs import Registry, Session, event, reducer


@event("initial/counted")
@frozen
class Counted:
    word: str


@event("initial/totals")
@frozen
class Totals:
    words: dict[str, int] = field(factory=dict)

    @reducer(on=Counted)
    def count(self, event: Counted) -> Totals:
        return Totals({**self.words, event.word: self.words.get(event.word, 0) + 1})


REGISTRY = Registry.with_types(Counted, Totals)


def opened(where: Path | None) -> Session:
    return Session(registry=REGISTRY) if where is None else Session.open(where, "s", registry=REGISTRY)


@pytest.mark.parametrize("is_stored", [False, True])
def test_an_initial_value_that_a_file_cannot_hold_is_refused_when_the_slice_is_installed(
    is_stored: bool, tmp_path: Path
) -> None:
    session = opened(tmp_path / "sessions" if is_stored else None)
    with pytest.raises(TypeError, match=r"cannot install 'initial/totals': .*Totals\.words is \(\), a tuple"):
        session.install(Totals, initial=Totals(()))  # type: ignore[arg-type]  # that is the point

    session.install(Totals, initial=Totals)
    with session.transaction():
        session.dispatch(Counted("a"))
    assert session[Totals].latest() == Totals({"a": 1})
    session.close()


@define
class Draft:
    lines: list[str] = field(factory=list)


def test_a_mutable_initial_value_is_copied() -> None:
    session, mine = Session(), Draft(["one"])
    session.install(Draft, initial=mine)

    mine.lines.append("two")

    assert session[Draft].latest() == Draft(["one"])


def test_a_slice_that_is_installed_again_keeps_its_reducers_and_gets_the_new_initial_value() -> None:
    session = Session(registry=REGISTRY)
    session.install(Totals, initial=Totals)
    session.install(Totals, initial=Totals({"a": 1}))

    assert session[Totals].latest() == Totals({"a": 1})
    session.dispatch(Counted("a"))
    assert session[Totals].latest() == Totals({"a": 2})
    with pytest.raises(TypeError, match=r"Totals\.words"):
        session.install(Totals, initial=Totals(5))  # type: ignore[arg-type]  # that is the point
    assert session[Totals].latest() == Totals({"a": 2})
