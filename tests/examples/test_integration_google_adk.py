"""The recorded run with Google's ADK: the work, what went wrong, the rewind, and continuing in another process."""

from __future__ import annotations

import pytest

from tests.examples.agent_work import lines_of_example


@pytest.mark.exhaustive
def test_everything_is_undone_and_the_session_continues_in_another_process() -> None:
    printed = lines_of_example("google_adk")
    assert [line for line in printed if line.startswith(("left", "calls"))] == [
        "left: nothing",
        "left: /src/app.py",
        "left: /docs/ports.md /src/app.py",
        "left: /docs/ports.md /notes.md /src/app.py",
        "calls: read_file write_file write_file read_file execute write_file",
    ]
    assert sum("'status': 'error'" in line for line in printed) == 1
