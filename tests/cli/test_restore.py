"""`weakfs restore` and `weakfs repair`: a directory is restored exactly, and the restore can be undone."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.sampling import is_exhaustive, sample

from .conftest import COMMAND, Run
from .places import WORKSPACE as WHOLE
from .places import Place, call, written
from .test_failures import one_line
from .test_snapshots import KINDS, id_of, rows

# The number of files of a restore that is interrupted: enough that it takes longer than checking its progress.
COUNT = 800 if is_exhaustive() else 400


@pytest.mark.parametrize("kind", KINDS)
def test_a_restore_is_exact_and_can_be_undone(run: Run, place: Place, kind: str) -> None:
    first = id_of(run("snapshot", place.root, "--kind", kind))
    before = place.seen
    place.disturb()
    disturbed = place.seen
    done = run("restore", place.root, first)
    assert (done.status, done.err) == (0, "")
    assert place.seen == before
    assert {"A  /Makefile", "M  /README.md", "M  /bin/shop", "D  /new/file", "A  /src"} <= set(done.lines)
    kept = done.lines[0].split()[5].rstrip(";")
    assert done.lines[0] == f"kept the previous state as {kept}; restore that to undo this"
    assert done.lines[-1].startswith(f"restored {first}: ")
    assert run("restore", place.root, kept).status == 0
    assert place.seen == disturbed


def test_a_dry_run_reports_the_same_and_changes_nothing(run: Run, place: Place) -> None:
    first = id_of(run("snapshot", place.root))
    place.disturb()
    disturbed = place.seen
    told = run("restore", place.root, first, "--dry-run")
    assert place.seen == disturbed
    assert len(rows(run("snapshots", place.root))) == 1
    assert told.lines[-1].startswith(f"would restore {first}: ")
    assert run("restore", place.root, first).lines[1:-1] == told.lines[:-1]


def test_files_that_did_not_change_are_not_touched(run: Run, place: Place) -> None:
    first = id_of(run("snapshot", place.root))
    place.disturb()
    untouched = (place.root / "pyproject.toml").stat()
    run("restore", place.root, first)
    again = (place.root / "pyproject.toml").stat()
    assert (again.st_ino, again.st_ctime_ns) == (untouched.st_ino, untouched.st_ctime_ns)


def test_latest_ignores_snapshots_that_restores_took(run: Run, place: Place) -> None:
    id_of(run("snapshot", place.root))
    latest = id_of(run("snapshot", place.root))
    before = place.seen
    for _ in range(2):
        place.disturb()
        assert run("restore", place.root, "--latest").lines[-1].startswith(f"restored {latest}: ")
        assert place.seen == before


def test_no_snapshot_is_taken_before_a_restore_if_disabled(run: Run, place: Place) -> None:
    first = id_of(run("snapshot", place.root))
    place.disturb()
    assert run("restore", place.root, first, "--no-keep").status == 0
    assert len(rows(run("snapshots", place.root))) == 1


def test_the_exit_status_says_whether_anything_differed(run: Run, place: Place) -> None:
    first = id_of(run("snapshot", place.root))
    assert run("restore", place.root, first, "--dry-run", "--exit-code").status == 0
    place.disturb()
    assert run("restore", place.root, first, "--dry-run", "--exit-code").status == 3
    *changes, last = run("restore", place.root, first, "--json").objects
    assert [one["type"] for one in changes] == ["snapshot", *["change"] * (len(changes) - 1)]
    assert {"type": "change", "change": "changed", "path": "/README.md"} in changes
    assert (last["type"], last["before"]) == ("restored", changes[0]["id"])


def test_a_missing_snapshot_is_reported(run: Run, place: Place) -> None:
    for words in (["no-such"], ["--latest"]):
        done = run("restore", place.root, *words)
        assert (done.status, done.out) == (1, "")
        assert one_line(done.err)


def test_files_outside_the_directory_are_not_touched(run: Run, place: Place, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("secret")
    first = id_of(run("snapshot", place.root))
    before = place.seen
    place.disturb()
    (place.root / "src").symlink_to(outside)
    assert run("restore", place.root, first).status == 0
    assert place.seen == before
    assert [path.name for path in outside.iterdir()] == ["secret"]


def in_the_middle(place: Place, tmp_path: Path, *options: str) -> subprocess.Popen[bytes]:
    """Start a run in place that has changed something and waits in an unfinished call."""
    command = "echo half > half && rm -r docs && touch ready && sleep 1000"
    transcript = written(
        tmp_path / "t.jsonl",
        call("write_file", path="/whole.txt", content="whole\n"),
        call("shell", command=command),
        call("write_file", path="/never.txt", content=""),
    )
    words = [*COMMAND, "run", str(transcript), "--root", str(place.root), "--sandbox", "off", *options]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    while not (place.root / "ready").exists():
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)
    return process


@pytest.mark.slow
@pytest.mark.sampled(by_rule=True)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_run_is_rolled_back_saved_and_reported(
    run: Run, place: Place, tmp_path: Path, number: signal.Signals
) -> None:
    process = in_the_middle(place, tmp_path, "--save", str(tmp_path / "s.json"))
    process.send_signal(number)
    out, err = process.communicate()
    assert (process.returncode, err) == (130, b"weakfs: interrupted after 1 of 3 calls\n")
    assert sorted(set(os.listdir(place.root)) - {"whole.txt"}) == sorted(os.listdir(WHOLE))
    assert b"to undo" in out
    logged = run("log", "--records", tmp_path / "s.json", "--json").objects
    assert any(one.get("event", {}).get("path") == "/whole.txt" for one in logged)


def test_a_killed_run_is_reported_by_inspecting_commands_and_undone_by_repair(
    run: Run, place: Place, tmp_path: Path
) -> None:
    process = in_the_middle(place, tmp_path)
    process.kill()
    process.communicate()
    looked = run("snapshots", place.root)
    assert looked.status == 0
    assert one_line(looked.err)
    assert f"weakfs repair {place.root}" in looked.err
    assert (place.root / "half").exists()
    repaired = run("repair", place.root)
    assert (repaired.status, repaired.err) == (0, "")
    assert repaired.lines == [f"repaired {place.root}: undid 1 operation left unfinished"]
    assert sorted(set(os.listdir(place.root)) - {"whole.txt"}) == sorted(os.listdir(WHOLE))
    assert run("repair", place.root).lines == [f"nothing to repair in {place.root}"]
    assert run("snapshots", place.root).err == ""
    assert run("repair", place.root, "--json").objects == [{"type": "repaired", "root": str(place.root), "undone": 0}]


@pytest.mark.slow
def test_commands_that_change_a_directory_first_undo_unfinished_work_and_say_so(
    run: Run, place: Place, tmp_path: Path
) -> None:
    process = in_the_middle(place, tmp_path)
    process.kill()
    process.communicate()
    done = run("snapshot", place.root)
    assert done.status == 0
    assert one_line(done.err)
    assert done.err.startswith("weakfs: undid 1 operation in ")
    assert not (place.root / "half").exists()
    assert (place.root / "docs" / "index.md").exists()


def test_compacting_keeps_what_unfinished_work_needs(run: Run, place: Place, tmp_path: Path) -> None:
    process = in_the_middle(place, tmp_path)
    process.kill()
    process.communicate()
    assert run("drop", place.root, "--keep-last", "0").status == 0
    assert run("compact", place.root).status == 0
    assert run("repair", place.root).status == 0
    assert (place.root / "docs" / "index.md").read_bytes() == (WHOLE / "docs" / "index.md").read_bytes()


def test_an_interrupted_restore_leaves_the_old_state_or_the_new_one(run: Run, place: Place) -> None:
    for number in range(COUNT):
        (place.root / f"file{number}").write_text(f"{number}\n")
    first = id_of(run("snapshot", place.root))
    before = place.seen
    files = [place.root / f"file{number}" for number in range(COUNT)]
    for moment in sample((0, 1, COUNT // 4, COUNT // 2, 3 * COUNT // 4)):
        for file in files:
            file.write_text("changed\n")
        disturbed = place.seen
        process = subprocess.Popen(
            [*COMMAND, "restore", str(place.root), first], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        # An interrupt while the interpreter starts is not ours to handle.
        while process.poll() is None and not has_come_to(moment, place.root, files):
            time.sleep(0.001)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate()
        # Nor is one that arrives when the command is done and the interpreter exits.
        assert process.returncode in (0, 130, -signal.SIGINT), err
        if process.returncode == 130:
            assert one_line(err.decode())
            assert err.startswith(b"weakfs: interrupted")
        assert place.seen in (before, disturbed)


def has_come_to(moment: int, root: Path, files: list[Path]) -> bool:
    """Return whether a restore has put this many files in place; with 0, whether it has begun to create them."""
    if moment:
        return sum(file.stat().st_size != len("changed\n") for file in files) >= moment
    return any(root.glob(".weakfs-*.tmp"))
