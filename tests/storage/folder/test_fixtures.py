"""The journals of every released version can be read and continued."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import fixtures.journals
from fixtures.journals.__main__ import digests
from weakfs.storage.folder import FolderEventStore

FIXTURES = Path(fixtures.journals.__file__).parent
VERSIONS = sorted(path.name for path in FIXTURES.glob("v*") if path.is_dir())


def test_there_is_a_fixture_of_the_current_version() -> None:
    assert "v1" in VERSIONS


@pytest.mark.parametrize("has_indexes", [True, False], ids=["indexes", "no indexes"])
@pytest.mark.parametrize("version", VERSIONS)
def test_a_journal_of_any_version_is_read_and_continued(tmp_path: Path, version: str, has_indexes: bool) -> None:
    shutil.copytree(FIXTURES / version, tmp_path / "copy")
    for path in () if has_indexes else list((tmp_path / "copy").rglob("*.index")):
        path.unlink()
    expected = json.loads((FIXTURES / f"{version}.expected.json").read_text())
    store = FolderEventStore(tmp_path / "copy")
    assert store.streams() == list(expected)
    for stream, wanted in expected.items():
        assert [[frame.number, frame.data.hex()] for frame in store.read(stream)] == wanted["frames"]
        contents = store.get_contents(stream, digests())
        assert {digest: data.hex() for digest, data in contents.items()} == wanted["contents"]
        checkpoint = store.get_checkpoint(stream)
        assert (checkpoint and [checkpoint.number, checkpoint.data.hex()]) == wanted["checkpoint"]
        assert store.check(stream) == []
        head = store.head(stream)
        assert store.append(stream, head, [b"more"]) == head + 1
        assert store.lease(stream, "me", 1).fencing == wanted["next fencing"]
