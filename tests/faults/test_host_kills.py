"""A process that is killed at any moment of its work on a real directory leaves nothing half done."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.sampling import share

KILLS = share(12)
SEED = 1


@pytest.mark.sampled(by_rule=True)
@pytest.mark.parametrize(
    ("what", "kind"),
    [
        *[(what, kind) for what in ("snapshots", "restores") for kind in ("tree", "git", "tar")],
        *[(what, "tree") for what in ("transactions", "moves")],
    ],
)
def test_reported_work_survives_a_kill_and_nothing_is_half_done(tmp_path: Path, what: str, kind: str) -> None:
    command = [sys.executable, "-m", "tests.faults.killing", str(tmp_path / "place"), what, kind, str(KILLS), str(SEED)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr[-4000:]
    result = json.loads(done.stdout)
    assert result["found"] == []
    assert result["counts"]["deaths"] == KILLS
    assert result["counts"]["reports"] > 0
