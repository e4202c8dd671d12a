"""The recorded run of Claude Code: the work, what went wrong, undoing it, and continuing in another process."""

from __future__ import annotations

import pytest


@pytest.mark.exhaustive
def test_everything_is_undone_and_the_session_continues_in_another_process(capfd: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("claude_agent_sdk")
    from examples.integrations.claude_agent import main

    main()

    assert capfd.readouterr().out.splitlines() == [
        "failed: cat: src/settings.py: No such file or directory",
        "Edit: ok",
        "Write: ok",
        "Bash: error",
        "Bash: ok",
        "left: nothing",
        "left: docs/ports.md src/app.py",
        "left: src/app.py",
        "Write: ok",
        "left: notes.md src/app.py",
        "calls: Edit Write Bash Bash Write",
    ]
