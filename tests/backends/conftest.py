"""An empty directory of the host, and a directory with a secret outside of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.models.house import House


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    root.mkdir()
    return root


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    """Create a directory with files outside of it, and check that these are unchanged at the end."""
    (tmp_path / "house").mkdir()
    house = House(tmp_path / "house")
    yield house
    assert house.outside() == house.before
