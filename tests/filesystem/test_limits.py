"""Limits: presets, allowed values, and the exact boundary of each one."""

from __future__ import annotations

from errno import EDQUOT, EFBIG, ENAMETOOLONG
from typing import Any

import pytest
from attrs import asdict, fields
from attrs.exceptions import FrozenInstanceError

from weakfs.filesystem import Limits
from weakfs.reducers.tree import name_escaping as names

MIB = 1 << 20


def test_the_presets_match_the_specification() -> None:
    assert asdict(Limits()) == {
        "max_file_size": 32 * MIB,
        "max_path_depth": 64,
        "max_segment_length": 255,
        "default_read_limit": None,
        "max_grep_matches": 1000,
        "max_total_size": None,
        "max_node_count": None,
    }
    tools = {"default_read_limit": 2000, "max_grep_matches": 100, "max_node_count": 1_000_000}
    assert asdict(Limits.tools()) == {**asdict(Limits()), **tools}
    assert asdict(Limits.strict()) == {
        "max_file_size": 48_000,
        "max_path_depth": 16,
        "max_segment_length": 80,
        "default_read_limit": 2000,
        "max_grep_matches": 1000,
        "max_total_size": None,
        "max_node_count": None,
    }


def test_the_limits_for_files_do_not_cut_answers_and_keep_all_other_limits() -> None:
    strict = Limits.strict().for_files()

    assert strict == Limits(max_file_size=48_000, max_path_depth=16, max_segment_length=80, max_grep_matches=None)


NAMES = [field.name for field in fields(Limits)]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("value", [-1, 1.5, "5", True, object()])
def test_a_limit_is_a_nonnegative_integer_or_none(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"{name} is .*; use a whole number of 0 or more, or None for no limit"):
        Limits(**{name: value})


@pytest.mark.parametrize("name", NAMES)
def test_zero_and_none_are_accepted_and_limits_are_immutable(name: str) -> None:
    values: dict[str, Any] = {name: 0}
    assert getattr(Limits(**values), name) == 0
    values[name] = None
    limits = Limits(**values)
    assert getattr(limits, name) is None
    with pytest.raises(FrozenInstanceError):
        setattr(limits, name, 5)


def test_a_file_may_be_as_large_as_the_limit() -> None:
    limits = Limits(max_file_size=10)
    limits.check_size("/a", 10)
    with pytest.raises(OSError, match="would be 11 bytes and the limit for a file is 10") as caught:
        limits.check_size("/a", 11)
    assert caught.value.errno == EFBIG
    Limits(max_file_size=None).check_size("/a", 1 << 60)


@pytest.mark.parametrize("name", ["abcd", "\u00e9\u00e9", "\U0001f600", "a\u00e9b"])
def test_a_name_may_have_as_many_bytes_as_the_limit(name: str) -> None:
    limits = Limits(max_segment_length=4)
    limits.check_path(f"/{name}", (name,))
    for longer in (name + "x", "x" + name):
        with pytest.raises(OSError, match="is 5 bytes long and 4 are allowed") as caught:
            limits.check_path(f"/d/{longer}", ("d", longer))
        assert caught.value.errno == ENAMETOOLONG
    Limits(max_segment_length=None).check_path(f"/{name * 999}", (name * 999,))


@pytest.mark.parametrize("raw", [b"\xff" * 255, b"\\" * 255, b"caf\xe9" * 63])
def test_the_length_of_a_name_is_that_of_its_bytes_on_a_host(raw: bytes) -> None:
    name = names.from_bytes(raw)
    Limits().check_path(f"/{name}", (name,))
    with pytest.raises(OSError, match="are allowed"):
        Limits().check_path(f"/{name}1234", (f"{name}1234",))


def test_a_path_may_be_as_deep_as_the_limit() -> None:
    limits = Limits(max_path_depth=2)
    limits.check_path("/a/b", ("a", "b"))
    with pytest.raises(OSError, match="3 segments deep and 2 are allowed") as caught:
        limits.check_path("/a/b/c", ("a", "b", "c"))
    assert caught.value.errno == ENAMETOOLONG
    Limits(max_path_depth=None).check_path("/d" * 5000, ("d",) * 5000)


def test_a_message_about_an_endless_path_is_short() -> None:
    with pytest.raises(OSError, match="are allowed") as caught:
        Limits().check_path("/d" * 50_000, ("d",) * 50_000)
    assert len(str(caught.value)) < 400


def quota(limits: Limits, *, size: int = 0, more_size: int = 0, nodes: int = 0, more_nodes: int = 0) -> None:
    limits.check_quota("/a", size=size, more_size=more_size, nodes=nodes, more_nodes=more_nodes)


def test_a_quota_may_be_reached_but_not_exceeded() -> None:
    limits = Limits(max_total_size=100, max_node_count=10)
    quota(limits, size=60, more_size=40, nodes=9, more_nodes=1)
    for more in ({"size": 60, "more_size": 41}, {"nodes": 9, "more_nodes": 2}):
        with pytest.raises(OSError, match="are allowed; delete something first") as caught:
            quota(limits, **more)
        assert caught.value.errno == EDQUOT


def test_changes_that_do_not_increase_usage_are_never_refused() -> None:
    limits = Limits(max_total_size=100, max_node_count=10)
    quota(limits, size=500, more_size=0, nodes=50, more_nodes=0)
    quota(limits, size=500, more_size=-1, nodes=50, more_nodes=-1)
