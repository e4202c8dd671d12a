"""The recorded run with the OpenAI Agents SDK: the work, what went wrong, and continuing in another process."""

from __future__ import annotations

import pytest

from tests.examples.agent_work import lines_of_example


@pytest.mark.exhaustive
def test_everything_is_undone_and_the_session_continues_in_another_process() -> None:
    printed = lines_of_example("openai_agents")
    assert [line for line in printed if line.startswith(("left", "calls"))] == [
        "left: nothing",
        "left: /docs/ports.md /src/app.py",
        "left: /src/app.py",
        "left: /notes.md /src/app.py",
        "calls: apply_patch:ok write_file:ok apply_patch:reject shell:ok write_file:ok",
    ]
