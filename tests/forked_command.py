"""The command `weakfs` in a fork of this process: as in one of its own, but nothing has to be imported again."""

from __future__ import annotations

import os
import sys
import time
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path

from weakfs.cli import main


def start_command(
    arguments: Sequence[str],
    *,
    stdout: int,
    stderr: int,
    environment: Mapping[str, str] = os.environ,
    directory: Path | None = None,
) -> int:
    """Start the command with these descriptors as its output, and return the id of its process."""
    child = os.fork()
    if child:
        return child
    status = 70
    try:
        os.dup2(stdout, 1)
        os.dup2(stderr, 2)
        sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
        sys.stderr = os.fdopen(2, "w", encoding="utf-8", errors="backslashreplace", buffering=1, closefd=False)
        os.chdir(directory or ".")
        variables = dict(environment)
        os.environ.clear()
        os.environ.update(variables)
        time.tzset()
        status = main(arguments)
        sys.stdout.flush()
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def wait_for(child: int) -> int:
    """Wait for a process, and return its exit status."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
