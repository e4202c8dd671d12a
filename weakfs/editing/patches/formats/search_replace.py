"""Parsing of SEARCH/REPLACE patches: file names, each followed by blocks of lines to find and their replacements."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Literal, cast

from attrs import field

from weakfs.class_decorators import define, frozen
from weakfs.editing.patches.errors import PatchParseError, malformed, quoted
from weakfs.editing.patches.formats.envelope import BLANKS
from weakfs.editing.patches.operations import AddFile, Block, Operation, UpdateFile

SEARCH = "<<<<<<< SEARCH"
DIVIDER = "======="
REPLACE = ">>>>>>> REPLACE"

# The kinds of markers, which are the groups of the pattern.
Kind = Literal["search", "divider", "replace"]
_MARKER = re.compile(
    r"(?P<search><{5,9})[ \t]*(?:SEARCH|ORIGINAL)\s*"
    r"|(?P<divider>={5,9})\s*"
    r"|(?P<replace>>{5,9})[ \t]*(?:REPLACE|UPDATED)\s*"
)
# A line outside of blocks that is meant as a marker, or begins a patch of another format.
_STRAY = re.compile(
    r"\s*(?:[-*>][ \t]+)*(?:<{4,}|>{4,})[ \t]*(?:\w.*)?|\s*<{3}[ \t]*(?:SEARCH|ORIGINAL)\b.*"
    r"|(?:\*\*\* (?:Begin Patch|(?:Add|Update|Delete) File: )|diff --git |@@ -\d).*",
    re.IGNORECASE,
)
_OPENING = re.compile(r"^<{5,9}[ \t]*(?:SEARCH|ORIGINAL)[ \t\r]*$", re.MULTILINE)

# A Markdown fence, followed by a language but no file name, or a horizontal rule: neither is a name.
_FENCE_OR_RULE = re.compile(r"(?:`{3,}|~{3,})[ \t]*[\w+#-]*|-{3,}|\*{3,}|_{3,}")
_HEADING = re.compile(r"#{1,6}[ \t]+")
_BOLD = re.compile(r"\*\*([^*]+)\*\*")
_CODE = re.compile(r"(`+)([^`]+)\1")
# A name without backticks. Text that contains blanks or ends like a sentence is prose.
_PLAIN = re.compile(r"[^\s`*<>|?\"']+(?<![.,;:!/])")
# A longer line is prose.
_LONGEST_NAME = 4096

_PUT_NAME = f"put the file name on a line of its own right above {SEARCH!r}, in backticks if it has blanks"
_OTHER_SIGNS = "write the three markers of this block with another number of signs, five to nine"


def looks_like_search_replace(text: str) -> bool:
    """Return whether a text has the opening line of a SEARCH/REPLACE block. O(text)."""
    return _OPENING.search(text) is not None


def parse_search_replace(text: str) -> tuple[Operation, ...]:
    """Parse a patch into one operation per file, in the order of the patch. O(patch).

    Raises `PatchParseError` if it is malformed. A block belongs to the file named by the last line of text above it;
    without any text between two blocks, they belong to the same file. Markdown fences are skipped, and so is text
    further above a name. Lines that look like markers but do not have as many signs as those of their block count as
    contents. A carriage return at the end of a line belongs to that line, unless the markers end in one as well.
    """
    lines = text.removeprefix("\ufeff").split("\n")
    markers = _markers(lines)
    opening = next((marker for marker in markers if marker.kind == "search"), None)
    if opening is None:
        raise _no_block(lines, markers)
    if lines[opening.at].endswith("\r"):
        lines = [line.removesuffix("\r") for line in lines]
    files = _Files()
    path: str | None = None
    end = 0
    for search, divider, replace in _blocks(markers):
        _expect_no_markers(lines, end, search)
        named = _name_line(lines, end, search)
        if named is not None:
            path = _path(lines, named)
            files.at[path] = named + 1
        if path is None:
            raise malformed(search + 1, f"there is no file name above the first block; {_PUT_NAME}")
        files.put(path, search + 1, tuple(lines[search + 1 : divider]), tuple(lines[divider + 1 : replace]))
        end = replace + 1
    _expect_no_markers(lines, end, len(lines))
    return files.operations()


def _expect_no_markers(lines: Sequence[str], start: int, stop: int) -> None:
    """Raise `PatchParseError` if the text between two blocks has a block with other markers, which would be lost."""
    for at in range(start, stop):
        if _STRAY.fullmatch(lines[at].rstrip()):
            raise malformed(
                at + 1,
                f"{quoted(lines[at])} is in no block; begin each block with {SEARCH!r}, divide it with {DIVIDER!r} and "
                f"end it with {REPLACE!r}, at the start of the line",
            )


@frozen
class _Marker:
    """A line that may be a marker: its index (from 0) and its number of signs."""

    at: int
    kind: Kind
    signs: int


def _markers(lines: Sequence[str]) -> list[_Marker]:
    found: list[_Marker] = []
    for at, line in enumerate(lines):
        match = _MARKER.fullmatch(line) if line[:1] in ("<", "=", ">") else None
        if match:
            kind = cast(Kind, match.lastgroup)
            found.append(_Marker(at, kind, len(match[kind])))
    return found


def _no_block(lines: Sequence[str], markers: Sequence[_Marker]) -> PatchParseError:
    for at, line in enumerate(lines):
        if line.strip() == "*** Begin Patch":
            return malformed(at + 1, "it looks like a V4A patch: apply it with patch_format='v4a'")
        if line.startswith(("diff --git ", "--- ", "@@ -")):
            return malformed(at + 1, "it looks like a unified diff: apply it with patch_format='unified'")
    for marker in markers:
        if marker.kind == "replace":
            return _unopened(marker)
    _expect_no_markers(lines, 0, len(lines))
    return malformed(
        1, f"there is no block in it; write a file name, then {SEARCH!r}, {DIVIDER!r} and {REPLACE!r} around the lines"
    )


def _blocks(markers: Sequence[_Marker]) -> Iterator[tuple[int, int, int]]:
    """Yield the lines (from 0) of the three markers of each block, in order. Raises `PatchParseError` if malformed."""
    end = -1
    for number, marker in enumerate(markers):
        # A divider outside a block may underline a heading in the text there.
        if marker.at <= end or marker.kind == "divider":
            continue
        if marker.kind == "replace":
            raise _unopened(marker)
        divider, end = _parts(markers, number)
        yield marker.at, divider, end


def _parts(markers: Sequence[_Marker], number: int) -> tuple[int, int]:
    """Return the lines of the divider and the closing marker that belong to an opening one.

    Markers with the same number of signs as the opening one take precedence, and others are then contents. If they
    do not form a block, all markers are considered, because models miscount.
    """
    opening = markers[number]
    strict = _Reading.below(markers, number, same_signs=True)
    loose = _Reading.below(markers, number, same_signs=False)
    if strict.is_closed and len(strict.dividers) > 1:
        raise _several_dividers(opening, strict)
    if strict.parts is None and loose.parts is None:
        raise _incomplete(opening, loose)
    readings = {reading.parts: reading for reading in (strict, loose) if reading.parts is not None}
    if len(readings) > 1:
        readings = {parts: reading for parts, reading in readings.items() if not reading.leaves_end(markers)}
    if len(readings) != 1:
        ends = sorted(reading.closing.at + 1 for reading in (strict, loose) if reading.closing is not None)
        raise malformed(
            opening.at + 1,
            f"the block that starts here may end at line {ends[0]} or at line {ends[-1]} of the patch; write the "
            "three markers of each block with the same number of signs",
        )
    (parts,) = readings
    return parts


@frozen
class _Reading:
    """The dividers after an opening marker, and the first other marker, with its index in all markers, if any."""

    dividers: tuple[int, ...]
    closing: _Marker | None
    number: int

    @classmethod
    def below(cls, markers: Sequence[_Marker], number: int, *, same_signs: bool) -> _Reading:
        dividers: list[int] = []
        for following in range(number + 1, len(markers)):
            marker = markers[following]
            if same_signs and marker.signs != markers[number].signs:
                continue
            if marker.kind != "divider":
                return cls(tuple(dividers), marker, following)
            dividers.append(marker.at)
        return cls(tuple(dividers), None, len(markers))

    def leaves_end(self, markers: Sequence[_Marker]) -> bool:
        """Return whether another closing marker comes next, which would then belong to no block."""
        following = (marker.kind for marker in islice(markers, self.number + 1, None) if marker.kind != "divider")
        return next(following, None) == "replace"

    @property
    def is_closed(self) -> bool:
        return self.closing is not None and self.closing.kind == "replace"

    @property
    def parts(self) -> tuple[int, int] | None:
        if self.closing is None or not self.is_closed or len(self.dividers) != 1:
            return None
        return self.dividers[0], self.closing.at


def _unopened(marker: _Marker) -> PatchParseError:
    return malformed(marker.at + 1, f"{REPLACE!r} without a block that it ends; put {SEARCH!r} above the lines to find")


def _several_dividers(opening: _Marker, reading: _Reading) -> PatchParseError:
    *others, last = [str(at + 1) for at in reading.dividers[:10]]
    return malformed(
        opening.at + 1,
        f"lines {', '.join(others)} and {last} of the patch may all divide the block that starts here; {_OTHER_SIGNS}",
    )


def _incomplete(opening: _Marker, reading: _Reading) -> PatchParseError:
    where, closing = opening.at + 1, reading.closing
    if closing is None:
        missing = REPLACE if reading.dividers else DIVIDER
        return malformed(
            where, f"{missing!r} is missing: the patch was cut off in the block that starts here; send all of it"
        )
    if closing.kind == "search":
        return malformed(
            where,
            f"the block that starts here has no {REPLACE!r} above the next one, on line {closing.at + 1}; end each "
            f"block before the next, or, if that line is contents, {_OTHER_SIGNS}",
        )
    if reading.dividers:
        return _several_dividers(opening, reading)
    return malformed(
        where, f"the block that starts here has no {DIVIDER!r}; put it between the lines to find and the new ones"
    )


def _name_line(lines: Sequence[str], start: int, stop: int) -> int | None:
    """Return the last line with text between two blocks, or `None`. Fences and rules do not count as text."""
    for at in range(stop - 1, start - 1, -1):
        line = lines[at].strip()
        if line and not _FENCE_OR_RULE.fullmatch(line):
            return at
    return None


def _path(lines: Sequence[str], at: int) -> str:
    """Return the path that a line names. Raises `PatchParseError` if it may be something else."""
    text = lines[at].strip(BLANKS)
    if len(text) <= _LONGEST_NAME:
        text = _HEADING.sub("", text, count=1)
        bare = text.removesuffix(":").rstrip()
        bold = _BOLD.fullmatch(bare)
        bare = bold[1].strip().removesuffix(":").rstrip() if bold else bare
        code = _CODE.fullmatch(bare)
        if code and code[2].strip():
            return code[2].strip(BLANKS)
        # `Makefile:` cannot be distinguished from `Then:`.
        is_word = text.endswith(":") and "." not in bare and "/" not in bare
        if _PLAIN.fullmatch(bare) and any(map(str.isalnum, bare)) and not is_word:
            return bare
    raise malformed(at + 1, f"{quoted(text)} above a block is not clearly a file name; {_PUT_NAME}")


@define
class _Draft:
    """An operation on one file: a new file if the block finds nothing, otherwise blocks of an update."""

    path: str
    line: int
    added: tuple[str, ...] | None
    blocks: list[Block] = field(factory=list)

    def operation(self) -> Operation:
        if self.added is not None:
            return AddFile(self.path, self.line, self.added, only_if_empty=True)
        return UpdateFile(self.path, self.line, (), blocks=tuple(self.blocks))


@define
class _Files:
    """The operations so far, and for each file its last operation, its blocks and the line that named it last."""

    at: dict[str, int] = field(factory=dict)
    _drafts: list[_Draft] = field(factory=list)
    _latest: dict[str, _Draft] = field(factory=dict)
    _count: dict[str, int] = field(factory=dict)

    def put(self, path: str, line: int, search: tuple[str, ...], replacement: tuple[str, ...]) -> None:
        """Add a block of a file. Raises `PatchParseError` if it would change nothing."""
        number = self._count[path] = self._count.get(path, 0) + 1
        has_text = any(map(str.strip, search))
        if not has_text and not any(map(str.strip, replacement)):
            raise malformed(line, "the block has no text, neither to find nor to insert; give lines with text")
        block = Block(number, line, search, replacement)
        if block.old == block.new:
            raise malformed(line, "SEARCH and REPLACE are the same; give lines that differ, or leave the block out")
        latest = self._latest.get(path)
        if not has_text:
            self._put(_Draft(path, line, replacement))
        elif latest is None or latest.added is not None:
            self._put(_Draft(path, self.at[path], None, [block]))
        else:
            latest.blocks.append(block)

    def _put(self, draft: _Draft) -> None:
        self._latest[draft.path] = draft
        self._drafts.append(draft)

    def operations(self) -> tuple[Operation, ...]:
        return tuple([draft.operation() for draft in self._drafts])
