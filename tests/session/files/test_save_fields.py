"""Fields of attrs classes in a session file: defaults, aliases, converters, and fields without an argument."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from attrs import field, frozen

from tests.session.files.round_trips import box, exactly, round_trip
from weakfs.session.slices.tags import STORED_AS


@frozen
class Defaults:
    anything: Any = 1
    either: int | bool = 0
    number: float = 0.0
    values: tuple[Any, ...] = (1,)
    wide: float | int = 1


@frozen
class Quiet:
    x: int
    y: int = field(default=0, eq=False)


@frozen
class Holder:
    quiet: Quiet = Quiet(1, 2)


@pytest.mark.parametrize("by_event", [False, True], ids=["slice", "event"])
@pytest.mark.parametrize(
    "value",
    [Defaults(), Defaults(True, False, -0.0, (True,), 1.0), Defaults(1.0, True, 0, (1.0,), 1)],
    ids=["defaults", "equal to the defaults", "of other types"],
)
def test_a_value_that_merely_equals_the_default_is_saved(value: Defaults, by_event: bool, tmp_path: Path) -> None:
    back = round_trip(tmp_path, value, by_event=by_event)
    for name in ("anything", "either", "number", "values", "wide"):
        assert exactly(getattr(back, name), getattr(value, name)), name


def test_fields_excluded_from_equality_are_saved(tmp_path: Path) -> None:
    back: Holder = round_trip(tmp_path, Holder(Quiet(1, 5)), Quiet, by_event=False)
    assert back.quiet.y == 5


@frozen
class Private:
    _a: int
    b: int = field(alias="bee", default=3)
    c: int = field(kw_only=True, default=4)
    d: str = field(factory=str)


@pytest.mark.parametrize("by_event", [False, True], ids=["slice", "event"])
def test_private_aliased_and_keyword_only_fields_are_loaded(by_event: bool, tmp_path: Path) -> None:
    value = Private(1, bee=5, c=6, d="x")
    assert round_trip(tmp_path, value, by_event=by_event) == value


@frozen
class StoredUnderAnotherName:
    taken_ns: int = field(metadata={STORED_AS: "taken_at"})
    label: str | None = None


@frozen
class HoldsOne:
    # In addition to atoms, so that the class is not written as columns.
    one: StoredUnderAnotherName
    again_ns: int = field(default=0, metadata={STORED_AS: "again"})


@pytest.mark.parametrize("by_event", [False, True], ids=["slice", "event"])
def test_a_field_is_saved_under_the_name_that_it_declares(by_event: bool, tmp_path: Path) -> None:
    value = HoldsOne(StoredUnderAnotherName(5), 7)
    assert round_trip(tmp_path, value, StoredUnderAnotherName, by_event=by_event) == value
    assert round_trip(tmp_path, value.one, by_event=by_event) == value.one
    assert ('"taken_at":[5]' if by_event else '"taken_at":5') in (tmp_path / "s.json").read_text()
    assert "_ns" not in (tmp_path / "s.json").read_text()


@frozen
class Derived:
    a: int
    double: int = field(init=False)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "double", self.a * 2)


@pytest.mark.parametrize("by_event", [False, True], ids=["slice", "event"])
def test_a_derived_field_is_recomputed(by_event: bool, tmp_path: Path) -> None:
    assert round_trip(tmp_path, Derived(4), by_event=by_event).double == 8


@pytest.mark.parametrize("by_event", [False, True], ids=["slice", "event"])
def test_a_derived_field_that_was_set_by_hand_is_refused_or_kept(by_event: bool, tmp_path: Path) -> None:
    value = Derived(4)
    object.__setattr__(value, "double", 9)
    assert_refused_or_kept(tmp_path, value, by_event=by_event)


def assert_refused_or_kept(folder: Path, value: object, *, by_event: bool) -> None:
    refusal = ""
    back: object = None
    try:
        back = round_trip(folder, value, by_event=by_event)
    except TypeError as error:
        refusal = str(error)
    if refusal:
        assert refusal.startswith("cannot accept a "), refusal
        assert not (folder / "s.json").exists()
    else:
        assert back == value


def _more(value: int) -> int:
    return value + 1


def _trimmed(value: str) -> str:
    return value.strip()


@frozen
class Growing:
    a: int = field(converter=_more)


@pytest.mark.parametrize("by_event", [False, True], ids=["slice", "event"])
def test_values_of_a_converter_that_is_not_idempotent_are_refused_or_kept(by_event: bool, tmp_path: Path) -> None:
    assert_refused_or_kept(tmp_path, Growing(1), by_event=by_event)


@frozen
class Trimmed:
    a: str = field(converter=_trimmed)


def test_an_idempotent_converter_is_accepted(tmp_path: Path) -> None:
    assert round_trip(tmp_path, Trimmed(" a "), by_event=False) == Trimmed("a")


@pytest.mark.parametrize("depth", [10, 90])
def test_deeply_nested_values_are_loaded_unchanged(depth: int, tmp_path: Path) -> None:
    assert round_trip(tmp_path, box(Any)(nested(depth)), by_event=False).held == nested(depth)


@pytest.mark.parametrize("depth", [300, 2000, 50_000])
def test_values_nested_too_deeply_are_refused(depth: int, tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"nested|deep|recursion"):
        round_trip(tmp_path, box(Any)(nested(depth)), by_event=False)


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value
