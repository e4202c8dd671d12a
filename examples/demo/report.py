"""What the demo prints: sections, steps with their times, proofs, and a bar while something takes long."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text


class NotProved(Exception):
    """Two things that must be the same are not."""


class Step:
    """One piece of work: what came of it goes into `result`."""

    def __init__(self) -> None:
        self.result = ""


class Report:
    """Prints as the work goes on, and counts what was proved."""

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
        """Do a piece of work and print its name, its result and how long it took."""
        step = Step()
        began = time.perf_counter()
        yield step
        took = duration(time.perf_counter() - began)
        self._line(f"  {name:<34}", (f"{took:>10}", "cyan"), f"  {step.result}".rstrip())

    @contextmanager
    def bar(self, name: str, total: int | None = None) -> Generator[Callable[[], None]]:
        """Show a progress bar on a terminal; gives the function to call for each thing that is done."""
        columns = (TextColumn("  {task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        with Progress(*columns, console=self._bars, transient=True, disable=not self._bars.is_terminal) as progress:
            task = progress.add_task(name, total=total)
            yield lambda: progress.advance(task)

    def prove(self, claim: str, found: object, expected: object) -> None:
        """Print that two things are the same; `NotProved` if they are not."""
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
        self._line((f"\n{self._proofs} proofs hold; all of it took {took:.1f} s.", "bold green"))

    def _line(self, *pieces: str | tuple[str, str]) -> None:
        self._console.print(Text.assemble(*pieces), soft_wrap=True)


def duration(seconds: float) -> str:
    """Write a time in the unit that suits it."""
    if seconds < 1e-3:
        return f"{seconds * 1e6:.0f} µs"
    return f"{seconds * 1e3:.1f} ms" if seconds < 1 else f"{seconds:.2f} s"


def megabytes(size: int) -> str:
    """Write an amount of bytes for people."""
    return f"{size / 1e6:.1f} MB"
