"""The pieces in which two contents differ: what a record stores of an edit."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from weakfs import InMemoryFilesystem, Session
from weakfs.editing import apply_patch
from weakfs.editing.patches.change_order import pieces_between
from weakfs.editing.patches.document import Document
from weakfs.filesystem import ReadBytesResult

# Only a few letters, so that the beginnings and ends often match.
texts = st.text("ab", max_size=12).map(str.encode)


@given(texts, texts, st.integers(0, 9), st.integers(0, 9))
@example(b"a", b"b", 0, 3)
@example(b"aab", b"ab", 5, 6)
def test_a_piece_begins_and_ends_where_the_contents_differ(old: bytes, new: bytes, before: int, behind: int) -> None:
    # Long enough that a record of the difference is smaller than the content.
    held, made = (b"x" * 100 + b"a" * before + text + b"b" * behind for text in (old, new))
    pieces = pieces_between(held, made)
    if held == made:
        assert pieces == ()
        return
    assert pieces is not None
    ((start, stop, inserted),) = pieces
    assert held[:start] + inserted + held[stop:] == made
    removed = held[start:stop]
    assert not removed or not inserted or (removed[0] != inserted[0] and removed[-1] != inserted[-1])


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
@pytest.mark.parametrize("seed", range(30))
def test_a_document_changed_once_yields_a_piece_for_each_run_of_whole_lines(seed: int, ending: str) -> None:
    random = Random(seed)
    lines = random.choices(("", "a", "\xe4\xf6", "\U0001f40d" * 3, "a long line " * 9), k=random.randint(3, 40))
    text = "\ufeff" * (seed % 2) + ending.join(lines) + ending * random.randint(0, 1)
    document = Document(text)
    cuts = sorted(random.sample(range(len(document.lines) + 1), k=2 * random.randint(1, 4 if len(lines) > 8 else 1)))
    inserted = "new" + ending.removesuffix("\n")
    runs = [(start, stop, [inserted] * random.randint(0, 2)) for start, stop in zip(cuts[::2], cuts[1::2], strict=True)]
    held = text.encode()

    document.replace(runs)
    made = document.text().encode()
    pieces = pieces_between(held, made, document)

    if pieces is None:
        return
    # Without a line break at the end, the pieces of the last line are not known.
    if text.endswith("\n"):
        assert len(pieces) == len(runs)
        assert all(at in (0, 3, len(held)) or held[at - 1 : at] == b"\n" for piece in pieces for at in piece[:2])
    for start, stop, content in reversed(pieces):
        held = held[:start] + content + held[stop:]
    assert held == made


def test_a_patch_reads_a_file_to_change_it_and_to_find_the_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    read_bytes = InMemoryFilesystem.read_bytes

    def counted(fs: InMemoryFilesystem, path: str, *, offset: int = 0, limit: int | None = None) -> ReadBytesResult:
        read.append(path)
        return read_bytes(fs, path, offset=offset, limit=limit)

    monkeypatch.setattr(InMemoryFilesystem, "read_bytes", counted)
    fs = InMemoryFilesystem(Session())
    fs.write("/a.txt", "one\ntwo\n")

    apply_patch(fs, "*** Begin Patch\n*** Update File: /a.txt\n@@\n-one\n+new\n two\n*** End Patch\n")

    assert read == ["/a.txt", "/a.txt"]
    assert fs.read("/a.txt").content == "new\ntwo\n"
