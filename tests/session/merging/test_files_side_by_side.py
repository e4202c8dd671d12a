"""Files in concurrent sessions: merged by path, and inside texts by lines."""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread

import pytest

from weakfs import MergeConflict, Session, SessionClosed
from weakfs.backends import InMemoryFilesystem
from weakfs.reducers import FileTree

TEXT = "".join(f"line {number}\n" for number in range(10))


def sides(**files: str) -> tuple[Session, Session, InMemoryFilesystem, InMemoryFilesystem]:
    """Make a session with some files and a fork of it, with the filesystem of each."""
    session = Session(session_id="s")
    ours = InMemoryFilesystem(session)
    for name, text in files.items():
        ours.write(f"/{name}", text)
    fork = session.fork()
    return session, fork, ours, ours.bind(fork)


def edited(text: str, *changes: tuple[int, int, str]) -> str:
    """Replace ranges of lines; the changes go from the end to the start."""
    lines = text.splitlines(keepends=True)
    for start, end, new in sorted(changes, reverse=True):
        lines[start:end] = [new] if new else []
    return "".join(lines)


def test_a_filesystem_bound_to_a_fork_writes_only_there() -> None:
    _, _, ours, theirs = sides(a="1")

    theirs.write("/a", "2")
    theirs.write("/b", "2")

    assert ours.read("/a").content == "1"
    assert not ours.exists("/b")


def test_files_that_only_one_side_changed_are_merged() -> None:
    session, fork, ours, theirs = sides(a="1", b="1", c="1", d="1")
    theirs.write("/a", "2")
    theirs.delete("/b")
    theirs.write("/new/theirs", "x")
    ours.write("/c", "2")
    ours.delete("/d")
    ours.write("/new/ours", "x")

    session.merge(fork)

    assert ours.read("/a").content == ours.read("/c").content == "2"
    assert [entry.name for entry in ours.list("/")] == ["a", "c", "new"]
    assert [entry.name for entry in ours.list("/new")] == ["ours", "theirs"]


@pytest.mark.parametrize("side", ["ours", "theirs"])
def test_a_side_that_went_back_to_before_the_first_file_deleted_what_it_had(side: str) -> None:
    session = Session()
    start = session.snapshot()
    files = InMemoryFilesystem(session)
    files.write("/old.txt", "old")
    fork = session.fork()
    emptied, other = (session, fork) if side == "ours" else (fork, session)
    emptied.rollback(start)
    files.bind(other).write("/new.txt", "new")

    session.merge(fork)

    assert [entry.path for entry in files.walk()] == ["/new.txt"]


def test_lines_that_only_one_side_changed_are_merged() -> None:
    session, fork, ours, theirs = sides(f=TEXT)
    theirs.write("/f", edited(TEXT, (8, 9, "theirs\n")))
    ours.write("/f", edited(TEXT, (1, 2, "ours\n")))

    session.merge(fork)

    assert ours.read("/f").content == edited(TEXT, (1, 2, "ours\n"), (8, 9, "theirs\n"))


def test_adjacent_ranges_of_lines_are_merged() -> None:
    session, fork, ours, theirs = sides(f=TEXT)
    theirs.write("/f", edited(TEXT, (4, 6, "theirs\n")))
    ours.write("/f", edited(TEXT, (2, 4, "ours\n")))

    session.merge(fork)

    assert ours.read("/f").content == edited(TEXT, (2, 4, "ours\n"), (4, 6, "theirs\n"))


@pytest.mark.parametrize(
    ("ours_change", "theirs_change"),
    [
        ((3, 6, "ours\n"), (5, 8, "theirs\n")),
        ((3, 4, "ours\n"), (3, 4, "theirs\n")),
        ((3, 3, "ours\n"), (3, 3, "theirs\n")),
        ((10, 10, "ours\n"), (10, 10, "theirs\n")),
        ((3, 6, ""), (4, 5, "theirs\n")),
    ],
    ids=["overlap", "same line", "inserted at one point", "appended", "deleted and changed"],
)
def test_ranges_that_overlap_or_insert_at_one_point_conflict(
    ours_change: tuple[int, int, str], theirs_change: tuple[int, int, str]
) -> None:
    session, fork, ours, theirs = sides(f=TEXT)
    ours.write("/f", edited(TEXT, ours_change))
    theirs.write("/f", edited(TEXT, theirs_change))
    before = ours.tree()

    with pytest.raises(MergeConflict) as caught:
        session.merge(fork)

    assert caught.value.paths == ("/f",)
    assert ours.tree() is before


def test_a_conflict_lists_every_path_and_changes_nothing() -> None:
    session, fork, ours, theirs = sides(a="1", b="1", c="1", d="1")
    for number, fs in enumerate((ours, theirs)):
        fs.write("/a", f"{number}\n")
        fs.write("/deep/er/b", f"{number}\n")
        fs.write(f"/free{number}", "x")
    ours.delete("/c")
    theirs.write("/c", "2")
    ours.write("/d", "2")
    theirs.delete("/d")
    before, seq = ours.tree(), session.seq

    with pytest.raises(MergeConflict, match="/a, /c, /d, /deep/er/b") as caught:
        session.merge(fork)

    assert caught.value.paths == ("/a", "/c", "/d", "/deep/er/b")
    assert (ours.tree(), session.seq) == (before, seq)
    assert theirs.read("/a").content == "1\n"


def test_both_sides_writing_the_same_text_is_not_a_conflict() -> None:
    session, fork, ours, theirs = sides(a="1")
    for fs in (ours, theirs):
        fs.write("/a", "2")
        fs.write("/b", "x")

    session.merge(fork)

    assert (ours.read("/a").content, ours.read("/b").content) == ("2", "x")


def test_our_changes_follow_a_file_that_the_fork_moves() -> None:
    session, fork, ours, theirs = sides(a="1", b="1")
    theirs.move("/a", "/moved")
    ours.write("/b", "2")

    session.merge(fork)
    assert [entry.name for entry in ours.list("/")] == ["b", "moved"]

    theirs.move("/b", "/elsewhere")
    ours.write("/b", "3")
    session.merge(fork)
    assert {entry.name: ours.read(entry.path).content for entry in ours.list("/")} == {"moved": "1", "elsewhere": "3"}


def test_binary_files_are_not_merged_by_lines() -> None:
    session, fork, ours, theirs = sides(f=TEXT)
    ours.write_bytes("/f", b"\0ours\n" + TEXT.encode())
    theirs.write("/f", TEXT + "theirs\n")

    with pytest.raises(MergeConflict, match="/f"):
        session.merge(fork)


@pytest.mark.slow
def test_texts_that_take_too_long_to_compare_conflict_rather_than_hang() -> None:
    def scattered(step: int) -> str:
        return "".join(f"{number * step % 7}\n" for number in range(60_000))

    session, fork, ours, theirs = sides(f=scattered(1))
    ours.write("/f", scattered(2))
    theirs.write("/f", scattered(3))

    with pytest.raises(MergeConflict, match="/f"):
        session.merge(fork)


def test_permission_bits_of_one_side_and_contents_of_the_other_are_merged() -> None:
    session, fork, ours, theirs = sides(f=TEXT)
    theirs.chmod("/f", 0o755)
    ours.write("/f", "new")

    session.merge(fork)

    assert (ours.read("/f").content, ours.stat("/f").mode & 0o777) == ("new", 0o755)


def test_a_closed_fork_refuses_writes_through_its_filesystem() -> None:
    _, fork, ours, theirs = sides(a="1")
    fork.close("call 7 was cancelled")

    steps: list[Callable[[], object]] = [
        lambda: theirs.write("/a", "2"),
        lambda: theirs.append("/a", "2"),
        lambda: theirs.delete("/a"),
        lambda: theirs.move("/a", "/b"),
        lambda: theirs.mkdir("/d"),
        lambda: theirs.chmod("/a", 0o600),
        lambda: theirs.restore(theirs.snapshot()),
    ]
    for step in steps:
        with pytest.raises(SessionClosed, match="call 7 was cancelled"):
            step()
    assert theirs.read("/a").content == ours.read("/a").content == "1"


def test_a_rollback_restores_the_same_tree_object() -> None:
    session, _, fs, _ = sides(a="1", b="2")
    before, fingerprint = fs.tree(), fs.tree().fingerprint
    snapshot = session.snapshot()
    fs.write("/a", "2")
    fs.chmod("/b", 0o600)
    fs.mkdir("/empty")

    session.rollback(snapshot)

    assert fs.tree() is before
    assert fs.tree().fingerprint == fingerprint


def test_a_failed_transaction_restores_the_same_tree_object() -> None:
    session, _, fs, _ = sides(a="1")
    before = fs.tree()

    with pytest.raises(LookupError), session.transaction():
        fs.move("/a", "/b")
        fs.write("/a", "other")
        fs.delete("/b")
        raise LookupError

    assert fs.tree() is before


def test_a_failed_transaction_keeps_concurrent_writes_by_others() -> None:
    session, _, fs, _ = sides(a=TEXT)

    def append_elsewhere() -> None:
        other = Thread(target=fs.append, args=("/a", "theirs\n"))
        other.start()
        other.join()

    with pytest.raises(LookupError), session.transaction():
        fs.write("/a", "ours")
        append_elsewhere()
        raise LookupError

    assert fs.read("/a").content == TEXT + "theirs\n"


def test_a_merge_can_be_found_in_the_history() -> None:
    session, fork, ours, theirs = sides(f=TEXT)
    theirs.write("/f", edited(TEXT, (8, 9, "theirs\n")))
    theirs.write("/g", "x")
    ours.write("/f", edited(TEXT, (1, 2, "ours\n")))
    before = session.seq
    session.merge(fork)
    merged = ours.tree().fingerprint

    again = Session()
    again.replay(session.records)

    tree = again[FileTree].latest()
    assert tree is not None
    assert tree.fingerprint == merged
    assert InMemoryFilesystem(session.at(before)).read("/f").content == edited(TEXT, (1, 2, "ours\n"))
    assert InMemoryFilesystem(session.at(session.seq)).tree().fingerprint == merged
