"""The recorded run with pydantic-ai: the work, what went wrong, and that all of it is undone in another process."""

from __future__ import annotations

import pytest

from tests.examples.agent_work import lines_of_example


@pytest.mark.exhaustive
def test_everything_is_undone_and_the_session_continues_in_another_process() -> None:
    # In a separate process: `run_sync` leaves open the event loop that it creates.
    printed = lines_of_example("pydantic_ai")
    assert sorted(line for line in printed if line.startswith(("left", "calls"))) == [
        "calls: edit_file write_file edit_file shell write_file",
        "left: /docs/ports.md /src/app.py",
        "left: /notes.md /src/app.py",
        "left: /src/app.py",
        "left: nothing",
    ]
    assert sum(": failed: " in line for line in printed) == 1
