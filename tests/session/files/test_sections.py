"""Large session files are parsed in parts, with the same result."""

from __future__ import annotations

from pathlib import Path

import pytest
from attrs import frozen

from fixtures.sessions import story
from fixtures.sessions.kinds import registry
from fixtures.sessions.portrait import portrait
from weakfs import InMemoryFilesystem, Registry, Session, SessionFileError
from weakfs.session import append_all
from weakfs.session.files import document_sections, session_file

SAVED = sorted(Path(story.__file__).parent.glob("v?.json"))


@frozen
class Said:
    """An event with values that look like the tables of a file."""

    seq: int
    records: tuple[object, ...] = ()
    more: object = None


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Parse every file in parts of a few bytes, and note for each whether that was possible."""
    told: list[bool] = []

    def sections_of(data: bytes, pools: list[str]) -> object:
        found = document_sections.sections_of(data, pools)
        told.append(found is not None)
        return found

    monkeypatch.setattr(session_file, "LARGE", 0)
    monkeypatch.setattr(session_file, "sections_of", sections_of)
    monkeypatch.setattr(document_sections, "PART", 3)
    return told


@pytest.mark.slow
@pytest.mark.parametrize("path", SAVED, ids=lambda path: path.name)
def test_a_saved_session_is_the_same_in_parts(path: Path, parsed: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    in_parts = Session.load(path, registry=registry())
    monkeypatch.setattr(session_file, "LARGE", 1 << 30)
    whole = Session.load(path, registry=registry())

    assert parsed == [True]
    story.prepare(in_parts)
    story.prepare(whole)
    assert portrait(in_parts) == portrait(whole)


def saying(*said: Said) -> Session:
    session = Session(session_id="s", registry=Registry.standard().with_types(Said))
    session.install(Said, kind="log").register(Said, append_all)
    files = InMemoryFilesystem(session)
    for number, one in enumerate(said):
        files.write(f"/{number}", '"},{"seq":1,"at":2},"blobs":["x","y"],"trees":[{"mode":1}],"checkpoints":[')
        files.write_bytes("/bytes", b'\xff","' * number)
        session.dispatch(one)
        session.snapshot()
    return session


ODD = [
    Said(1, ({"seq": 1, "at": 1}, {"seq": 2, "at": 1})),
    Said(2, ({"tag": "x"}, {"tag": "y"}), {"slices": [], "snapshots": []}),
    Said(3, (), {"blobs": ["a", "b"], "trees": [{"mode": 1}, {"mode": 2}], "checkpoints": []}),
    Said(4, (), [{"x": [], "records": [{"seq": 1}, {"seq": 2}]}, '","', '\\",', "}],{"]),
]


@pytest.mark.parametrize("said", [ODD, ODD[::-1], *([one] * 3 for one in ODD)], ids=lambda said: str(len(said)))
def test_values_that_look_like_tables_are_values(said: list[Said], parsed: list[bool]) -> None:
    session = saying(*said)

    loaded = Session.from_bytes(session.to_bytes(), registry=Registry.standard().with_types(Said))

    assert list(loaded.records) == list(session.records)
    assert loaded[Said].all() == session[Said].all()
    assert loaded.to_bytes() == session.to_bytes()
    assert parsed == [True]


@pytest.mark.usefixtures("parsed")
def test_a_file_in_another_layout_is_read_as_a_whole(tmp_path: Path) -> None:
    import json

    session = saying(*ODD)
    text = json.dumps(json.loads(session.to_bytes()), indent=2, ensure_ascii=False)
    loaded = Session.from_bytes(text.encode(), registry=Registry.standard().with_types(Said))
    assert loaded.to_bytes() == session.to_bytes()


@pytest.mark.usefixtures("parsed")
@pytest.mark.parametrize("place", [0.2, 0.5, 0.9, 0.999])
def test_damage_is_found(place: float) -> None:
    data = bytearray(saying(*ODD).to_bytes())
    data[int(len(data) * place)] ^= 1
    with pytest.raises(SessionFileError):
        Session.from_bytes(bytes(data), registry=Registry.standard().with_types(Said))
    with pytest.raises(SessionFileError):
        Session.from_bytes(bytes(data[: int(len(data) * place)]), registry=Registry.standard().with_types(Said))
