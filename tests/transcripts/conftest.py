"""Performing recorded sessions, for the tests of every program."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.transcripts.imported import Import


@pytest.fixture
def imported(tmp_path: Path) -> Import:
    return Import(tmp_path)
