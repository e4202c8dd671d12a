"""Records written and read a field at a time: lists of tuples with blobs, such as the pieces of splices."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_type_hints

import pytest
from attrs import frozen
from hypothesis import given
from hypothesis import strategies as st

from weakfs import InMemoryFilesystem, Session
from weakfs.session.blobs.blob import Held, Stored
from weakfs.session.codec import columns
from weakfs.session.codec.blob_table import Blobs, all_shown, shown
from weakfs.session.codec.columns import Columns
from weakfs.session.codec.expansion_limit import unlimited
from weakfs.session.slices.type_registry import Shape


@frozen
class Spliced:
    name: str
    pieces: tuple[tuple[int, str | None, bytes], ...]


COLUMNS = Columns.of(Shape.of(Spliced, "spliced"))

Row = tuple[str, tuple[tuple[int, str | None, bytes], ...]]
PIECES = st.tuples(st.integers(-5, 5), st.none() | st.text("ab", max_size=2), st.binary(max_size=2))
ROWS = st.lists(st.tuples(st.text("ab", max_size=2), st.lists(PIECES, max_size=3).map(tuple)), min_size=1, max_size=6)


def read(written: Any, contents: list[bytes]) -> list[tuple[Any, ...]] | None:
    assert COLUMNS is not None
    return COLUMNS.read(json.loads(json.dumps(written)), contents, unlimited())


@given(ROWS)
def test_rows_are_read_back_unchanged(rows: list[Row]) -> None:
    assert COLUMNS is not None
    contents = [content for _, pieces in rows for _, _, content in pieces]
    blobs = Blobs()
    columns = list(zip(*rows, strict=True))
    assert COLUMNS.fit(columns)
    assert COLUMNS.largest(columns) == max(map(len, contents), default=0)
    written, by_column = COLUMNS.write(rows, blobs), COLUMNS.write_columns(columns, blobs)
    known = [content for content in blobs.contents if isinstance(content, bytes)]
    assert read(written, known) == rows
    again = COLUMNS.read_columns(json.loads(json.dumps(by_column)), len(rows), known, unlimited())
    assert again is not None
    assert list(zip(*again, strict=True)) == rows


@frozen
class Exchange:
    question: str | bytes
    parts: tuple[tuple[bytes, bytes], ...]
    answer: str | bytes


def test_blobs_are_numbered_in_the_order_of_the_events_however_many_are_written_at_a_time() -> None:
    exchange = Columns.of(Shape.of(Exchange, "exchange"))
    assert exchange is not None
    rows = [(b"q%d" % i, ((b"a%d" % i, b"b%d" % i), (b"c%d" % i, b"d%d" % i)), b"r%d" % i) for i in range(3)]
    together, one_by_one = Blobs(), Blobs()
    written = exchange.write(rows, together)
    assert written == [exchange.write([row], one_by_one)[0] for row in rows]
    assert together.rows == one_by_one.rows
    assert together.rows[:6] == ["q0", "a0", "b0", "c0", "d0", "r0"]


@pytest.mark.parametrize(
    "pieces",
    [
        [(1, "a", b"")],
        ([1, "a", b""],),
        ((1, "a"),),
        ((1, "a", b"", b""),),
        ((True, "a", b""),),
        ((1, 2, b""),),
        ((1, "a", "b"),),
        ((2**64, "a", b""),),
        ((1, "\ud800", b""),),
        (1,),
        None,
    ],
)
def test_values_of_other_types_do_not_fit(pieces: Any) -> None:
    assert COLUMNS is not None
    assert not COLUMNS.fit([("a", "b"), (((1, "a", b""),), pieces)])


@pytest.mark.parametrize(
    "pieces",
    [
        {},
        [1],
        ["abc"],
        [[1, "a"]],
        [[1, "a", {"blob": 0}, 1]],
        [[1.0, "a", {"blob": 0}]],
        [[1, 2, {"blob": 0}]],
        [[1, "a", {"blob": 1}]],
        [[1, "a", {"blob": -1}]],
        [[1, "a", {"blob": True}]],
        [[1, "a", {"blob": 0, "more": 1}]],
        [[1, "a", "text"]],
        None,
    ],
)
def test_malformed_rows_are_left_to_the_slow_path(pieces: Any) -> None:
    good = {"name": "a", "pieces": [[1, None, {"blob": 0}]]}
    assert read([good], [b"x"]) == [("a", ((1, None, b"x"),))]
    assert read([good, {"name": "b", "pieces": pieces}], [b"x"]) is None
    assert COLUMNS is not None
    columns = {"name": ["a", "b"], "pieces": [good["pieces"], pieces]}
    assert COLUMNS.read_columns(columns, 2, [b"x"], unlimited()) is None


@frozen
class Reference:
    content: Stored


def test_contents_of_the_wrong_type_are_left_to_the_slow_path() -> None:
    columns = Columns.of(Shape.of(Reference, "reference"))
    assert columns is not None
    stored = Held().put(b"x")
    assert columns.read([{"content": {"blob": 0}}], [stored], unlimited()) == [(stored,)]
    assert columns.read([{"content": {"blob": 0}}], [b"x"], unlimited()) is None
    assert columns.read_columns({"content": {"blobs": [0]}}, 1, [stored], unlimited()) == [[stored]]
    assert columns.read_columns({"content": {"blobs": [0]}}, 1, [b"x"], unlimited()) is None


@pytest.mark.parametrize(
    "written",
    [
        {},
        {"name": ["a"]},
        {"name": ["a"], "pieces": [[]], "more": [1]},
        {"name": ["a", "b"], "pieces": [[]]},
        {"name": "a", "pieces": [[]]},
        {"name": {"blobs": [0]}, "pieces": [[]]},
        {"name": ["a"], "pieces": {"blobs": [0]}},
        {"name": ["a"], "pieces": None},
    ],
)
def test_malformed_columns_are_left_to_the_slow_path(written: Any) -> None:
    assert COLUMNS is not None
    assert COLUMNS.read_columns({"name": ["a"], "pieces": [[]]}, 1, [b"x"], unlimited()) == [["a"], [()]]
    assert COLUMNS.read_columns(written, 1, [b"x"], unlimited()) is None


def test_pieces_of_splices_are_read_back_from_storage(tmp_path: Path) -> None:
    session = Session.open(str(tmp_path / "stored"), "s")
    files = InMemoryFilesystem(session)
    files.write("/a.txt", "hello world\n")
    for number in range(40):
        files.splice("/a.txt", [(0, 5, f"h{number:04}".encode()), (6, 11, f"w{number % 3:04}".encode())])
        files.write(f"/{number}.txt", f"{number}\n")
    events = [record.event for record in session.records]
    session.close()

    again = Session.open(str(tmp_path / "stored"), "s")
    assert [record.event for record in again.records] == events
    assert InMemoryFilesystem(again).read("/a.txt").content == "h0039 w0000\n"
    again.close()


def test_the_annotations_of_a_type_are_evaluated_once(monkeypatch: pytest.MonkeyPatch) -> None:
    evaluated: list[object] = []

    def counted(type_: type, *, include_extras: bool) -> dict[str, Any]:
        evaluated.append(type_)
        return get_type_hints(type_, include_extras=include_extras)

    @frozen
    class Seen:
        name: str

    monkeypatch.setattr(columns, "get_type_hints", counted)
    made = [Columns.of(Shape.of(Seen, tag)) for tag in ("seen", "seen again")]

    assert evaluated == [Seen]
    assert made[0] is made[1] is not None


def test_a_type_whose_annotations_cannot_be_evaluated_yet_has_columns_later(monkeypatch: pytest.MonkeyPatch) -> None:
    @frozen
    class Later:
        name: DefinedLater  # type: ignore[name-defined]  # noqa: F821  # pyright: ignore[reportUndefinedVariable]

    assert Columns.of(Shape.of(Later, "later")) is None

    monkeypatch.setitem(globals(), "DefinedLater", str)

    assert Columns.of(Shape.of(Later, "later")) is not None


@pytest.mark.parametrize("contents", [[], [b"a", b"\xc3\xa4"], [b"a", b"\xff", b"\xed\xa0\x80", b"b"]])
def test_many_blobs_are_written_like_single_ones(contents: list[bytes]) -> None:
    assert all_shown(contents) == [shown(data) for data in contents]
