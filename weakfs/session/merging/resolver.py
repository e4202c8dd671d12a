"""Resolving the conflicts of a merge by the caller's choices, and collecting those that remain."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any, cast

from weakfs.session.conflicts.conflict_types import (
    CHOICES,
    Choice,
    ConflictEntry,
    MergedPath,
    MergeReport,
    OnConflict,
    Resolution,
)

# Compiles a path or glob to a test of paths.
Matcher = Callable[[str], Callable[[str], bool]]
# The resolutions, in the form in which a `Merged` record holds them.
Answers = tuple[tuple[str, str, str, str, "bytes | None"], ...]


def same_path(path: str) -> Callable[[str], bool]:
    """Return a test for one path: how the keys of a mapping are matched where globs are not supported."""
    return lambda other: other == path


class Resolver:
    """Answers a merge's questions about conflicts.

    `conflicts` are the conflicts without an answer; `changes` lists what the merge would change.

    Raises `ValueError` for an invalid choice.
    """

    def __init__(
        self, on_conflict: OnConflict = "raise", matcher: Matcher = same_path, *, wants_changes: bool = False
    ) -> None:
        self.conflicts: list[ConflictEntry] = []
        self.changes: list[MergedPath] = []
        # Whether the merge functions have to list what they change.
        self.wants_changes = wants_changes
        self._asked: dict[tuple[str, str, str], Choice | Resolution] = {}
        self._rules: list[tuple[Callable[[str], bool], Any]] = []
        if isinstance(on_conflict, Mapping):
            self._rules = [(matcher(key), _checked(value)) for key, value in on_conflict.items()]
        elif isinstance(on_conflict, Resolution):
            raise ValueError(
                "cannot resolve all conflicts with the same contents; pass a mapping from paths to resolutions"
            )
        elif on_conflict != "raise":
            self._rules = [(lambda path: True, _checked(on_conflict))]

    def resolve(
        self, entry: ConflictEntry, *, has_markers: bool = False, has_content: bool = False
    ) -> Choice | Resolution:
        """Return how to resolve a conflict; `"raise"` if it remains. In that case it is added to `conflicts`.

        The answer is the same if this is called again. `"markers"` cannot resolve an entry without lines to mark
        (`has_markers`), and a `Resolution` cannot resolve one without contents (`has_content`): it then remains in
        conflict.
        """
        key = (entry.slice, entry.path, entry.kind)
        found = self._asked.get(key)
        if found is None:
            found = self._answer(entry)
            if (found == "markers" and not has_markers) or (isinstance(found, Resolution) and not has_content):
                found = "raise"
            self._asked[key] = found
            if found == "raise":
                self.conflicts.append(entry)
        return found

    def answers(self) -> Answers | None:
        """Return the answers to the resolved conflicts, for the record of the merge."""
        if not self._asked:
            return None
        found = [
            (*key, "content", answer.content.encode() if isinstance(answer.content, str) else answer.content)
            if isinstance(answer, Resolution)
            else (*key, answer, None)
            for key, answer in self._asked.items()
            if answer != "raise"
        ]
        return tuple(sorted(found)) or None

    @classmethod
    def repeating(cls, answers: Answers | None) -> Resolver:
        """Return a resolver that gives the answers of a recorded merge."""
        resolver = cls()
        for slice_, path, kind, answer, content in answers or ():
            known = Resolution(content) if answer == "content" else _checked(answer)
            resolver._asked[slice_, path, kind] = known
        return resolver

    def report(self) -> MergeReport:
        """Return what the merge would change, and what would remain in conflict."""
        return MergeReport(tuple(self.changes), self.sorted_conflicts())

    def sorted_conflicts(self) -> tuple[ConflictEntry, ...]:
        """Return the remaining conflicts, sorted by path."""
        return tuple(sorted(self.conflicts, key=attrgetter("path", "kind")))

    def remains(self, entry: ConflictEntry) -> None:
        """Add a conflict that remains after another one was resolved."""
        if (entry.slice, entry.path, entry.kind) not in self._asked:
            self._asked[entry.slice, entry.path, entry.kind] = "raise"
            self.conflicts.append(entry)

    def _answer(self, entry: ConflictEntry) -> Choice | Resolution:
        for matches, rule in self._rules:
            if any(map(matches, entry.paths)):
                answer = _checked(rule(entry)) if callable(rule) else rule
                if callable(answer):
                    raise ValueError("on_conflict returned a function; return a choice or a Resolution")
                return cast("Choice | Resolution", answer)
        return "raise"


def _checked(choice: Any) -> Any:
    if callable(choice) or isinstance(choice, Resolution) or choice in CHOICES:
        return choice
    raise ValueError(
        f"cannot resolve conflicts with {choice!r:.60}; pass 'raise', 'ours', 'theirs', 'markers', a mapping from "
        f"paths to one of these or a Resolution, or a function that returns one"
    )
