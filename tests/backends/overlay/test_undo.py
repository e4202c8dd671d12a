"""One call of an overlay's method is one operation, however many records it makes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from weakfs import HostFilesystem, InMemoryFilesystem, OverlayFilesystem, Session

WORK: dict[str, Callable[[OverlayFilesystem], object]] = {
    "move a lower file": lambda layer: layer.move("/top", "/new/top"),
    "move a lower directory": lambda layer: layer.move("/d", "/e"),
    "delete a lower directory": lambda layer: layer.delete("/d", recursive=True),
    "change a lower file": lambda layer: layer.append("/d/low", "2"),
    "chmod a lower file": lambda layer: layer.chmod("/d/low", 0o600),
    "make a link in a new directory": lambda layer: layer.symlink("x", "/n/m/l"),
}


@pytest.mark.parametrize("work", WORK.values(), ids=WORK)
def test_a_method_call_is_undone_as_one_operation(work: Callable[[OverlayFilesystem], object]) -> None:
    below = InMemoryFilesystem()
    below.write("/d/low", "1")
    below.write("/top", "1")
    session = Session()
    layer = OverlayFilesystem(below, session)
    layer.write("/first", "1")
    before = layer.tree().fingerprint
    work(layer)
    after = layer.tree().fingerprint
    session.undo()
    assert layer.tree().fingerprint == before
    session.redo()
    assert layer.tree().fingerprint == after


def test_a_transaction_with_a_cause_is_one_operation() -> None:
    below = InMemoryFilesystem()
    below.write("/a", "1")
    session = Session()
    layer = OverlayFilesystem(below, session)
    with session.transaction(cause="call"):
        layer.move("/a", "/b")
        layer.write("/c", "1")
    assert {record.cause for record in session.records} == {"call"}
    session.revert("call")
    assert [entry.path for entry in layer.walk()] == ["/a"]


@pytest.mark.parametrize("shares_the_session", [False, True])
def test_each_commit_is_undone_on_its_own(tmp_path: Path, shares_the_session: bool) -> None:
    (tmp_path / "root").mkdir()
    below = HostFilesystem(tmp_path / "root", store=tmp_path / "store")
    layer = OverlayFilesystem(below, below.session if shares_the_session else Session())
    for text in ("1", "2"):
        layer.write("/a", text)
        layer.write("/b", text)
        layer.commit()
    below.session.undo()
    assert {path.name: path.read_text() for path in (tmp_path / "root").iterdir()} == {"a": "1", "b": "1"}
    # In a shared session, the layer has its changes again.
    assert layer.diff().changed == (("/a", "/b") if shares_the_session else ())
