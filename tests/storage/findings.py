"""What a module of these tests or of the benchmarks finds when it is run as a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


def findings(module: str, *arguments: str) -> dict[str, Any]:
    """Run a module, check that it found no fault, and return what it printed."""
    done = subprocess.run(
        [sys.executable, "-m", module, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.stdout, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    assert found["found"] == [], done.stderr
    assert done.returncode == 0, done.stderr
    return found
