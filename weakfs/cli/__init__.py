"""The `weakfs` command. It needs the extra `cli` (click and rich), which is imported when the command starts."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

from weakfs import __version__
from weakfs.cli.signals import interrupts_deferred

__all__ = ["main"]

USAGE = 2
INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command with `arguments` (default: `sys.argv`) and return its exit status."""
    if [*(sys.argv[1:] if arguments is None else arguments)] == ["--version"]:
        # The version is printed here because importing the command takes ten times as long.
        print(f"weakfs, version {__version__}")
        return 0
    try:
        run = _loaded()
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in ("click", "rich"):
            raise
        print(
            f"weakfs: cannot start: the package {missing!r} is not installed; run: pip install 'weakfs[cli]'",
            file=sys.stderr,
        )
        return USAGE
    except KeyboardInterrupt:
        print("weakfs: interrupted", file=sys.stderr)
        return INTERRUPTED
    return run(arguments)


def _loaded() -> Callable[[Sequence[str] | None], int]:
    with interrupts_deferred():
        from weakfs.cli.application import run
    return run
