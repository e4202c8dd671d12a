"""The memory that references in a file would take when loaded is limited, and counted before it is allocated."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from fixtures.sessions.kinds import registry
from tests.faults.damage import sealed
from tests.faults.watchdog import watched
from tests.models.cost import peak_memory
from weakfs import InMemoryFilesystem, Session, SessionFileError
from weakfs.reducers import FileTree
from weakfs.session import Session as AnySession
from weakfs.session.codec.expansion_limit import LEAST

Row = dict[str, Any]


def directory(**more: Any) -> Row:
    return {"mode": 0o755, "times": [0, 0], **more}


def written(seq: int, blob: int) -> Row:
    return {"seq": seq, "at": 0, "type": "fs/file_written", "event": {"path": "/f", "content": {"blob": blob}, "at": 0}}


def contents_of_one_parent(count: int) -> Row:
    """Describe contents, one per record, each as the same megabyte followed by one more byte."""
    blobs: list[Any] = ["x" * (1 << 20), *({"parent": 0, "tail": str(number % 10)} for number in range(count))]
    return {"blobs": blobs, "records": [written(number, number) for number in range(1, count + 1)]}


def contents_in_untyped_values(count: int) -> Row:
    """Describe contents as above, and refer to them from values that are marked with their type."""
    blobs: list[Any] = ["x" * (1 << 20), *({"parent": 0, "tail": ""} for _ in range(count))]
    values = {"tuple": [{"blob": number} for number in range(1, count + 1)]}
    note: Row = {"text": "n", "author": None, "labels": [], "extra": values, "links": {}, "form": "plain"}
    record = {"seq": 1, "at": 0, "type": "story/note", "event": note}
    return {"blobs": blobs, "records": [record]}


def directories_of_one_base(count: int) -> Row:
    """Describe each directory as a change of the same directory of 32 names."""
    names = [[f"name of a file that is long, {number}", 0, 0] for number in range(32)]
    return {
        "blobs": ["x"],
        "trees": [directory(files=names), *({"mode": 0, "times": [0, 0], "base": 0} for _ in range(count))],
    }


def directories_of_a_wide_base(count: int) -> Row:
    names = [[f"f{number}", 0, 0] for number in range(5000)]
    changed = (directory(base=0, gone=[f"f{number % 5000}"]) for number in range(count))
    return {"blobs": ["x"], "trees": [directory(files=names), *changed]}


def slices_of_one_beginning(count: int) -> Row:
    """Describe each slice as the same slice of 255 values followed by one more value."""
    step = {"name": "a", "receipt": {}, "output": {"blob": 0}}
    first = {"tag": "story/step", "kind": "log", "items": [step] * 255}
    more = ({"tag": "story/step", "kind": "log", "after": 0, "items": [step]} for _ in range(count))
    return {"blobs": ["x"], "slices": [first, *more], "state": [], "logs": []}


def made(told: Row) -> Row:
    whole = Session(session_id="made", registry=registry())
    path = Path("made.json")
    whole.save(path)
    document = orjson.loads(path.read_bytes())
    path.unlink()
    return {**document, **told}


def load(tmp_path: Path, told: Row, **options: Any) -> Session:
    path = tmp_path / "hostile.json"
    path.write_bytes(sealed(made(told)))
    with watched():
        return Session.load(path, registry=registry(), **options)


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


HOSTILE: list[tuple[Callable[[int], Row], int, str]] = [
    (contents_of_one_parent, 200, r"^\$\.blobs\[\d+\]: .*an earlier one and a tail"),
    (contents_in_untyped_values, 200, r"^\$\.blobs\[\d+\]: .*an earlier one and a tail"),
    (directories_of_one_base, 100_000, r"^\$\.trees\[\d+\]: .*difference"),
    (directories_of_a_wide_base, 120_000, r"^\$\.trees\[\d+\]: .*difference"),
    (slices_of_one_beginning, 40_000, r"^\$\.slices\[\d+\]: .*begins like another"),
]


@pytest.mark.sampled(by_rule=True)
@pytest.mark.parametrize(("tell", "count", "match"), HOSTILE, ids=lambda value: getattr(value, "__name__", ""))
def test_a_file_that_expands_to_many_times_its_size_is_refused(
    tell: Callable[[int], Row], count: int, match: str, tmp_path: Path
) -> None:
    with pytest.raises(SessionFileError, match=match) as refusal:
        load(tmp_path, tell(count))

    assert "max_expansion" in str(refusal.value)
    assert "bytes" in str(refusal.value)


def test_it_is_refused_before_memory_is_allocated(tmp_path: Path) -> None:
    told = contents_of_one_parent(400)

    def refuse() -> None:
        with pytest.raises(SessionFileError):
            load(tmp_path, told)

    assert peak_memory(refuse) < 2 * LEAST


def test_the_budget_can_be_raised_or_lifted(tmp_path: Path) -> None:
    told = contents_of_one_parent(80)

    for factor in (100, None):
        session = load(tmp_path, told, max_expansion=factor)
        assert len(session.records) == 80


@pytest.mark.parametrize("factor", [-1, "20", True, float("nan")])
def test_a_budget_that_is_not_a_number_is_refused(factor: Any, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="max_expansion"):
        load(tmp_path, {}, max_expansion=factor)


def test_a_content_that_many_records_refer_to_is_counted_once(tmp_path: Path) -> None:
    told: Row = {
        "blobs": ["x" * (1 << 20), {"parent": 0, "tail": "y"}],
        "records": [written(number, 1) for number in range(1, 201)],
    }
    assert len(load(tmp_path, told).records) == 200


# Anything that was saved can be loaded: none of these comes near the floor of the budget, let alone 20 times its size.


def round_trip(session: AnySession, tmp_path: Path) -> Session:
    session.save(tmp_path / "saved.json")
    return Session.load(tmp_path / "saved.json", max_expansion=20)


@pytest.fixture
def no_floor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weakfs.session.codec.expansion_limit.LEAST", 0)


@pytest.mark.slow
@pytest.mark.usefixtures("no_floor")
def test_many_snapshots_of_a_shared_tree_stay_within_the_budget(tmp_path: Path) -> None:
    fs = InMemoryFilesystem(Session(session_id="s"))
    assert fs.session is not None
    for number in range(30):
        for level in ("", "/a", "/a/b", "/a/b/c"):
            fs.write(f"{level}/file {number}", "x")
    for number in range(2000):
        fs.write(f"/a/b/c/file {number % 30}", str(number))
        fs.session.snapshot()

    back = round_trip(fs.session, tmp_path)

    assert len(back.snapshots) == 2000


@pytest.mark.usefixtures("no_floor")
def test_many_appends_to_one_file_stay_within_the_budget(tmp_path: Path) -> None:
    fs = InMemoryFilesystem(Session(session_id="s"))
    assert fs.session is not None
    for number in range(5000):
        fs.append("/log", f"line {number} of a log that grows\n")
        if not number % 10:
            fs.session.snapshot()

    back = round_trip(fs.session, tmp_path)

    assert back.seq == 5000
    assert InMemoryFilesystem(back).read("/log").content == fs.read("/log").content


@pytest.mark.usefixtures("no_floor")
def test_a_file_rewritten_with_each_line_stays_within_the_budget(tmp_path: Path) -> None:
    fs = InMemoryFilesystem(Session(session_id="s"))
    assert fs.session is not None
    text = "a line to begin with\n" * 1000
    for number in range(300):
        text += f"line {number}\n"
        fs.write("/log", text)
        fs.session.snapshot()

    back = round_trip(fs.session, tmp_path)

    assert InMemoryFilesystem(back).read("/log").content == text


@pytest.mark.usefixtures("no_floor")
def test_branching_slices_stay_within_the_budget(tmp_path: Path) -> None:
    session = Session(session_id="s", registry=registry())
    fs = InMemoryFilesystem(session)
    fs.write("/a", "1")
    session.snapshot("start")
    for number in range(200):
        fs.write("/a", str(number))
        session.rollback("start")
    session.save(tmp_path / "saved.json")

    back = Session.load(tmp_path / "saved.json", registry=registry())

    assert back[FileTree].latest() is not None
