"""What `GlobPattern.covers` remembers of the directories that it was asked about."""

from __future__ import annotations

import pytest

from weakfs.search import GlobPattern, GlobState, glob


def test_a_directory_is_matched_once_for_all_names_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    entered: list[str] = []
    enter = GlobState.enter

    def counted(state: GlobState, name: str) -> GlobState | None:
        entered.append(name)
        return enter(state, name)

    monkeypatch.setattr(GlobState, "enter", counted)
    pattern = GlobPattern("/secrets", "*.key", hidden=True)

    assert [pattern.covers(f"/a/b/{name}") for name in ("x.txt", "y.key", ".z.key", "x.txt")] == [
        False,
        True,
        True,
        False,
    ]
    assert entered == ["a", "b"]


def test_the_number_of_remembered_directories_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(glob, "MAX_KEPT_STATES", 3)
    pattern = GlobPattern("/a3", "*.key", hidden=True)

    for _ in range(2):
        for number in range(8):
            assert pattern.covers(f"/a{number}/x") == (number == 3)
            assert pattern.covers(f"/a{number}/x.key")
            assert len(pattern._covering) <= 3
