"""The space that a durable session takes in its storage: checkpoints and compactions delete unneeded data."""

from __future__ import annotations

import zlib
from base64 import b64encode
from pathlib import Path
from random import Random

import orjson
import pytest

from tests.sampling import is_exhaustive
from tests.session.durable.streams import MemoryStreams
from weakfs import InMemoryFilesystem, Session, Toolset
from weakfs.history import forget
from weakfs.session.durable import open_session
from weakfs.session.durable.checkpoints import checkpoints, log_slices
from weakfs.session.durable.checkpoints.trim_stream import digests_of
from weakfs.session.durable.frames.content_copies import COPY
from weakfs.storage import Checkpoint
from weakfs.storage.folder import FolderEventStore
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


class MeasuredStreams(MemoryStreams):
    """Streams that note, at each checkpoint, how much is stored for each byte of frames and of what they refer to."""

    def __init__(self) -> None:
        super().__init__()
        self.ratios: list[float] = []

    def put_checkpoint(self, stream: str, checkpoint: Checkpoint) -> None:
        super().put_checkpoint(stream, checkpoint)
        # The copies of the previous one still exist.
        contents, frames = self.contents(stream), [frame.data for frame in self.read(stream)]
        named = {digest for data in frames for digest in digests_of(orjson.loads(data).get("blobs", ()))}
        records = sum(map(len, frames))
        needed = records + sum(len(data) for digest, data in contents.items() if digest in named)
        stored = records + sum(map(len, contents.values())) + len(checkpoint.data)
        self.ratios.append(stored / needed)


# The worst case known is 200 files of 50 kB, and checkpoints after 4 MiB of frames. The sample is a sixtieth of it.
FILES, LENGTH, SCALE = (200, 50_000, 1) if is_exhaustive() else (40, 4_000, 60)


@pytest.mark.slow
@pytest.mark.parametrize("edited", [FILES, 5])
def test_a_session_takes_at_most_one_and_a_half_times_its_contents_and_records(
    edited: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoints, "LEAST", checkpoints.LEAST // SCALE)
    store, dice = MeasuredStreams(), Random(1)
    session = Session.open(store, "s")
    fs, tools = InMemoryFilesystem(session), Toolset(session)
    log = session._log
    assert log is not None
    with session.transaction():
        for number in range(FILES):
            # It does not compress well.
            fs.write(f"/{number}", "<0>\n" + b64encode(dice.randbytes(LENGTH * 3 // 4)).decode())
    for number in range(1, 120_000 // SCALE):
        path = f"/{dice.randrange(edited)}"
        old = fs.read(path, limit=1).content.strip()
        assert tools.call("edit_file", {"path": path, "old_string": old, "new_string": f"<{number}>"}).success
        # Checkpoints are written in the background.
        log.checkpoints.wait()
    assert len(store.ratios) > 1
    assert max(store.ratios) < 1.5


def test_checkpoints_delete_the_copies_of_those_that_they_replace(store: MemoryStreams) -> None:
    session = edited_for_long(store)
    session.checkpoint()
    # The files as they were written, as they are now, and as they were at one moment for reading the history.
    assert content_bytes(store) < 3.3 * 4 * SIZE
    again = Session.open(store)
    assert again.to_bytes() == session.to_bytes()
    assert again.replayed().to_bytes() == session.to_bytes()


def appended(store: MemoryStreams, content: bytes) -> list[str]:
    """Store a file whose whole content only a checkpoint has, and return the keys of copies."""
    session = Session.open(store, "s")
    fs = InMemoryFilesystem(session)
    fs.write_bytes("/a", content[:SIZE])
    fs.write_bytes("/a", content[SIZE:], mode="append")
    session.checkpoint()
    return [key for key in store.contents("s") if COPY.fullmatch(key)]


def test_a_copy_of_incompressible_content_takes_little_more_space(store: MemoryStreams) -> None:
    content = Random(1).randbytes(2 * SIZE)
    (key,) = appended(store, content)
    assert len(store.contents("s")[key]) < len(content) * 1.01
    assert InMemoryFilesystem(Session.open(store)).read_bytes("/a").content == content


def test_a_copy_that_is_not_compressed_is_read(store: MemoryStreams) -> None:
    content = b"a line\n" * SIZE
    (key,) = appended(store, content)
    contents, checkpoint = store.contents("s"), store.get_checkpoint("s")
    assert checkpoint is not None
    plain = key.removesuffix("c")
    contents[plain] = zlib.decompress(contents.pop(key))
    document = checkpoint.data.replace(key.encode(), plain.encode())
    store.fill("s", list(store.read("s")), contents, Checkpoint(checkpoint.number, document))
    with pytest.MonkeyPatch.context() as patch:
        # That function would supply the content.
        patch.setattr(open_session, "content_from_frames", lambda *_: None)
        assert InMemoryFilesystem(Session.open(store)).read_bytes("/a").content == content


def test_a_folder_adds_little_to_what_is_stored_in_it(tmp_path: Path) -> None:
    with Session.open(tmp_path / "store", "s") as session:
        dice, tools = Random(1), Toolset(session)
        for number in range(100):
            assert tools.call("write_file", {"path": f"{number % 10}", "content": dice.randbytes(500).hex()}).success
    with FolderEventStore(tmp_path / "store") as store:
        frames = [frame.data for frame in store.read("s")]
        named = {digest for data in frames for digest in digests_of(orjson.loads(data).get("blobs", ()))}
        needed = sum(map(len, [*frames, *store.get_contents("s", named).values()]))
    assert sum(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file()) < 1.1 * needed


def test_compacting_deletes_contents_that_only_dropped_records_needed(store: MemoryStreams) -> None:
    session = edited_for_long(store)
    calls = 520 * len(session[ToolCalls].all())
    for _ in range(2):
        session.compact(keep=0)
        # The calls, which are kept, and the files twice: the frame of the previous compaction is still needed, and
        # refers to the files at that time.
        assert content_bytes(store) < 2.2 * 4 * SIZE + 1.1 * calls
        assert Session.open(store).to_bytes() == session.to_bytes()
        for number in range(1000, 1010):
            edit(session, f"/{number % 4}", number)
        session.checkpoint()
        # The calls are not in each checkpoint.
        checkpoint = store.get_checkpoint("s")
        assert checkpoint is not None
        assert len(checkpoint.data) < calls / 10
    session = Session.open(store)
    before = session[ToolCalls].all()
    session.compact(keep=0, keep_calls=100)
    for one in (session, Session.open(store)):
        assert one[ToolCalls].all() == before[-100:]


def called_and_compacted(session: Session, calls: int) -> Session:
    """Drop all records of a session whose calls have arguments that are stored as contents of their own."""
    tools = Toolset(session)
    for number in range(calls):
        tools.call("write_file", {"path": "/a", "content": f"{number} {'long ' * 300}"}, call_id=f"c{number}")
    session.compact(keep=0)
    return session


@pytest.mark.parametrize("kind", ["memory", "stored"])
def test_a_copy_has_the_contents_of_calls_whose_records_were_dropped(kind: str) -> None:
    source = Session(session_id="s") if kind == "memory" else Session.open(MemoryStreams(), "s")
    called_and_compacted(source, 2 * log_slices.LEAST)
    target = MemoryStreams()
    source.copy_to(target)
    copy = Session.open(target)
    assert copy[ToolCalls].all() == source[ToolCalls].all()
    assert copy.to_bytes() == source.to_bytes()


@pytest.mark.parametrize("scheme", ["folder", "sqlite"])
def test_forgetting_leaves_the_contents_of_calls_whose_records_were_dropped(tmp_path: Path, scheme: str) -> None:
    url = f"{scheme}:{tmp_path / 'sessions'}"
    calls = 2 * log_slices.LEAST
    forget(called_and_compacted(Session.open(url, "s"), calls), text="100 long long")
    with Session.open(url, "s") as session:
        arguments = [call.arguments for call in session[ToolCalls].all()]
        assert len(arguments) == calls
        assert "[forgotten" in str(arguments[100])
        assert "127 long" in str(arguments[127])


def test_each_call_whose_record_was_dropped_is_stored_once(
    store: MemoryStreams, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_slices, "MOST", log_slices.LEAST)
    called_and_compacted(Session.open(store, "s"), 8 * log_slices.LEAST)
    documents = b"".join(store.contents("s").values())
    for number in (0, 100, 500):
        assert documents.count(b'"call_id":"c%d"' % number) == 1


def test_a_session_that_has_fallen_behind_still_reads_its_files(store: MemoryStreams) -> None:
    session = edited_for_long(store, 40)
    session.checkpoint()
    left_behind = Session.open(store)
    expected = len(left_behind.records), InMemoryFilesystem(session).read("/1").content
    for number in range(100, 180):
        edit(session, f"/{number % 4}", number)
    session.checkpoint()
    session.checkpoint()
    assert (len(left_behind.records), InMemoryFilesystem(left_behind).read("/1").content) == expected
    # This also holds for the state after a compaction.
    session.compact(keep=0)
    edit(session, "/2", 500)
    session.checkpoint()
    left_behind = Session.open(store)
    expected = len(left_behind.records), InMemoryFilesystem(session).read("/2").content
    edit(session, "/2", 501)
    session.checkpoint()
    assert (len(left_behind.records), InMemoryFilesystem(left_behind).read("/2").content) == expected


def test_a_reopened_session_shows_the_state_at_its_opening(store: MemoryStreams) -> None:
    session = edited_for_long(store, 40)
    session.checkpoint()
    seq, expected = session.seq, InMemoryFilesystem(session).read("/3").content
    session = Session.open(store)
    InMemoryFilesystem(session).delete("/3")
    session.checkpoint()
    session.checkpoint()
    assert InMemoryFilesystem(session.at(seq)).read("/3").content == expected


def test_a_late_checkpoint_does_not_replace_a_newer_one(store: MemoryStreams) -> None:
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
