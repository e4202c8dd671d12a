"""kill -9 at every call that changes the disk, and at random moments: nothing is lost or half done."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.sampling import is_exhaustive, share
from tests.storage.findings import findings


@pytest.mark.slow
@pytest.mark.sampled(by_rule=True)
@pytest.mark.parametrize("durability", ["process", "power"])
def test_a_killed_process_loses_nothing_that_it_reported(tmp_path: Path, durability: str) -> None:
    stride, times = 1 if is_exhaustive() else 29, share(1200 if durability == "process" else 200) // 6
    results = findings("tests.storage.folder.kills", str(tmp_path), durability, str(stride), str(times))
    assert results["deaths"] > 3 * 80 / stride + times - 5
    assert results["left"] == 0
