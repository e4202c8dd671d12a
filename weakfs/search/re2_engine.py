"""The regular expression engine, RE2: compiling a pattern within limits of its size and memory.

RE2 searches in time linear in the text, whatever the pattern.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any, Final, Protocol, cast

from weakfs.messages import a_type

MAX_PATTERN_BYTES: Final = 16 * 1024
# When RE2's automaton exceeds its memory, RE2 simulates the program, at about 3 ns per instruction and byte:
# this limits that cost. `.{1000}` has 8,000 instructions, `\pL{200}` 240,000.
MAX_PROGRAM_SIZE: Final = 20_000
# More memory avoids that for a large program: `(a?){1000}a{1000}[bc]` over 1 MB of `a` takes 12 s with RE2's
# default of 8 MiB and 50 ms with 32 MiB. Small programs gain nothing, and RE2 keeps the last 128 patterns.
LARGE_PROGRAM: Final = 2_000
LARGE_MEMORY: Final = 32 * 1024 * 1024


class _Match(Protocol):
    def span(self) -> tuple[int, int]: ...


class Regex(Protocol):
    """A compiled expression; positions are in bytes."""

    programsize: int

    def search(self, text: bytes, pos: int, endpos: int) -> _Match | None: ...


class _Re2(Protocol):
    """The parts of the `re2` module that are used; it has no type stubs."""

    Options: type[Any]
    error: type[Exception]

    def compile(self, pattern: str, options: object) -> Regex: ...


def check_pattern(pattern: str) -> None:
    """Raise `TypeError` or `ValueError` if a pattern is not text, is too large, or has a lone surrogate."""
    if not isinstance(pattern, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"a pattern is text, not {a_type(pattern)}: {pattern!r:.60}")
    try:
        size = len(pattern.encode())
    except UnicodeEncodeError as problem:
        raise refusal(
            pattern, f"it has a lone surrogate at position {problem.start}, which no text can contain; remove it"
        ) from None
    if size > MAX_PATTERN_BYTES:
        raise refusal(
            pattern, f"it has {size:,} bytes, but at most {MAX_PATTERN_BYTES:,} are allowed; search for a part of it"
        )


def compile_regex(expression: str, pattern: str, *, case_insensitive: bool, by_lines: bool = True) -> Regex:
    """Compile an expression; errors quote `pattern`, from which it was made. With `by_lines`, no match spans lines."""
    re2 = _re2()
    options = re2.Options()
    options.never_nl = by_lines
    options.dot_nl = not by_lines
    options.log_errors = False
    options.case_sensitive = not case_insensitive
    try:
        regex = re2.compile(expression, options)
        if LARGE_PROGRAM < regex.programsize <= MAX_PROGRAM_SIZE:
            options.max_mem = LARGE_MEMORY
            regex = re2.compile(expression, options)
    except re2.error as problem:
        reason = problem.args[0]
        message = _shortened(reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason))
        if "too large" in message or "repetition size" in message:
            message += "; repeat less: at most 1,000 times in total, or use '*' or '+'"
        else:
            message += "; put a backslash before literal punctuation, as in '\\(' or '\\['"
        raise refusal(pattern, message) from None
    if regex.programsize > MAX_PROGRAM_SIZE:
        raise refusal(pattern, "the pattern is too large; repeat less, or use '*' or '+' instead of counts")
    return regex


def _re2() -> _Re2:
    """Import RE2 when the first pattern is compiled. It takes 2 ms, and most programs never need it."""
    try:
        return cast(_Re2, importlib.import_module("re2"))
    except ImportError as error:
        python = ".".join(map(str, sys.version_info[:2]))
        raise ModuleNotFoundError(
            f"cannot search: the module re2 of the package google-re2 cannot be imported ({error}); run "
            f"pip install --only-binary :all: google-re2, or, if there is no wheel for Python {python} on "
            f"{sys.platform}, install a C++ compiler and the headers of RE2, Abseil and pybind11 (on Debian: "
            f"apt-get install g++ python3-dev libre2-dev libabsl-dev pybind11-dev; with Homebrew: "
            f"brew install re2 abseil pybind11) and run pip install google-re2",
            name="re2",
        ) from error


def refusal(pattern: str, reason: str) -> ValueError:
    """Return the error that says why a pattern is refused."""
    return ValueError(f"cannot search for {_shortened(pattern)!r}: {reason}")


def _shortened(text: str) -> str:
    return text if len(text) <= 100 else text[:100] + "..."
