"""Merging writers together with a compactor and a deleter, all of which may be killed; see `tests.storage.soak`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.sampling import is_exhaustive
from tests.storage.servers import ENGINES, empty_location
from weakfs.cli import main

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


@pytest.mark.slow
@pytest.mark.sampled(by_rule=True)
@pytest.mark.filterwarnings("ignore::weakfs.storage.DurabilityWarning")
@pytest.mark.parametrize("engine", ENGINES)
def test_writers_lose_nothing_while_others_compact_and_delete(
    engine: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    location = empty_location(engine, request, tmp_path)
    jobs = 2_000 if is_exhaustive() else 60

    done = subprocess.run(
        [sys.executable, "-m", "tests.storage.soak", location, "--jobs", str(jobs)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )

    assert done.stdout, done.stderr
    found = json.loads(done.stdout)
    assert found["found"] == [], done.stderr
    assert sum(found["done"].values()) > jobs // 2
    assert main(["fsck", location]) == 0
