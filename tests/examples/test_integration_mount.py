"""The recorded run in a mount: the work, what went wrong, and that all of it is undone in another process."""

from __future__ import annotations

import pytest

from tests.integrations.mount.conftest import fuse

__all__ = ["fuse"]


@pytest.mark.exhaustive
def test_everything_is_undone_and_the_session_continues_in_another_process(capfd: pytest.CaptureFixture[str]) -> None:
    from examples.integrations.mount import main

    main()

    assert capfd.readouterr().out.splitlines() == [
        "failed: echo broken > src/app.py && cat src/settings.py",
        "left: nothing",
        "left: docs/ports.md src/app.py",
        "log: all",
        "left: src/app.py",
        "left: notes.md src/app.py",
        "calls: ok ok ok error ok ok",
    ]
