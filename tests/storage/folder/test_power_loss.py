"""Simulated power loss: a recorded log of writes and syncs is replayed with unsynced writes dropped or torn."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from tests.sampling import share
from tests.storage.folder.histories import STEPS, finish, models, open_store, position
from tests.storage.folder.system import Disk

STATES = models()


@pytest.mark.parametrize("seed", range(16))
def test_acknowledged_changes_survive_a_power_failure(tmp_path: Path, seed: int) -> None:
    """With durability "power", at random moments of a history that appends, seals, checkpoints, trims and folds."""
    root = tmp_path / "recorded"
    root.mkdir()
    disk, model, acknowledged = Disk(root), STATES[0].copy(), [0]
    store = open_store(root, "power")
    with disk.system().in_force():
        for step in STEPS:
            step(store, model)
            acknowledged.append(len(disk.log))
    chance = Random(seed)
    for _ in range(share(60)):
        moment = chance.randint(0, len(disk.log))
        target = tmp_path / "after"
        disk.without_power(moment, chance, target)
        done = sum(at <= moment for at in acknowledged) - 1
        found = open_store(target, "process")
        at = position(found, STATES)
        assert {done, done + 1} & set(at), (moment, done, at)
        finish(found, at[-1], STATES)
        found.close()
