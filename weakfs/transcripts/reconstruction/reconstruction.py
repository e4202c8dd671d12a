"""The contents of files before the calls of a recording, as far as later calls show them.

Each file has stretches in which its text is not known from earlier calls. What a stretch shows (parts that were
read, lines around a change, perhaps the whole text at the end) is traced back through the recorded changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs
from attrs import field

from weakfs.class_decorators import define, frozen
from weakfs.transcripts.reconstruction.claude_edit_rules import Edit
from weakfs.transcripts.reconstruction.file_text import UNKNOWN, Text
from weakfs.transcripts.reconstruction.partial_text import Part, Partial, trusted_hunks
from weakfs.transcripts.reconstruction.recorded_calls import Step, Texts
from weakfs.transcripts.reconstruction.recorded_hunks import Hunk


@frozen
class Rebuilt:
    """A reconstructed text; with `is_doubtful`, a program that ran in between may have changed it.

    With `is_partial`, the file may have continued after it.
    """

    text: str = field(repr=False)
    is_doubtful: bool = False
    is_partial: bool = False


@frozen
class _Event:
    """A call on a file whose text is unknown at that point: what it shows of the file, and how it changed it."""

    number: int
    programs: int
    part: Part | None = None
    hunks: tuple[Hunk, ...] | None = None
    edits: tuple[Edit, ...] = ()
    is_change: bool = False
    opening: str | None = field(default=None, repr=False)

    def before(self, after: Partial) -> Partial | None:
        """Return the text before the change; `None` if it cannot be derived from the text after it."""
        if not self.is_change:
            return after
        is_trusted = trusted_hunks(self.hunks or (), self.edits)
        found = after.before_edits(self.edits) if self.hunks is None or not all(is_trusted) else None
        return after.before_hunks(self.hunks, is_trusted) if found is None and self.hunks is not None else found

    def shown(self) -> Partial | None:
        """Return what the call alone shows of the text before it."""
        return self.before(Partial()) if self.part is None else Partial().joined(self.part)


@define
class _File:
    """What is known about one file at the current position, and the events waiting for more to be shown."""

    is_known: bool = False
    is_first: bool = True
    programs: int = 0
    waiting: list[_Event] = field(factory=list[_Event])


@define
class Reconstruction:
    """Collects what each call of a recording shows; call `finish` after the last one.

    `baseline` has the files that existed before the first call, `later` the texts of files before a call, by the number
    of the call and the path, for files whose text was unknown at that point.
    """

    baseline: dict[str, Rebuilt] = field(factory=dict[str, Rebuilt])
    later: dict[tuple[int, str], Rebuilt] = field(factory=dict[tuple[int, str], Rebuilt])
    _files: dict[str, _File] = field(factory=dict[str, _File])
    # Texts that were read, for which it is unknown whether a line break follows.
    _unended: dict[str, str] = field(factory=dict[str, str])
    _programs: int = 0

    def program_ran(self) -> None:
        """Record that a program ran, which may have changed any file."""
        self._programs += 1
        self._unended.clear()

    def made(self, path: str) -> None:
        """Record that a command created a file: what is shown of it from now on is not its original content."""
        self._resolve(path, self._file(path), UNKNOWN)
        self._file(path).is_known = False

    def collect(self, number: int, step: Step) -> None:
        """Record what call `number` shows of each of its files."""
        after = step.after(step.before) if step.succeeded else step.before
        for path in dict.fromkeys((*step.before, *after)):
            self._collect(number, path, step, step.before.get(path, UNKNOWN), after.get(path, UNKNOWN))

    def collect_outcome(self, number: int, texts: Texts) -> None:
        """Record the contents of files after a call that is not run; `UNKNOWN` if it changed them."""
        for path, text in texts.items():
            file = self._file(path)
            if text is not UNKNOWN:
                self._resolve(path, file, UNKNOWN)
            elif file.is_known:
                file.is_known = False
            else:
                file.waiting.append(_Event(number, self._programs, is_change=True))

    def finish(self) -> None:
        """Trace back whatever is still waiting."""
        for path, file in self._files.items():
            self._resolve(path, file, UNKNOWN)
        self._files.clear()
        self._unended.clear()

    def _file(self, path: str) -> _File:
        file = self._files.setdefault(path, _File())
        if file.is_known and file.programs != self._programs:
            # The text may have changed; anything shown from now on takes precedence.
            file.is_known = False
        return file

    def _collect(self, number: int, path: str, step: Step, before: Text, after: Text) -> None:
        file = self._file(path)
        is_change = step.tool != "read_file" and step.succeeded is not False
        if before is not UNKNOWN:
            self._see(path, file, before, is_read=step.shown is not None)
        elif not file.is_known:
            hunks = step.hunks.get(path) if step.succeeded else None
            opening = step.skeletons.get(path) if hunks and all(trusted_hunks(hunks, step.edits)) else None
            event = _Event(
                number,
                self._programs,
                step.part,
                hunks,
                step.edits if step.succeeded else (),
                is_change,
                opening.text if opening is not None and opening.is_gapless else None,
            )
            file.waiting.append(event)
        if not is_change:
            return
        self._unended.pop(path, None)
        if after is not UNKNOWN:
            self._resolve(path, file, UNKNOWN)
        elif before is not UNKNOWN:
            file.is_known = False

    def _see(self, path: str, file: _File, text: Text, *, is_read: bool) -> None:
        """Record the whole text of a file."""
        is_first = file.is_first
        known = self._unended.pop(path, None)
        self._resolve(path, file, text)
        baseline = self.baseline.get(path)
        if not isinstance(text, str) or baseline is None or baseline.text.endswith("\n"):
            return
        if known is not None and text == known + "\n":
            self.baseline[path] = attrs.evolve(baseline, text=baseline.text + "\n")
        elif is_first and is_read and text and not text.endswith("\n"):
            self._unended[path] = text

    def _resolve(self, path: str, file: _File, text: Text) -> None:
        """Trace a text back through the waiting events; after that it is known."""
        waiting, is_first = file.waiting, file.is_first
        file.waiting, file.is_first, file.is_known, file.programs = [], False, True, self._programs
        if not waiting:
            if is_first and isinstance(text, str):
                self.baseline[path] = Rebuilt(text)
            return
        for event, rebuilt in _followed(waiting, text, self._programs):
            if is_first and event is waiting[0]:
                self.baseline[path] = rebuilt
            else:
                self.later[event.number, path] = rebuilt
        opening = waiting[0].opening
        if is_first and opening is not None and path not in self.baseline:
            self.baseline[path] = Rebuilt(opening, is_doubtful=True, is_partial=True)


def _followed(waiting: Sequence[_Event], text: Text, programs: int) -> Iterator[tuple[_Event, Rebuilt]]:
    """Yield the first event before which the text is complete, and the first such one after each unrecorded change."""
    state = Partial.whole(text) if isinstance(text, str) else None
    found: tuple[_Event, Partial, bool] | None = None
    for event in reversed(waiting):
        before = None if state is None else event.before(state)
        if before is not None and event.part is not None:
            before = before.joined(event.part)
        if before is None:
            # The text after it is unknown, or an unrecorded change replaced the file at this point.
            if found is not None:
                yield found[0], Rebuilt(found[1].text, found[2])
            found = None
            before, programs = event.shown(), event.programs
        if before is not None and before.is_complete:
            found = event, before, programs != event.programs
        state = before
    if found is not None:
        yield found[0], Rebuilt(found[1].text, found[2])
