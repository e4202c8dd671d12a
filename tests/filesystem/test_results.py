"""The results of a filesystem: frozen values that can be compared and printed, with exact times."""

from __future__ import annotations

import pickle
from copy import copy
from datetime import UTC, datetime, timedelta

import pytest
from attrs.exceptions import FrozenInstanceError

from weakfs import Session
from weakfs.backends import InMemoryFilesystem
from weakfs.filesystem import (
    FileStat,
    GlobMatch,
    GlobResult,
    GrepMatch,
    GrepResult,
    ReadResult,
    RestoreReport,
    Statistics,
)

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def stat(at: int, target: str | None = None) -> FileStat:
    return FileStat("/a", target is None, False, 3, at, at, 0o644, target)


MOMENTS = [0, 1_000, 1_700_000_000_123_456_000, 1_700_000_000_999_999_000, -1_000_000, 253_402_300_799_999_999_000]


@pytest.mark.parametrize("at", MOMENTS)
def test_times_are_aware_and_exact_to_the_microsecond(at: int) -> None:
    found = stat(at)
    assert found.modified_at == found.created_at == EPOCH + timedelta(microseconds=at // 1000)
    assert found.modified_at.tzinfo is UTC


def test_times_are_in_the_order_of_their_nanoseconds() -> None:
    moments = [1_700_000_000_000_000_000 + step * 137 for step in range(2000)]
    told = [stat(at).modified_at for at in moments]
    assert told == sorted(told)
    assert all(
        moment <= EPOCH + timedelta(microseconds=at / 1000 + 1) for moment, at in zip(told, moments, strict=True)
    )


def test_the_lines_of_a_file_that_is_read_whole_are_counted_like_others() -> None:
    fs = InMemoryFilesystem(Session())
    for text, lines in [("", 0), ("a", 1), ("a\n", 1), ("a\nb", 2), ("\n\n", 2)]:
        fs.write("/a", text)
        whole = ReadResult(text, "/a", lines, 0, None, False)
        assert fs.read("/a") == whole == pickle.loads(pickle.dumps(fs.read("/a")))
        assert hash(fs.read("/a")) == hash(whole)
        assert repr(fs.read("/a")) == repr(whole) == repr(copy(fs.read("/a")))
        assert fs.read("/a").total_lines == lines
    with pytest.raises(AttributeError, match="'ReadResult' object has no attribute 'lines'"):
        fs.read("/a").lines  # type: ignore[attr-defined]  # noqa: B018  # this is what must fail
    with pytest.raises(FrozenInstanceError):
        fs.read("/a").total_lines = 3  # type: ignore[misc]  # this too


def test_a_link_knows_its_target() -> None:
    assert stat(0, "b").is_symlink
    assert not stat(0).is_symlink


def test_results_are_sequences_that_equal_each_other_and_tuples_of_the_same_items() -> None:
    matches = [GlobMatch("/a", True), GlobMatch("/b", False)]
    found = GlobResult(matches, truncated=False)
    assert list(found) == matches
    assert (len(found), found[0], found[-1], found[:1]) == (2, matches[0], matches[1], (matches[0],))
    assert found == GlobResult(matches, truncated=False) == tuple(matches)
    assert hash(found) == hash(GlobResult(matches, truncated=False))
    assert found != GlobResult(matches, truncated=True)
    assert found != GlobResult(matches[:1], truncated=False)
    assert found != "other"
    assert matches[0] in found
    assert repr(GlobResult([], truncated=True)) == "GlobResult([], truncated=True)"


def test_a_grep_result_also_says_what_was_searched() -> None:
    match = GrepMatch("/a", 1, "line", 0, 2)
    found = GrepResult([match], truncated=True, files_searched=7, binary_skipped=2)
    assert (found.files_searched, found.binary_skipped, found.truncated, found[0]) == (7, 2, True, match)


def test_counts_of_statistics_and_reports_add_up() -> None:
    assert Statistics(10, 3, 2).node_count == 5
    assert RestoreReport("s", ("/a", "/b"), ("/c",), dry_run=True).changed == 3


def test_results_cannot_be_changed() -> None:
    for value, name in ((stat(0), "path"), (Statistics(1, 1, 1), "total_size"), (GlobMatch("/a", True), "path")):
        with pytest.raises(FrozenInstanceError):
            setattr(value, name, "x")


def test_the_repr_of_a_snapshot_shows_neither_files_nor_addresses() -> None:
    fs = InMemoryFilesystem(Session(session_id="s", clock=lambda: 5))
    fs.write("/secret", "content")
    shown = repr(fs.snapshot("tag"))
    assert "secret" not in shown
    assert shown == repr(fs.snapshot("tag")).replace("files2", "files1")
