"""What a durable session takes in its storage: checkpoints and compactions delete what nothing needs any more."""

from __future__ import annotations

from random import Random

import pytest

from tests.session.durable.streams import MemoryStreams
from weakfs import InMemoryFilesystem, Session, Toolset
from weakfs.session.durable.checkpoints import checkpoints
from weakfs.tools import ToolCalls

SIZE = 20_000


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> MemoryStreams:
    """Streams with checkpoints after a few edits."""
    monkeypatch.setattr(checkpoints, "LEAST", 5_000)
    return MemoryStreams()


def edit(session: Session, path: str, number: int) -> None:
    """Replace a word in a large file."""
    fs = InMemoryFilesystem(session)
    if not fs.exists(path):
        fs.write(path, "<>\n" + Random(path).randbytes(SIZE // 2).hex())
    tools = Toolset(session)
    old = fs.read(path, limit=1).content.strip()
    assert tools.call("edit_file", {"path": path, "old_string": old, "new_string": f"<{number}>"}).success


def edited_for_long(store: MemoryStreams, edits: int = 160) -> Session:
    session = Session.open(store, "s")
    for number in range(edits):
        edit(session, f"/{number % 4}", number)
        if number % 20 == 19:
            session.checkpoint()
    return session


def content_bytes(store: MemoryStreams) -> int:
    return sum(map(len, store.contents("s").values()))


def test_checkpoints_delete_the_copies_of_those_that_they_replace(store: MemoryStreams) -> None:
    session = edited_for_long(store)
    session.checkpoint()
    # The files as they were written, as they are, and as they were at one moment for reading the history.
    assert content_bytes(store) < 3.3 * 4 * SIZE
    again = Session.open(store)
    assert again.to_bytes() == session.to_bytes()
    assert again.replayed().to_bytes() == session.to_bytes()


def test_compacting_deletes_what_only_dropped_records_needed(store: MemoryStreams) -> None:
    session = edited_for_long(store)
    calls = 520 * len(session[ToolCalls].all())
    for _ in range(2):
        session.compact(keep=0)
        # The calls, which are kept, and the files; a frame of the compaction before, which still has records that are
        # not dropped or near those, refers to the files at that time.
        assert content_bytes(store) < 2.2 * 4 * SIZE + 1.1 * calls
        assert Session.open(store).to_bytes() == session.to_bytes()
        for number in range(1000, 1010):
            edit(session, f"/{number % 4}", number)
        session.checkpoint()
        # They are not in each checkpoint.
        checkpoint = store.get_checkpoint("s")
        assert checkpoint is not None
        assert len(checkpoint.data) < calls / 10
    session = Session.open(store)
    before = session[ToolCalls].all()
    session.compact(keep=0, keep_calls=100)
    for one in (session, Session.open(store)):
        assert one[ToolCalls].all() == before[-100:]


def test_a_session_that_another_one_has_left_behind_still_reads_its_files(store: MemoryStreams) -> None:
    session = edited_for_long(store, 40)
    session.checkpoint()
    left_behind = Session.open(store)
    expected = len(left_behind.records), InMemoryFilesystem(session).read("/1").content
    for number in range(100, 180):
        edit(session, f"/{number % 4}", number)
    session.checkpoint()
    session.checkpoint()
    assert (len(left_behind.records), InMemoryFilesystem(left_behind).read("/1").content) == expected
    # Also what was there after a compaction.
    session.compact(keep=0)
    edit(session, "/2", 500)
    session.checkpoint()
    left_behind = Session.open(store)
    expected = len(left_behind.records), InMemoryFilesystem(session).read("/2").content
    edit(session, "/2", 501)
    session.checkpoint()
    assert (len(left_behind.records), InMemoryFilesystem(left_behind).read("/2").content) == expected


def test_a_reopened_session_shows_the_state_that_it_was_opened_with(store: MemoryStreams) -> None:
    session = edited_for_long(store, 40)
    session.checkpoint()
    seq, expected = session.seq, InMemoryFilesystem(session).read("/3").content
    session = Session.open(store)
    InMemoryFilesystem(session).delete("/3")
    session.checkpoint()
    session.checkpoint()
    assert InMemoryFilesystem(session.at(seq)).read("/3").content == expected


def test_a_checkpoint_that_comes_too_late_leaves_the_newer_one(store: MemoryStreams) -> None:
    session = edited_for_long(store, 40)
    log = session._log
    assert log is not None
    with session.lock:
        moment = log.checkpoints.moment(session, log.head, session._trunk)
    edit(session, "/1", 1000)
    session.checkpoint()
    newest = store.get_checkpoint("s")
    contents = store.contents("s")
    log.checkpoints.write(moment)
    assert store.get_checkpoint("s") == newest
    assert store.contents("s") == contents
    assert Session.open(store).to_bytes() == session.to_bytes()
