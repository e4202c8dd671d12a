"""Finding contents: the index of a segment, and the filters of many."""

from __future__ import annotations

import os
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weakfs.storage.folder.files import Descriptor
from weakfs.storage.folder.journal.index import Filters, Index, Summary, encode_index, read_index

pytestmark = pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="needs memfd_create")

SALT = b"s" * 16


def index_of(rows: list[tuple[int, int]], path: Path) -> Index:
    path.write_bytes(encode_index(Summary(SALT, 0, 0, 0, 0, 0, 0, 0), [], rows))
    index = read_index(Descriptor(os.open(path, os.O_RDONLY)), SALT, 0)
    assert index is not None
    return index


@pytest.mark.parametrize("bits", [64, 60, 20], ids=["as digests", "in part of the range", "in a corner of it"])
@pytest.mark.parametrize("count", [1, 2, 40, 3000])
def test_an_index_finds_every_key_wherever_keys_are(count: int, bits: int, tmp_path: Path) -> None:
    dice = Random(count)
    rows = [(dice.getrandbits(bits), offset) for offset in range(1, count + 1)]
    rows += [(key, offset + count) for key, offset in rows[: count // 3]]
    expected: dict[int, list[int]] = {}
    for key, offset in rows:
        expected.setdefault(key, []).append(offset)
    index = index_of(rows, tmp_path / "index")
    for key in [*list(expected)[:500], *(dice.getrandbits(bits) for _ in range(100))]:
        assert index.offsets(key) == expected.get(key, [])


@given(st.lists(st.lists(st.integers(0, 2**64 - 1), max_size=12), max_size=20), st.integers(0, 2**64 - 1))
def test_filters_together_find_what_each_of_them_finds(segments: list[list[int]], other: int) -> None:
    filters, each = Filters(), {}
    for sequence, keys in enumerate(segments, 1):
        # Of two sizes.
        rows = [(key, 1) for key in keys] + [(key, 1) for key in range(50 * (sequence % 2))]
        data = encode_index(Summary(SALT, 0, 0, 0, 0, 0, 0, 0), [], rows)
        file = os.memfd_create("index")
        os.write(file, data)
        index = read_index(Descriptor(file), SALT, 0)
        assert index is not None
        each[sequence] = index.filter
        filters.add(sequence, index.filter)
    for key in [other, *(key for keys in segments for key in keys)]:
        assert filters.may_have(key) == [own for own in sorted(each, reverse=True) if each[own].may_have(key)]
