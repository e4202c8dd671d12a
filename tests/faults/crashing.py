"""Crash repeatedly while saving: `python -m tests.faults.crashing FOLDER`, which prints what it found.

Every attempt is a separate process, forked from this one, that is killed before or after one system call. This process
then examines what is left. Run by test_crash_save.py.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from fixtures.sessions.portrait import portrait
from tests.faults.syscalls import Call, System
from weakfs import InMemoryFilesystem, Session, SessionFileError

# Small enough that one file takes several writes.
AT_ONCE = 700


def told(words: str) -> Session:
    """Return a session whose file has a few kilobytes."""
    session = Session(session_id="crash", clock=lambda: 5)
    filesystem = InMemoryFilesystem(session)
    for number in range(20):
        filesystem.write(f"/file{number}", f"{words} {number}\n")
    session.snapshot("kept")
    return session


def in_a_child(work: Callable[[], object]) -> int:
    """Call a function in a separate process, and return the signal that killed it, or 0."""
    child = os.fork()
    if not child:
        status = 1
        try:
            work()
            status = 0
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return os.WTERMSIG(status)
    if status:
        raise RuntimeError(f"the child failed with status {status}")
    return 0


class Attempts:
    """All crashes of one scenario, with what was left after each."""

    def __init__(self, folder: Path, old: bytes | None, new: Session) -> None:
        self.folder = folder
        self.path = folder / "session.json"
        self.old = old
        self.new = new
        folder.mkdir()
        new.save(self.path)
        self.new_bytes = self.path.read_bytes()
        self.shown = {content: portrait(self.loaded(content)) for content in {self.new_bytes, old} if content}
        self.found: list[dict[str, object]] = []

    def loaded(self, content: bytes) -> Session:
        """Load a session from these bytes, in a file elsewhere."""
        elsewhere = self.folder.parent / "elsewhere.json"
        elsewhere.write_bytes(content)
        return Session.load(elsewhere)

    def put_back(self) -> None:
        """Restore the file as it was before saving; other files stay."""
        if self.old is None:
            self.path.unlink(missing_ok=True)
        else:
            self.path.write_bytes(self.old)

    def look(self) -> dict[str, object]:
        """Describe what is there."""
        try:
            content = self.path.read_bytes()
        except FileNotFoundError:
            which = "old" if self.old is None else "missing"
        else:
            which = {self.old: "old", self.new_bytes: "new"}.get(content, "neither")
            try:
                if portrait(Session.load(self.path)) != self.shown.get(content):
                    which += ", but other things in it"
            except SessionFileError as error:
                which += f", and cannot be loaded: {error}"
        return {"file": which, "others": sorted(os.listdir(self.folder))}

    def die_everywhere(self) -> None:
        """Crash before and after every call, one process each."""
        for when in ("before", "after"):
            number = 0
            while self.die(when, number):
                number += 1

    def die(self, when: str, number: int) -> bool:
        """Crash at one call; return false if there are fewer calls."""
        self.put_back()
        notes = self.folder.parent / "calls.txt"

        def note_and_die(call: Call) -> None:
            if call.number == number:
                notes.write_text(call.name)
                os.kill(os.getpid(), signal.SIGKILL)

        def work() -> None:
            system = System(at_once=AT_ONCE)
            setattr(system, when, note_and_die)
            with system.in_force():
                self.new.save(self.path)

        died = in_a_child(work)
        if died not in (0, signal.SIGKILL):
            raise RuntimeError(f"the child died of signal {died}")
        if died:
            self.found.append({"when": when, "number": number, "call": notes.read_text(), **self.look()})
        return bool(died)

    def finish(self) -> dict[str, object]:
        """Save undisturbed after all that, and describe what is there."""
        self.put_back()
        self.new.save(self.path)
        return self.look()


def main(folder: Path) -> dict[str, object]:
    """Go through the scenarios."""
    before = told("before")
    before.save(folder / "before.json")
    old = (folder / "before.json").read_bytes()
    results: dict[str, object] = {}
    for name, content in (("over an old file", old), ("where no file was", None)):
        attempts = Attempts(folder / name, content, told("after, and longer than it was"))
        attempts.die_everywhere()
        results[name] = {"deaths": attempts.found, "end": attempts.finish()}
    return results


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]))))
