"""The recorded run of Claude Code with installed hooks: the work, what went wrong, undoing it, and continuing."""

from __future__ import annotations

import pytest


@pytest.mark.exhaustive
def test_everything_is_undone_and_the_session_continues_in_another_process(capfd: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("claude_agent_sdk")
    from examples.integrations.claude_code import main

    main()

    assert capfd.readouterr().out.splitlines() == [
        "left: nothing",
        "left: docs/ports.md src/app.py",
        "left: docs/ports.md src/app.py",
        "left: docs/ports.md src/app.py",
        "left: src/app.py",
        "left: notes.md src/app.py",
        "calls: Write Bash Bash Bash Write",
    ]
