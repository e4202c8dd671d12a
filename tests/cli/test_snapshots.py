"""`weakfs snapshot`, `snapshots`, `drop`, `compact`: snapshots of a directory, without a session file."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
from pathlib import Path

import pytest

from tests.forked_command import run_command
from tests.sampling import is_exhaustive
from weakfs import HostFilesystem, Session
from weakfs.snapshots import Store

from .conftest import COMMAND, Outcome, Run
from .places import Place
from .test_failures import one_line
from .test_pipes_and_terminals import on_a_terminal

KINDS = ["tree", "git", "tar"]


def id_of(done: Outcome) -> str:
    """Return the id in what `weakfs snapshot` printed."""
    assert (done.status, done.err) == (0, "")
    return done.out.split()[1].rstrip(":")


def rows(done: Outcome) -> list[list[str]]:
    """Return the lines of the table, without its heading and the last line."""
    assert (done.status, done.err) == (0, "")
    return [line.split() for line in done.lines[1:-1]]


@pytest.mark.parametrize("kind", KINDS)
def test_a_snapshot_is_listed_with_what_is_in_it(run: Run, place: Place, kind: str) -> None:
    taken = run("snapshot", place.root, "--tag", "first", "--kind", kind)
    assert taken.lines == [f"snapshot {id_of(taken)}  first: 47 files, 28,149 bytes"]
    listed = run("snapshots", place.root)
    (row,) = rows(listed)
    assert listed.lines[0].split() == ["id", "taken", "kind", "files", "bytes", "frees", "tag"]
    assert (row[0], *row[2:5], row[6]) == (id_of(taken), kind, "47", "28,149", "first")
    assert int(row[5].replace(",", "")) > 0
    assert ": 1 snapshot, " in listed.lines[-1]


def test_verifying_reads_everything_and_names_what_is_damaged(run: Run, place: Place) -> None:
    assert run("snapshots", place.root, "--verify").status == 0
    (place.root / "own").write_text("only in the second")
    run("snapshot", place.root)
    (place.root / "own").unlink()
    (place.root / "other").write_text("another")
    run("snapshot", place.root)
    sound = run("snapshots", place.root, "--verify")
    assert (sound.status, sound.lines[-1]) == (0, "verified: no damage")
    for pack in place.store.rglob("*.pack"):
        pack.write_bytes(pack.read_bytes().replace(b"only in the second", b"ONLY IN THE SECOND"))

    done = run("snapshots", place.root, "--verify")
    first = rows(run("snapshots", place.root))[0][0]
    assert done.status == 3
    (line,) = [line for line in done.lines if line.startswith("damaged")]
    assert line.startswith(f"damaged {first}: {place.store}")
    assert "put it back from a copy" in line
    damaged = [one for one in run("snapshots", place.root, "--verify", "--json").objects if one["type"] == "damaged"]
    assert [one["id"].startswith(first) for one in damaged] == [True]


def test_verifying_goes_through_all_snapshots_and_names_each_that_is_damaged(run: Run, place: Place) -> None:
    names: list[str] = []
    for number in range(5):
        (place.root / f"file {number}").write_text(f"content {number}")
        names.append(id_of(run("snapshot", place.root)))
    store = Store(run("snapshots", place.root, "--json").objects[-1]["path"])
    snapshots = {one.snapshot_id[:8]: one for one in store.list()}
    entry = Path(store.catalogue.path_of(snapshots[names[1]].snapshot_id))
    entry.write_bytes(entry.read_bytes()[:-5])
    for name in names[2:4]:
        manifest = store.read_manifest(bytes.fromhex(snapshots[name].ref))
        for pack in place.store.rglob("*.pack"):
            pack.write_bytes(pack.read_bytes().replace(manifest, bytes(len(manifest))))

    done = run("snapshots", place.root, "--verify")

    assert (done.status, done.err) == (3, "")
    assert [line.split()[1][:8] for line in done.lines if line.startswith("damaged")] == names[1:4]
    assert [line.split()[0] for line in done.lines[1:5]] == [names[0], *names[2:]]
    again = run("snapshots", place.root, "--verify", "--json").objects
    assert [one["id"][:8] for one in again if one["type"] == "damaged"] == names[1:4]
    # What the damaged ones share with the others is unknown.
    assert [one["frees"] for one in again if one["type"] == "snapshot"] == [None] * 4
    assert [name[:8] for name in store.verify()] == names[1:4]


@pytest.fixture
def three(run: Run, place: Place) -> tuple[Store, list[str]]:
    """The store of a directory with three snapshots, the second with the tag `second`, and their ids."""
    names: list[str] = []
    for number, tag in enumerate([[], ["--tag", "second"], []]):
        (place.root / f"file {number}").write_text(f"content {number}")
        names.append(id_of(run("snapshot", place.root, *tag)))
    return Store(run("snapshots", place.root, "--json").objects[-1]["path"]), names


def entry_of(store: Store, name: str) -> Path:
    """Return the file of the snapshot with a short id."""
    (found,) = (one.snapshot_id for one in store.list() if one.snapshot_id.startswith(name))
    return Path(store.catalogue.path_of(found))


def test_a_damaged_entry_is_named_and_stops_no_command_on_the_others(
    run: Run, place: Place, three: tuple[Store, list[str]], caplog: pytest.LogCaptureFixture
) -> None:
    store, (first, second, third) = three
    damaged = entry_of(store, second)
    damaged.write_bytes(damaged.read_bytes()[:-5])

    listed = run("snapshots", place.root)
    assert (listed.status, listed.err) == (3, "")
    assert [line.split()[0] for line in listed.lines[1:3]] == [first, third]
    assert listed.lines[-1].startswith(f"damaged {second}: cannot read the snapshot in '{damaged}'")

    restored = run("restore", place.root, first, "--dry-run")
    assert (restored.status, restored.err) == (0, "")
    assert restored.lines[-1].startswith(f"would restore {first}: ")
    assert run("diff", place.root, "--at", first).status == 0
    with caplog.at_level("WARNING", "weakfs.backends"):
        assert run("snapshot", place.root).status == 0
    assert str(damaged) in caplog.text

    for name in (second, second[:7]):
        refused = run("restore", place.root, name)
        assert (refused.status, refused.out) == (1, "")
        assert one_line(refused.err)
        assert "drop the snapshot to give it up" in refused.err
    assert "1 snapshot whose tag cannot be read may be it" in run("restore", place.root, "second").err
    for command in (("restore", place.root, "--latest"), ("diff", place.root)):
        refused = run(*command)
        assert (refused.status, refused.out) == (1, "")
        assert one_line(refused.err)
        assert str(damaged) in refused.err


def test_intact_snapshots_are_dropped_beside_a_damaged_one(
    run: Run, place: Place, three: tuple[Store, list[str]]
) -> None:
    store, (first, second, third) = three
    damaged = entry_of(store, second)
    damaged.write_bytes(b"")
    done = run("drop", place.root, "--keep-last", 1)
    assert (done.status, done.lines[0]) == (0, f"dropped {first}")
    assert one_line(done.err)
    assert done.err.startswith(f"weakfs: kept {second}, which is damaged: ")
    assert run("drop", place.root, third).status == 0
    assert run("snapshots", place.root).lines[-1].startswith(f"damaged {second}")


@pytest.mark.parametrize("as_json", [False, True])
def test_a_damaged_entry_can_be_dropped(run: Run, place: Place, three: tuple[Store, list[str]], as_json: bool) -> None:
    store, (_, second, _) = three
    damaged = entry_of(store, second)
    damaged.write_bytes(b"{}")
    whole = damaged.name.removesuffix(".json").replace("%2F", "/")
    refused = run("compact", place.root)
    assert (refused.status, refused.out) == (1, "")
    assert one_line(refused.err)
    assert str(damaged) in refused.err

    would = run("drop", place.root, second, "--dry-run")
    assert (would.lines, damaged.exists()) == ([f"would drop {second}  (damaged)"], True)
    done = run("drop", place.root, second, *(["--json"] if as_json else []))

    assert (done.status, done.err) == (0, "")
    if as_json:
        assert done.objects == [{"type": "dropped", "id": whole}]
    else:
        assert done.lines[0] == f"dropped {second}  (damaged)"
    assert not damaged.exists()
    assert run("compact", place.root).status == 0
    assert run("snapshots", place.root, "--verify").lines[-1] == "verified: no damage"


@pytest.mark.parametrize("number", [0, 2])
def test_a_snapshot_with_a_damaged_manifest_is_named_and_can_be_dropped(
    run: Run, place: Place, three: tuple[Store, list[str]], number: int
) -> None:
    store, names = three
    ref = next(one.ref for one in store.list() if one.snapshot_id.startswith(names[number]))
    manifest = store.read_manifest(bytes.fromhex(ref))
    for pack in place.store.rglob("*.pack"):
        pack.write_bytes(pack.read_bytes().replace(manifest, bytes(len(manifest))))

    listed = run("snapshots", place.root)

    assert (listed.status, listed.err) == (3, "")
    assert [line.split()[0] for line in listed.lines[1:4]] == names
    (line,) = [line for line in listed.lines if line.startswith("damaged")]
    assert line.startswith(f"damaged {names[number]}: cannot read the manifest")
    assert run("restore", place.root, names[1]).status == 0
    assert run("drop", place.root, names[number]).status == 0
    assert run("snapshots", place.root).status == 0
    assert run("compact", place.root).status == 0


def test_inspecting_changes_nothing_and_creates_no_store(run: Run, place: Place) -> None:
    done = run("snapshots", place.root)
    assert (done.status, done.err) == (0, "")
    assert done.lines[0].endswith(": 0 snapshots, 0 bytes on disk")
    assert not place.store.exists()


def test_json_output_has_every_field(run: Run, place: Place) -> None:
    (taken,) = run("snapshot", place.root, "--tag", "a b", "--json").objects
    assert (taken["type"], taken["tag"], taken["kind"], taken["files"]) == ("snapshot", "a b", "tree", 47)
    assert (taken["root"], taken["bytes"]) == (str(place.root), 28149)
    listed, store = run("snapshots", place.root, "--json").objects
    assert listed["id"] == taken["id"]
    assert store["type"] == "store"
    assert (store["path"], store["snapshots"]) == (taken["store"], 1)
    assert listed["frees"] <= store["bytes"]


def test_ids_are_short_and_can_be_abbreviated(run: Run, place: Place) -> None:
    names = [id_of(run("snapshot", place.root)) for _ in range(3)]
    assert all(len(name) == 8 for name in names)
    assert [row[0] for row in rows(run("snapshots", place.root))] == names
    beginning = next(
        names[0][:length] for length in range(1, 9) if names[1][:length] != names[0][:length] != names[2][:length]
    )
    assert run("restore", place.root, beginning, "--dry-run").lines == [f"would restore {names[0]}: nothing differs"]


def test_snapshots_of_one_session_are_distinguished(run: Run, place: Place) -> None:
    files = HostFilesystem(place.root, session=Session(session_id="conversation"))
    files.snapshot("one")
    files.snapshot("two")
    assert [row[0] for row in rows(run("snapshots", place.root))] == ["conversa/files1", "conversa/files2"]
    assert "would restore conversa/files1" in run("restore", place.root, "conv/files1", "--dry-run").out
    refused = run("restore", place.root, "conv")
    assert refused.status == 1
    assert one_line(refused.err)
    assert "conversa/files1, conversa/files2" in refused.err


def test_an_ambiguous_tag_is_refused_and_its_snapshots_are_named(run: Run, place: Place) -> None:
    names = [id_of(run("snapshot", place.root, "--tag", "same")) for _ in range(2)]
    done = run("diff", place.root, "--at", "same")
    assert done.status == 1
    assert one_line(done.err)
    assert all(name in done.err for name in names)


def test_dropped_snapshots_disappear_and_compacting_frees_their_space(run: Run, place: Place) -> None:
    (place.root / "large").write_bytes(os.urandom(300_000))
    large = id_of(run("snapshot", place.root))
    (place.root / "large").unlink()
    small = id_of(run("snapshot", place.root))
    assert int(rows(run("snapshots", place.root))[0][5].replace(",", "")) > 290_000
    dropped = run("drop", place.root, large)
    assert dropped.lines == [f"dropped {large}", f"to free what only they needed: weakfs compact {place.root}"]
    assert [row[0] for row in rows(run("snapshots", place.root))] == [small]
    (freed,) = run("compact", place.root, "--json").objects
    assert freed["bytes_before"] - freed["bytes_after"] > 290_000
    before = place.seen
    place.disturb()
    assert run("restore", place.root, small).status == 0
    assert place.seen == before


def test_only_the_last_ones_are_kept(run: Run, place: Place) -> None:
    names = [id_of(run("snapshot", place.root)) for _ in range(4)]
    dropped = run("drop", place.root, "--keep-last", "2", "--json").objects
    assert [one["id"].partition("/")[0] for one in dropped] == names[:2]
    assert [row[0] for row in rows(run("snapshots", place.root))] == names[2:]
    assert run("drop", place.root, "--keep-last", "2").lines == ["nothing to drop"]
    assert run("drop", place.root, "--keep-last", "0").status == 0
    assert len(run("snapshots", place.root).lines) == 1


def test_tagged_snapshots_are_dropped_only_with_the_option(run: Run, place: Place) -> None:
    release, old, last = (id_of(run("snapshot", place.root, *tag)) for tag in (["--tag", "release"], [], []))
    dropped = run("drop", place.root, "--keep-last", "1").lines
    assert dropped[0] == f"dropped {old}"
    assert dropped[1] == "kept 1 older snapshot with a tag; to drop tagged ones too: --tagged"
    assert [row[0] for row in rows(run("snapshots", place.root))] == [release, last]
    assert run("drop", place.root, "--keep-last", "1").lines[0] == "nothing to drop"
    assert run("drop", place.root, "--keep-last", "1", "--tagged").lines[0] == f"dropped {release}  release"
    assert [row[0] for row in rows(run("snapshots", place.root))] == [last]
    named = id_of(run("snapshot", place.root, "--tag", "named"))
    assert run("drop", place.root, "named").lines[0] == f"dropped {named}  named"


def test_a_dry_run_lists_what_would_be_dropped(run: Run, place: Place) -> None:
    names = [id_of(run("snapshot", place.root)) for _ in range(3)]
    assert run("drop", place.root, "--keep-last", "1", "--dry-run").lines == [f"would drop {one}" for one in names[:2]]
    (told,) = run("drop", place.root, names[2], "--dry-run", "--json").objects
    assert (told["type"], told["id"].startswith(names[2])) == ("would_drop", True)
    assert [row[0] for row in rows(run("snapshots", place.root))] == names


def test_one_wrong_name_among_several_drops_nothing(run: Run, place: Place) -> None:
    name = id_of(run("snapshot", place.root))
    done = run("drop", place.root, name, "no-such")
    assert (done.status, done.out) == (1, "")
    assert one_line(done.err)
    assert "'no-such'" in done.err
    assert [row[0] for row in rows(run("snapshots", place.root))] == [name]


def test_a_size_limit_refuses_a_snapshot_and_names_the_remedy(run: Run, place: Place) -> None:
    (place.root / "large").write_bytes(os.urandom(100_000))
    done = run("snapshot", place.root, "--max-bytes", "50000")
    assert (done.status, done.out) == (1, "")
    assert one_line(done.err)
    assert "drop snapshots and compact" in done.err
    assert len(run("snapshots", place.root).lines) == 1


def test_another_store_can_be_used(run: Run, place: Place, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    id_of(run("snapshot", place.root, "--store", elsewhere))
    assert not place.store.exists()
    assert len(Store(elsewhere).list()) == 1
    assert len(rows(run("snapshots", place.root, "--store", elsewhere))) == 1
    inside = run("snapshot", place.root, "--store", place.root / "store")
    assert inside.status == 1
    assert one_line(inside.err)
    assert "outside" in inside.err


def test_a_file_that_its_owner_may_not_read_is_kept_and_restored(run: Run, place: Place) -> None:
    secret = place.root / "secret"
    secret.write_text("secret")
    secret.chmod(0o000)

    first = id_of(run("snapshot", place.root))

    assert stat.S_IMODE(secret.stat().st_mode) == 0o000
    secret.unlink()
    assert run("restore", place.root, first).status == 0
    assert stat.S_IMODE(secret.stat().st_mode) == 0o000
    secret.chmod(0o600)
    assert secret.read_text() == "secret"


@pytest.mark.parametrize("command", ["snapshot", "snapshots", "restore", "drop", "compact", "repair"])
def test_a_path_that_is_not_a_directory_is_reported(run: Run, tmp_path: Path, command: str) -> None:
    (tmp_path / "file").touch()
    more = {"restore": ["--latest"], "drop": ["x"]}.get(command, [])
    for directory in (tmp_path / "nowhere", tmp_path / "file"):
        done = run(command, directory, *more)
        assert (done.status, done.out) == (1, "")
        assert one_line(done.err)
        assert str(directory) in done.err


@pytest.mark.parametrize(
    "words",
    [["restore"], ["restore", "a", "--latest"], ["drop"], ["drop", "a", "--keep-last", "1"], ["drop", "a", "--tagged"]],
)
def test_missing_or_extra_arguments_are_status_2(run: Run, place: Place, words: list[str]) -> None:
    done = run(words[0], place.root, *words[1:])
    assert (done.status, done.out) == (2, "")
    assert one_line(done.err)


def test_changes_since_a_snapshot_are_shown_as_a_patch(run: Run, place: Place) -> None:
    run("snapshot", place.root, "--tag", "first")
    assert (run("diff", place.root).out, run("diff", place.root, "--exit-code").status) == ("", 0)
    with (place.root / "README.md").open("a") as stream:
        stream.write("more\n")
    done = run("diff", place.root)
    assert done.lines[0] == "M  /README.md"
    assert "+more" in done.lines
    assert run("diff", place.root, "--exit-code").status == 3
    run("snapshot", place.root, "--tag", "second")
    (place.root / "README.md").unlink()
    assert run("diff", place.root, "--at", "first", "--to", "second", "--names").lines == ["M  /README.md"]
    assert run("diff", place.root, "--names").lines == ["D  /README.md"]
    assert run("diff", place.root, "/src", "--names").lines == []


@pytest.mark.parametrize("kind", KINDS)
def test_one_file_can_be_recovered_without_a_restore(run: Run, place: Place, kind: str) -> None:
    run("snapshot", place.root, "--tag", "first", "--kind", kind)
    content = (place.root / "README.md").read_text()
    place.disturb()
    now = place.seen
    assert run("cat", place.root, "/README.md", "--at", "first").out == content
    assert run("cat", place.root, "/README.md").out == "other\n"
    assert any(line.endswith(" src/") for line in run("ls", place.root, "--at", "first").lines)
    assert not any(line.endswith(" src/") for line in run("ls", place.root).lines)
    assert place.seen == now


def test_options_of_sessions_and_of_directories_are_not_mixed(run: Run, place: Place, saved: Path) -> None:
    for words in (["ls", place.root, "--registry", "os:sep"], ["diff", saved, "--store", place.store]):
        done = run(*words)
        assert (done.status, done.out) == (2, "")
        assert one_line(done.err)


def test_a_tag_cannot_control_the_terminal(place: Place) -> None:
    assert on_a_terminal("snapshot", place.root, "--tag", "\x1b[31mred\n")[0] == 0
    status, shown, plain = on_a_terminal("snapshots", place.root)
    assert status == 0
    assert "\x1b[31mred" not in shown
    assert "\\x1b[31mred\\n" in plain


def test_a_bar_shows_how_many_files_were_read(place: Place) -> None:
    status, _, plain = on_a_terminal("snapshot", place.root, only_errors=True)
    assert status == 0
    assert "reading /" in plain
    assert re.search(r"\b46\b", plain)


def test_a_pipe_gets_neither_colours_nor_a_bar(place: Place) -> None:
    for words in (["snapshot"], ["snapshots"], ["restore", "--latest"], ["compact"]):
        done = run_command(words[0], str(place.root), *words[1:])
        assert (done.returncode, done.stderr) == (0, "")
        assert "\x1b" not in done.stdout


@pytest.mark.exhaustive
def test_many_concurrent_snapshots_lose_nothing(place: Place) -> None:
    number = 6 if is_exhaustive() else 4
    running = [
        subprocess.Popen([*COMMAND, "snapshot", str(place.root), "--json"], stdout=subprocess.PIPE)
        for _ in range(number)
    ]
    taken = {json.loads(one.communicate()[0])["id"] for one in running}
    assert [one.returncode for one in running] == [0] * number
    done = subprocess.run([*COMMAND, "snapshots", str(place.root), "--json"], capture_output=True, check=True)
    listed = {json.loads(line).get("id") for line in done.stdout.splitlines()}
    assert taken == listed - {None}


@pytest.mark.parametrize("kind", KINDS)
def test_directories_that_share_a_store_are_distinguished(run: Run, place: Place, tmp_path: Path, kind: str) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "own").write_text("own\n")
    shared = ("--store", tmp_path / "shared")
    first = id_of(run("snapshot", place.root, "--kind", kind, *shared))
    second = id_of(run("snapshot", other, "--kind", kind, *shared))
    assert [row[0] for row in rows(run("snapshots", place.root, *shared))] == [first]
    assert run("restore", place.root, "--latest", "--dry-run", *shared).lines == [
        f"would restore {first}: nothing differs"
    ]
    before = place.seen
    refused = run("restore", place.root, second, *shared)
    assert (refused.status, refused.out) == (1, "")
    assert one_line(refused.err)
    assert repr(str(other)) in refused.err
    assert "--foreign" in refused.err
    assert place.seen == before
    assert run("drop", place.root, second, *shared).status == 1
    assert run("drop", place.root, "--keep-last", "0", *shared).status == 0
    assert [row[0] for row in rows(run("snapshots", other, *shared))] == [second]
    assert run("restore", place.root, second, "--foreign", *shared).status == 0
    assert [path.name for path in place.root.iterdir()] == ["own"]


def test_a_directory_that_was_moved_finds_its_snapshots_in_the_old_store(run: Run, place: Place) -> None:
    (taken,) = run("snapshot", place.root, "--json").objects
    before = place.seen
    place.disturb()
    moved = Place(place.root.rename(place.root.parent / "moved"), place.store)
    assert run("restore", moved.root, taken["id"], "--store", taken["store"], "--foreign").status == 0
    assert moved.seen == before


@pytest.mark.slow
def test_the_suggested_commands_work_for_a_directory_of_any_name(place: Place) -> None:
    root = place.root.rename(place.root.parent / os.fsdecode(b"odd\xff'\nname"))
    for words in (["snapshot", str(root)], ["restore", str(root), "--latest"]):
        done = run_command(*words)
        assert (done.returncode, done.stderr) == (0, "")
    dropped = run_command("drop", str(root), "--keep-last", "0")
    compact = dropped.stdout.splitlines()[-1].partition("they needed: ")[2]
    assert compact.startswith("weakfs compact $'")
    again = " ".join(COMMAND) + compact.removeprefix("weakfs")
    compacted = subprocess.run(["bash", "-c", again], capture_output=True, text=True, check=True)
    assert compacted.stdout.startswith("compacted")


def test_a_tag_that_is_not_text_is_refused(run: Run, place: Place) -> None:
    done = run("snapshot", place.root, "--tag", os.fsdecode(b"\xff"))
    assert (done.status, done.out) == (2, "")
    assert one_line(done.err)
