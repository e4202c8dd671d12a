"""Property: after pruning, everything kept is unchanged, and exactly what the preview named is gone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.sampling import share
from weakfs import InMemoryFilesystem, Session, Toolset
from weakfs.history import PruneReport, Retention, prune
from weakfs.reducers import FileTree
from weakfs.session import SessionView, UnknownSnapshot
from weakfs.tools import ToolCall

PATHS = ("/a", "/b", "/d/c")
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["write", "append", "call", "delete", "snapshot", "tag", "rollback", "fork", "move"]),
        st.sampled_from(PATHS),
        st.integers(0, 3_000),
    ),
    max_size=16,
)
LIMITS = st.builds(
    Retention,
    max_bytes=st.none() | st.integers(0, 20_000),
    max_age=st.none() | st.integers(0, 40).map(lambda seconds: timedelta(seconds=seconds)),
    max_records=st.integers(0, 30),
    max_snapshots=st.none() | st.integers(0, 4),
    keep_tags=st.booleans(),
    keep_calls=st.booleans(),
)
Step = tuple[str, str, int]


def clock() -> Iterator[int]:
    yield from range(1_000_000_000, 1_000_000_000_000, 1_000_000_000)


def perform(session: Session, steps: Sequence[Step]) -> None:
    tools, fs = Toolset(session), InMemoryFilesystem(session)
    for what, path, size in steps:
        if what == "write":
            fs.write(path, "w" * size)
        elif what == "append":
            fs.append(path, "a" * (size // 7))
        elif what == "call":
            tools.call("write_file", {"path": path, "content": "c" * size})
        elif what in ("snapshot", "tag"):
            session.snapshot("kept" if what == "tag" else None)
        elif what == "rollback":
            first = session.seq - len(session.records)
            session.rollback(first + size % (session.seq - first + 1))
        elif what == "fork":
            fork = session.fork()
            perform(fork, [("write", path, size), ("append", "/b", size)])
            session.merge(fork)
            fork.close()
        elif fs.exists(path):
            fs.move(path, "/m") if what == "move" else fs.delete(path)


def files_of(view: Session | SessionView) -> dict[str, bytes]:
    held = Session(session_id="shown")
    held[FileTree].seed(view[FileTree].latest() or FileTree())
    fs = InMemoryFilesystem(held)
    return {found.path: fs.read_bytes(found.path).content for found in fs.glob("**", max_results=1000)}


def check_kept(session: Session, before: dict[str | int, dict[str, bytes]], last: int) -> None:
    """Check that each remaining moment gives the same results as before, and that the others are refused."""
    first = session.seq - len(session.records)
    for seq in range(last + 1):
        if seq < first:
            with pytest.raises(UnknownSnapshot, match=str(first)):
                session.at(seq)
        else:
            assert files_of(session.at(seq)) == before[seq]
    for snapshot in session.snapshots:
        assert files_of(session.at(snapshot)) == before[snapshot.snapshot_id]


def total(report: PruneReport) -> int:
    return sum(one.exclusive for one in report.kept)


@settings(max_examples=share(40))
@given(STEPS, LIMITS, st.sampled_from(["memory", "file", "folder", "sqlite"]))
def test_the_rest_is_unchanged_and_the_preview_was_right(steps: list[Step], limits: Retention, kind: str) -> None:
    with TemporaryDirectory() as folder:
        ticks = clock()
        where = {"folder": f"folder:{folder}/s", "sqlite": f"sqlite:{folder}/s.db"}.get(kind)
        made = (
            Session(session_id="mine", clock=lambda: next(ticks))
            if where is None
            else Session.open(where, "mine", clock=lambda: next(ticks))
        )
        perform(made, steps)
        now = made.now()
        made._clock = lambda: now
        before: dict[str | int, dict[str, bytes]] = {seq: files_of(made.at(seq)) for seq in range(made.seq + 1)}
        before |= {one.snapshot_id: files_of(made.at(one)) for one in made.snapshots}
        counts = len(made.records), len(made[ToolCall].all()), {one.snapshot_id for one in made.snapshots}
        tags = {one.snapshot_id for one in made.snapshots if one.tag is not None}

        preview = prune(made, limits, preview=True)
        assert (len(made.records), len(made[ToolCall].all()), {one.snapshot_id for one in made.snapshots}) == counts
        report = prune(made, limits)

        assert (preview.records, preview.calls, preview.dropped, preview.kept, preview.freed) == (
            report.records,
            report.calls,
            report.dropped,
            report.kept,
            report.freed,
        )
        assert len(made.records) == counts[0] - report.records <= (limits.max_records or 0)
        assert len(made[ToolCall].all()) == counts[1] - report.calls
        gone = {one.name for one in report.dropped}
        assert {one.snapshot_id for one in made.snapshots} == counts[2] - gone
        assert not (gone & tags and limits.keep_tags)
        assert total(report) <= report.bytes_after
        if limits.max_bytes is not None and not report.excess:
            assert report.bytes_after <= limits.max_bytes
        check_kept(made, before, made.seq)
        again = made
        if where is not None:
            made.close()
            again = Session.open(where, "mine", clock=lambda: now)
        if kind == "file":
            made.save(Path(folder, "mine.json"))
            again = Session.load(Path(folder, "mine.json"), clock=lambda: now)
        check_kept(again, before, again.seq)
        # What remains is what the report says, and nothing more can be removed.
        second = prune(again, limits)
        assert second.bytes_before == report.bytes_after
        assert second.is_empty or limits.max_bytes is not None
        again.close()
