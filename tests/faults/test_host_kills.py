"""A process that is killed at any moment of its work on a real directory leaves nothing half done."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.faults.dying import Death, dying
from tests.models.host import exact, record
from tests.sampling import sample, share
from weakfs import HostFilesystem

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


CHANGES: dict[str, Callable[[HostFilesystem], object]] = {
    "a file": lambda files: files.write("/file", "after\n"),
    "a file in place": lambda files: files.write("/first", "after\n"),
    "a deleted directory": lambda files: files.delete("/d", recursive=True),
    "a deleted hard link": lambda files: files.delete("/first"),
    "a file in place and its deleted hard link": lambda files: (
        files.write("/first", "after\n"),
        files.delete("/d", recursive=True),
    ),
}


@pytest.mark.sampled(by_rule=True)
@pytest.mark.parametrize("what", sample(list(CHANGES)))
def test_a_killed_undo_from_another_disk_leaves_no_temporary_file(tmp_path: Path, what: str) -> None:
    shared = Path("/dev/shm")
    if not os.access(shared, os.W_OK) or shared.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("there is no other device")
    root = tmp_path / "root"
    (root / "d" / "e").mkdir(parents=True)
    for name in ("file", "first", "d/e/inner"):
        (root / name).write_text("before\n")
    os.link(root / "first", root / "d" / "second")
    before = exact(record(root))
    with TemporaryDirectory(dir=shared) as store:

        def die(_: Callable[[str], None]) -> None:
            files = HostFilesystem(root, store=store)
            with files.session.transaction():
                CHANGES[what](files)
                os.kill(os.getpid(), signal.SIGKILL)

        for moment in itertools.count():

            def recover(_: Callable[[str], None], moment: int = moment) -> None:
                Death(moment).install()
                HostFilesystem(root, store=store)

            assert dying(die)[1]
            _, was_killed = dying(recover)
            HostFilesystem(root, store=store)
            assert exact(record(root)) == before, moment
            if not was_killed:
                break
