"""`glob`: finds files by name."""

from __future__ import annotations

from attrs import field

from weakfs.class_decorators import frozen
from weakfs.messages import one_line, plural
from weakfs.search import compile_glob
from weakfs.tools.blobs import BlobReference
from weakfs.tools.context import ToolContext, require_filesystem
from weakfs.tools.errors import InvalidPattern
from weakfs.tools.handlers.glob_hints import why_no_match
from weakfs.tools.handlers.output import ABOUT_MODE, OutputMode, first_shown, kept_as_blob, shown
from weakfs.tools.results import Receipt, ToolResult, answer, summarize
from weakfs.tools.schemas.arguments import param
from weakfs.tools.tool import Tool


def check_glob(pattern: str) -> None:
    """Raise `InvalidPattern` for a malformed glob pattern."""
    try:
        compile_glob(pattern)
    except ValueError as error:
        raise InvalidPattern(str(error)) from error


@frozen
class GlobParams:
    """The parameters of `glob`."""

    pattern: str = field(metadata=param("the pattern, such as **/*.py"))
    path: str = field(default="/", metadata=param("the directory to search"))
    max_results: int = field(default=1000, metadata=param("maximum number of paths", at_least=1))
    output_mode: OutputMode = field(default="auto", metadata=ABOUT_MODE)
    hidden: bool = field(default=False, metadata=param("match hidden files too"))


@frozen(kw_only=True)
class GlobReceipt(Receipt):
    """The paths that matched, newest first, then by path; `truncated` is true if there are more.

    If there are too many to show, `paths` refers to them, one per line.
    """

    paths: tuple[str, ...] | BlobReference | None = None
    count: int | None = None
    truncated: bool | None = None


def glob_handler(params: GlobParams, *, context: ToolContext) -> ToolResult[GlobReceipt]:
    """Find files by name: one path per line, newest first."""
    fs = require_filesystem(context)
    check_glob(params.pattern)
    found = fs.glob(params.pattern, path=params.path, hidden=params.hidden, max_results=params.max_results)
    paths = tuple(match.path for match in found)
    summary = f"{plural(len(paths), 'path')} found" if paths else "No files matched"
    if not paths and found.truncated:
        summary += " before a limit ended the search; search in a smaller directory"
    elif not paths:
        why = why_no_match(params.pattern, params.path, context, hidden=params.hidden)
        summary = summary if why is None else f"{summary}: {why}"
    lines = [one_line(path) for path in paths]
    kept = kept_as_blob("\n".join(lines), params.output_mode, context, "search", paths=paths)
    receipt = GlobReceipt(
        paths=paths if kept is None else kept,
        count=len(paths),
        truncated=found.truncated,
        summary_text=summarize(f"{summary}, and there are more" if paths and found.truncated else summary),
    )
    if not paths:
        return answer(receipt)
    if kept is not None:
        return answer(receipt, shown(kept, "narrow the pattern or set max_results to get a shorter answer"))
    if found.truncated:
        lines.append(f"[{first_shown(len(paths))}; narrow the pattern or set max_results]")
    return answer(receipt, "\n".join(lines))


TOOLS = (
    Tool(
        "glob",
        "Find files by name, newest first. * and ? stay inside one directory, ** crosses directories; a "
        "pattern without a slash matches names at any depth, one that ends in / matches directories.",
        GlobParams,
        glob_handler,
        read_only=True,
        receipt=GlobReceipt,
        operation="search",
    ),
)
