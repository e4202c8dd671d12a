"""`grep`: finds lines that match a regular expression, the files that have any, or the number in each file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Literal

from attrs import evolve, field

from weakfs.class_decorators import frozen
from weakfs.fast_init import fast_init
from weakfs.filesystem import Filesystem, GrepMatch, GrepResult
from weakfs.filesystem.path_lookup import by_canonical_paths
from weakfs.messages import clip, one_line, plural, printable
from weakfs.search import compile_multiline, compile_pattern
from weakfs.tools.blobs import BlobReference
from weakfs.tools.context import ToolContext, require_filesystem, tighter
from weakfs.tools.errors import InvalidRegex
from weakfs.tools.handlers.glob import check_glob
from weakfs.tools.handlers.glob_hints import why_no_match
from weakfs.tools.handlers.output import ABOUT_MODE, OutputMode, first_shown, kept_as_blob, shown
from weakfs.tools.results import Receipt, ToolResult, answer, summarize
from weakfs.tools.schemas.arguments import param
from weakfs.tools.tool import Tool

# A line is cut to this many characters: one of a minified file may be as long as the file.
SHOWN_LINE = 500
# The maximum number of lines shown on each side of a match.
MAX_CONTEXT = 50
# The matches of one file are counted up to this number.
MAX_COUNTED = 1_000
# The maximum number of bytes read from a file for the lines around its matches.
MAX_READ = 1 << 25

GrepOutput = Literal["lines", "files", "counts"]


@frozen
class GrepParams:
    """The parameters of `grep`."""

    pattern: str = field(metadata=param("the regular expression, in RE2 syntax"))
    path: str = field(default="/", metadata=param("the directory or file to search"))
    glob: str | None = field(default=None, metadata=param("the files to search, such as *.py"))
    case_insensitive: bool = field(default=False, metadata=param("ignore case"))
    max_results: int | None = field(default=None, metadata=param("maximum number of lines or files", at_least=1))
    output_mode: OutputMode = field(default="auto", metadata=ABOUT_MODE)
    hidden: bool = field(default=True, metadata=param("search hidden files too"))
    output: GrepOutput = field(
        default="lines", metadata=param("matching lines, files with matches, or counts of matching lines per file")
    )
    context_before: int | None = field(default=None, metadata=param("lines shown before each match", at_least=0))
    context_after: int | None = field(default=None, metadata=param("lines shown after each match", at_least=0))
    context: int | None = field(default=None, metadata=param("lines shown before and after", at_least=0))
    multiline: bool = field(default=False, metadata=param("let matches span lines (. matches line breaks)"))

    @property
    def lines_before(self) -> int:
        """The number of lines shown before each match."""
        return min((self.context if self.context_before is None else self.context_before) or 0, MAX_CONTEXT)

    @property
    def lines_after(self) -> int:
        """The number of lines shown after each match."""
        return min((self.context if self.context_after is None else self.context_after) or 0, MAX_CONTEXT)


@frozen(kw_only=True)
class GrepReceipt(Receipt):
    """The matches, in order of path and line; `truncated` is true if there are more.

    With `output="files"` and `"counts"`, `files` has the paths, `counts` the number of matches in each (1 for "files",
    at most 1,000 for "counts", which also sets `truncated` if a file has more), and `matches` is `None`.
    `withheld_skipped` counts files that were not searched because a policy or a capability keeps their contents out of
    answers. If `matches` or `files` is too large to show, it refers to the lines of the answer.
    """

    matches: tuple[GrepMatch, ...] | BlobReference | None = None
    match_count: int | None = None
    truncated: bool | None = None
    files_searched: int | None = None
    binary_skipped: int | None = None
    withheld_skipped: int | None = None
    files: tuple[str, ...] | BlobReference | None = None
    counts: tuple[int, ...] | None = None


def grep_handler(params: GrepParams, *, context: ToolContext) -> ToolResult[GrepReceipt]:
    """Find lines that match a regular expression: `path:line:text` for matches, `path-line-text` for other lines."""
    fs = require_filesystem(context)
    compile_regex = compile_multiline if params.multiline else compile_pattern
    try:
        compile_regex(params.pattern, case_insensitive=params.case_insensitive)
    except ValueError as error:
        raise InvalidRegex(str(error)) from error
    if params.glob is not None:
        check_glob(params.glob)
    most = params.max_results or tighter(context.limits.max_grep_matches, fs.limits.max_grep_matches)
    if params.output == "lines":
        return _answer_lines(_search(fs, params, most), params, context)
    return _answer_files(params, context, most)


def _search(fs: Filesystem, params: GrepParams, most: int | None, max_per_file: int | None = None) -> GrepResult:
    return fs.grep(
        params.pattern,
        path=params.path,
        glob=params.glob,
        hidden=params.hidden,
        case_insensitive=params.case_insensitive,
        max_matches=-1 if most is None else most,
        max_per_file=max_per_file,
        multiline=params.multiline,
    )


def _receipt(
    found: GrepResult, summary: str, params: GrepParams, context: ToolContext, *, truncated: bool
) -> GrepReceipt:
    if params.glob is not None and not (
        found.files_searched or found.binary_skipped or found.withheld_skipped or found.truncated
    ):
        summary = f"{summary}: {_why_no_file(params.glob, params, context)}"
    skipped = f" ({plural(found.binary_skipped, 'binary file')} skipped)" if found.binary_skipped else ""
    more = ", and there are more" if truncated and found else ""
    if truncated and not found:
        summary += " before a limit ended the search; narrow it with path or glob"
    if found.withheld_skipped:
        files = plural(found.withheld_skipped, "file")
        more += f"; {files} not searched, because the policy or the capability keeps the contents out of answers"
    return GrepReceipt(
        match_count=len(found),
        truncated=truncated,
        files_searched=found.files_searched,
        binary_skipped=found.binary_skipped,
        withheld_skipped=found.withheld_skipped,
        summary_text=summarize(f"{summary}{more}{skipped}"),
    )


def _answer_lines(found: GrepResult, params: GrepParams, context: ToolContext) -> ToolResult[GrepReceipt]:
    matches = tuple(found)
    summary = f"{plural(len(matches), 'match')} found" if matches else "No matches found"
    receipt = evolve(_receipt(found, summary, params, context, truncated=found.truncated), matches=matches)
    if not matches:
        return answer(receipt)
    # The receipt has whole lines; the message cuts very long ones.
    around = _lines_around(matches, params, context)
    found_in = {match.path: one_line(match.path) for match in matches}
    places = [_place(line, found_in) for line in around]
    whole = "\n".join([place + line.text for place, line in zip(places, around, strict=True)])
    kept = kept_as_blob(whole, params.output_mode, context, "search", "read", paths=found_in)
    if kept is not None:
        remedy = "narrow the search or set max_results to get a shorter answer"
        return answer(evolve(receipt, matches=kept), shown(kept, remedy))
    lines = [place + _shown(line) for place, line in zip(places, around, strict=True)]
    if found.truncated:
        lines.append(f"[{first_shown(len(matches))}; narrow the search or set max_results]")
    return answer(receipt, "\n".join(lines))


def _answer_files(params: GrepParams, context: ToolContext, most: int | None) -> ToolResult[GrepReceipt]:
    fs = require_filesystem(context)
    # One more than is counted, to learn whether there are more.
    per_file = 1 if params.output == "files" else MAX_COUNTED + 1
    # Enough for that many files even if each has the maximum number of matches.
    found = _search(fs, params, None if most is None else most * per_file, per_file)
    hits = Counter(match.path for match in found)
    paths = tuple(hits)[:most]
    counts = tuple(min(hits[path], MAX_COUNTED) for path in paths)
    partly = {path for path in paths if hits[path] > MAX_COUNTED}
    if found.truncated and params.output == "counts":
        # The search may have ended within the last file that it found.
        partly.update(path for path in tuple(hits)[-1:] if path in paths)
    left_out = found.truncated or len(paths) < len(hits)
    if params.output == "files":
        lines = [one_line(path) for path in paths]
        summary = f"{plural(len(paths), 'file')} with matches"
    else:
        lines = [
            f"{one_line(path)}:{count}{' or more' if path in partly else ''}"
            for path, count in zip(paths, counts, strict=True)
        ]
        at_least = "at least " if partly else ""
        summary = f"{at_least}{plural(sum(counts), 'match')} in {plural(len(paths), 'file')}"
    kept = kept_as_blob("\n".join(lines), params.output_mode, context, "search", "read", paths=paths)
    receipt = evolve(
        _receipt(found, summary if paths else "No matches found", params, context, truncated=left_out),
        match_count=sum(counts),
        truncated=left_out or bool(partly),
        files=paths if kept is None else kept,
        counts=counts,
    )
    if not paths:
        return answer(receipt)
    if kept is not None:
        remedy = "narrow the search or set max_results to get a shorter answer"
        return answer(evolve(receipt, counts=None), shown(kept, remedy))
    if left_out:
        files = f"{plural(len(paths), 'file')} {'is' if len(paths) == 1 else 'are'}"
        lines.append(f"[the first {files} shown; narrow the search or set max_results]")
    return answer(receipt, "\n".join(lines))


def _why_no_file(glob: str, params: GrepParams, context: ToolContext) -> str:
    """Return a message that no file matched the glob of a grep, and why, if that is known."""
    if not require_filesystem(context).is_directory(params.path):
        return f"the glob {one_line(glob)!r} does not match {params.path!r}; leave it out"
    why = why_no_match(glob, params.path, context, hidden=params.hidden, only_files=True)
    return f"no file matches the glob {one_line(glob)!r}; {why or 'check it with glob, or leave it out'}"


# Lines around matches


@fast_init
@frozen
class _Line:
    """One line of an answer: `span` is the part that matches, `None` for a line around a match."""

    path: str
    number: int
    text: str
    span: tuple[int, int] | None


# Separates lines that do not follow one another.
_GAP = _Line("", 0, "", None)


def _lines_around(matches: Sequence[GrepMatch], params: GrepParams, context: ToolContext) -> list[_Line]:
    """Return the lines of the matches and, if requested and readable, those around them."""
    before, after = params.lines_before, params.lines_after
    if not before and not after:
        return [line for match in matches for line in _lines_of(match)]
    made: list[_Line] = []
    for path, group in groupby(matches, key=lambda match: match.path):
        text = _lines_in(by_canonical_paths(require_filesystem(context)), path)
        for match in group:
            own = list(_lines_of(match))
            first, last = match.line_number, match.line_number + len(own) - 1
            if text[first - 1 : last] != [line.text for line in own]:
                # The file has changed meanwhile, or may not be read that far.
                text = []
            done = made[-1].number if made and made[-1].path == path else 0
            if done >= first:
                # These lines were shown after the previous match.
                while made[-1].path == path and made[-1].number >= first:
                    made.pop()
                done = first - 1
            start = max(first - before, done + 1)
            if made and not (done and start == done + 1):
                made.append(_GAP)
            made += [_Line(path, number, text[number - 1], None) for number in range(start, first) if text]
            made += own
            made += [
                _Line(path, number, text[number - 1], None)
                for number in range(last + 1, last + after + 1)
                if number <= len(text)
            ]
    return made


def _lines_of(match: GrepMatch) -> Iterator[_Line]:
    """Yield the lines of a match, each with the part of it that matches."""
    if "\n" not in match.line_content:
        yield _Line(match.path, match.line_number, match.line_content, (match.match_start, match.match_end))
        return
    start = 0
    for index, text in enumerate(match.line_content.split("\n")):
        span = max(match.match_start - start, 0), min(max(match.match_end - start, 0), len(text))
        yield _Line(match.path, match.line_number + index, text, span)
        start += len(text) + 1


def _lines_in(fs: Filesystem, path: str) -> list[str]:
    """Return the lines of a file as a search shows them; none if it may not be read."""
    try:
        data = fs.read_bytes(path, limit=MAX_READ).content
    except (OSError, ValueError):
        return []
    lines = data.decode(errors="replace").split("\n")
    return lines if lines[-1] else lines[:-1]


def _place(line: _Line, names: Mapping[str, str]) -> str:
    """Return what precedes the text of a line: its path, as `names` shows it, and its number."""
    if line is _GAP:
        return "--"
    mark = "-" if line.span is None else ":"
    return f"{names[line.path]}{mark}{line.number}{mark}"


def _shown(line: _Line) -> str:
    """Return a line with control characters escaped; of a very long one, only the part around the match."""
    text = line.text
    if len(text) <= SHOWN_LINE:
        return printable(text.removesuffix("\r"), is_line=True)
    match_start, match_end = line.span or (0, 0)
    start = max(match_start - 100, 0)
    around = printable(clip(text[start : match_end + 100], SHOWN_LINE), is_line=True)
    return f"{'... ' if start else ''}{around}{' ...' if match_end + 100 < len(text) else ''}"


TOOLS = (
    Tool(
        "grep",
        "Find lines that match a regular expression (RE2 syntax, without lookaround or backreferences). The answer has "
        "path:line:text for each match and path-line-text for the lines around it. glob limits which files are "
        "searched.",
        GrepParams,
        grep_handler,
        read_only=True,
        aliases={
            "glob_filter": "glob",
            "-A": "context_after",
            "-B": "context_before",
            "-C": "context",
            "-i": "case_insensitive",
            "head_limit": "max_results",
        },
        receipt=GrepReceipt,
        operation="search",
    ),
)
