"""The recorded run of a deep agent: the work, what went wrong, and that all of it is undone in another process."""

from __future__ import annotations

import pytest

from weakfs.processes import Bubblewrap


@pytest.mark.exhaustive
@pytest.mark.skipif(Bubblewrap().problem() is not None, reason="there is no sandbox")
def test_everything_is_undone_and_the_session_continues_in_another_process(capfd: pytest.CaptureFixture[str]) -> None:
    from examples.integrations.deepagents import main

    main()

    printed = capfd.readouterr().out.splitlines()
    assert [line for line in printed if line.startswith(("left", "restored", "calls", "execute"))] == [
        "execute: port = 8000",
        "left: nothing",
        "calls: edit:ok write:ok edit:error execute:ok",
        "restored: src/app.py",
        "left: notes.md src/app.py",
        "calls: edit:ok write:ok edit:error execute:ok write:ok",
    ]
