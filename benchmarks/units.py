"""Numbers with units, in a readable form."""

from __future__ import annotations


def time_text(nanoseconds: float) -> str:
    for unit, size in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if nanoseconds >= size:
            return f"{three_digits(nanoseconds / size)} {unit}"
    return f"{three_digits(nanoseconds)} ns"


def bytes_text(count: float) -> str:
    for unit, size in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= size:
            return f"{three_digits(count / size)} {unit}"
    return f"{count:.0f} B"


def count_text(count: float) -> str:
    return f"{count:,.0f}"


def factor_text(ratio: float) -> str:
    return f"{three_digits(ratio)}x" if ratio >= 0.01 else "<0.01x"


def files_text(count: int) -> str:
    return f"{count:,} files"


def three_digits(value: float) -> str:
    if value >= 100:
        return f"{value:,.0f}"
    text = f"{value:.1f}" if value >= 10 else f"{value:.2f}"
    return text.rstrip("0").rstrip(".")
