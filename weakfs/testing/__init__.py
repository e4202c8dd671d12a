"""Tools for testing backends and tool handlers.

The conformance suites need the extra `testing` (pytest), which is imported on first access.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING

from .context import make_stub_context

if TYPE_CHECKING:
    from .conformance import FilesystemConformance, Prepare, refused
    from .storage_conformance import (
        FAULTS,
        AsyncEventStoreConformance,
        AsyncStorageConformance,
        EventStoreConformance,
        Fault,
        FaultyStorage,
        StorageConformance,
    )

__all__ = [
    "FAULTS",
    "AsyncEventStoreConformance",
    "AsyncStorageConformance",
    "EventStoreConformance",
    "Fault",
    "FaultyStorage",
    "FilesystemConformance",
    "Prepare",
    "StorageConformance",
    "make_stub_context",
    "refused",
]

_FILESYSTEMS = {"FilesystemConformance", "Prepare", "refused"}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}; it has {', '.join(__all__)}")
    try:
        import pytest
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"cannot import {name}: the package pytest is not installed; run: pip install 'weakfs[testing]'",
            name="pytest",
        ) from error

    module = f"{__name__}.{'conformance' if name in _FILESYSTEMS else 'storage_conformance'}"
    # pytest rewrites only test modules: without this, a failing case would report `AssertionError` and nothing else.
    if module not in sys.modules:
        pytest.register_assert_rewrite(module)
    return getattr(importlib.import_module(module), name)


def __dir__() -> list[str]:
    return sorted(__all__)
