"""The commands of the memory tool, with the texts of the SDK's `BetaLocalFilesystemMemoryTool` (anthropic 2.12)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Literal

from attrs import frozen

from weakfs.filesystem import Filesystem
from weakfs.tools import Receipt, Tool, ToolContext, ToolResult, require_filesystem
from weakfs.tools.permissions import check_fits_inline, check_may_show, check_shows_size, shows
from weakfs.tools.results import answer_verbatim, summarize

ROOT = "/memories"

MAX_LINES = 999_999
NUMBER_WIDTH = len(str(MAX_LINES))

# The size that ext4 reports for a small directory; directories in weakfs have no size.
DIRECTORY_SIZE = 4096

# The maximum number of places listed in an error about a text that is not unique.
MOST_PLACES = 1000

Command = Literal["view", "create", "str_replace", "insert", "delete", "rename", "clear_all_memory"]


@frozen(kw_only=True)
class MemoryParams:
    """The parameters of all commands of the memory tool; each command checks those that it needs."""

    command: Command
    path: str | None = None
    view_range: tuple[int, ...] | None = None
    file_text: str | None = None
    old_str: str | None = None
    new_str: str | None = None
    insert_line: int | None = None
    insert_text: str | None = None
    old_path: str | None = None
    new_path: str | None = None


class Refused(Exception):
    """A command failed; the message is the text for the model."""


def memory_handler(params: MemoryParams, *, context: ToolContext) -> ToolResult[Receipt]:
    """Run one command."""
    files = require_filesystem(context)
    try:
        for name in NEEDED[params.command]:
            if getattr(params, name) is None:
                raise Refused(f"The command {params.command} needs the argument `{name}`; give it.")
        text = COMMANDS[params.command](params, files)
    except Refused as refusal:
        text = str(refusal)
        failed = Receipt(status="error", error_code="memory_error", summary_text=summarize(text))
        return answer_verbatim(failed, text)
    return answer_verbatim(Receipt(summary_text=summarize(text.partition("\n")[0])), text)


def _view(params: MemoryParams, files: Filesystem) -> str:
    given = _text(params.path)
    path = _located(given)
    if path != ROOT and not files.exists(path):
        raise Refused(f"The path {given} does not exist. Please provide a valid path.")
    if (path == ROOT and not files.exists(path)) or files.is_directory(path):
        header = f"Here're the files and directories up to 2 levels deep in {given}, excluding hidden items:"
        below = (f"{_size(size)}\t{given}/{name}" for size, name in _listed(files, path, "", 1))
        return "\n".join((header, f"{_size(DIRECTORY_SIZE)}\t{given}", *below))
    if not files.is_file(path):
        raise Refused(f"Unsupported file type for {given}")
    lines = _content(files, path, given).split("\n")
    if len(lines) > MAX_LINES:
        raise Refused(f"File {given} exceeds maximum line limit of 999,999 lines.")
    first = 0
    if params.view_range and len(params.view_range) == 2:
        start, end = params.view_range
        first = max(1, start) - 1
        lines = lines[first : len(lines) if end == -1 else end]
    check_fits_inline(files, path, "\n".join(lines))
    return f"Here's the content of {given} with line numbers:\n" + "\n".join(numbered(lines, first + 1))


def _create(params: MemoryParams, files: Filesystem) -> str:
    given = _text(params.path)
    path = _located(given)
    if path == ROOT or files.exists(path):
        raise Refused(f"File {given} already exists")
    files.write(path, _text(params.file_text), mode="create")
    return f"File created successfully at: {given}"


def _str_replace(params: MemoryParams, files: Filesystem) -> str:
    given, old = _text(params.path), _text(params.old_str)
    path, content = _existing_file(files, given)
    count = content.count(old)
    if count == 0:
        raise Refused(f"No replacement was performed, old_str `{old}` did not appear verbatim in {given}.")
    if count > 1:
        shown = shown_places(content, old)
        raise Refused(
            f"No replacement was performed. Multiple occurrences of old_str `{old}` in lines: {shown}. "
            f"Please ensure it is unique"
        )
    changed = content.count("\n", 0, content.find(old))
    content = content.replace(old, params.new_str or "")
    files.write(path, content)
    lines = content.split("\n")
    first = max(0, changed - 2)
    snippet = numbered(lines[first : changed + 3], first + 1)
    return "The memory file has been edited. Here is the snippet showing the change (with line numbers):\n" + "\n".join(
        snippet
    )


def _insert(params: MemoryParams, files: Filesystem) -> str:
    given, at = _text(params.path), params.insert_line
    assert at is not None
    path, content = _existing_file(files, given)
    lines = content.split("\n")
    if lines[-1] == "":
        lines.pop()
    if not 0 <= at <= len(lines):
        raise Refused(f"Invalid `insert_line` parameter: {at}. It should be within the range [0, {len(lines)}].")
    lines.insert(at, _text(params.insert_text).rstrip("\n"))
    content = "\n".join(lines)
    files.write(path, content if content.endswith("\n") else content + "\n")
    return f"The file {given} has been edited."


def _delete(params: MemoryParams, files: Filesystem) -> str:
    given = _text(params.path)
    path = _located(given)
    if path == ROOT:
        raise Refused("Cannot delete the /memories directory itself")
    if not files.exists(path):
        raise Refused(f"The path {given} does not exist")
    files.delete(path, recursive=True)
    return f"Successfully deleted {given}"


def _rename(params: MemoryParams, files: Filesystem) -> str:
    old, new = _text(params.old_path), _text(params.new_path)
    source, target = _located(old), _located(new)
    if source == ROOT:
        raise Refused("Cannot rename the /memories directory itself")
    if target == ROOT or files.exists(target):
        raise Refused(f"The destination {new} already exists")
    if not files.exists(source):
        raise Refused(f"The path {old} does not exist")
    if target.startswith(f"{source}/"):
        raise Refused(f"Cannot rename {old} to {new}: the destination is inside it; choose another one")
    files.mkdir(target.rpartition("/")[0])
    files.move(source, target)
    return f"Successfully renamed {old} to {new}"


def _clear(params: MemoryParams, files: Filesystem) -> str:
    if files.exists(ROOT):
        files.delete(ROOT, recursive=True)
    files.mkdir(ROOT)
    return "All memory cleared"


COMMANDS: Mapping[str, Callable[[MemoryParams, Filesystem], str]] = {
    "view": _view,
    "create": _create,
    "str_replace": _str_replace,
    "insert": _insert,
    "delete": _delete,
    "rename": _rename,
    "clear_all_memory": _clear,
}

NEEDED: Mapping[str, tuple[str, ...]] = {
    "view": ("path",),
    "create": ("path", "file_text"),
    "str_replace": ("path", "old_str"),
    "insert": ("path", "insert_line", "insert_text"),
    "delete": ("path",),
    "rename": ("old_path", "new_path"),
    "clear_all_memory": (),
}


def _text(value: str | None) -> str:
    assert value is not None
    return value


def _located(given: str) -> str:
    """Return the canonical form of a path that a model sent, with `.` and `..` resolved."""
    if given != ROOT and not given.startswith(f"{ROOT}/"):
        raise Refused(f"Path must start with /memories, got: {given}")
    if "\0" in given or "\\" in given:
        raise Refused(f"Path {given!r} contains a character that is not allowed: NUL or a backslash; leave it out")
    found: list[str] = []
    for segment in given.split("/"):
        if segment == ".." and not found:
            break
        if segment == "..":
            found.pop()
        elif segment not in ("", "."):
            found.append(segment)
    else:
        if found[:1] == [ROOT[1:]]:
            return "/" + "/".join(found)
    raise Refused(f"Path {given} would escape /memories directory")


def _existing_file(files: Filesystem, given: str) -> tuple[str, str]:
    path = _located(given)
    if path != ROOT and not files.exists(path):
        raise Refused(f"The path {given} does not exist. Please provide a valid path.")
    if path == ROOT or not files.is_file(path):
        raise Refused(f"The path {given} is not a file.")
    return path, _content(files, path, given)


def _content(files: Filesystem, path: str, given: str) -> str:
    found = files.read_bytes(path)
    check_may_show(files, found.path)
    try:
        return found.content.decode()
    except UnicodeDecodeError as error:
        raise Refused(f"The file {given} is not UTF-8: byte {error.start} cannot be decoded.") from None


def places(content: str, text: str) -> Iterator[int]:
    """Yield the line number of each occurrence of a text, including overlapping ones."""
    line, last, at = 1, 0, content.find(text)
    while at != -1:
        line += content.count("\n", last, at)
        yield line
        last, at = at, content.find(text, at + 1)


def shown_places(content: str, text: str) -> str:
    """Return the line numbers of the first thousand occurrences of a text."""
    found = places(content, text)
    shown = ", ".join(map(str, islice(found, MOST_PLACES)))
    return shown if next(found, None) is None else f"{shown}, ..."


def _listed(files: Filesystem, path: str, name: str, depth: int) -> Iterator[tuple[int, str]]:
    if not files.exists(path):
        return
    for entry in sorted(files.list(path), key=lambda entry: entry.name):
        shown = f"{name}/{entry.name}" if name else entry.name
        if entry.name.startswith(".") or entry.is_symlink or not shows(files, "list", entry.path):
            continue
        if entry.is_directory:
            yield DIRECTORY_SIZE, f"{shown}/"
            if depth < 2:
                yield from _listed(files, entry.path, shown, depth + 1)
        else:
            check_shows_size(files, entry.path)
            yield files.stat(entry.path).size_bytes, shown


def numbered(lines: list[str], first: int) -> Iterator[str]:
    return (f"{number:>{NUMBER_WIDTH}}\t{line}" for number, line in enumerate(lines, first))


def _size(size: int) -> str:
    if size == 0:
        return "0B"
    unit = min((size.bit_length() - 1) // 10, 3)
    shown = size / 1024**unit
    return f"{int(shown)}{'BKMG'[unit]}" if shown == int(shown) else f"{shown:.1f}{'BKMG'[unit]}"


MEMORY = Tool(
    "memory",
    "Keep notes in files below /memories: view, create, str_replace, insert, delete and rename them.",
    MemoryParams,
    memory_handler,
)
