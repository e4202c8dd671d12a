"""The output of the demo: sections, timed steps, proofs, and a progress bar for long operations."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text


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
        self._line(f"  {name:<34}", (f"{took:>10}", "cyan"), f"  {step.result}".rstrip())

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
        self._line(("  proved  ", "green"), claim)

    def note(self, text: str) -> None:
        """Print a line between the steps."""
        self._line(("  " + text, "dim"))

    def end(self) -> None:
        """Print the last line."""
        took = time.perf_counter() - self._began
        self._line((f"\n{self._proofs} proofs hold; total time {took:.1f} s.", "bold green"))

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
