"""Custom values in slices and events: each is loaded unchanged, or refused on entry."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.session.files.round_trips import box, exactly, round_trip
from tests.session.files.values import KEPT, ODD


def named(case: tuple[object, object]) -> str:
    hint, value = case
    # The order of sets differs between processes, and the text of some objects contains their address.
    shown = type(value).__name__ if "set({" in repr(value) or " at 0x" in repr(value) else repr(value)
    return f"{getattr(hint, '__name__', hint)} {shown}".encode("ascii", "backslashreplace").decode()[:70]


@pytest.mark.parametrize("by_event", [False, True], ids=["slice", "event"])
@pytest.mark.parametrize("case", KEPT, ids=named)
def test_a_value_is_loaded_unchanged(case: tuple[object, object], by_event: bool, tmp_path: Path) -> None:
    hint, value = case
    back = round_trip(tmp_path, box(hint)(value), by_event=by_event).held
    assert exactly(back, value), back


@pytest.mark.sampled
@pytest.mark.parametrize("by_event", [False, True], ids=["slice", "event"])
@pytest.mark.parametrize("case", ODD, ids=named)
def test_a_value_is_loaded_unchanged_or_refused_on_entry_with_its_place(
    case: tuple[object, object], by_event: bool, tmp_path: Path
) -> None:
    hint, value = case
    refusal = ""
    back: object = None
    try:
        back = round_trip(tmp_path, box(hint)(value), by_event=by_event).held
    except TypeError as error:
        refusal = str(error)
    if refusal:
        assert not (tmp_path / "s.json").exists(), f"it was accepted, and cannot be loaded: {refusal}"
        assert re.match(r"cannot accept a (Box|SliceAppended): \$|Box\.held is ", refusal)
    else:
        assert exactly(back, value), f"{value!r} became {back!r}"
