"""The output of a command: standard output, a terminal or a pipe, and progress on standard error."""

from __future__ import annotations

import io
import json
import os
import sys
import textwrap
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from weakfs.cli.errors import Failure
from weakfs.cli.formatting import shown
from weakfs.messages import printable

if TYPE_CHECKING:
    from rich.table import Table

# A text, or a text with a rich style.
Piece = str | tuple[str, str]

# Wide enough that no line is wrapped if the output is not a terminal.
PIPE_WIDTH = 10_000
# The maximum width of the text in front of a progress bar.
MAX_DOING = 36
# The minimum width, whatever the terminal reports: anything narrower is unreadable.
MIN_WIDTH = 20


class ReaderGone(Exception):
    """The reader of the output has stopped reading, as `head` does; this is not an error."""


class Output:
    """Standard output.

    With `finish_unread`, a command continues silently when the reader is gone: for commands that do more than print.
    """

    def __init__(self, *, finish_unread: bool = False) -> None:
        stdout = sys.stdout
        if isinstance(stdout, io.TextIOWrapper) and stdout.errors != "backslashreplace":
            # Characters that the encoding of the output cannot represent are shown as escapes.
            stdout.reconfigure(errors="backslashreplace")
        self._console = Console(highlight=False, markup=False, emoji=False)
        self._finish_unread = finish_unread

    @property
    def is_terminal(self) -> bool:
        """Whether the output is a terminal."""
        return self._console.is_terminal

    @property
    def width(self) -> int:
        """The number of columns of the terminal; 0 if there is none."""
        return self._console.width if self.is_terminal else 0

    def line(self, *pieces: Piece) -> None:
        """Print one line with control characters escaped; only terminals show styles and wrap long lines."""
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
        """Print bytes: raw in a pipe, as text with control characters escaped on a terminal."""
        if self.is_terminal:
            self._write(printable(data.decode("utf-8", "replace")))
            return
        with self._reader():
            sys.stdout.flush()
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()

    def table(self, title: str, rows: Sequence[tuple[str, str]]) -> None:
        """Print a titled table of names and values."""
        from rich.table import Table

        table = Table(box=None, show_header=False, pad_edge=False, title=None)
        table.add_column(style="cyan" if self.is_terminal else "")
        table.add_column(overflow="fold")
        for name, value in rows:
            table.add_row(Text(f"  {shown(name)}"), Text(shown(value)))
        self.line((title, "bold"))
        self._print(table)

    def grid(self, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Print rows of printable text below the names of their columns; a terminal folds what is too wide for it."""
        from rich.table import Table

        table = Table(box=None, pad_edge=False, header_style="bold" if self.is_terminal else "")
        for name in columns:
            table.add_column(Text(shown(name)), overflow="fold")
        for row in rows:
            table.add_row(*map(Text, row))
        self._print(table)

    def _print(self, table: Table) -> None:
        if self.is_terminal:
            with self._reader():
                self._console.print(table)
            return
        rendering = Console(file=io.StringIO(), width=PIPE_WIDTH)
        with rendering.capture() as capture:
            rendering.print(table)
        for line in capture.get().splitlines():
            self._write(line.rstrip() + "\n")

    def fits(self, text: str) -> bool:
        """Return whether a line fits without wrapping: always in a pipe, on a terminal if it is wide enough."""
        return not self.is_terminal or len(text) <= self._console.width

    def below(self, indent: int, text: str, style: str) -> None:
        """Print text wrapped and indented by `indent` columns; in a pipe, print it as one line."""
        width = max(self._console.width - indent, MIN_WIDTH) if self.is_terminal else PIPE_WIDTH
        for part in textwrap.wrap(text, width, break_on_hyphens=False):
            self.line(" " * indent, (part, style))

    def flush(self) -> None:
        """Flush the buffer."""
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
            raise Failure(f"cannot write the output: {error.strerror}; redirect it elsewhere") from error


def open_closed_streams() -> None:
    """Open the standard streams that were closed when the program started, as in `weakfs log FILE >&-`.

    Otherwise the next opened files, such as a database, would get their descriptors. Standard input is empty, what is
    written to standard error is discarded, and writing to standard output fails.
    """
    for name, mode, flags in (
        ("stdin", "r", os.O_RDONLY),
        ("stdout", "w", os.O_RDONLY),
        ("stderr", "w", os.O_WRONLY),
    ):
        if getattr(sys, name) is None:
            # The system gives out the lowest free descriptor, which is that of the stream.
            descriptor = os.open(os.devnull, flags)
            os.set_inheritable(descriptor, True)
            stream = open(descriptor, mode, encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
            setattr(sys, name, stream)


def abandon_output() -> None:
    """Discard what is still buffered, so that the interpreter does not fail on it at exit."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def warn(message: str) -> None:
    """Report an error on standard error, in one line."""
    print(f"weakfs: {shown(message)}", file=sys.stderr)


Advance = Callable[[], None]


@contextmanager
def progress(doing: str, *, total: int | None = None, wanted: bool = True) -> Generator[Advance]:
    """Show a progress bar on standard error during a long operation, if that is a terminal.

    Yield the function to call after each item.
    """
    console = Console(stderr=True)
    if not wanted or not console.is_terminal:
        yield _nothing
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

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
    """Cut out the middle of a long text, so that it leaves space for the progress bar."""
    return doing if len(doing) <= MAX_DOING else f"{doing[: MAX_DOING // 3]}…{doing[-MAX_DOING * 2 // 3 + 1 :]}"


def _nothing() -> None:
    pass
