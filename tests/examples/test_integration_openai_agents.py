"""The recorded run with the OpenAI Agents SDK: the work, what went wrong, and going on in another process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import weakfs


@pytest.mark.exhaustive
def test_all_is_undone_and_the_session_goes_on_in_another_process() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "examples.integrations.openai_agents"],
        cwd=Path(weakfs.__file__).parent.parent,
        capture_output=True,
        text=True,
        check=True,
    )

    printed = done.stdout.splitlines()
    assert [line for line in printed if line.startswith(("left", "calls"))] == [
        "left: nothing",
        "left: /docs/ports.md /src/app.py",
        "left: /src/app.py",
        "left: /notes.md /src/app.py",
        "calls: apply_patch:ok write_file:ok apply_patch:reject shell:ok write_file:ok",
    ]
