"""Arguments are used as they are at the time of the call, and checked before anything is decided."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import attrs
import pytest

from weakfs import Session
from weakfs.backends import InMemoryFilesystem
from weakfs.filesystem import Limits


@pytest.fixture
def session() -> Session:
    return Session()


@pytest.fixture
def fs(session: Session) -> InMemoryFilesystem:
    made = InMemoryFilesystem(session)
    made.write("/f", "0123456789")
    return made


def put_whole(fs: InMemoryFilesystem, data: Any) -> None:
    fs.write_bytes("/f", data)


def put_at_the_end(fs: InMemoryFilesystem, data: Any) -> None:
    fs.write_bytes("/f", data, mode="append")


def put_inside(fs: InMemoryFilesystem, data: Any) -> None:
    fs.splice("/f", [(2, 4, data)])


@pytest.mark.parametrize("put", [put_whole, put_at_the_end, put_inside])
@pytest.mark.parametrize("view", [bytearray, lambda data: memoryview(data)], ids=["bytearray", "memoryview"])
def test_bytes_that_can_change_are_copied(
    session: Session, fs: InMemoryFilesystem, put: Callable[..., None], view: Callable[[bytearray], Any], tmp_path: Any
) -> None:
    buffer = bytearray(b"given")
    data = buffer if view is bytearray else view(buffer)
    put(fs, data)
    wanted = fs.read_bytes("/f").content
    seq = session.seq
    buffer[:] = b"other"
    fs.write("/g", "later")
    assert fs.read_bytes("/f").content == wanted
    assert InMemoryFilesystem(session.at(seq)).read_bytes("/f").content == wanted
    again = Session()
    again.replay(session.records)
    assert InMemoryFilesystem(again).read_bytes("/f").content == wanted
    session.save(tmp_path / "session.json")
    loaded = Session.load(tmp_path / "session.json")
    assert InMemoryFilesystem(loaded.at(seq)).read_bytes("/f").content == wanted


@pytest.mark.parametrize(
    "pieces",
    [[(0, 0, "text")], [(0, 1, None)], [(0.0, 1, b"")], [("0", "1", b"")], [(0, 1)], [(0, 1, b"", 2)], [5], 5, None],
    ids=repr,
)
def test_malformed_pieces_are_refused_and_nothing_changes(
    session: Session, fs: InMemoryFilesystem, pieces: Any
) -> None:
    before = fs.tree()
    with pytest.raises((TypeError, ValueError), match="cannot edit '/f'"):
        fs.splice("/f", pieces)
    assert fs.tree() is before
    assert session.seq == 1


def test_pieces_and_lines_may_come_from_a_generator(fs: InMemoryFilesystem) -> None:
    fs.splice("/f", ((at, at + 1, b"x") for at in range(0, 10, 2)))
    assert fs.read("/f").content == "x1x3x5x7x9"
    fs.write_lines("/g", (str(number) for number in range(3)))
    assert fs.read_lines("/g") == ("0\n", "1\n", "2")


def test_changes_that_a_generator_makes_happen_before_anything_is_decided(fs: InMemoryFilesystem) -> None:
    def pieces() -> Iterator[tuple[int, int, bytes]]:
        fs.delete("/f")
        yield 0, 1, b"x"

    with pytest.raises(FileNotFoundError):
        fs.splice("/f", pieces())
    assert not fs.exists("/f")


CONVERT = "convert it first$"


@pytest.mark.parametrize(
    ("content", "as_text", "as_bytes"),
    [
        (b"bytes", "use write_bytes$", None),
        ("text", None, "use write$"),
        (None, CONVERT, CONVERT),
        (5, CONVERT, CONVERT),
        (["a"], CONVERT, CONVERT),
    ],
)
def test_text_is_text_and_bytes_are_bytes(
    fs: InMemoryFilesystem, content: Any, as_text: str | None, as_bytes: str | None
) -> None:
    if as_text is not None:
        with pytest.raises(TypeError, match=as_text):
            fs.write("/f", content)
    if as_bytes is not None:
        with pytest.raises(TypeError, match=as_bytes):
            fs.write_bytes("/f", content)
    assert fs.read("/f").content == "0123456789"


@pytest.mark.parametrize("text", ["\ud800", "a\udfffb"])
def test_text_that_utf8_cannot_encode_is_refused_with_the_place(fs: InMemoryFilesystem, text: str) -> None:
    with pytest.raises(ValueError, match="lone surrogate at"):
        fs.write("/f", text)
    with pytest.raises(ValueError, match="surrogate"):
        fs.symlink(text, "/l")
    assert not fs.exists("/l")


@pytest.mark.parametrize("mode", [0o644 + 0.0, "644", True, None, -1, 0o10000])
def test_permission_bits_are_a_whole_number_in_range(fs: InMemoryFilesystem, mode: Any) -> None:
    with pytest.raises(ValueError, match="use permission bits from 0 to 0o7777"):
        fs.chmod("/f", mode)
    assert fs.stat("/f").mode == 0o644


HUGE = [2**63 - 1, 2**63, 10**30]


@pytest.mark.parametrize("huge", HUGE, ids=["word", "above a word", "huge"])
def test_numbers_that_no_machine_word_holds_are_bounds_like_any_other(huge: int) -> None:
    limits = Limits(**dict.fromkeys([limit.name for limit in attrs.fields(Limits)], huge))
    fs = InMemoryFilesystem(limits=limits)
    fs.write("/f", "one\ntwo\n")

    assert [hit.line_content for hit in fs.grep("o")] == ["one", "two"]
    assert len(fs.grep("o", max_matches=huge, max_per_file=huge)) == 2
    assert len(fs.glob("**", max_results=huge)) == 1
    assert fs.read("/f", limit=huge).content == "one\ntwo\n"
    assert fs.read("/f", offset=huge).content == ""
    assert fs.read_bytes("/f", limit=huge).content == b"one\ntwo\n"
    assert fs.read_bytes("/f", offset=huge).content == b""


@pytest.mark.parametrize("number", ["1", 1.5, True, 0, -1])
def test_matches_of_each_file_are_a_whole_number_of_one_or_more(fs: InMemoryFilesystem, number: Any) -> None:
    with pytest.raises(ValueError, match="matches of each file; use a number of 1 or more, or None for all"):
        fs.grep("0", max_per_file=number)
