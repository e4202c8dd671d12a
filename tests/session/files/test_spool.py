"""The parts of a document that are serialized by themselves: the text is the same, and no piece of it is long."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import patch

import orjson
from hypothesis import given
from hypothesis import strategies as st

from weakfs import InMemoryFilesystem, Session
from weakfs.filesystem import Limits
from weakfs.session.codec.encoder import AS_IT_IS
from weakfs.session.files import spool
from weakfs.session.files.spool import LONG, pieces_of

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
BLOBS = st.lists(
    TEXT
    | st.builds(lambda text: {"base64": text}, TEXT)
    | st.builds(lambda text: {"parent": 1, "tail": text}, TEXT)
    | st.builds(lambda text: {"parent": 1, "tail": {"base64": text}}, TEXT),
    max_size=8,
)


@given(BLOBS, st.integers(1, 8), st.integers(1, 5))
def test_the_pieces_of_a_text_add_up_to_the_whole(blobs: list[object], long: int, batch: int) -> None:
    with patch.object(spool, "LONG", long), patch.object(spool, "BATCH", batch):
        pieces = list(pieces_of(blobs))
    assert b"".join(pieces) == orjson.dumps(blobs, option=AS_IT_IS)


def test_large_contents_are_saved_in_short_pieces(tmp_path: Path) -> None:
    session = Session()
    files = InMemoryFilesystem(session, limits=Limits(max_file_size=None))
    zeros, other = bytes(5 * LONG), b"\xff" * (5 * LONG)
    files.write_bytes("/zeros", zeros)
    files.write_bytes("/other", other)
    files.write_bytes("/other", other + bytes(2 * LONG))
    longest = 0

    class Orjson:
        dumps = staticmethod(lambda value, **options: measured(value, **options))

    def measured(value: object, **options: int) -> bytes:
        nonlocal longest
        text = orjson.dumps(value, **options)  # type: ignore[arg-type]  # handed on
        longest = max(longest, len(text))
        return text

    with patch.object(spool, "orjson", Orjson):
        session.save(tmp_path / "s.json")

    # An escaped character takes up six characters.
    assert longest <= 6 * LONG + 2
    loaded = InMemoryFilesystem(Session.load(tmp_path / "s.json"))
    assert loaded.read_bytes("/zeros").content == zeros
    assert loaded.read_bytes("/other").content == other + bytes(2 * LONG)
