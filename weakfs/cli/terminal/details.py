"""The details of a row or a file: its facts, colored differences, the files at a moment, and blame."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain

from rich.syntax import Syntax
from rich.text import Text

from weakfs.cli.formatting import counted, shown
from weakfs.history import BlameLine
from weakfs.history.plain_values import moment
from weakfs.history.timeline_rows import TimelineRow
from weakfs.history.tree_patch import LETTERS, FileChange, patch
from weakfs.messages import clip, printable
from weakfs.reducers.tree.leaf import Leaf, content_of, is_special, size_of
from weakfs.search import is_binary
from weakfs.session import MissingBlob

# Larger files (in bytes) are not compared or shown, and longer lists of lines are cut.
MAX_BYTES = 512 * 1024
MAX_LINES = 5_000
MAX_FILES = 50
# Longer lines are cut. Texts with such lines, and larger texts, have no colors, because coloring them takes too long.
MAX_LINE = 2_000
MAX_COLORED = 64 * 1024
THEME = "ansi_dark"

SIGNS = {"+": "green", "-": "red", "@": "cyan"}

Change = tuple[str | None, FileChange]


def revert_command(row: TimelineRow, where: str) -> str | None:
    """Return the command that previews undoing a row; `None` if it is not known to have changed anything.

    `where` is the session as typed in a shell.
    """
    if not row.files or row.first is None:
        return None
    records = f"{row.first}" if row.last in (None, row.first) else f"{row.first}-{row.last}"
    root = " --root DIR" if any(file.filesystem for file in row.files) else ""
    return f"weakfs revert {where} {records}{root} --preview"


def facts_of(row: TimelineRow, where: str) -> list[Text]:
    """Return what is known about a row, and how to undo it."""
    records = "" if row.first is None else f"{row.first}" if row.last == row.first else f"{row.first}-{row.last}"
    pairs = [
        ("status", shown(row.status) if row.kind == "call" else row.kind),
        ("caller", shown(row.caller or "")),
        ("fork", shown(row.fork or "")),
        ("time", moment(row.at)),
        ("id", shown(row.name or "")),
        ("records", records),
        ("revert", printable(revert_command(row, where) or "", is_line=True)),
    ]
    return [Text.assemble((f"{name:8} ", "dim"), clip(value, MAX_LINE)) for name, value in pairs if value]


def differences_of(changes: Sequence[Change]) -> list[Text]:
    """Return the differences of files as lines."""
    lines: list[Text] = []
    for number, (filesystem, change) in enumerate(changes):
        if number >= MAX_FILES or len(lines) >= MAX_LINES:
            lines.append(Text(f"{counted(len(changes) - number, 'more file')} not shown", "italic"))
            break
        origin = "" if filesystem is None else f" in {shown(filesystem)}"
        moved = "" if change.source is None else f"{shown(change.source)} -> "
        lines.append(Text(f"{LETTERS[change.kind]} {moved}{shown(change.new_path)}{origin}", "bold underline"))
        lines += _difference(change)
    return lines


def _difference(change: FileChange) -> list[Text]:
    why = next(filter(None, (_why_not(leaf) for leaf in (change.old, change.new) if leaf is not None)), None)
    if why is not None:
        return [Text(why, "italic")]
    # The names are shown already; the rest of the header describes the file.
    lines = [line.decode("utf-8", "replace").rstrip("\n") for line in patch(change)][1:]
    start = next((place for place, line in enumerate(lines) if line.startswith("@@")), len(lines))
    header = [Text(clip(printable(line, is_line=True), MAX_LINE), "dim") for line in lines[:start]]
    body = lines[start : start + MAX_LINES]
    left = len(lines) - start - len(body)
    more = [Text(f"{counted(left, 'more line')} not shown", "italic")] if left else []
    return (
        [line for line in header if not line.plain.startswith(("---", "+++"))]
        + _colored_patch(body, change.new_path)
        + more
    )


def _colored_patch(lines: list[str], path: str) -> list[Text]:
    code = [line[1:] if line[:1] in ("+", "-", " ") else "" for line in lines]
    found: list[Text] = []
    for line, text in zip(lines, colored(code, path), strict=True):
        sign = line[:1]
        if sign not in ("+", "-", " "):
            found.append(Text(clip(printable(line, is_line=True), MAX_LINE), SIGNS.get(sign, "dim")))
            continue
        whole = Text.assemble((f"{sign} ", f"bold {SIGNS.get(sign, '')}".strip()), text)
        if sign == "+":
            whole.stylize("on #10301a")
        elif sign == "-":
            whole.stylize("on #3a1519")
        found.append(whole)
    return found


def colored(lines: Sequence[str], path: str) -> list[Text]:
    """Return lines of a file, colored for the language that its name suggests. Control characters are escaped."""
    safe = [clip(printable(line, is_line=True).expandtabs(4), MAX_LINE) for line in lines]
    if sum(map(len, safe)) > MAX_COLORED or any(len(line) >= MAX_LINE for line in safe):
        return [Text(line) for line in safe]
    lexer = Syntax.guess_lexer(path)
    if lexer == "default":
        return [Text(line) for line in safe]
    text = Syntax("", lexer, theme=THEME).highlight("\n".join(safe))
    found = list(text.split("\n", allow_blank=True))[: len(safe)]
    # A lexer may drop empty lines at the beginning and the end.
    return found if [one.plain for one in found] == safe else [Text(line) for line in safe]


def _why_not(leaf: Leaf) -> str | None:
    """Return why the content of a file is not shown; `None` if it is shown."""
    if is_special(leaf):
        return "it is not a regular file"
    if size_of(leaf) > MAX_BYTES:
        return f"{size_of(leaf):,} bytes: too large to be shown here"
    try:
        content = content_of(leaf)
    except MissingBlob:
        return "its content is missing from storage"
    return f"binary, {len(content):,} bytes" if is_binary(content) else None


def file_lines(leaf: Leaf, path: str, blame: Sequence[BlameLine] | None) -> list[Text]:
    """Return the lines of a file; if `blame` is given, each with the call that wrote it."""
    why = _why_not(leaf)
    if why is not None:
        return [Text(why, "italic")]
    lines = content_of(leaf).decode("utf-8", "replace").split("\n")
    if lines and not lines[-1]:
        lines.pop()
    origins: Iterable[BlameLine | None] = chain(blame or (), (None for _ in lines))
    found: list[Text] = []
    before: BlameLine | None = None
    for number, (text, origin) in enumerate(zip(colored(lines[:MAX_LINES], path), origins, strict=False), 1):
        margin = Text(f"{number:>5}  ", "dim")
        if blame is not None:
            is_same = before is not None and origin is not None and before.record == origin.record
            label = "" if origin is None or is_same else _origin(origin)
            margin = Text.assemble((f"{label[:24]:24}", "cyan"), margin)
        found.append(Text.assemble(margin, text))
        before = origin
    if len(lines) > MAX_LINES:
        found.append(Text(f"{counted(len(lines) - MAX_LINES, 'more line')} not shown", "italic"))
    return found or [Text("an empty file", "italic")]


def _origin(line: BlameLine) -> str:
    if line.kind != "written":
        return f"{line.record} ({'found' if line.kind == 'found' else 'older'})"
    return f"{line.record} {shown(' '.join(part for part in (line.tool, line.caller) if part))}"
