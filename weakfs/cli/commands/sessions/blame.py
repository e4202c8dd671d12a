"""`weakfs blame` and `weakfs why`: the calls that wrote the lines of a file."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Literal

import click
from rich.cells import cell_len

from weakfs.cli.errors import DONE, as_failure, usage
from weakfs.cli.formatting import counted, date_and_time, padded, shortened, shown
from weakfs.cli.options import (
    at_option,
    expansion_option,
    file_argument,
    filesystem_option,
    json_option,
    registry_option,
)
from weakfs.cli.output import Output
from weakfs.history.plain_values import SECOND, moment

if TYPE_CHECKING:
    from weakfs import Session
    from weakfs.history import BlameLine
    from weakfs.history.calls import NumberedCall

Style = Literal["plain", "porcelain", "json"]
# The first and the last line number; `None` means the end of the file.
Span = tuple[int, int | None]

# The maximum width of the column that names the call.
MAX_CALL = 28
# The width of a record number that takes the place of a commit id.
ID_WIDTH = 40


@click.command("blame")
@file_argument
@click.argument("path")
@click.option("-L", "lines", metavar="A,B", help="Only lines A to B; with A,+N, the N lines starting at A.")
@at_option
@click.option("--porcelain", is_flag=True, help='The format of "git blame --porcelain", for programs.')
@filesystem_option
@registry_option
@expansion_option
@json_option
def blame_command(
    file: str,
    path: str,
    lines: str | None,
    at: str | None,
    porcelain: bool,
    filesystem: str | None,
    registry: str | None,
    max_expansion: float | None,
    as_json: bool,
) -> int:
    """Show which call wrote each line of a file.

    PATH is a file of the session FILE, which is a saved session, or a location such as sqlite:sessions.db#ID. Each line
    shows the number of the record, its time, the tool and the id of the call, and the line. Lines are followed through
    edits, moves, copies, merges and rollbacks. "(found)" marks lines that another program wrote before the record, and
    "^" before the number marks lines that are older than all records that are kept.

    With --porcelain, the number of the record takes the place of the commit.
    """
    from weakfs.cli.sessions import load

    span = span_of(lines)
    session = load(file, registry, max_expansion)
    style: Style = "json" if as_json else "porcelain" if porcelain else "plain"
    show_blame(Output(), session, path, at, filesystem, span, style)
    return DONE


@click.command("why")
@file_argument
@click.argument("place", metavar="PATH:LINE")
@at_option
@filesystem_option
@registry_option
@expansion_option
@json_option
def why_command(
    file: str,
    place: str,
    at: str | None,
    filesystem: str | None,
    registry: str | None,
    max_expansion: float | None,
    as_json: bool,
) -> int:
    """Show the call that wrote one line of a file.

    PATH is a file of the session FILE. The call is shown with its arguments and its answer.
    """
    from weakfs.cli.sessions import load

    session = load(file, registry, max_expansion)
    show_reason(Output(), session, place, at, filesystem, as_json=as_json)
    return DONE


def span_of(text: str | None) -> Span:
    """Read `A,B`, `A,+N`, `A` or `,B`."""
    if text is None:
        return 1, None
    first, _, last = text.partition(",")
    count = last.startswith("+")
    digits = last.removeprefix("+")
    if not (first or last) or not all(part.isascii() and part.isdigit() for part in (first, digits) if part):
        raise usage(f"cannot use -L {text!r}: give lines such as 10,20 or 10,+5")
    start = int(first or 1)
    end = int(digits) if digits else None
    if count and end is not None:
        end += start - 1
    if start < 1 or (end is not None and end < start):
        raise usage(f"cannot use -L {text!r}: lines are numbered from 1, and the last must not come before the first")
    return start, end


def show_blame(
    out: Output, session: Session, path: str, at: str | None, filesystem: str | None, span: Span, style: Style
) -> None:
    """Print the selected lines of a file, each with the call that wrote it."""
    from weakfs.history.calls import calls_of

    every, contents = _blamed(session, path, at, filesystem)
    first, last = span
    if first > max(len(every), 1):
        raise usage(f"cannot show line {first} of {path!r}: it has {counted(len(every), 'line')}; give some of these")
    lines = every[first - 1 : last]
    if style == "json":
        for line in lines:
            out.record(type="line", **_fields(line))
    elif style == "porcelain":
        for part in _porcelain(lines, contents, path, {call.call.call_id: call for call in calls_of(session)}):
            out.data(part)
    else:
        _show_table(out, lines)


def _blamed(
    session: Session, path: str, at: str | None, filesystem: str | None
) -> tuple[tuple[BlameLine, ...], list[bytes]]:
    """Return the blamed lines of a file, and their bytes."""
    from weakfs.cli.sessions import chosen, files_of, moment_named, moment_of

    view = moment_of(session, at)
    name = chosen(session, filesystem)
    with as_failure(f"blame {path!r}"):
        lines = session.blame(path, at=None if at is None else moment_named(at), filesystem=name)
        content = files_of(session, view, name).read_bytes(path).content
    return lines, content.split(b"\n")


def _show_table(out: Output, lines: Sequence[BlameLine]) -> None:
    if not lines:
        return
    records = [("^" if line.kind == "boundary" else "") + str(line.record) for line in lines]
    calls = {line.record: _call_text(line) for line in lines}
    wide = max(map(len, records))
    call_width = min(max(map(cell_len, calls.values())), MAX_CALL)
    number_width = len(str(lines[-1].number))
    for line, record in zip(lines, records, strict=True):
        out.line(
            (f"{record:>{wide}}", "yellow"),
            f"  {'' if line.at is None else date_and_time(line.at):14}  ",
            (padded(shortened(calls[line.record], call_width), call_width), "cyan"),
            f"  {line.number:>{number_width}}) ",
            line.text,
        )


def _call_text(line: BlameLine) -> str:
    if line.kind == "found":
        return "(found)"
    return " ".join(shown(part) for part in (line.tool, line.call_id) if part is not None)


def _fields(line: BlameLine) -> dict[str, object]:
    return {
        "number": line.number,
        "text": line.text,
        "record": line.record,
        "call_id": line.call_id,
        "tool": line.tool,
        "caller": line.caller,
        "at": None if line.at is None else moment(line.at, fraction=True),
        "kind": line.kind,
    }


def _porcelain(
    lines: Sequence[BlameLine], contents: Sequence[bytes], path: str, calls: dict[str, NumberedCall]
) -> Iterator[bytes]:
    """Yield the lines in the format of `git blame --porcelain`, as git's manual describes it."""
    from weakfs.filesystem import normalize

    known: set[int] = set()
    for record, group in groupby(lines, key=lambda line: line.record):
        together = list(group)
        for place, line in enumerate(together):
            count = f" {len(together)}" if not place else ""
            yield f"{record:0{ID_WIDTH}} {line.number} {line.number}{count}\n".encode()
            if record not in known:
                known.add(record)
                call = calls.get(line.call_id or "")
                yield from (f"{one}\n".encode() for one in _commit(line, "" if call is None else call.call.summary))
                yield b"filename %s\n" % normalize(path)[1:].encode("utf-8", "surrogatepass")
            yield b"\t%s\n" % contents[line.number - 1]


def _commit(line: BlameLine, summary: str) -> Iterator[str]:
    """Yield the lines that describe a commit."""
    for role in ("author", "committer"):
        yield f"{role} {shown(line.caller or line.call_id or line.kind)}"
        yield f"{role}-mail <>"
        yield f"{role}-time {(line.at or 0) // SECOND}"
        yield f"{role}-tz +0000"
    yield f"summary {': '.join(filter(None, (_call_text(line), shown(summary)))) or f'record {line.record}'}"
    if line.kind == "boundary":
        yield "boundary"


def show_reason(
    out: Output, session: Session, place: str, at: str | None, filesystem: str | None, *, as_json: bool
) -> None:
    """Print the call that wrote one line."""
    path, _, digits = place.rpartition(":")
    if not path or not (digits.isascii() and digits.isdigit()):
        raise usage(f"cannot look up {place!r}: give a path and the number of a line, such as /app.py:12")
    lines, _ = _blamed(session, path, at, filesystem)
    if not 1 <= int(digits) <= len(lines):
        raise usage(f"cannot look up {place!r}: the file has {counted(len(lines), 'line')}; give one of these")
    line = lines[int(digits) - 1]
    call = _call_of(session, line)
    arguments, receipt = (None, None) if call is None else (call.call.read_arguments(), call.call.read_receipt())
    if as_json:
        known = {} if call is None else {"call": call.number, "status": call.call.status, "summary": call.call.summary}
        out.record(type="line", **_fields(line), **known, arguments=arguments, answer=receipt)
        return
    out.line((f"{line.number}) ", "bold"), line.text)
    if line.kind == "boundary":
        out.line(f"older than record {line.record + 1}, the first that is kept")
        return
    when = "" if line.at is None else f", {moment(line.at)}"
    if call is None:
        found = "found by" if line.kind == "found" else "written by"
        because = "" if line.call_id is None else f" of {shown(line.call_id)}"
        out.line(f"{found} record {line.record}{because}{when}; no call is known")
        return
    who = "" if line.caller is None else f" by {shown(line.caller)}"
    out.line(f"call {call.number}  ", (shown(call.call.tool), "cyan"), f"  {shown(call.call.call_id)}{who}{when}")
    out.line(("arguments", "bold"))
    out.line(json.dumps(arguments, ensure_ascii=False, indent=2))
    out.line(("answer", "bold"), f"  {shown(call.call.status)}: {shown(call.call.summary)}")
    out.line(json.dumps(receipt, ensure_ascii=False, indent=2))


def _call_of(session: Session, line: BlameLine) -> NumberedCall | None:
    """Return the call that wrote a line: the next one with its id, because a call is recorded after its changes."""
    from weakfs.history.calls import calls_of

    found = (one for one in calls_of(session) if one.call.call_id == line.call_id and one.record is not None)
    return next((one for one in found if one.record is not None and one.record.seq > line.record), None)
