"""Names that packages import when they are first used."""

from __future__ import annotations

import sys
from importlib import import_module

import pytest

from weakfs import backends
from weakfs.lazy_names import lazy_names


def test_a_name_is_loaded_from_its_module_and_cached() -> None:
    value_of, names = lazy_names("weakfs.backends", {"mock": "Call", "host_mount": "HostMount"})

    assert names() == ["Call", "HostMount"]
    assert value_of("Call") is sys.modules["weakfs.backends.mock"].Call
    assert vars(backends)["Call"] is value_of("Call")


def test_an_unknown_name_raises_attribute_error_with_the_name_of_the_package() -> None:
    value_of, _ = lazy_names("weakfs.backends", {"mock": "Call"})

    with pytest.raises(AttributeError, match=r"module 'weakfs\.backends' has no attribute 'Nothing'"):
        value_of("Nothing")


@pytest.mark.parametrize(
    "package",
    [
        "backends",
        "editing",
        "editing.patches",
        "filesystem",
        "processes",
        "processes.background",
        "reducers",
        "search",
        "session",
        "storage",
        "tools",
        "tools.handlers",
        "tools.permissions",
    ],
)
def test_all_names_are_found_and_none_is_also_a_module(package: str) -> None:
    module = import_module(f"weakfs.{package}")
    assert set(dir(module)) <= set(module.__all__)
    for name in module.__all__:
        assert not isinstance(getattr(module, name), type(sys)), name
