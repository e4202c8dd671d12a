"""Annotated texts: what each change does to the origins, compared with a plain list of lines."""

from __future__ import annotations

from array import array
from random import Random

import pytest

from weakfs.history.blame import annotated_text
from weakfs.history.blame.annotated_text import NOWHERE, AnnotatedText
from weakfs.reducers.merging import line_merge
from weakfs.reducers.merging.line_merge import TooMuchWork, matches, split_lines


@pytest.fixture(params=[1, 16, 4096])
def block(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(annotated_text, "BLOCK", request.param)
    monkeypatch.setattr(annotated_text, "SPREAD", 1)


def text(random: Random, most: int) -> bytes:
    return b"".join(random.choice((b"a\n", b"b\n", b"\n", b"ccc\r\n", b"d")) for _ in range(random.randint(0, most)))


def compared(old: list[bytes], new: list[bytes], origins: list[int], origin: int) -> list[int]:
    found = [origin] * len(new)
    for i, j, length in matches(old, new):
        found[j : j + length] = origins[i : i + length]
    return found


def replaced(data: bytes, origins: list[int], start: int, stop: int, content: bytes, origin: int) -> list[int]:
    """Return the origins after a range of bytes was replaced: only the lines that it touches are compared."""
    low = data.rfind(b"\n", 0, start) + 1
    high = stop
    joined = data[low:start] + content
    if (joined and not joined.endswith(b"\n")) or (stop and data[stop - 1 : stop] != b"\n"):
        high = data.find(b"\n", stop) + 1 or len(data)
    first, last = len(split_lines(data[:low])), len(split_lines(data[:high]))
    middle = compared(split_lines(data[low:high]), split_lines(joined + data[stop:high]), origins[first:last], origin)
    return origins[:first] + middle + origins[last:]


@pytest.mark.usefixtures("block")
@pytest.mark.parametrize("seed", range(800))
def test_changes_give_the_same_origins_as_a_plain_list_of_lines(seed: int) -> None:
    random = Random(seed)
    data = text(random, 30)
    origins = [0] * len(split_lines(data))
    annotated = AnnotatedText.put_in(data, 0)
    for origin in range(1, 8):
        start = random.randint(0, len(data))
        stop = random.randint(start, min(len(data), start + random.choice((0, 4, 40))))
        content = text(random, 3)
        new = data[:start] + content + data[stop:]
        if random.random() < 0.5:
            origins = replaced(data, origins, start, stop, content, origin)
            annotated = annotated.spliced([(start, stop, content)], origin)
        else:
            new = text(random, 30) if random.random() < 0.3 else new
            origins = compared(split_lines(data), split_lines(new), origins, origin)
            annotated = annotated.replaced(new, origin)
        data = new
        assert annotated.holds(data)
        assert (annotated.data, [*annotated.origins]) == (data, origins)


def test_lines_of_unknown_origin_are_taken_from_another_text() -> None:
    other = AnnotatedText.of(b"b\nc\n", array("q", [5, 6]))
    found = AnnotatedText.put_in(b"a\n", 1).replaced(b"a\nb\nd\n", NOWHERE).completed(other)
    assert [*found.origins] == [1, 5, NOWHERE]
    assert [*found.settled(9).origins] == [1, 5, 9]
    assert [*found.settled(9).traced(AnnotatedText.put_in(b"d\n", 2), 9).origins] == [1, 5, 2]


def test_texts_that_differ_too_much_share_only_their_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **options: object) -> None:
        raise TooMuchWork

    monkeypatch.setattr(line_merge, "matches", refuse)
    found = AnnotatedText.put_in(b"a\nb\nc\nd\n", 0).replaced(b"a\nx\nc\ny\nd\n", 1)
    assert [*found.origins] == [0, 1, 1, 1, 0]
