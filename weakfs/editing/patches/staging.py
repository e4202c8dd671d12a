"""Staging: the files after a patch, computed in memory; later operations see the results of earlier ones."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import cast

from attrs import evolve

from weakfs.editing.patches.change_order import NEW_FILE
from weakfs.editing.patches.document import Document
from weakfs.editing.patches.errors import MAX_PROBLEMS, NO_LINES, NO_MARK, PatchProblem, quoted
from weakfs.editing.patches.formats.codex import rewrite_as_codex
from weakfs.editing.patches.formats.dialect import Dialect
from weakfs.editing.patches.guards import check_transfer, may_quote
from weakfs.editing.patches.line_search.equivalences import LEVELS
from weakfs.editing.patches.matching.hunk_diagnosis import Mismatches
from weakfs.editing.patches.operations import AddFile, DeleteFile, Hunk, Operation, UpdateFile
from weakfs.editing.patches.report import HunkFit
from weakfs.editing.patches.rewrite import HunkMisfit, rewrite
from weakfs.editing.patches.search_replace_edits import BlockMisfit, replace_blocks
from weakfs.editing.patches.staged_files import Entry, Places, Unusable, why_absent
from weakfs.filesystem.protocol import Filesystem
from weakfs.session.interruption import check_interrupted

EXECUTABLE = 0o111

UNQUOTED = "its place is missing or ambiguous, and the contents of the file may not be shown; give the exact lines"
# What separates the two paths of a move that is given in one line.
_TWO_PATHS = re.compile(r" [-=]?[>\u2192] ")


class Refused(Exception):
    """An operation cannot be done; `problems` say why."""

    def __init__(self, *problems: PatchProblem) -> None:
        self.problems = problems
        super().__init__(*problems)


class Stage:
    """The state of the files after the operations so far, and the report on them."""

    def __init__(self, fs: Filesystem, dialect: Dialect) -> None:
        self.dialect = dialect
        self.places = Places(fs)
        self.fs = self.places.fs
        self.problems: list[PatchProblem] = []
        self.touched: dict[str, None] = {}
        self.replaced: dict[str, None] = {}
        self.fits: list[HunkFit] = []
        self.counts = {"add": 0, "update": 0, "delete": 0, "move": 0}
        self._broken: set[str] = set()
        # For each path, where the operations so far moved its entry; `None` if they deleted it.
        self._gone: dict[str, str | None] = {}

    def prepare(self, operations: Iterable[Operation]) -> None:
        """Look ahead in a diff: entries that it deletes or moves do not obstruct earlier operations."""
        for operation in operations:
            is_taken = (isinstance(operation, DeleteFile) and operation.hunks is not None) or (
                isinstance(operation, UpdateFile) and operation.from_before and not operation.copies
            )
            if is_taken:
                with suppress(Unusable):
                    path = self.places.canonical(operation.path)
                    there = self.places.before(path)
                    if there is not None and not there.is_directory:
                        self.places.vacating.add(path)

    def do(self, operation: Operation) -> None:
        """Do one operation, or record why it cannot be done; operations that depend on a failed one are skipped."""
        check_interrupted()
        if len(self.problems) >= MAX_PROBLEMS:
            return
        named = [operation.path]
        if isinstance(operation, UpdateFile) and operation.move_to is not None:
            named.append(operation.move_to)
        paths: list[str] = []
        try:
            paths += [self._canonical(path, operation) for path in named]
            if self._broken.isdisjoint(paths):
                _DOING[type(operation)](self, operation, paths)
        except Refused as error:
            self._broken.update(paths)
            self.problems += error.problems

    def _canonical(self, path: str, operation: Operation) -> str:
        try:
            return self.places.canonical(path)
        except Unusable as error:
            raise _forbidden(operation, path, error) from error

    # Adding

    def _add(self, operation: AddFile, paths: list[str]) -> None:
        (path,) = paths
        path, there = self._room(operation, path, follow=not operation.is_link)
        if operation.only_if_empty and there is not None:
            self._refuse_contents(operation, path, there)
        text = "\n".join(operation.lines)
        if not operation.is_link and operation.lines and operation.ended and self.dialect.added_file_newline:
            text += "\n"
        content = self._encoded(path, text, operation.line)
        if operation.is_link:
            entry = Entry(None, None, None, text)
        else:
            mode = operation.mode if operation.mode is not None else None if there is None else there.mode
            entry = Entry(None, mode, content)
        self.places.put(path, entry)
        self._touch("add", path)

    def _encoded(self, path: str, text: str, line: int) -> bytes:
        try:
            return text.encode()
        except UnicodeEncodeError as error:
            what = f"it puts half of a surrogate pair into {path!r}, which is not text; leave it out"
            raise Refused(_malformed(path, line, what)) from error

    def _room(self, operation: Operation, path: str, *, follow: bool = True) -> tuple[str, Entry | None]:
        """Return the path of a new file, and what it replaces there."""
        try:
            there = self.places.room_for(path)
            if there is not None and there.is_link and follow:
                path = self.places.behind_link(path, there)
                there = self.places.entry(path)
        except Unusable as error:
            raise _forbidden(operation, path, error) from error
        if there is not None:
            if self.dialect.on_existing == "reject":
                what = f"{path!r} exists already and must not be replaced; update it, or use another path"
                raise _refused(operation, "hunk_rejected", path, what)
            self.replaced[path] = None
        return path, there

    def _refuse_contents(self, operation: AddFile, path: str, there: Entry) -> None:
        before = None if there.origin is None else self.places.before(there.origin)
        size = before.size_bytes if there.content is None and before is not None else len(there.data(self.fs))
        if size:
            what = f"{path!r} exists already and is not empty, and an empty SEARCH creates a file"
            remedy = "give the lines to replace in SEARCH, or write the whole file with write_file"
            raise _refused(operation, "hunk_rejected", path, f"{what}; {remedy}")

    # Deleting

    def _delete(self, operation: DeleteFile, paths: list[str]) -> None:
        (path,) = paths
        entry = self._there(operation, path, "delete_target_not_found", "delete")
        if operation.hunks is not None and not entry.is_link:
            left = self._rewritten(operation, path, entry, operation.hunks)
            if left.text():
                raise _refused(
                    operation,
                    "hunk_rejected",
                    path,
                    f"cannot delete {path!r}: it contains more than the patch says; read it again, and "
                    "remove all its lines, or delete it without a diff",
                )
        self.places.vacate(path)
        self._gone[path] = None
        self._touch("delete", path)

    def _there(self, operation: Operation, path: str, error_code: str, verb: str) -> Entry:
        try:
            entry = self._entry(operation, path)
        except Unusable as error:
            raise _forbidden(operation, path, error) from error
        if entry is None:
            message = f"cannot {verb} {path!r}: {why_absent(self.fs, path, self._gone)}"
            if isinstance(operation, UpdateFile) and _TWO_PATHS.search(operation.path):
                end = "" if message.endswith("?") else "."
                message += f"{end} To move a file, give its old path here, and '*** Move to: new path' below it"
            raise _refused(operation, error_code, path, message)
        return entry

    def _entry(self, operation: Operation, path: str) -> Entry | None:
        if isinstance(operation, DeleteFile):
            return self.places.take(path)
        if isinstance(operation, UpdateFile) and operation.from_before:
            there = self.places.before(path) if operation.copies else None
            if there is not None and there.is_file:
                return Entry(path, there.mode, size=there.size_bytes)
            return self.places.take(path)
        return self.places.entry(path)

    # Updating

    def _update(self, operation: UpdateFile, paths: list[str]) -> None:
        path = self._first_there(operation, paths[0])
        if operation.if_missing is not None and self._is_missing(path):
            self._add(operation.if_missing, [path])
            return
        verb = "update" if operation.hunks or operation.move_to is None else "copy" if operation.copies else "move"
        entry = self._there(operation, path, "update_target_not_found", verb)
        if entry.is_link and not operation.is_link and (operation.hunks or operation.move_to is None):
            path, entry = self._behind(operation, path, entry)
        if operation.hunks:
            entry = self._updated(operation, path, entry)
        if operation.blocks:
            entry = self._with_blocks(operation, path, entry)
        if operation.mode is not None:
            entry = evolve(entry, mode=_with_mode(NEW_FILE if entry.mode is None else entry.mode, operation.mode))
        if paths[1:] in ([], [path]):
            self.places.put(path, entry)
            self._touch("update", path)
        else:
            self._transfer(operation, path, paths[1], entry)

    def _first_there(self, operation: UpdateFile, path: str) -> str:
        """Return the first path, of those that a diff may mean, that exists; if none does, the first one."""
        for one in operation.other_paths:
            with suppress(Unusable):
                if self.places.entry(path) is not None:
                    return path
                other = self.places.canonical(one)
                if self.places.entry(other) is not None:
                    return other
        return path

    def _is_missing(self, path: str) -> bool:
        with suppress(Unusable):
            return self.places.entry(path) is None
        return False

    def _behind(self, operation: UpdateFile, path: str, entry: Entry) -> tuple[str, Entry]:
        try:
            if operation.move_to is not None:
                raise Unusable(f"cannot move and change {path!r}: it is a symbolic link; name the real path")
            path = self.places.behind_link(path, entry)
        except Unusable as error:
            raise _forbidden(operation, path, error) from error
        return path, self._there(operation, path, "update_target_not_found", "update")

    def _updated(self, operation: UpdateFile, path: str, entry: Entry) -> Entry:
        self._check_added(operation, path)
        if entry.is_link:
            return evolve(entry, origin=None, target="\n".join(operation.hunks[0].new))
        if self.dialect.is_codex:
            return evolve(entry, content=self._updated_as_codex(operation, path, entry))
        document = self._rewritten(operation, path, entry, operation.hunks, copies=operation.copies)
        if self.dialect.final_newline == "add":
            document.ended = True
        return Entry(entry.origin, entry.mode, document, size=entry.size)

    def _check_added(self, operation: UpdateFile, path: str) -> None:
        """Raise `Refused` for a hunk that adds something other than text."""
        if not "".join(["".join(hunk.lines) for hunk in operation.hunks]).isascii():
            for hunk in operation.hunks:
                self._encoded(path, "".join([line[1:] for line in hunk.lines if line[0] == "+"]), hunk.line)

    def _with_blocks(self, operation: UpdateFile, path: str, entry: Entry) -> Entry:
        for block in operation.blocks:
            self._encoded(path, "".join(block.replacement), block.line)
        document = self._document(operation, path, entry)
        takes_first = self.dialect.on_ambiguous == "first"
        most_failures = MAX_PROBLEMS - len(self.problems)
        try:
            fits = replace_blocks(document, operation.blocks, takes_first=takes_first, most_failures=most_failures)
        except BlockMisfit as error:
            raise Refused(*error.problems(path, may_quote=may_quote(self.fs, path, entry.origin))) from error
        pairs = zip(operation.blocks, fits, strict=True)
        self.fits += [HunkFit(path, block.number, block.line, fit) for block, fit in pairs]
        if self.dialect.final_newline == "add":
            document.ended = True
        return evolve(entry, content=document)

    def _rewritten(
        self, operation: Operation, path: str, entry: Entry, hunks: tuple[Hunk, ...], *, copies: bool = False
    ) -> Document:
        document = self._document(operation, path, entry, is_copied=copies)
        takes_first = self.dialect.on_ambiguous == "first"
        try:
            places = rewrite(document, hunks, takes_first=takes_first, most_failures=MAX_PROBLEMS - len(self.problems))
        except HunkMisfit as error:
            raise self._rejected(path, entry, document, error) from error
        shows = not any(place.notes for place in places) or may_quote(self.fs, path, entry.origin)
        self.fits += [
            HunkFit(path, number, hunk.line, LEVELS[place.level], hunk.notes + (place.notes if shows else ()))
            for number, (hunk, place) in enumerate(zip(hunks, places, strict=True), 1)
        ]
        return document

    def _updated_as_codex(self, operation: UpdateFile, path: str, entry: Entry) -> bytes:
        text = self._text(operation, path, entry)
        try:
            made, fits = rewrite_as_codex(text, operation.hunks)
        except HunkMisfit as error:
            raise self._rejected(path, entry, Document(text), error) from error
        self.fits += [
            HunkFit(path, number, operation.hunks[number - 1].line, fit) for number, fit in enumerate(fits, 1)
        ]
        return made.encode()

    def _document(self, operation: Operation, path: str, entry: Entry, *, is_copied: bool = False) -> Document:
        document = entry.content
        if isinstance(document, Document) and not is_copied:
            return document
        return Document(self._text(operation, path, entry))

    def _text(self, operation: Operation, path: str, entry: Entry) -> str:
        try:
            return entry.data(self.fs).decode()
        except UnicodeDecodeError as error:
            what = f"the byte at offset {error.start} is not UTF-8; only text can be patched"
            raise _refused(operation, "update_target_non_utf8", path, f"cannot update {path!r}: {what}") from error
        except PermissionError as error:
            # The original error is more specific than this one would be.
            if type(error) is not PermissionError:
                raise
            raise _forbidden(operation, path, error) from error

    def _rejected(self, path: str, entry: Entry, document: Document, error: HunkMisfit) -> Refused:
        problems: list[PatchProblem] = []
        mismatches = Mismatches(document, shows_lines=len(error.failures) == 1)
        shows = may_quote(self.fs, path, entry.origin)
        for number, hunk, misfit, cursor in error.failures:
            if hunk.is_blank and not self.dialect.is_codex:
                problems.append(_malformed(path, hunk.line, NO_LINES, number + 1))
                continue
            if hunk.unmarked:
                line, text = hunk.body + hunk.unmarked[0], hunk.lines[hunk.unmarked[0]][1:]
                besides = mismatches.misquote(hunk) if shows else ""
                problems.append(_malformed(path, line, f"{quoted(text)} {NO_MARK}{besides}", number + 1))
                continue
            why, lines = mismatches.reason(hunk, misfit, cursor) if shows else (UNQUOTED, ())
            anchor = f" ({quoted(hunk.anchors[-1])})" if hunk.anchors else ""
            message = f"{path}: hunk {number + 1}{anchor}, line {hunk.line} of the patch, does not fit: {why}"
            problems.append(PatchProblem("hunk_rejected", message, path, hunk.line, number + 1, lines))
        return Refused(*problems)

    def _transfer(self, operation: UpdateFile, path: str, to: str, entry: Entry) -> None:
        to = self._room_for_transfer(operation, path, to)
        if not entry.is_link:
            check_transfer(self.fs, entry.origin, to)
        if operation.copies and isinstance(entry.content, Document) and not operation.hunks:
            entry = evolve(entry, content=entry.data(self.fs))
        if not operation.copies:
            self.places.vacate(path)
            self._gone[path] = to
        self.places.put(to, entry)
        if operation.copies:
            self._touch("add", to)
        else:
            self._touch("move", path, to)
            self.counts["update"] += bool(operation.hunks)

    def _room_for_transfer(self, operation: UpdateFile, path: str, to: str) -> str:
        if operation.copies or path in self.places.vacating:
            return self._room(operation, to, follow=False)[0]
        # An entry that moves away does not obstruct its new path.
        held = self.places.now.get(path)
        self.places.remove(path)
        try:
            return self._room(operation, to, follow=False)[0]
        finally:
            if held is not None:
                self.places.put(path, held)
            else:
                del self.places.now[path]

    def _touch(self, what: str, *paths: str) -> None:
        self.counts[what] += 1
        self.touched.update(dict.fromkeys(paths))


def _refused(operation: Operation, error_code: str, path: str, message: str) -> Refused:
    return Refused(PatchProblem(error_code, message, path, operation.line))


def _forbidden(operation: Operation, path: str, error: Exception) -> Refused:
    return _refused(operation, "path_forbidden", path, str(error))


def _malformed(path: str, line: int, reason: str, hunk: int | None = None) -> PatchProblem:
    return PatchProblem("patch_parse_error", f"line {line} of the patch: {reason}", path, line, hunk)


def _with_mode(mode: int, wanted: int) -> int:
    """Return a file's permission bits with the executable bits that a diff states and the other bits unchanged."""
    return mode | (mode & 0o444) >> 2 if wanted & EXECUTABLE else mode & ~EXECUTABLE


_DOING: dict[type, Callable[[Stage, Operation, list[str]], None]] = {
    AddFile: cast("Callable[[Stage, Operation, list[str]], None]", Stage._add),
    DeleteFile: cast("Callable[[Stage, Operation, list[str]], None]", Stage._delete),
    UpdateFile: cast("Callable[[Stage, Operation, list[str]], None]", Stage._update),
}
