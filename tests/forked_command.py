"""The command `weakfs` in a fork of this process: as in a new process, but without importing everything again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path

from weakfs.cli import main

# A command that hangs is killed after this many seconds, far more than any takes.
LONGEST = 300


def run_command(*arguments: str, given: str = "") -> subprocess.CompletedProcess[str]:
    """Run the command until it ends, with `given` as its input. A command that hangs is killed."""
    with tempfile.TemporaryFile() as source, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        source.write(given.encode())
        source.seek(0)
        status = wait_for(start_command(arguments, stdin=source.fileno(), stdout=out.fileno(), stderr=err.fileno()))
        for stream in (out, err):
            stream.seek(0)
        return subprocess.CompletedProcess(arguments, status, out.read().decode(), err.read().decode())


def start_command(
    arguments: Sequence[str],
    *,
    stdin: int = 0,
    stdout: int,
    stderr: int,
    environment: Mapping[str, str] = os.environ,
    directory: Path | None = None,
) -> int:
    """Start the command with these descriptors as its input and output, and return the id of its process."""
    child = os.fork()
    if child:
        return child
    status = 70
    try:
        signal.alarm(LONGEST)
        os.dup2(stdin, 0)
        os.dup2(stdout, 1)
        os.dup2(stderr, 2)
        sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
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
