"""`weakfs replay`: the result of a session's records, compared with its file; nothing outside is touched."""

from __future__ import annotations

import gc
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from hashlib import sha256
from itertools import count
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.faults.damage import in_rows
from tests.session.files.contents import blob_path, elsewhere
from weakfs import HostFilesystem, InMemoryFilesystem, Session
from weakfs.snapshots import Store

from .conftest import TRANSCRIPTS, WORKSPACE, Run
from .places import Place

Document = dict[str, Any]


def changed(file: Path, change: Callable[[Document], None]) -> Path:
    """Change a saved session so that it can still be read: its records become rows, and its checksum is updated."""
    document = in_rows(orjson.loads(file.read_bytes()))
    change(document)
    rest = {key: value for key, value in document.items() if key not in ("format", "version", "sha256")}
    document["sha256"] = sha256(orjson.dumps(rest)[1:]).hexdigest()
    file.write_bytes(orjson.dumps(document))
    Session.load(file)
    return file


@pytest.fixture
def storied(tmp_path: Path) -> Path:
    """Save a session with a snapshot, a rollback to it and one to a record, a merge, and a failed transaction."""
    session = Session(session_id="story", clock=count(1).__next__)
    files = InMemoryFilesystem(session)
    files.write("/src/app.py", "port = 80\n")
    session.snapshot("first")
    files.write("/src/app.py", "port = 8080\n")
    session.rollback("first")
    fork = session.fork()
    files.bind(fork).write("/fork.txt", "theirs\n")
    files.write("/own.txt", "ours\n")
    session.merge(fork)
    files.write("/late.txt", "late\n")
    session.rollback(session.seq - 1)
    try:
        with session.transaction(cause="call"):
            files.delete("/own.txt")
            raise InterruptedError
    except InterruptedError:
        pass
    files.write("/end.txt", "end\n")
    file = tmp_path / "story.json"
    session.save(file)
    return file


def of_type(document: Document, tag: str) -> list[Document]:
    return [record for record in document["records"] if record["type"] == tag]


def verdicts(run: Run, file: Path) -> dict[tuple[str, int], str]:
    """Verify a session, and return the verdict on each moment."""
    found = run("replay", file, "--verify", "--json").objects
    return {(one["type"], one["seq"]): one["verdict"] for one in found if one["type"] != "total"}


def test_a_replay_shows_the_digests_at_every_snapshot_and_at_the_end(run: Run, saved: Path) -> None:
    session = Session.load(saved)
    then = InMemoryFilesystem(session.at("before")).tree()
    now = InMemoryFilesystem(session).tree()

    first, last, total = run("replay", saved, "--json").objects

    assert (first["type"], first["tag"], first["seq"]) == ("snapshot", "before", 4)
    assert first["filesystems"] == [{"filesystem": None, "digest": then.digest, "fingerprint": then.fingerprint}]
    assert (last["type"], last["seq"]) == ("end", 9)
    assert last["filesystems"] == [{"filesystem": None, "digest": now.digest, "fingerprint": now.fingerprint}]
    assert total == {"type": "total", "records": 9, "after": 0, "moments": 2}


def test_a_replay_is_printed_in_readable_lines(run: Run, saved: Path) -> None:
    digest = InMemoryFilesystem(Session.load(saved)).tree().digest

    done = run("replay", saved)

    assert done.status == 0
    assert done.lines[0] == "4  snapshot before"
    assert f"   digest {digest[:16]}" in done.lines[3]
    assert done.lines[-1] == "replayed 9 records"


def test_a_session_that_matches_its_records_is_verified(run: Run, storied: Path) -> None:
    done = run("replay", storied, "--verify")

    assert (done.status, done.err) == (0, "")
    assert done.lines[0] == " 1  snapshot first  same"
    assert done.lines[-1] == "replayed 11 records: 6 moments compared, all as saved"


def test_every_state_in_the_file_is_compared(run: Run, storied: Path) -> None:
    assert verdicts(run, storied) == {
        ("snapshot", 1): "same",
        ("rollback", 3): "same",
        ("merge", 5): "same",
        ("rollback", 8): "same",
        ("rollback", 10): "same",
        ("end", 11): "same",
    }


def test_a_changed_content_of_a_record_is_found_in_every_state_after_it(run: Run, storied: Path) -> None:
    def change(document: Document) -> None:
        document["blobs"].append("port = 81\n")
        of_type(document, "fs/file_written")[0]["event"]["content"] = {"blob": len(document["blobs"]) - 1}

    changed(storied, change)

    done = run("replay", storied, "--verify")
    assert done.status == 3
    assert " 1  snapshot first  differs" in done.lines
    assert "    fs/tree differs: /src/app.py (changed)" in done.lines
    assert done.lines[-1] == "replayed 11 records: 6 moments compared, 6 of them not as saved"
    snapshot = run("replay", storied, "--verify", "--json").objects[0]
    [files] = snapshot["filesystems"]
    assert files["digest"] != files["saved_digest"]
    assert files["fingerprint"] != files["saved_fingerprint"]
    assert snapshot["differences"] == [{"slice": "fs/tree", "places": ["/src/app.py (changed)"]}]


def test_a_changed_time_of_a_record_is_found_although_digests_are_equal(run: Run, saved: Path) -> None:
    def change(document: Document) -> None:
        of_type(document, "fs/file_written")[-1]["event"]["at"] += 1

    changed(saved, change)

    done = run("replay", saved, "--verify", "--json")
    assert done.status == 3
    end = done.objects[-2]
    assert (end["verdict"], end["differences"]) == ("differs", [{"slice": "fs/tree", "places": ["times"]}])
    assert end["filesystems"][0]["digest"] == end["filesystems"][0]["saved_digest"]


def with_another_tree(document: Document, number: int) -> int:
    """Add a copy of a slice whose tree has no files, and return its number."""
    document["trees"].append({"mode": 0o755, "times": [5, 5]})
    row = {**document["slices"][number], "items": [{"tree": len(document["trees"]) - 1}]}
    document["slices"].append({key: value for key, value in row.items() if key != "after"})
    return len(document["slices"]) - 1


def files_in(document: Document, numbers: list[int]) -> int:
    """Return the place of the files among the slices of a state."""
    [place] = [place for place, number in enumerate(numbers) if document["slices"][number]["tag"] == "fs/tree"]
    return place


def exchange(document: Document, numbers: list[int]) -> None:
    """Replace the files of a state with none."""
    place = files_in(document, numbers)
    numbers[place] = with_another_tree(document, numbers[place])


def test_a_changed_state_at_the_end_is_found(run: Run, storied: Path) -> None:
    changed(storied, lambda document: exchange(document, document["state"]))

    assert {moment for moment, verdict in verdicts(run, storied).items() if verdict != "same"} == {("end", 11)}
    assert run("replay", storied, "--verify").status == 3


def test_a_changed_snapshot_is_found(run: Run, storied: Path) -> None:
    changed(storied, lambda document: exchange(document, document["snapshots"][0]["state"]))

    assert {moment for moment, verdict in verdicts(run, storied).items() if verdict != "same"} == {("snapshot", 1)}


@pytest.mark.parametrize(("place", "seq"), [(0, 3), (1, 8), (2, 10)])
def test_a_changed_state_of_a_rollback_is_found(run: Run, storied: Path, place: int, seq: int) -> None:
    def change(document: Document) -> None:
        exchange(document, of_type(document, "session/rolled_back")[place]["event"]["state"])

    changed(storied, change)

    assert {moment for moment, verdict in verdicts(run, storied).items() if verdict != "same"} == {("rollback", seq)}


def test_a_changed_state_of_a_merge_is_found(run: Run, storied: Path) -> None:
    def change(document: Document) -> None:
        exchange(document, of_type(document, "session/merged")[0]["event"]["state"])

    changed(storied, change)

    assert {moment for moment, verdict in verdicts(run, storied).items() if verdict != "same"} == {("merge", 5)}


def test_a_changed_log_is_found_and_its_place_is_named(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "s.json"
    run("run", TRANSCRIPTS / "shop.jsonl", "--mount", WORKSPACE, "--save", file)

    def change(document: Document) -> None:
        [calls] = [row for row in document["slices"] if row["tag"] == "tools/called"]
        calls["records"][7] = calls["records"][8]

    changed(file, change)

    done = run("replay", file, "--verify", "--json")
    assert done.status == 3
    assert done.objects[-2]["differences"] == [{"slice": "tools/called", "places": ["tools/called[7].call_id"]}]


def test_a_record_that_cannot_be_applied_is_an_error_that_names_it(run: Run, storied: Path) -> None:
    def change(document: Document) -> None:
        document["records"][10] |= {"type": "session/slice_cleared", "event": {"slice": "nowhere"}}

    changed(storied, change)

    for words in ([], ["--verify"]):
        done = run("replay", storied, *words)
        assert done.status == 1
        assert done.out == ""
        assert "record 11 (session/slice_cleared) cannot be replayed: no type is registered" in done.err


def test_a_compacted_session_is_compared_from_its_earliest_state(run: Run, storied: Path) -> None:
    session = Session.load(storied)
    session.compact(keep=2)
    session.save(storied)

    done = run("replay", storied, "--verify")

    assert done.status == 0
    assert done.lines[-1] == (
        "replayed 2 records after record 9, the earliest state that is kept: 1 moment compared, all as saved; "
        "2 more taken as saved, because the records do not determine them"
    )
    assert run("replay", storied, "--json").objects[-1]["after"] == 9


def test_an_empty_session_is_replayed(run: Run, tmp_path: Path) -> None:
    Session(session_id="empty").save(tmp_path / "s.json")

    done = run("replay", tmp_path / "s.json", "--verify")

    assert done.status == 0
    assert done.lines[-1] == "replayed 0 records: 1 moment compared, all as saved"


@pytest.mark.parametrize("name", ["shop.jsonl", "shop.anthropic.jsonl", "shop.openai-responses.jsonl"])
def test_a_session_of_recorded_tool_calls_is_verified_and_no_tool_runs_again(
    run: Run, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "s.json"
    run("run", TRANSCRIPTS / name, "--mount", WORKSPACE, "--save", file)

    def never(*arguments: object, **named: object) -> None:
        raise AssertionError

    monkeypatch.setattr("weakfs.tools.Toolset.call", never)
    monkeypatch.setattr(InMemoryFilesystem, "__init__", never)

    done = run("replay", file, "--verify", "--json")

    assert (done.status, done.err) == (0, "")
    assert done.objects[-1]["differing"] == done.objects[-1]["as_recorded"] == 0


@pytest.mark.parametrize("words", [[], ["--verify"]])
def test_the_error_for_a_missing_blob_names_it_and_the_record_that_needs_it(
    run: Run, tmp_path: Path, words: list[str]
) -> None:
    file = tmp_path / "s.json"
    elsewhere(b"one", b"two").save(file)
    assert run("replay", file, *words).status == 0
    place = blob_path(file, b"two")
    place.unlink()

    done = run("replay", file, *words)

    assert done.status == 1
    assert done.out == ""
    told = done.err.splitlines()[-1]
    assert told.startswith(f"weakfs: cannot replay '{file}'")
    assert place.parent.name + place.name in told
    assert "record 1 (fs/tree_restored) needs it" in told


def test_verifying_reads_every_content(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "s.json"
    elsewhere(b"one", b"two").save(file)
    blob_path(file, b"two").write_bytes(b"2wo")

    assert run("replay", file).status == 0
    done = run("replay", file, "--verify")
    assert done.status == 1
    assert "was damaged or changed" in done.err


def worked_in(place: Place, file: Path) -> None:
    """Work in a host directory, with snapshots and a rollback, and save the session."""
    session = Session(session_id="host", clock=count(1).__next__)
    files = HostFilesystem(place.root, session=session, store=Store(place.store))
    session.snapshot("before")
    files.write("/README.md", "changed\n")
    files.delete("/src", recursive=True)
    session.rollback("before")
    files.write("/new.txt", "new\n")
    files.snapshot("files")
    session.save(file)
    # The journals of the filesystem go with it, not at some later moment while the test looks at the store.
    del session, files
    gc.collect()


@pytest.mark.parametrize("words", [[], ["--verify"]])
def test_a_replay_leaves_the_directory_of_a_session_alone(
    run: Run, place: Place, tmp_path: Path, words: list[str]
) -> None:
    worked_in(place, tmp_path / "s.json")
    place.disturb()
    before = place.seen
    kept = {path: path.stat().st_mtime_ns for path in place.store.rglob("*")}

    done = run("replay", tmp_path / "s.json", *words, "--json")

    assert (done.status, done.err) == (0, "")
    assert place.seen == before
    assert {path: path.stat().st_mtime_ns for path in place.store.rglob("*")} == kept
    assert done.objects[0]["filesystems"][0]["filesystem"] is not None


def test_a_replay_does_not_need_the_directory(run: Run, place: Place, tmp_path: Path) -> None:
    worked_in(place, tmp_path / "s.json")
    shutil.rmtree(place.root)
    shutil.rmtree(place.store)

    done = run("replay", tmp_path / "s.json", "--verify")

    assert (done.status, done.err) == (0, "")
    assert not place.root.exists()
    assert not place.store.exists()


# Reports on standard error everything that this process does to files, except for reads.
WATCHED = """
import os, sys
CHANGING = {
    "os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.chmod", "os.chown", "os.link", "os.symlink", "os.truncate",
    "os.utime", "os.setxattr", "shutil.rmtree", "shutil.move", "subprocess.Popen", "os.posix_spawn", "os.fork",
    "os.exec", "socket.connect",
}
def watch(event, arguments):
    writes = event == "open" and isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
    if event in CHANGING or writes:
        os.write(2, f"{event} {arguments}\\n".encode())
from weakfs.cli import main
sys.dont_write_bytecode = True
sys.addaudithook(watch)
sys.exit(main(sys.argv[1:]))
"""


def test_the_process_writes_nothing_and_starts_nothing(place: Place, tmp_path: Path) -> None:
    worked_in(place, tmp_path / "s.json")

    done = subprocess.run(
        [sys.executable, "-c", WATCHED, "replay", str(tmp_path / "s.json"), "--verify", "--json"],
        capture_output=True,
        text=True,
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout.splitlines()[-1])["differing"] == 0


@pytest.mark.parametrize("words", [["replay"], ["replay", "--verify"], ["replay", "a", "b"]])
def test_a_wrong_command_line_is_status_2(run: Run, words: list[str]) -> None:
    assert run(*words).status == 2


def test_a_file_that_is_not_a_session_is_status_1(run: Run, tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text("{}")

    for file in (tmp_path / "s.json", tmp_path / "none.json", tmp_path):
        done = run("replay", file, "--verify")
        assert (done.status, done.out) == (1, "")
        assert done.err.count("\n") == 1


def test_the_help_fits_80_columns(run: Run) -> None:
    done = run("replay", "--help")

    assert done.status == 0
    assert max(map(len, done.lines)) <= 80
