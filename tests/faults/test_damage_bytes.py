"""Files that were truncated or changed: refused with a place and a cause, or loaded as the session that was saved."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import orjson
import pytest

from tests.faults.damage import Court, resealed
from tests.sampling import sample, share, stride
from weakfs import Session

MUTATIONS = share(150)

Mutator = Callable[[bytearray, random.Random], None]


def test_the_whole_file_is_the_same_session(court: Court) -> None:
    assert court.judge(court.whole) == "same"
    assert court.judge(resealed(court.whole)) == "same"


@pytest.mark.slow
def test_a_file_cut_off_anywhere_is_refused(court: Court) -> None:
    for length in sample(range(0, len(court.whole), stride())):
        assert court.judge(court.whole[:length]) == "refused", length
    court.check_modules()


def test_a_file_with_trailing_data_is_refused(court: Court) -> None:
    for more in (b"x", b"{}", b"\x00", b",", b"}", court.whole):
        assert court.judge(court.whole + more) == "refused", more
    for space in (b" ", b"\n", b"\r\n\t"):
        assert court.judge(court.whole + space) in ("same", "refused"), space


def bits(data: bytearray, chance: random.Random) -> None:
    data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)


def burst(data: bytearray, chance: random.Random) -> None:
    start = chance.randrange(len(data))
    for spot in range(start, min(start + chance.randrange(1, 200), len(data))):
        data[spot] = chance.randrange(256)


def deletion(data: bytearray, chance: random.Random) -> None:
    start = chance.randrange(len(data))
    del data[start : start + chance.choice([1, 1, 2, 7, 512])]


def insertion(data: bytearray, chance: random.Random) -> None:
    start = chance.randrange(len(data))
    data[start:start] = chance.choice(
        [b"0", b"-", b'"', b",", b"}", b"]", b"\\", b"\xff", b"1e9", b'"":{},', b"\x00" * 64]
    )


def swap(data: bytearray, chance: random.Random) -> None:
    one, other = chance.randrange(len(data)), chance.randrange(len(data))
    data[one], data[other] = data[other], data[one]


def repetition(data: bytearray, chance: random.Random) -> None:
    start = chance.randrange(len(data))
    piece = data[start : start + chance.choice([1, 2, 16, 512])]
    data[start:start] = piece


def hole(data: bytearray, chance: random.Random) -> None:
    """A block that never reached the disk."""
    start = chance.randrange(len(data)) // 512 * 512
    data[start : start + 512] = bytes(len(data[start : start + 512]))


MUTATORS: list[Mutator] = [bits, burst, deletion, insertion, swap, repetition, hole]


@pytest.mark.parametrize("mutator", MUTATORS, ids=lambda mutator: mutator.__name__)
def test_changed_bytes_are_refused_or_change_nothing(court: Court, mutator: Mutator) -> None:
    chance = random.Random(mutator.__name__)
    for _ in range(MUTATIONS):
        data = bytearray(court.whole)
        mutator(data, chance)
        assert court.judge(bytes(data)) in ("refused", "same"), bytes(data)
    court.check_modules()


@pytest.mark.parametrize("mutator", MUTATORS, ids=lambda mutator: mutator.__name__)
def test_changed_bytes_with_a_valid_checksum_are_refused_or_load_as_a_working_session(
    court: Court, mutator: Mutator
) -> None:
    chance = random.Random(mutator.__name__)
    for _ in range(MUTATIONS):
        data = bytearray(court.whole)
        mutator(data, chance)
        court.judge(resealed(bytes(data)))
    court.check_modules()


def test_a_single_changed_bit_is_found_wherever_it_is(court: Court) -> None:
    for spot in sample(range(0, len(court.whole), 11)):
        data = bytearray(court.whole)
        data[spot] ^= 1
        assert court.judge(bytes(data)) == "refused", spot


@pytest.mark.parametrize("option", [0, orjson.OPT_INDENT_2, orjson.OPT_APPEND_NEWLINE])
def test_a_reformatted_file_is_the_same_session(court: Court, option: int) -> None:
    assert court.judge(orjson.dumps(orjson.loads(court.whole), option=option)) == "same"


def test_a_reformatted_file_with_a_change_is_refused(court: Court) -> None:
    text = orjson.dumps(orjson.loads(court.whole), option=orjson.OPT_INDENT_2)
    assert b"a line that is long" in text
    assert court.judge(text.replace(b"a line that is long", b"a line that was long")) == "refused"


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b" ",
        b"null",
        b"[]",
        b"{}",
        b"0",
        b'"weakfs-session"',
        b"\x00" * 4096,
        b"\xff\xfe{\x00}\x00",
        b"\xef\xbb\xbf{}",
        b"<html></html>",
        b"PK\x03\x04",
        b'{"format":"weakfs-session"}',
        b'{"format":"other","version":1}',
        b'{"format":["weakfs-session"],"version":1}',
        b'{"format":"weakfs-session","version":1}',
        b'{"format":"weakfs-session","version":1,"sha256":""}',
        b'{"format":"weakfs-session","version":1,"sha256":5}',
    ],
)
def test_a_file_that_is_not_a_session_is_refused(court: Court, data: bytes) -> None:
    assert court.judge(data) == "refused"


def test_a_missing_file_is_an_os_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"nothing\.json"):
        Session.load(tmp_path / "nothing.json")
    with pytest.raises(IsADirectoryError):
        Session.load(tmp_path)
