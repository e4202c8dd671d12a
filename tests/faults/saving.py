"""Save a session from a separate process: `python -m tests.faults.saving PATH WORDS [TIMES] [nobody]`.

Prints the error, or nothing. As nobody, it drops all privileges once everything is imported: an unprivileged user may
not even be able to read the interpreter. Run by tests, which must not fork a process with threads.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from tests.faults.crashing import told
from tests.faults.syscalls import System
from weakfs import Session

NOBODY = 65534


def give_up_rights() -> None:
    """Continue as a user who owns nothing."""
    if os.getuid() == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)


def main(path: Path, words: str, times: int, *, as_nobody: bool) -> None:
    """Save, and load what is there, which another process may have saved meanwhile."""
    session = told(words)
    with tempfile.TemporaryDirectory() as folder:
        session.save(Path(folder, "imports.json"))
        Session.load(Path(folder, "imports.json"))
    if as_nobody:
        give_up_rights()
    try:
        for _ in range(times):
            with System(at_once=300).in_force():
                session.save(path)
            Session.load(path)
    except (OSError, ValueError) as error:
        print(f"{type(error).__name__}: {error}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), as_nobody="nobody" in sys.argv[4:])
