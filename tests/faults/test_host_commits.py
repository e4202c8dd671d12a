"""A process that is killed: a call is completely in the files and in the durable session, or in neither."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from tests.faults.desk import WORKS, Desk, prepare, standard_desk
from tests.faults.dying import Death, dying
from tests.models.host import left_in_journals
from tests.sampling import is_exhaustive, sample, share
from weakfs.session.durable.checkpoints import checkpoints

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


@pytest.mark.sampled(by_rule=True)
@pytest.mark.parametrize("what", WORKS)
def test_a_call_changes_both_the_files_and_the_session_or_neither(what: str, tmp_path: Path) -> None:
    standard_desk(tmp_path)
    moment, dice = Random(what).randrange(4), Random(what)
    outcomes: set[bool] = set()
    while True:
        desk = Desk(tmp_path)
        prepare(desk)
        before, seq = desk.files.tree().fingerprint, desk.session.seq
        desk.session.close()
        name = f"{what}-{moment}"

        def work(acknowledge: Callable[[str], None], name: str = name, moment: int = moment) -> None:
            desk = Desk(tmp_path)
            Death(moment).install()
            WORKS[what](desk, name)
            acknowledge(name)

        def settle(_: Callable[[str], None], moment: int = dice.randrange(12)) -> None:
            Death(moment).install()
            Desk(tmp_path)

        acknowledged, was_killed = dying(work)
        if dice.random() < 0.5:
            # The process that settles it may be killed as well.
            dying(settle)

        desk = Desk(tmp_path)
        desk.check()
        is_done = desk.session.seq > seq or desk.session.snapshots[-1].tag == name
        if what != "snapshot":
            assert is_done == (desk.files.tree().fingerprint != before)
        assert is_done or not acknowledged
        desk.session.close()
        outcomes.add(is_done)
        if not was_killed:
            break
        moment += 1 if is_exhaustive() else 5
    assert outcomes == {True, False}


@pytest.mark.slow
def test_a_transaction_of_a_fork_is_in_the_session_only_if_it_is_in_the_files(tmp_path: Path) -> None:
    standard_desk(tmp_path)
    moment, outcomes = 0, set[tuple[bool, bool]]()
    while True:
        desk = Desk(tmp_path)
        prepare(desk)
        before, seq = desk.files.tree().fingerprint, desk.session.seq
        desk.session.close()

        def work(acknowledge: Callable[[str], None], moment: int = moment) -> None:
            desk = Desk(tmp_path)
            Death(moment).install()
            fork = desk.session.fork()
            files = desk.files.bind(fork)
            with fork.transaction():
                files.write("/new/file", "new")
                files.delete("/dir", recursive=True)
            acknowledge("changed")
            desk.session.merge(fork)
            acknowledge("merged")

        acknowledged, was_killed = dying(work)

        desk = Desk(tmp_path)
        assert left_in_journals(desk.store, after_interrupt=True) == []
        files = desk.files.tree().fingerprint != before
        is_stored = desk.session.seq > seq
        for path, is_there in (("/new/file", files), ("/dir/sub/c", not files)):
            assert desk.files.exists(path) == is_there
        # Until a fork is merged, only the files have its changes: see docs/howto/storage.md.
        assert files or not is_stored
        assert files or "changed" not in acknowledged
        assert is_stored or "merged" not in acknowledged
        desk.session.close()
        outcomes.add((files, is_stored))
        if not was_killed:
            break
        moment += 1 if is_exhaustive() else 3
    assert outcomes >= {(False, False), (True, True)}


@pytest.mark.sampled(by_rule=True)
@pytest.mark.parametrize("engine", ["folder", "sqlite"])
@pytest.mark.parametrize("seed", sample(range(8)))
def test_acknowledged_changes_survive_a_kill_at_any_moment(
    seed: int, engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoints, "LEAST", 20_000)
    standard_desk(tmp_path, engine)
    dice = Random(seed)
    for turn in range(share(16)):

        def work(acknowledge: Callable[[str], None], turn: int = turn) -> None:
            own = Random(f"{seed} {turn}")
            desk = Desk(tmp_path, engine)
            for number in range(1000):
                prepare(desk)
                what = own.choice(list(WORKS))
                WORKS[what](desk, f"{turn}-{number}")
                acknowledge(f"{turn}-{number} {what}")

        acknowledged, was_killed = dying(work, kill_after=dice.randrange(1, 12))

        assert was_killed
        desk = Desk(tmp_path, engine)
        desk.check()
        with_call = [
            word.split()[0] for word in acknowledged if word.split()[1] in ("write", "edit", "rm", "mv", "shell")
        ]
        assert set(with_call) <= desk.calls()
        desk.session.close()
