"""The recorded run over fsspec: the work, what went wrong, and that all of it is undone in another process."""

from __future__ import annotations

import pytest


@pytest.mark.exhaustive
def test_everything_is_undone_and_the_session_continues_in_another_process(capfd: pytest.CaptureFixture[str]) -> None:
    from examples.integrations.fsspec import main

    main()

    assert capfd.readouterr().out.splitlines() == [
        "failed: cannot copy '/out/none.csv': there is no such entry; list '/out' to see what is there",
        "left: out/all.csv raw/a.csv raw/c.csv",
        "left: nothing",
        "left: out/all.csv raw/a.csv raw/c.csv",
        "left: raw/a.csv raw/b.csv",
        "left: notes.md raw/a.csv raw/b.csv",
    ]
