"""`weakfs run` on host directories: in place, or in a layer over one."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from weakfs import HostFilesystem, OverlayFilesystem, Session
from weakfs.processes import Bubblewrap

from .conftest import COMMAND, TRANSCRIPTS, Run
from .places import Place, call, written
from .test_failures import one_line
from .test_pipes_and_terminals import in_a_pipe_that_closes, on_a_terminal
from .test_snapshots import KINDS

SHOP = TRANSCRIPTS / "shop.jsonl"
EXPECTED: dict[str, Any] = json.loads((TRANSCRIPTS / "shop.expected.json").read_bytes())

needs_sandbox = pytest.mark.skipif(Bubblewrap().problem() is not None, reason="there is no sandbox")


def files_of(root: Path) -> set[str]:
    return {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file() and not path.is_symlink()}


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_recorded_session_is_performed_in_place_and_can_be_undone(run: Run, place: Place, kind: str) -> None:
    before = place.seen
    done = run("run", SHOP, "--root", place.root, "--snapshots", kind, "--json")
    assert (done.status, done.err) == (0, "")
    kinds = [one["type"] for one in done.objects]
    assert kinds == ["root", "snapshot", *["call"] * EXPECTED["calls"], "total"]
    assert {one["id"] for one in done.objects if one["type"] == "call" and not one["success"]} == set(
        EXPECTED["failures"]
    )
    assert files_of(place.root) == set(EXPECTED["sha256"])
    assert (done.objects[1]["tag"], done.objects[1]["kind"]) == ("start", kind)
    assert run("restore", place.root, done.objects[1]["id"]).status == 0
    assert place.seen == before


@pytest.mark.slow
def test_the_last_line_says_how_to_undo(place: Place, tmp_path: Path) -> None:
    before = place.seen
    store = tmp_path / "a store"
    words = [*COMMAND, "run", str(SHOP), "--root", str(place.root), "--store", str(store)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    undo = done.stdout.splitlines()[-1].partition("to undo")[2].strip()
    assert undo.startswith("weakfs restore ")
    again = " ".join(COMMAND)
    subprocess.run(undo.replace("weakfs", again, 1), shell=True, check=True, capture_output=True)
    assert place.seen == before
    assert not place.store.exists()


def test_a_call_that_fails_leaves_no_trace(run: Run, place: Place, tmp_path: Path) -> None:
    before = place.seen
    transcript = written(
        tmp_path / "t.jsonl",
        call("edit_file", path="/README.md", old_string="no such text", new_string=""),
        call("write_file", path="/README.md/below", content=""),
        call("write_file", path="/new/../../outside", content=""),
        call("mkdir", path="/bin/shop"),
        call("mv", source="/src", destination="/src/below"),
        call("rm", path="/docs"),
        call("write_file", path="/config/current.toml", content="through a link"),
        call("write_file", path=f"/{'x' * 300}", content=""),
    )
    done = run("run", transcript, "--root", place.root, "--strict", "--json")
    assert done.status == 3
    assert done.objects[-1]["failed"] == 8
    assert done.objects[-1]["changes"] == "nothing differs"
    assert place.seen == before
    assert not (tmp_path / "outside").exists()


@pytest.mark.sampled(by_rule=True)
@pytest.mark.parametrize("sandbox", [pytest.param("required", marks=needs_sandbox), "auto", "off"])
def test_a_command_that_fails_midway_leaves_no_trace(run: Run, place: Place, tmp_path: Path, sandbox: str) -> None:
    before = place.seen
    command = "rm -r docs src; echo x > README.md; chmod 600 bin/shop; ln -s / root; sleep 60"
    transcript = written(tmp_path / "t.jsonl", call("shell", command=command, timeout=0.5))
    done = run("run", transcript, "--root", place.root, "--sandbox", sandbox)
    assert "timed_out" in done.out
    assert place.seen == before


@needs_sandbox
def test_a_command_in_the_sandbox_sees_nothing_but_the_directory(run: Run, place: Place, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    command = f"cat {tmp_path}/secret; echo out > {tmp_path}/outside; echo in > inside; exit 3"
    transcript = written(tmp_path / "t.jsonl", call("shell", command=command))
    done = run("run", transcript, "--root", place.root, "--sandbox", "required")
    assert "Exit code 3, 1 path changed" in done.out
    assert (place.root / "inside").read_text() == "in\n"
    assert not (tmp_path / "outside").exists()


def test_commands_are_not_run_unless_asked_for(run: Run, place: Place, tmp_path: Path) -> None:
    before = place.seen
    transcript = written(tmp_path / "t.jsonl", call("shell", command="rm -r docs"))
    for words in (["--root", place.root], ["--overlay", place.root], []):
        done = run("run", transcript, *words)
        assert "unknown_tool" in done.out
        assert "--sandbox" in done.err
    assert place.seen == before


@pytest.mark.parametrize("embed", [[], ["--embed"]], ids=["beside", "inside"])
def test_a_saved_session_rolls_the_directory_back_in_a_later_process(
    run: Run, place: Place, tmp_path: Path, embed: list[str]
) -> None:
    before = place.seen
    file = tmp_path / "s.json"
    assert run("run", SHOP, "--root", place.root, "--save", file, *embed).status == 0
    assert (tmp_path / "s.json.blobs").exists() == (not embed)
    session = Session.load(file)
    HostFilesystem(place.root, session=session)
    session.rollback("start")
    assert place.seen == before


def test_work_done_in_place_is_logged_and_shown(run: Run, place: Place, tmp_path: Path) -> None:
    transcript = written(tmp_path / "t.jsonl", call("write_file", path="/notes.md", content="text\n"))
    assert run("run", transcript, "--root", place.root, "--save", tmp_path / "s.json").status == 0
    assert run("log", tmp_path / "s.json").lines[-1].split()[3:] == ["write_file", "/notes.md", "+1", "-0", "ok"]


def test_a_run_over_a_directory_changes_nothing_in_it(run: Run, place: Place, tmp_path: Path) -> None:
    before = place.seen
    done = run("run", SHOP, "--overlay", place.root, "--save", tmp_path / "s.json", "--json")
    assert (done.status, done.err) == (0, "")
    assert place.seen == before
    changed = {(one["change"], one["path"]) for one in done.objects if one["type"] == "change"}
    assert changed > {("added", "/docs/vouchers.md"), ("changed", "/Makefile"), ("removed", "/docs/drafts")}
    assert ("moved", "/src/shop/web/responses.py") in changed
    assert "undo" not in done.objects[-1]
    session = Session.load(tmp_path / "s.json")
    layer = OverlayFilesystem(HostFilesystem(place.root), session)
    assert layer.read("/docs/vouchers.md").content.startswith("# Vouchers")


def test_a_commit_writes_the_reported_changes_and_can_be_undone(run: Run, place: Place) -> None:
    before = place.seen
    done = run("run", SHOP, "--overlay", place.root, "--commit", "--json")
    assert (done.status, done.err) == (0, "")
    assert files_of(place.root) == set(EXPECTED["sha256"])
    assert [one["type"] for one in done.objects[-3:]] == ["snapshot", "committed", "total"]
    assert run("restore", place.root, done.objects[-3]["id"]).status == 0
    assert place.seen == before


def test_a_commit_of_nothing_takes_no_snapshot(run: Run, place: Place, tmp_path: Path) -> None:
    transcript = written(tmp_path / "t.jsonl", call("ls"))
    done = run("run", transcript, "--overlay", place.root, "--commit", "--json")
    assert [one["type"] for one in done.objects] == ["overlay", "call", "total"]


def test_strict_commits_nothing_when_a_call_failed(run: Run, place: Place) -> None:
    before = place.seen
    done = run("run", SHOP, "--overlay", place.root, "--commit", "--strict")
    assert done.status == 3
    assert "not committed: 15 calls failed" in done.lines
    assert place.seen == before


def test_a_commit_over_concurrent_changes_is_refused(place: Place, tmp_path: Path) -> None:
    transcript = written(
        tmp_path / "t.jsonl",
        call("read_file", path="/README.md"),
        call("write_file", path="/README.md", content="ours\n"),
        call("write_file", path="/other.md", content="ours\n"),
    )
    words = ["run", str(transcript), "--overlay", str(place.root), "--commit", "--save", str(tmp_path / "s.json")]
    # Another program writes between the last call and the commit.
    code = (
        "import sys; from pathlib import Path; from weakfs.cli import main; from weakfs.cli import performer\n"
        "perform = performer.Performer.perform_all\n"
        "def then_change(*args, **named):\n"
        "    perform(*args, **named)\n"
        "    Path(sys.argv[1], 'README.md').write_text('theirs\\n')\n"
        "performer.Performer.perform_all = then_change\n"
        "sys.exit(main(sys.argv[2:]))\n"
    )
    done = subprocess.run([COMMAND[0], "-c", code, str(place.root), *words], capture_output=True, text=True)
    assert done.returncode == 1
    assert one_line(done.stderr)
    assert "'/README.md'" in done.stderr
    assert (place.root / "README.md").read_text() == "theirs\n"
    assert not (place.root / "other.md").exists()
    assert HostFilesystem(place.root).store.list() == ()
    assert Session.load(tmp_path / "s.json").session_id


@pytest.mark.parametrize(
    "words",
    [
        ["--root", ".", "--mount", "."],
        ["--root", ".", "--overlay", "."],
        ["--mount", ".", "--overlay", "."],
        ["--commit"],
        ["--root", ".", "--commit"],
        ["--embed"],
        ["--store", "x"],
        ["--mount", ".", "--snapshots", "git"],
        ["--root", ".", "--exclude", "x"],
        ["--root", ".", "--save", "./s.json"],
        ["--overlay", ".", "--save", "./docs/s.json"],
        ["--sandbox", "perhaps"],
    ],
)
def test_conflicting_options_are_refused(
    run: Run, place: Place, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    monkeypatch.chdir(place.root)
    before = place.seen
    done = run("run", SHOP, *words)
    assert (done.status, done.out) == (2, "")
    assert one_line(done.err)
    assert place.seen == before
    assert not place.store.exists()


@pytest.mark.parametrize("option", ["--root", "--overlay"])
def test_a_missing_directory_is_reported(run: Run, tmp_path: Path, option: str) -> None:
    done = run("run", SHOP, option, tmp_path / "nowhere")
    assert (done.status, done.out) == (1, "")
    assert one_line(done.err)
    assert "nowhere" in done.err


@pytest.mark.slow
def test_a_reader_that_stops_early_does_not_stop_the_work(place: Place) -> None:
    assert in_a_pipe_that_closes("run", SHOP, "--root", place.root) == (0, b"")
    assert files_of(place.root) == set(EXPECTED["sha256"])


def test_a_terminal_shows_it_all_in_colours(place: Place) -> None:
    status, _, plain = on_a_terminal("run", SHOP, "--overlay", place.root, "--commit", columns=120)
    assert status == 0
    assert "committed to" in plain
    assert "to undo" in plain


def test_the_directory_may_be_written_in_any_form(run: Run, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    (place.root.parent / "link").symlink_to("shop")
    transcript = written(place.root.parent / "t.jsonl", call("write_file", path="/a", content=""))
    monkeypatch.chdir(place.root / "docs")
    for name in ("..", os.path.join(place.root.parent, "link"), f"{place.root}/"):
        assert run("run", transcript, "--root", name).status == 0
    assert len(run("snapshots", place.root).lines) == 5


@needs_sandbox
def test_files_that_a_command_leaves_over_a_directory_are_committed_whatever_their_size(
    run: Run, place: Place, tmp_path: Path
) -> None:
    transcript = written(tmp_path / "t.jsonl", call("shell", command="head -c 5000000 /dev/zero > large; rm -r docs"))
    done = run("run", transcript, "--overlay", place.root, "--commit", "--sandbox", "required")
    assert (done.status, done.err) == (0, "")
    assert (place.root / "large").stat().st_size == 5_000_000
    assert not (place.root / "docs").exists()
