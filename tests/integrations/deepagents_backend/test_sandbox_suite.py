"""The sandbox suite of langchain-tests: all of it passes, in memory and on the host."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from weakfs.processes import Bubblewrap

# It brings pytest plugins that our own tests do not use, so it runs in a separate process.
OPTIONS = (
    *("-q", "-c", "/dev/null", "--rootdir", ".", "--import-mode=importlib", "-p", "no:cacheprovider"),
    *("-o", "asyncio_mode=auto", "-o", "asyncio_default_fixture_loop_scope=function"),
    *("-p", "no:benchmark", "-p", "no:codspeed", "-p", "no:recording", "-p", "no:socket", "-p", "no:syrupy"),
)


@pytest.mark.exhaustive
@pytest.mark.skipif(Bubblewrap().problem() is not None, reason="there is no sandbox")
def test_the_whole_suite_passes() -> None:
    suite = Path(__file__).with_name("sandbox_suite.py")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *OPTIONS, str(suite)],
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-1000:]
    # 86 tests in each.
    assert "172 passed" in done.stdout
    assert "skipped" not in done.stdout
