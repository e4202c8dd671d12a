"""The same program on files, in several processes with different hash seeds: the same session file, byte for byte."""

from __future__ import annotations

import subprocess
import sys
from itertools import count
from pathlib import Path

import pytest

from weakfs import Session
from weakfs.backends import InMemoryFilesystem
from weakfs.reducers import FileTree

ROOT = Path(__file__).parents[2]

PROGRAM = """
import sys
from itertools import count
from random import Random
from tests.models.edits import make, random_edits
from weakfs.backends import InMemoryFilesystem
from weakfs import MergeConflict, Session

random = Random(int(sys.argv[2]))
session = Session(session_id="program", clock=count(1).__next__)
fs = InMemoryFilesystem(session)
for number in range(60):
    fs.write(f"/many/n{number}", str(number))
moments = []
for turn in range(25):
    for edit in random_edits(random, 6):
        make(fs, edit)
    session.snapshot(random.choice((None, "a", "b")))
    moments.append(fs.snapshot())
    if random.random() < 0.3:
        fs.restore(random.choice(moments))
    if random.random() < 0.3:
        session.rollback(random.randint(0, session.seq))
    fork = session.fork()
    for edit in random_edits(random, 3):
        make(fs.bind(fork), edit)
    for edit in random_edits(random, 3):
        make(fs, edit)
    try:
        session.merge(fork)
    except MergeConflict as conflict:
        print(turn, conflict)
    try:
        with session.transaction(cause="turn"):
            for edit in random_edits(random, 3):
                make(fs, edit)
            if random.random() < 0.5:
                raise KeyError
    except KeyError:
        print(turn, "failed")
    print(turn, session.seq, fs.tree().fingerprint)
fs.import_bytes(fs.export_bytes())
session.compact(keep=40)
session.save(sys.argv[1])
"""


@pytest.mark.slow
@pytest.mark.sampled(by_rule=True)
@pytest.mark.parametrize("program", ["1", "2"])
def test_a_program_leaves_the_same_session_file_in_any_process(program: str, tmp_path: Path) -> None:
    outputs: set[tuple[str, bytes]] = set()
    for seed in ("0", "1", "random"):
        file = tmp_path / f"{seed}.json"
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, str(file), program],
            cwd=ROOT,
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        outputs.add((done.stdout, file.read_bytes()))
    assert len(outputs) == 1
    told, data = outputs.pop()
    (tmp_path / "again.json").write_bytes(data)
    session = Session.load(tmp_path / "again.json")
    session.save(tmp_path / "saved.json")
    assert (tmp_path / "saved.json").read_bytes() == data
    assert len(session.records) == 40
    assert InMemoryFilesystem(session).tree().fingerprint != FileTree().fingerprint
    assert "failed" in told


@pytest.mark.parametrize("compacts", [False, True])
def test_equal_empty_trees_are_written_the_same_before_and_after_loading(compacts: bool, tmp_path: Path) -> None:
    session = Session(session_id="s", clock=count(1).__next__)
    fs = InMemoryFilesystem(session)
    empty = fs.export_bytes()
    fs.write("/a", "x")
    for _ in range(2):
        fs.import_bytes(empty)
        session.rollback(1)
    fs.import_bytes(empty)
    if compacts:
        session.rollback(0)
        fs.import_bytes(empty)
        session.compact(keep=0)
        fs.import_bytes(empty)
    session.save(tmp_path / "first.json")
    Session.load(tmp_path / "first.json").save(tmp_path / "second.json")
    assert (tmp_path / "first.json").read_bytes() == (tmp_path / "second.json").read_bytes()
