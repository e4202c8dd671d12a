"""The output of the demo, 80 columns wide: texts, timed steps, proofs, and a progress bar for long operations."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from textwrap import wrap

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

WIDTH = 80
# The widths of a step's name and of its time, in columns.
NAME, TIME = 36, 9
DIFF_STYLES = {"+": "green", "-": "red", "@": "cyan"}


class NotProved(Exception):
    """Two things that must be equal are not."""


class Step:
    """One piece of work; set `result` to its outcome."""

    def __init__(self) -> None:
        self.result = ""


class Report:
    """Prints progress, and counts the proofs."""

    def __init__(self) -> None:
        self._console = Console(highlight=False, markup=False, emoji=False)
        self._bars = Console(stderr=True)
        self._proofs = 0
        self._began = time.perf_counter()

    def section(self, title: str) -> None:
        """Begin a section."""
        self._line(("\n" + title, "bold"))

    @contextmanager
    def step(self, name: str) -> Generator[Step]:
        """Do a piece of work and print its name, its result and its duration."""
        step = Step()
        began = time.perf_counter()
        yield step
        took = duration(time.perf_counter() - began)
        indent = NAME + TIME + 4
        first, *rest = wrap(step.result, WIDTH - indent) or [""]
        # A long name has lines of its own.
        *above, last = wrap(name, NAME)
        for line in above:
            self._line(f"  {line}")
        self._line(f"  {last:<{NAME}}", (f"{took:>{TIME}}", "cyan"), f"  {first}".rstrip())
        for line in rest:
            self._line(" " * indent + line)

    @contextmanager
    def bar(self, name: str, total: int | None = None) -> Generator[Callable[[], None]]:
        """Show a progress bar on a terminal; yield the function to call after each item."""
        columns = (TextColumn("  {task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        with Progress(*columns, console=self._bars, transient=True, disable=not self._bars.is_terminal) as progress:
            task = progress.add_task(name, total=total)
            yield lambda: progress.advance(task)

    def prove(self, claim: str, found: object, expected: object) -> None:
        """Print that two things are equal; raise `NotProved` if they are not."""
        if found != expected:
            raise NotProved(f"{claim}: {found!r:.300} is not {expected!r:.300}")
        self._proofs += 1
        self._wrapped(claim, label="proved  ", label_style="green")

    def note(self, text: str) -> None:
        """Print a line between the steps."""
        self._wrapped(text, style="dim")

    def paragraph(self, text: str) -> None:
        """Print a text below an empty line."""
        self._line("")
        self.text(text)

    def text(self, text: str, *, label: str = "", style: str = "") -> None:
        """Print a text of one or more lines, with a label before the first."""
        self._wrapped(text, label=label, style=style)

    def diff(self, lines: Iterable[str]) -> None:
        """Print the lines of a unified diff."""
        for line in lines:
            self._line((f"    {line:.{WIDTH - 4}}", DIFF_STYLES.get(line[:1], "")))

    def commands(self, title: str, lines: Iterable[str]) -> None:
        """Print commands to be copied, which are never wrapped."""
        self._line((f"\n{title}", "bold"))
        for line in lines:
            self._line(f"  {line}")

    def end(self) -> None:
        """Print the last line."""
        took = time.perf_counter() - self._began
        self._line((f"\n{self._proofs} proofs hold; total time {took:.1f} s.", "bold green"))

    def _wrapped(self, text: str, *, label: str = "", label_style: str = "", style: str = "") -> None:
        indent = "  " + " " * len(label)
        lines = [piece for line in text.split("\n") for piece in wrap(line, WIDTH - len(indent)) or [""]]
        self._line("  ", (label, label_style), (lines[0], style))
        for line in lines[1:]:
            self._line((indent + line, style))

    def _line(self, *pieces: str | tuple[str, str]) -> None:
        self._console.print(Text.assemble(*pieces), soft_wrap=True)


def duration(seconds: float) -> str:
    """Format a duration in a suitable unit."""
    if seconds < 1e-3:
        return f"{seconds * 1e6:.0f} µs"
    return f"{seconds * 1e3:.1f} ms" if seconds < 1 else f"{seconds:.2f} s"


def megabytes(size: int) -> str:
    """Format a number of bytes for people."""
    return f"{size / 1e6:.1f} MB"
