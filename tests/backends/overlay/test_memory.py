"""What an overlay copies up from the lower layer is held in memory once."""

from __future__ import annotations

from collections.abc import Callable
from errno import EFBIG
from pathlib import Path

import pytest

from tests.models.cost import peak_memory
from weakfs import Session
from weakfs.backends import HostFilesystem, InMemoryFilesystem, OverlayFilesystem
from weakfs.filesystem import Limits
from weakfs.session.interruption import interruptible

MIB = 1 << 20
SIZE = 12 * MIB

Change = Callable[[OverlayFilesystem], object]
CHANGES: dict[str, Change] = {
    "append": lambda fs: fs.append("/d/f", "z"),
    "write": lambda fs: fs.write("/d/f", "z"),
    "chmod": lambda fs: fs.chmod("/d/f", 0o600),
    "move": lambda fs: fs.move("/d/f", "/g"),
    "copy": lambda fs: fs.copy("/d", "/e"),
}


def memory() -> InMemoryFilesystem:
    """A lower layer with a file that was appended to, so that it is held in pieces."""
    lower = InMemoryFilesystem(Session(session_id="lower"))
    lower.write_bytes("/d/f", bytes(SIZE - MIB))
    lower.append("/d/f", "a" * MIB)
    return lower


def host(tmp_path: Path) -> HostFilesystem:
    (tmp_path / "root" / "d").mkdir(parents=True)
    (tmp_path / "root" / "d" / "f").write_bytes(b"b" * SIZE)
    return HostFilesystem(tmp_path / "root", store=tmp_path / "store")


@pytest.mark.parametrize("change", CHANGES)
def test_changing_a_file_in_memory_copies_none_of_its_content(change: str) -> None:
    layer = OverlayFilesystem(memory(), Session(session_id="upper"))

    assert peak_memory(lambda: CHANGES[change](layer)) < MIB


@pytest.mark.parametrize("change", CHANGES)
def test_changing_a_host_file_holds_its_content_once(change: str, tmp_path: Path) -> None:
    layer = OverlayFilesystem(host(tmp_path), Session(session_id="upper"))

    assert peak_memory(lambda: CHANGES[change](layer)) < SIZE + 4 * MIB


def test_a_lower_file_is_not_read_if_the_append_exceeds_a_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = Session(session_id="upper")
    layer = OverlayFilesystem(host(tmp_path), session, limits=Limits(max_file_size=MIB))
    monkeypatch.setattr(HostFilesystem, "content", lambda *_: pytest.fail("it is read"))
    monkeypatch.setattr(HostFilesystem, "content_stream", lambda *_: pytest.fail("it is read"))

    with pytest.raises(OSError, match=f"'/d/f'.*{MIB}") as refusal:
        layer.append("/d/f", "z")

    assert refusal.value.errno == EFBIG
    assert session.seq == 0


def test_copying_a_host_file_up_can_be_interrupted(tmp_path: Path) -> None:
    layer = OverlayFilesystem(host(tmp_path), session := Session(session_id="upper"))
    checks_left = [None] * 8

    with pytest.raises(IndexError, match="pop from empty list"), interruptible(checks_left.pop):
        layer.append("/d/f", "z")

    assert session.seq == 0


@pytest.mark.parametrize("is_host", [True, False])
def test_the_lower_file_may_be_deleted_after_an_append(is_host: bool, tmp_path: Path) -> None:
    lower = host(tmp_path) if is_host else memory()
    layer = OverlayFilesystem(lower, Session(session_id="upper"))
    expected = lower.read_bytes("/d/f").content + b"z"
    layer.append("/d/f", "z")
    assert isinstance(layer.session, Session)

    lower.delete("/d/f")

    saved = Session.from_bytes(layer.session.to_bytes())
    again = Session(session_id="again")
    again.replay(layer.session.records)
    for session in (layer.session, saved, again):
        assert OverlayFilesystem(lower, session).read_bytes("/d/f").content == expected
