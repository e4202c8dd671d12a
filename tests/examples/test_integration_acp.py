"""The recorded run of an agent of the Agent Client Protocol: what went wrong, and that it is undone elsewhere."""

from __future__ import annotations

import pytest

from tests.examples.agent_work import lines_of_example


@pytest.mark.exhaustive
def test_everything_is_undone_and_the_session_continues_in_another_process() -> None:
    assert lines_of_example("acp") == [
        "left: README.md",
        "left: README.md docs/ports.md src/app.py",
        "port = 8000",
        "left: README.md src/app.py",
        "port = 80",
        "left: README.md notes.md src/app.py",
        "calls: port:ok docs:ok migration:error cleaning:ok notes:ok",
    ]
