"""A project with the hooks of Claude Code."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integrations.claude_code.claude import Claude


@pytest.fixture
def claude(tmp_path: Path) -> Iterator[Claude]:
    made = Claude.in_directory(tmp_path)
    yield made
    made.end()
