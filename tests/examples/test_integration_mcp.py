"""The recorded run over MCP: the work, what went wrong, and that all of it is undone in another process."""

from __future__ import annotations

import pytest


@pytest.mark.exhaustive
def test_everything_is_undone_and_the_session_continues_in_another_process(capfd: pytest.CaptureFixture[str]) -> None:
    from examples.integrations.mcp import main

    main()

    printed = capfd.readouterr().out.splitlines()
    assert [line for line in printed if line.startswith(("left", "calls"))] == [
        "left: nothing",
        "left: docs/ports.md src/app.py",
        "left: src/app.py",
        "calls: snapshot edit_file write_file edit_file shell undo restore write_file",
    ]
    assert sum(": failed: " in line for line in printed) == 1
