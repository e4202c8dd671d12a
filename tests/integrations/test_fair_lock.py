"""Turns of threads and tasks."""

from __future__ import annotations

from concurrent.futures import Future

import pytest

from weakfs.integrations.fair_lock import Turns


def test_a_thread_that_is_interrupted_while_it_waits_gets_no_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(self: object, timeout: float | None = None) -> None:
        raise KeyboardInterrupt

    turns = Turns()
    with turns.turn(), monkeypatch.context() as patched:
        patched.setattr(Future, "result", interrupt)
        with pytest.raises(KeyboardInterrupt), turns.turn():
            raise AssertionError
    # Otherwise nobody would get a turn again.
    assert turns._asked().done()
