"""What work costs, measured without a clock: lines of code run, functions called, bytes allocated."""

from __future__ import annotations

import sys
import tracemalloc
from collections.abc import Callable
from types import FrameType, ModuleType
from typing import Any


def lines_of(work: Callable[[], object], *modules: ModuleType) -> int:
    """Count the lines of code that run: those of these modules, or all. A generator expression counts once per item."""
    count = 0
    files = {module.__file__ for module in modules}

    def local(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal count
        count += event == "line"
        return local

    def entered(frame: FrameType, event: str, argument: Any) -> Any:
        return local if not files or frame.f_code.co_filename in files else None

    before = sys.gettrace()
    sys.settrace(entered)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


def calls_of(work: Callable[[], object], *, in_c: bool = True) -> int:
    """Count the functions that are called, in Python and, unless they are left out, in C."""
    count = 0
    counted = ("call", "c_call") if in_c else ("call",)

    def profile(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        count += event in counted

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


def peak_memory(work: Callable[[], object]) -> int:
    """Return the maximum number of bytes allocated at the same time."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
