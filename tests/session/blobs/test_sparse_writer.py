"""Files written with holes for blocks of zeros, and cut."""

from __future__ import annotations

import os
from pathlib import Path
from random import Random

from weakfs.session.blobs.sparse import BLOCK, SparseWriter


def test_what_is_written_and_cut_is_what_the_file_holds(tmp_path: Path) -> None:
    pieces = (b"", b"text", bytes(BLOCK), bytes(BLOCK) + b"after", b"before" + bytes(3 * BLOCK), b"x" * (BLOCK + 5))
    for seed in range(200):
        random, expected = Random(seed), b""
        descriptor = os.open(tmp_path / f"{seed}", os.O_RDWR | os.O_CREAT | os.O_EXCL)
        writer = SparseWriter(descriptor)
        for _ in range(random.randrange(8)):
            if random.random() < 0.3:
                expected = expected[: random.randrange(len(expected) + 1)]
                writer.cut(len(expected))
            else:
                piece = random.choice(pieces)
                writer.write(piece)
                expected += piece
            assert writer.offset == len(expected)
        writer.finish()
        os.close(descriptor)
        assert (tmp_path / f"{seed}").read_bytes() == expected
        (tmp_path / f"{seed}").unlink()
