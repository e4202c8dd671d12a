"""The kinds of files that undo works on."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.session.undo.desk import Desk, in_memory, on_host, over_lower


@pytest.fixture(params=["memory", "host", "overlay"])
def desk(request: pytest.FixtureRequest, tmp_path: Path) -> Desk:
    """A new session on each kind of files."""
    if request.param == "host":
        return on_host(tmp_path)
    return over_lower() if request.param == "overlay" else in_memory()
