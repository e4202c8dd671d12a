"""The recorded run with Google's ADK: the work, what went wrong, the rewind, and going on in another process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import weakfs


@pytest.mark.exhaustive
def test_all_is_undone_and_the_session_goes_on_in_another_process() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "examples.integrations.google_adk"],
        cwd=Path(weakfs.__file__).parent.parent,
        capture_output=True,
        text=True,
        check=True,
    )

    printed = done.stdout.splitlines()
    assert [line for line in printed if line.startswith(("left", "calls"))] == [
        "left: nothing",
        "left: /src/app.py",
        "left: /docs/ports.md /src/app.py",
        "left: /docs/ports.md /notes.md /src/app.py",
        "calls: read_file write_file write_file read_file execute write_file",
    ]
    assert sum("'status': 'error'" in line for line in printed) == 1
