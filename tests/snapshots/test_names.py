"""The host's bytes for the names of a path."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import example, given
from hypothesis import strategies as st

from weakfs.snapshots.directory.entries import host_bytes, host_path

NAMES = st.text(st.sampled_from("ab./\\\0é\ud800\udcff\uf700\uf72f\uf741\uf7ff"), max_size=4)


def result_of(work: Callable[[], list[bytes]]) -> list[bytes] | str:
    try:
        return work()
    except ValueError as error:
        return str(error)


@given(st.lists(NAMES, max_size=5))
@example(["a/b"])
@example(["a", ""])
@example(["..", "a"])
@example(["\ud83d", "\ude00"])
@example(["\uf72e"])
def test_a_path_has_the_bytes_of_its_names(segments: list[str]) -> None:
    assert result_of(lambda: host_path(segments)) == result_of(lambda: [host_bytes(name) for name in segments])
