"""`glob` and `grep`."""

from __future__ import annotations

from attrs import field, frozen

from weakfs.filesystem import GrepMatch
from weakfs.messages import clip, one_line, plural, printable
from weakfs.search import compile_glob, compile_pattern
from weakfs.tools.blobs import BlobReference
from weakfs.tools.context import ToolContext, require_filesystem, tighter
from weakfs.tools.errors import InvalidPattern, InvalidRegex
from weakfs.tools.handlers.glob_hints import why_no_match
from weakfs.tools.output import ABOUT_MODE, OutputMode, kept_as_blob, shown
from weakfs.tools.results import Receipt, ToolResult, answer, summarize
from weakfs.tools.schemas.arguments import param

# A line of a minified file is as long as the file.
SHOWN_LINE = 500


def _check_glob(pattern: str) -> None:
    try:
        compile_glob(pattern)
    except ValueError as error:
        raise InvalidPattern(str(error)) from error


@frozen
class GlobParams:
    """What `glob` takes."""

    pattern: str = field(metadata=param("the pattern, such as **/*.py"))
    path: str = field(default="/", metadata=param("the directory to search"))
    max_results: int = field(default=1000, metadata=param("how many paths at most", at_least=1))
    output_mode: OutputMode = field(default="auto", metadata=ABOUT_MODE)
    hidden: bool = field(default=False, metadata=param("whether dotfiles match too"))


@frozen(kw_only=True)
class GlobReceipt(Receipt):
    """The paths that matched, newest first, then by path; `truncated` tells that there were more.

    Where they are too many to show, `paths` refers to them, one a line.
    """

    paths: tuple[str, ...] | BlobReference | None = None
    count: int | None = None
    truncated: bool | None = None


def glob_handler(params: GlobParams, *, context: ToolContext) -> ToolResult[GlobReceipt]:
    """Find files by name: a path a line, the newest first."""
    fs = require_filesystem(context)
    _check_glob(params.pattern)
    found = fs.glob(params.pattern, path=params.path, hidden=params.hidden, max_results=params.max_results)
    paths = tuple(match.path for match in found)
    summary = f"{plural(len(paths), 'path')} found" if paths else "No files matched"
    if not paths and not found.truncated:
        why = why_no_match(params.pattern, params.path, context, hidden=params.hidden)
        summary = summary if why is None else f"{summary}: {why}"
    lines = [one_line(path) for path in paths]
    kept = kept_as_blob("\n".join(lines), params.output_mode, context, "search", paths=paths)
    receipt = GlobReceipt(
        paths=paths if kept is None else kept,
        count=len(paths),
        truncated=found.truncated,
        summary_text=summarize(f"{summary}, and there are more" if found.truncated else summary),
    )
    if not paths:
        return answer(receipt)
    if kept is not None:
        return answer(receipt, shown(kept, "narrow the pattern or set max_results to see less of it"))
    if found.truncated:
        lines.append(f"[the first {len(paths)} are shown; narrow the pattern or set max_results]")
    return answer(receipt, "\n".join(lines))


@frozen
class GrepParams:
    """What `grep` takes."""

    pattern: str = field(metadata=param("the regular expression, in RE2 syntax"))
    path: str = field(default="/", metadata=param("the directory or file to search"))
    glob: str | None = field(default=None, metadata=param("which files, such as *.py"))
    case_insensitive: bool = field(default=False, metadata=param("whether letter case is ignored"))
    max_results: int | None = field(default=None, metadata=param("how many lines at most", at_least=1))
    output_mode: OutputMode = field(default="auto", metadata=ABOUT_MODE)
    hidden: bool = field(default=True, metadata=param("whether dotfiles are searched too"))


@frozen(kw_only=True)
class GrepReceipt(Receipt):
    """The lines that matched, in order of path and line; `truncated` tells that there were more.

    Where they are too large to show, `matches` refers to them as `path:line:text`, one a line.
    """

    matches: tuple[GrepMatch, ...] | BlobReference | None = None
    match_count: int | None = None
    truncated: bool | None = None
    files_searched: int | None = None
    binary_skipped: int | None = None


def grep_handler(params: GrepParams, *, context: ToolContext) -> ToolResult[GrepReceipt]:
    """Find lines by a regular expression: `path:line:text` a line."""
    fs = require_filesystem(context)
    try:
        compile_pattern(params.pattern, case_insensitive=params.case_insensitive)
    except ValueError as error:
        raise InvalidRegex(str(error)) from error
    if params.glob is not None:
        _check_glob(params.glob)
    most = params.max_results or tighter(context.limits.max_grep_matches, fs.limits.max_grep_matches)
    found = fs.grep(
        params.pattern,
        path=params.path,
        glob=params.glob,
        hidden=params.hidden,
        case_insensitive=params.case_insensitive,
        max_matches=-1 if most is None else most,
    )
    matches = tuple(found)
    summary = f"{plural(len(matches), 'match')} found" if matches else "No matches found"
    if params.glob is not None and not (found.files_searched or found.binary_skipped or found.truncated):
        summary = f"{summary}: {_why_no_file(params.glob, params, context)}"
    skipped = f" ({plural(found.binary_skipped, 'binary file')} skipped)" if found.binary_skipped else ""
    more = ", and there are more" if found.truncated else ""
    # The receipt has whole lines, of which the message shows a part where they are very long.
    whole = "\n".join(f"{one_line(match.path)}:{match.line_number}:{match.line_content}" for match in matches)
    found_in = dict.fromkeys(match.path for match in matches)
    kept = kept_as_blob(whole, params.output_mode, context, "search", "read", paths=found_in)
    receipt = GrepReceipt(
        matches=matches if kept is None else kept,
        match_count=len(matches),
        truncated=found.truncated,
        files_searched=found.files_searched,
        binary_skipped=found.binary_skipped,
        summary_text=summarize(f"{summary}{more}{skipped}"),
    )
    if not matches:
        return answer(receipt)
    if kept is not None:
        return answer(receipt, shown(kept, "narrow the search or set max_results to see less of it"))
    lines = [f"{one_line(match.path)}:{match.line_number}:{_shown(match)}" for match in matches]
    if found.truncated:
        lines.append(f"[the first {len(matches)} are shown; narrow the search or set max_results]")
    return answer(receipt, "\n".join(lines))


def _why_no_file(glob: str, params: GrepParams, context: ToolContext) -> str:
    """Say that no file matched the glob of a grep, and why if that is known."""
    if not require_filesystem(context).is_directory(params.path):
        return f"the glob {one_line(glob)!r} does not match {params.path!r}; leave it out"
    why = why_no_match(glob, params.path, context, hidden=params.hidden, only_files=True)
    return f"no file matches the glob {one_line(glob)!r}; {why or 'check it with glob, or leave it out'}"


def _shown(match: GrepMatch) -> str:
    """Give a line, control characters escaped; of a very long one, what stands around the match."""
    line = match.line_content
    if len(line) <= SHOWN_LINE:
        return printable(line.removesuffix("\r"), is_line=True)
    start = max(match.match_start - 100, 0)
    around = printable(clip(line[start : match.match_end + 100], SHOWN_LINE), is_line=True)
    return f"{'... ' if start else ''}{around}{' ...' if match.match_end + 100 < len(line) else ''}"
