"""The recorded run with Anthropic's SDK: the work, what went wrong, and that it is undone in another process."""

from __future__ import annotations

import pytest


@pytest.mark.exhaustive
def test_everything_is_undone_and_the_session_continues_in_another_process(capfd: pytest.CaptureFixture[str]) -> None:
    from examples.integrations.anthropic import main

    main()

    printed = capfd.readouterr().out.splitlines()
    assert sorted(line for line in printed if line.startswith(("left", "calls"))) == [
        'calls: ["edit_file", "memory", "edit_file", "shell", "memory"]',
        "left: /memories/a.md /src/app.py",
        "left: /memories/ports.md /src/app.py",
        "left: /src/app.py",
        "left: nothing",
    ]
    assert sum(": failed: " in line for line in printed) == 1
