"""An external filesystem in a dict, which journals its changes and can be made to fail."""

from __future__ import annotations

from collections.abc import Mapping
from errno import ENOSPC

from attrs import frozen


@frozen
class FakeSnapshot:
    """The files of one `FakeExternal` at one moment."""

    filesystem_id: str
    files: Mapping[str, str]
    tag: str | None


class FakeJournal:
    """What was there before each path was changed."""

    def __init__(self, external: FakeExternal) -> None:
        self.external = external
        self.before: dict[str, str | None] = {}
        self.undone = 0
        self.closed = False

    def note(self, path: str) -> None:
        """Remember what a path holds, the first time that it is changed."""
        self.before.setdefault(path, self.external.files.get(path))

    def undo(self) -> None:
        """Put back what was changed."""
        self.external.fail_if_told("undo")
        for path, content in self.before.items():
            if content is None:
                self.external.files.pop(path, None)
            else:
                self.external.files[path] = content
        self.undone += 1
        self._end()

    def close(self) -> None:
        """Keep what was changed."""
        self.external.fail_if_told("close")
        self.closed = True
        self._end()

    def _end(self) -> None:
        if self in self.external.journals:
            self.external.journals.remove(self)


class FakeExternal:
    """Files by path. `fail("undo")` makes the next undo fail as on a full disk; `calls` lists all calls."""

    def __init__(self, filesystem_id: str = "disk", files: Mapping[str, str] | None = None) -> None:
        self.filesystem_id = filesystem_id
        self.files = dict(files or {})
        self.journals: list[FakeJournal] = []
        self.begun: list[FakeJournal] = []
        self.taken: list[FakeSnapshot] = []
        self.calls: list[str] = []
        self._failures: dict[str, list[BaseException]] = {}

    def fail(self, operation: str, *, times: int = 1, error: BaseException | None = None) -> None:
        """Make the next `times` calls of an operation raise."""
        error = error or OSError(ENOSPC, f"no space left on {self.filesystem_id}")
        self._failures[operation] = [error] * times

    def fail_if_told(self, operation: str) -> None:
        """Record a call, and raise the exception arranged for it."""
        self.calls.append(operation)
        failures = self._failures.get(operation)
        if failures:
            raise failures.pop()

    def write(self, path: str, content: str) -> None:
        """Change a file; every open journal remembers what it held."""
        for journal in self.journals:
            journal.note(path)
        self.files[path] = content

    def snapshot(self, tag: str | None = None) -> FakeSnapshot:
        """Copy all files."""
        self.fail_if_told("snapshot")
        snapshot = FakeSnapshot(self.filesystem_id, dict(self.files), tag)
        self.taken.append(snapshot)
        return snapshot

    def restore(self, snapshot: FakeSnapshot) -> None:
        """Restore all files, one by one: a failure leaves some of them changed."""
        for path in [*self.files]:
            if path not in snapshot.files:
                self._change(path, None)
        failures = self._failures.get("restore")
        for number, (path, content) in enumerate(snapshot.files.items()):
            if failures and number:
                break
            self._change(path, content)
        self.fail_if_told("restore")

    def begin(self) -> FakeJournal:
        """Start to journal changes."""
        self.fail_if_told("begin")
        journal = FakeJournal(self)
        self.journals.append(journal)
        self.begun.append(journal)
        return journal

    def _change(self, path: str, content: str | None) -> None:
        for journal in self.journals:
            journal.note(path)
        if content is None:
            self.files.pop(path, None)
        else:
            self.files[path] = content
