"""How values are formatted for people."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from weakfs.cli.formatting import counted, date_and_time, mode_text, moment, padded, shortened, shown


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain.txt", "plain.txt"),
        ("grün 日本.txt", "grün 日本.txt"),
        ("a\nb", "a\\nb"),
        ("\x1b[31m", "\\x1b[31m"),
        ("\u202egnp.exe", "\\u202egnp.exe"),
        ("\x9b31m", "\\x9b31m"),
        ("\uf7ff", "\\uf7ff"),
        ("\udcff", "\\udcff"),
        ("\U000e0041", "\\U000e0041"),
    ],
)
def test_unprintable_characters_are_escaped(text: str, expected: str) -> None:
    assert shown(text) == expected


@given(st.text())
def test_any_text_is_shown_on_one_line(text: str) -> None:
    assert shown(text).isprintable()


@pytest.mark.parametrize(
    ("at", "expected"),
    [
        (0, "1970-01-01T00:00:00Z"),
        (1_777_541_373_890_000_000, "2026-04-30T09:29:33Z"),
        (-1, "1969-12-31T23:59:59Z"),
        (10**30, f"{10**30}ns"),
    ],
)
def test_times_are_iso_8601_in_utc(at: int, expected: str) -> None:
    assert moment(at) == expected


def test_times_may_keep_their_nanoseconds() -> None:
    assert moment(1_777_541_373_890_000_001, fraction=True) == "2026-04-30T09:29:33.890000001Z"


@pytest.mark.parametrize(
    ("mode", "kind", "expected"),
    [(0o644, "-", "-rw-r--r--"), (0o755, "d", "drwxr-xr-x"), (0o4755, "-", "-rwsr-xr-x"), (0o1666, "d", "drw-rw-rwT")],
)
def test_permission_bits_are_written_as_by_ls(mode: int, kind: str, expected: str) -> None:
    assert mode_text(mode, kind) == expected


def test_amounts_are_written_with_their_noun() -> None:
    assert (counted(1, "file"), counted(0, "file"), counted(1204, "file")) == ("1 file", "0 files", "1,204 files")
    assert counted(2, "entry", "entries") == "2 entries"


@pytest.mark.parametrize(
    ("text", "width", "expected"),
    [
        ("/a.py", 5, "/a.py"),
        ("/src/app.py", 10, "/sr…app.py"),
        ("/src/日本.txt", 11, "/sr…本.txt"),
    ],
)
def test_the_middle_of_a_wide_text_is_left_out(text: str, width: int, expected: str) -> None:
    assert shortened(text, width) == expected


@given(st.text(), st.integers(8, 40))
def test_a_text_is_fitted_into_a_number_of_columns(text: str, width: int) -> None:
    line = shown(text)
    assert cell_len(padded(line, width)) == width
    assert line.startswith(shortened(line, width).partition("…")[0])


def test_a_short_time_has_fourteen_columns() -> None:
    assert date_and_time(1_777_541_373_999_999_999) == "04-30 09:29:33"
    assert {len(date_and_time(at)) for at in (0, 7, -(10**30), 10**30)} == {14}
