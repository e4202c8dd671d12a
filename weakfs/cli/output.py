"""Where a command's words go: the terminal or pipe behind standard output, and progress beside them."""

from __future__ import annotations

import io
import json
import os
import sys
import textwrap
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from weakfs.cli.errors import Failure
from weakfs.cli.formatting import shown
from weakfs.messages import printable

# A text, or a text with a rich style.
Piece = str | tuple[str, str]

# Wide enough that nothing is folded where no terminal sets a width.
PIPE_WIDTH = 10_000
# What stands before a bar is no longer than this.
MAX_DOING = 36
# Narrower than this nothing can be read, whatever the terminal says.
MIN_WIDTH = 20


class ReaderGone(Exception):
    """Whoever read our output has stopped reading, as `head` does; no error of ours."""


class Output:
    """Standard output.

    `finish_unread` goes on quietly when the reader is gone: for commands that do more than print.
    """

    def __init__(self, *, finish_unread: bool = False) -> None:
        stdout = sys.stdout
        if isinstance(stdout, io.TextIOWrapper):
            # A terminal of another encoding shows what it can.
            stdout.reconfigure(errors="backslashreplace")
        self._console = Console(highlight=False, markup=False, emoji=False)
        self._finish_unread = finish_unread

    @property
    def is_terminal(self) -> bool:
        """Whether somebody is looking."""
        return self._console.is_terminal

    @property
    def width(self) -> int:
        """How many columns the terminal has; 0 where there is none."""
        return self._console.width if self.is_terminal else 0

    def line(self, *pieces: Piece) -> None:
        """Print one line, control characters escaped; styles show on terminals only, which fold what is too long."""
        safe = [printable(piece) if isinstance(piece, str) else (printable(piece[0]), piece[1]) for piece in pieces]
        if self.is_terminal:
            styled = Text.assemble(*safe)
            with self._reader():
                self._console.print(styled, soft_wrap=True)
        else:
            self._write("".join(piece if isinstance(piece, str) else piece[0] for piece in safe) + "\n")

    def record(self, **fields: object) -> None:
        """Print one JSON object on a line of its own, in ASCII."""
        self._write(json.dumps(fields) + "\n")

    def data(self, data: bytes) -> None:
        """Print bytes: into a pipe as they are, on a terminal as text with control characters escaped."""
        if self.is_terminal:
            self._write(printable(data.decode("utf-8", "replace")))
            return
        with self._reader():
            sys.stdout.flush()
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()

    def table(self, title: str, rows: Sequence[tuple[str, str]]) -> None:
        """Print a titled table of names and values."""
        table = Table(box=None, show_header=False, pad_edge=False, title=None)
        table.add_column(style="cyan" if self.is_terminal else "")
        table.add_column(overflow="fold")
        for name, value in rows:
            table.add_row(Text(f"  {shown(name)}"), Text(shown(value)))
        self.line((title, "bold"))
        if self.is_terminal:
            self._console.print(table)
            return
        rendering = Console(file=io.StringIO(), width=PIPE_WIDTH)
        with rendering.capture() as capture:
            rendering.print(table)
        for line in capture.get().splitlines():
            self._write(line.rstrip() + "\n")

    def fits(self, text: str) -> bool:
        """Tell whether a line can be read in one piece: in a pipe always, on a terminal if it is as wide."""
        return not self.is_terminal or len(text) <= self._console.width

    def below(self, indent: int, text: str, style: str) -> None:
        """Print a text in lines that begin `indent` columns from the left; in a pipe it is one."""
        width = max(self._console.width - indent, MIN_WIDTH) if self.is_terminal else PIPE_WIDTH
        for part in textwrap.wrap(text, width, break_on_hyphens=False):
            self.line(" " * indent, (part, style))

    def flush(self) -> None:
        """Send on what is buffered."""
        with self._reader():
            sys.stdout.flush()

    def _write(self, text: str) -> None:
        with self._reader():
            sys.stdout.write(text)

    @contextmanager
    def _reader(self) -> Generator[None]:
        try:
            yield
        except BrokenPipeError:
            abandon_output()
            if not self._finish_unread:
                raise ReaderGone from None
        except OSError as error:
            abandon_output()
            raise Failure(f"cannot write the output: {error.strerror}; send it elsewhere") from error


def abandon_output() -> None:
    """Let what is still buffered go nowhere, so that the interpreter does not fail on it when it ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def complain(message: str) -> None:
    """Tell on standard error what went wrong, in one line."""
    print(f"weakfs: {shown(message)}", file=sys.stderr)


Advance = Callable[[], None]


@contextmanager
def progress(doing: str, *, total: int | None = None, wanted: bool = True) -> Generator[Advance]:
    """Show a bar on standard error while something long is done; nothing unless that is a terminal.

    Gives the function to call for each thing that is done.
    """
    console = Console(stderr=True)
    if not wanted or not console.is_terminal:
        yield _nothing
        return
    counts = MofNCompleteColumn() if total is not None else TextColumn("{task.completed:,.0f}")
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        counts,
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(_fitting(shown(doing)), total=total)
        yield lambda: bar.advance(task)


def _fitting(doing: str) -> str:
    """Leave out the middle of a long text, so that the bar beside it has room."""
    return doing if len(doing) <= MAX_DOING else f"{doing[: MAX_DOING // 3]}…{doing[-MAX_DOING * 2 // 3 + 1 :]}"


def _nothing() -> None:
    pass
