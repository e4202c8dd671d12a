"""Sessions that earlier versions saved can still be loaded, with everything that was in them."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import orjson
import pytest

from fixtures.sessions import calls, story
from fixtures.sessions.kinds import registry
from fixtures.sessions.portrait import portrait
from fixtures.sessions.summary import summary
from weakfs import Session
from weakfs.session import UnsupportedVersion
from weakfs.session.files.file_head import VERSION
from weakfs.tools import ToolCall

FOLDER = Path(story.__file__).parent
SAVED = sorted(FOLDER.glob("v?.json"))
# What the first releases of a version wrote differently: equal trees twice, rollbacks without their reason.
ALL = [*SAVED, *sorted(FOLDER.glob("v?-first.json"))]


def loaded(path: Path) -> Session:
    session = Session.load(path, registry=registry())
    story.prepare(session)
    return session


def as_written_here(data: bytes) -> bytes:
    """Return a saved session as the installed orjson writes it: 1e+300 is 1e300 before 3.11.7."""
    document = orjson.loads(data)
    head = {key: document.pop(key) for key in ("format", "version", "sha256")}
    rest = orjson.dumps(document)[1:]
    head["sha256"] = sha256(rest).hexdigest()
    return orjson.dumps(head)[:-1] + b"," + rest


def test_there_is_one_saved_session_per_format_version() -> None:
    assert [path.name for path in SAVED] == [f"v{number}.json" for number in range(1, VERSION + 1)]


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.name)
def test_a_saved_session_still_has_its_contents(path: Path) -> None:
    expected = orjson.loads(path.with_suffix(".expected.json").read_bytes())
    found = orjson.loads(orjson.dumps(summary(loaded(path))))
    for part, shown in expected.items():
        assert found[part] == shown, part
    assert found.keys() == expected.keys()


@pytest.mark.sampled
@pytest.mark.parametrize("path", ALL, ids=lambda path: path.name)
def test_a_saved_session_can_be_used(path: Path, tmp_path: Path) -> None:
    session = loaded(path)
    for snapshot in session.snapshots:
        session.rollback(snapshot)
    session.save(tmp_path / "s.json")
    assert portrait(loaded(tmp_path / "s.json")) == portrait(session)


def test_the_current_version_saves_the_sample_session_as_it_always_did(tmp_path: Path) -> None:
    # A change here needs a new format version, unless the scenario itself was changed: python -m fixtures.sessions
    story.tell().save(tmp_path / "s.json")
    expected = (FOLDER / f"v{VERSION}.json").read_bytes()
    assert (tmp_path / "s.json").read_bytes() == as_written_here(expected)


@pytest.mark.parametrize("version", [3, 4])
def test_calls_that_a_version_stores_once_are_loaded(version: int, tmp_path: Path) -> None:
    path, told = FOLDER / f"v{version}-calls.json", calls.tell()

    session = Session.load(path)

    assert session[ToolCall].all() == told[ToolCall].all()
    assert [record.event for record in session.records] == [record.event for record in told.records]
    row = next(row for row in orjson.loads(path.read_bytes())["slices"] if "records" in row)
    assert len(row["records"]) == len([record for record in told.records if isinstance(record.event, ToolCall)])
    session.save(tmp_path / "s.json")
    assert (tmp_path / "s.json").read_bytes() == (FOLDER / f"v{VERSION}-calls.json").read_bytes()


@pytest.mark.parametrize("version", [0, VERSION + 1, "4", None, True])
def test_the_message_about_an_unsupported_version_names_the_supported_ones(version: object, tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    path.write_bytes(orjson.dumps({**orjson.loads((FOLDER / f"v{VERSION}.json").read_bytes()), "version": version}))
    with pytest.raises(UnsupportedVersion, match=f"this library reads 1 to {VERSION}; use the release") as caught:
        Session.load(path)
    assert str(caught.value).startswith(f"$.version: the file has format version {version!r}")
