"""The directory that agents work in."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.examples.agent_work import APP, UTIL


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    root.mkdir()
    (root / "app.py").write_text(APP)
    (root / "util.py").write_text(UTIL)
    return root
