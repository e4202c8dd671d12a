"""Counting work without a clock: how many lines of a module's code a call runs."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType, ModuleType
from typing import Any


def steps_of(call: Callable[[], object], *modules: ModuleType) -> int:
    """Count the lines of code that modules run during a call, generator expressions by their items."""
    count = 0
    files = {module.__file__ for module in modules}

    def local(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal count
        count += event == "line"
        return local

    def entered(frame: FrameType, event: str, argument: Any) -> Any:
        return local if frame.f_code.co_filename in files else None

    before = sys.gettrace()
    sys.settrace(entered)
    try:
        call()
    finally:
        sys.settrace(before)
    return count
