"""The recorded run with LangChain: the work, what went wrong, going back in time, and going on in another process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import weakfs


@pytest.mark.exhaustive
def test_the_files_go_back_with_the_thread_in_another_process() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "examples.integrations.langchain"],
        cwd=Path(weakfs.__file__).parent.parent,
        capture_output=True,
        text=True,
        check=True,
    )

    printed = done.stdout.splitlines()
    assert [line.partition(":")[0] for line in printed[:4]] == [
        "edit_file success",
        "write_file success",
        "shell error",
        "shell success",
    ]
    assert printed[4:] == [
        "left: nothing",
        "write_file success: Created /notes.md (12 bytes)",
        "left: docs/ports.md notes.md src/app.py",
        "port = 8000",
        "calls: edit_file write_file shell shell write_file",
    ]
