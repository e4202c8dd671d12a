"""Crafted files: too deep, too many, out of range, or with references that are not allowed."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from typing import Any

import orjson
import pytest

from fixtures.sessions.kinds import registry
from tests.faults.damage import Court, document_of, resealed, sealed, small_story
from tests.faults.watchdog import watched
from weakfs import InMemoryFilesystem, Registry, Session, SessionFileError
from weakfs.reducers import FileTree

Row = dict[str, Any]


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> Row:
    return document_of(small_story(), tmp_path_factory.mktemp("document"))


def made(court: Court, *, trees: Sequence[Row] = (), blobs: Sequence[Any] = (), records: Sequence[Row] = ()) -> Row:
    """Return the document of a session with some trees, the last of which holds its files."""
    rows = trees or [directory()]
    return {
        **document_of(Session(session_id="made", registry=registry()), court.path.parent),
        "state": [0],
        "slices": [{"tag": "fs/tree", "kind": "state", "items": [{"tree": len(rows) - 1}]}],
        "records": records,
        "trees": rows,
        "blobs": blobs,
    }


def directory(**more: Any) -> Row:
    return {"mode": 0o755, "times": [0, 0], **more}


def record(seq: int, tag: str, **event: Any) -> Row:
    return {"seq": seq, "at": 0, "type": tag, "event": event}


def refused(court: Court, document: Row, match: str = "") -> None:
    with watched(), pytest.raises(SessionFileError, match=match):
        court.load(sealed(document))


def loaded(court: Court, document: Row) -> Session:
    with watched():
        return court.load(sealed(document))


def test_the_crafted_document_is_a_session(court: Court) -> None:
    # The slice has a value, although no record says where it came from: loading does not require one.
    session = loaded(court, made(court, trees=[directory(files=[["a", 0, 5]])], blobs=["words"]))
    assert InMemoryFilesystem(session).read("/a").content == "words"


@pytest.mark.parametrize("depth", [200, 300, 1000, 5000, 300_000])
@pytest.mark.parametrize(
    ("opening", "closing"), [("[", "]"), ('{"tuple":[', "]}"), ('{"map":{"k":', "}}"), ('{"a":', "}")]
)
@pytest.mark.parametrize("seal", [True, False])
def test_deep_nesting_is_refused_or_loaded_and_never_overflows(
    court: Court, document: Row, depth: int, opening: str, closing: str, seal: bool
) -> None:
    text = orjson.dumps({**document, "sha256": "0" * 64})
    deep = (opening * depth + "1" + closing * depth).encode()
    for old in (b"[2.5]", b'"ada"'):
        assert old in text
        data = text.replace(old, deep, 1)
        with watched():
            court.judge(resealed(data) if seal else data)


def test_a_tree_that_doubles_in_size_sixty_times_is_refused(court: Court) -> None:
    trees = [directory(files=[["f", 0, 0]])]
    for number in range(60):
        trees.append(directory(directories=[["a", number], ["b", number]]))
    refused(court, made(court, trees=trees, blobs=["x"]), r"^\$\.trees\[\d+\]: .*entries")


def test_a_directory_that_grows_by_its_base_is_refused_as_well(court: Court) -> None:
    trees = [directory(files=[["f", 0, 0]])]
    for number in range(60):
        trees.append(directory(base=number, directories=[[f"a{number}", number], [f"b{number}", number]]))
    refused(court, made(court, trees=trees, blobs=["x"]), r"^\$\.trees\[\d+\]: .*entries")


def test_a_long_chain_of_bases_is_read_one_step_at_a_time(court: Court) -> None:
    trees = [directory(files=[["f", 0, 0]])]
    trees += [directory(base=number, files=[["f", 0, number]]) for number in range(20_000)]
    assert InMemoryFilesystem(loaded(court, made(court, trees=trees, blobs=["x"]))).read("/f").content == "x"


@pytest.mark.exhaustive
def test_a_very_deep_tree_can_be_loaded_hashed_saved_and_freed(court: Court) -> None:
    trees = [directory(files=[["f", 0, 0]])]
    trees += [directory(directories=[["d", number]]) for number in range(50_000)]
    session = loaded(court, made(court, trees=trees, blobs=["x"]))
    tree = session[FileTree].latest()
    assert tree is not None
    assert tree.directory_count == 50_000
    assert tree.fingerprint
    with watched():
        session.save(court.path)
    del session, tree
    gc.collect()


def test_a_long_chain_of_parents_is_joined_without_recursion(court: Court) -> None:
    blobs: list[Any] = ["start"]
    blobs += [{"parent": number, "tail": "x"} for number in range(50_000)]
    session = loaded(court, made(court, trees=[directory(files=[["f", len(blobs) - 1, 0]])], blobs=blobs))
    assert InMemoryFilesystem(session).stat("/f").size_bytes == 50_005
    assert InMemoryFilesystem(session).read("/f").content == "start" + "x" * 50_000


@pytest.mark.parametrize(
    "blob", [{"parent": 0, "tail": "x"}, {"parent": 1, "tail": "x"}, {"parent": -1, "tail": "x"}, {"parent": 0}]
)
def test_a_content_that_is_its_own_parent_is_refused(court: Court, blob: object) -> None:
    refused(court, made(court, blobs=[blob]), r"^\$\.blobs\[0\]")


@pytest.mark.parametrize("tail", [{"parent": 0, "tail": "x"}, {"base64": 5}, {"base64": "A"}, None, []])
def test_a_tail_that_is_not_content_is_refused(court: Court, tail: object) -> None:
    refused(court, made(court, blobs=["x", {"parent": 0, "tail": tail}]), r"^\$\.blobs\[1\]")


@pytest.mark.parametrize("key", ["base", "directories"])
@pytest.mark.parametrize("number", [0, 1, -1, 2**64 - 1, True, 0.0, "0", None])
def test_a_directory_inside_itself_or_ahead_of_itself_is_refused(court: Court, key: str, number: object) -> None:
    tree = directory(base=number) if key == "base" else directory(directories=[["d", number]])
    refused(court, made(court, trees=[tree]), r"^\$\.trees\[0\]")


@pytest.mark.parametrize("name", ["", ".", "..", "/", "a/b", "/etc/passwd", "../x", "\x00", "a\x00b", None, 5, ["a"]])
@pytest.mark.parametrize("kind", ["files", "links", "directories", "gone", "five"])
def test_an_invalid_name_is_refused(court: Court, name: object, kind: str) -> None:
    rows: dict[str, Row] = {
        "files": directory(files=[[name, 0, 0]]),
        "five": directory(files=[[name, 0, 0, 0, 0o600]]),
        "links": directory(links=[[name, "target", 0, 0]]),
        "directories": directory(directories=[[name, 0]]),
        "gone": directory(base=0, gone=[name]),
    }
    refused(court, made(court, trees=[directory(), rows[kind]], blobs=["x"]), r"^\$\.trees\[1\]")


@pytest.mark.parametrize(
    "entries",
    [
        {"files": [["a", 0, 0], ["a", 0, 0]]},
        {"files": [["a", 0, 0], ["a", 0, 0, 0]]},
        {"files": [["a", 0, 0]], "links": [["a", "x", 0, 0]]},
        {"files": [["a", 0, 0]], "directories": [["a", 0]]},
        {"links": [["a", "x", 0, 0]], "directories": [["a", 0]]},
        {"directories": [["a", 0], ["a", 0]]},
        {"base": 0, "gone": ["old", "old"]},
        {"base": 0, "gone": ["old"], "files": [["old", 0, 0]]},
        {"base": 0, "gone": ["other"]},
        {"gone": ["old"]},
    ],
)
def test_a_name_that_is_listed_or_removed_twice_is_refused(court: Court, entries: Row) -> None:
    trees = [directory(files=[["old", 0, 0]]), directory(**entries)]
    refused(court, made(court, trees=trees, blobs=["x"]), r"^\$\.trees\[1\]")


@pytest.mark.parametrize(
    "event",
    [
        record(1, "fs/file_written", path="/", content={"blob": 0}, at=0),
        record(1, "fs/file_appended", path="/", tail={"blob": 0}, at=0),
        record(1, "fs/file_spliced", path="/", pieces=[], at=0),
        record(1, "fs/entry_deleted", path="/", at=0),
        record(1, "fs/entry_moved", source="/", destination="/a", at=0),
        record(1, "fs/entry_moved", source="/d", destination="/d/e", at=0),
        record(1, "fs/entry_moved", source="/d", destination="/", at=0),
        record(1, "fs/entry_copied", source="/", destination="/a", at=0),
        record(1, "fs/entry_copied", source="/f", destination="/", at=0),
        record(1, "fs/link_made", path="/", target="x", at=0),
        record(1, "fs/link_made", path="/l", target="", at=0),
        record(1, "fs/link_made", path="/l", target="a\x00b", at=0),
        record(1, "fs/directory_made", path="/", at=0),
        record(1, "fs/directory_made", path="/f/d", at=0),
        record(1, "fs/mode_changed", path="/", mode=-1, at=0),
        record(1, "fs/mode_changed", path="/f", mode=2**62, at=0),
        record(1, "fs/file_written", path="/f/below", content={"blob": 0}, at=2**63, mode=-1),
        record(1, "fs/file_spliced", path="/f", pieces=[[5, 1, {"blob": 0}], [-9, 2**62, {"blob": 0}]], at=0),
        record(1, "fs/tree_restored", tree={"tree": 0}, source="", at=0),
        record(1, "fs/tree_mounted", path="/f/x", source="", tree={"tree": 0}, skipped=[], at=0),
        record(1, "session/slice_appended", slice="fs/tree", item=5),
        record(1, "session/slice_seeded", slice="fs/tree", items=[]),
        record(1, "session/slice_cleared", slice="fs/tree"),
        record(1, "session/slice_cleared", slice="nothing"),
        record(1, "session/slice_cleared", slice="story/person"),
        record(1, "session/rolled_back", target=-5, snapshot_id=None, state=[]),
        record(1, "session/rolled_back", target=2**62, snapshot_id="x", state=[0]),
        record(1, "session/merged", fork="", base=-1, count=2**62, state=[0]),
        record(1, "session/merged", fork="", base=0, count=-5, state=[]),
    ],
    ids=lambda event: str(event["event"])[:60],
)
def test_an_event_that_no_session_would_record_is_refused_or_harmless(court: Court, event: Row) -> None:
    tree = directory(files=[["f", 0, 0]], directories=[["d", 0]])
    before = record(1, "fs/tree_restored", tree={"tree": 1}, source="", at=0)
    document = made(court, trees=[directory(), tree], blobs=["x"], records=[before, {**event, "seq": 2}])
    with watched():
        court.judge(sealed(document))


@pytest.mark.parametrize("counter", [0, -1, -(2**63)])
def test_a_counter_that_was_set_back_loses_no_snapshot(court: Court, document: Row, counter: int) -> None:
    try:
        session = loaded(court, {**document, "counter": counter})
    except SessionFileError:
        return
    kept = {one.snapshot_id for one in session.snapshots}
    for _ in range(5):
        session.snapshot()
    assert len(session.snapshots) == len(kept) + 5


def test_duplicate_keys_are_refused_or_the_last_one_counts(court: Court) -> None:
    for key in (b'"records":[],', b'"blobs":[],', b'"counter":5,', b'"dropped":0,', b'"session_id":"x",'):
        head, body = court.whole.split(b'"session_id"', 1)
        court.judge(resealed(head + key + b'"session_id"' + body))
        court.judge(resealed(court.whole[:-1] + b"," + key[:-1] + b"}"))


@pytest.mark.parametrize(
    "number", [b"1e400", b"-1e400", b"99999999999999999999999", b"-0", b"-0.0", b"1E5", b"0.1e-400"]
)
def test_numbers_out_of_range_are_refused_or_loaded_unchanged(court: Court, number: bytes) -> None:
    for old in (b"2.5", b'"n":1', b'"counter":8'):
        new = old[: old.rfind(b":") + 1] + number
        court.judge(resealed(court.whole.replace(old, new, 1)))


def test_two_snapshots_with_one_id_are_refused(court: Court, document: Row) -> None:
    snapshots = document["snapshots"]
    refused(court, {**document, "snapshots": [*snapshots, snapshots[0]]}, r"^\$\.snapshots\[\d\]\.id")


def test_a_file_for_another_registry_says_what_is_missing(court: Court) -> None:
    court.path.write_bytes(court.whole)
    for other in (Registry.standard(), Registry.empty()):
        with pytest.raises(SessionFileError, match=r"registry|with_types"):
            Session.load(court.path, registry=other)


def test_a_session_without_files_can_be_loaded_with_any_registry(court: Court) -> None:
    Session(session_id="bare", registry=Registry.empty()).save(court.path)
    for other in (Registry.standard(), Registry.empty(), registry()):
        assert Session.load(court.path, registry=other).session_id == "bare"


@pytest.mark.parametrize(
    ("items", "problem"),
    [
        (["a", "b", "a"], "an item or key occurs twice"),
        ([1, True], "an item or key occurs twice"),
        ([{"float": "nan"}], "an item or key is not a number"),
    ],
)
def test_a_set_that_would_lose_an_item_is_refused(court: Court, document: Row, items: list[Any], problem: str) -> None:
    place = next(number for number, row in enumerate(document["slices"]) if row["tag"] == "story/total")
    slices = [*document["slices"]]
    slices[place] = {**slices[place], "items": [{**slices[place]["items"][0], "marks": items}]}
    with watched(), pytest.raises(SessionFileError, match=problem) as refusal:
        court.load(sealed({**document, "slices": slices}))
    assert refusal.value.where == f"$.slices[{place}].items[0].marks"
