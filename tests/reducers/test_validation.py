"""What the fields of events must hold when they come from a file."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.sampling import share
from weakfs.filesystem import normalize
from weakfs.reducers.validation import CanonicalPath, check_mode, check_target

T = TypeVar("T")

PARTS = st.sampled_from(
    ["/", "//", "a", "b c", ".", "..", "...", "/.", "/..", "\0", "\n", "", "\u00e9", "\uf741", "\\", "\udc80"]
)
PATHS = st.lists(PARTS, max_size=5).map("".join)


def passes(check: Callable[[T], None], value: T) -> bool:
    try:
        check(value)
    except ValueError:
        return False
    return True


@pytest.mark.parametrize("below", [True, False])
@settings(deadline=None, derandomize=True, max_examples=share(500))
@given(st.lists(PATHS, max_size=5))
def test_many_paths_are_checked_as_if_one_by_one(below: bool, paths: list[str]) -> None:
    rule = CanonicalPath(below=below)
    assert passes(rule.check_all, paths) == all(passes(rule, path) for path in paths)


@settings(deadline=None, derandomize=True, max_examples=share(500))
@given(PATHS | st.text(max_size=6).map(lambda text: "/" + text))
def test_a_path_is_valid_if_normalize_returns_it_unchanged(path: str) -> None:
    canonical = False
    try:
        canonical = normalize(path) == path
    except (ValueError, OSError):
        canonical = False
    assert passes(CanonicalPath(below=False), path) == canonical


def test_the_root_is_valid_where_it_is_allowed() -> None:
    CanonicalPath(below=False)("/")
    with pytest.raises(ValueError, match="not a canonical path"):
        CanonicalPath(below=True)("/")


@pytest.mark.parametrize("mode", [None, 0, 0o644, 0o7777])
def test_permission_bits_are_valid(mode: int | None) -> None:
    check_mode(mode)


@pytest.mark.parametrize("mode", [-1, 0o10000, 1 << 70])
def test_invalid_permission_bits_are_refused(mode: int) -> None:
    with pytest.raises(ValueError, match="not a set of permission bits"):
        check_mode(mode)


def test_the_target_of_a_link_must_not_be_empty() -> None:
    check_target("../anything \n at all")
    for target in ("", "a\0b"):
        with pytest.raises(ValueError, match="cannot be the target of a link"):
            check_target(target)
