"""System calls of single operations on a host directory, counted by strace in a separate process."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

# Performs an operation a few times, because the first calls also load modules, and once more between two marks.
PROGRAM = """
import os, sys
from weakfs import HostFilesystem, Session
root, store, operation, path = sys.argv[1:]
fs = HostFilesystem(root, session=Session(), store=store)
fs.snapshot()
act = {"write": lambda path: fs.write(path, "text"), "read": fs.read, "stat": fs.stat}[operation]
for _ in range(3):
    act(path)
os.getppid()
act(path)
os.getppid()
"""
MARK = "getppid("


def is_available() -> bool:
    """Return whether strace is installed, and may be used here."""
    found = shutil.which("strace")
    return found is not None and not subprocess.run([found, "-qq", "true"], capture_output=True, check=False).returncode


def count(root: Path, store: Path, operation: str, path: str) -> int:
    """Count the system calls of one `operation` on a file that the session knows."""
    with tempfile.NamedTemporaryFile("r") as log:
        command = ["strace", "-qq", "-o", log.name, sys.executable, "-c", PROGRAM]
        subprocess.run([*command, str(root), str(store), operation, path], check=True)
        lines = log.read().splitlines()
    first, last = (number for number, line in enumerate(lines) if line.startswith(MARK))
    return last - first - 1
