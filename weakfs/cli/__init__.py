"""The `weakfs` command. It needs the extra `cli` (click and rich), which is imported when the command starts."""

from __future__ import annotations

import sys
from collections.abc import Sequence

__all__ = ["main"]

USAGE = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command with `arguments` (default: the program's own) and give its exit status."""
    try:
        from weakfs.cli.application import run
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in ("click", "rich"):
            raise
        print(
            f"weakfs: cannot start: the package {missing!r} is not installed; run: pip install 'weakfs[cli]'",
            file=sys.stderr,
        )
        return USAGE
    return run(arguments)
