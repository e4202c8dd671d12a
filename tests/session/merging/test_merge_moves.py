"""Merges that follow moves: changes of a moved entry are applied to it, or are conflicts of specific kinds."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.models.two_sides import (
    EDITED,
    LINES,
    Change,
    also,
    check_history,
    delete,
    move,
    texts,
    two_sides,
    write,
)
from weakfs import InMemoryFilesystem, MergeConflict, OverlayFilesystem, Session
from weakfs.reducers.merging import file_merge

A = {"/a": LINES}
D = {"/d/a": LINES, "/d/b": "b\n"}

# The files, what each side does, and what the result is.
CLEAN: dict[str, tuple[dict[str, str], Change, Change, dict[str, str]]] = {
    "moved and edited": (A, move("/a /b"), write("/a", EDITED), {"/b": EDITED}),
    "moved through several names": (A, move("/a /t", "/t /u", "/u /b"), write("/a", EDITED), {"/b": EDITED}),
    "moved and edited on one side": (
        A,
        also(move("/a /b"), write("/b", LINES + "end\n")),
        write("/a", EDITED),
        {"/b": EDITED + "end\n"},
    ),
    "moved there and back": (A, move("/a /b", "/b /a"), write("/a", EDITED), {"/a": EDITED}),
    "moved alike": (A, move("/a /b"), move("/a /b"), {"/b": LINES}),
    "a directory moved, a file in it edited": (
        D,
        move("/d /e"),
        write("/d/a", EDITED),
        {"/e/a": EDITED, "/e/b": "b\n"},
    ),
    "a directory moved, a file added": (
        D,
        move("/d /e"),
        write("/d/new", "n"),
        {"/e/a": LINES, "/e/b": "b\n", "/e/new": "n"},
    ),
    "a directory moved, a file deleted": (D, move("/d /e"), delete("/d/b"), {"/e/a": LINES}),
    "a directory moved, a file moved out of it": (D, move("/d /e"), move("/d/b /b"), {"/e/a": LINES, "/b": "b\n"}),
    "a directory moved, a file moved into it": (
        {**D, **A},
        move("/d /e"),
        move("/a /d/c"),
        {"/e/a": LINES, "/e/b": "b\n", "/e/c": LINES},
    ),
    "a directory moved into a directory that moved": (
        {**D, "/e/x": "x"},
        move("/d /e/d"),
        move("/e /f"),
        {"/f/x": "x", "/f/d/a": LINES, "/f/d/b": "b\n"},
    ),
    "a directory moved, its new directory as well": (
        D,
        move("/d /e"),
        also(write("/d/n/x", "x"), move("/d/n /d/m")),
        {"/e/a": LINES, "/e/b": "b\n", "/e/m/x": "x"},
    ),
    "a copy stays a copy": (A, lambda fs: fs.copy("/a", "/b"), write("/a", EDITED), {"/a": EDITED, "/b": LINES}),
    "moved away and written again": (
        A,
        also(move("/a /a.bak"), write("/a", LINES + "end\n")),
        write("/a", EDITED),
        {"/a": EDITED + "end\n", "/a.bak": LINES},
    ),
    "a directory moved away and created again": (
        D,
        also(move("/d /e"), write("/d/b", "b\nb\n")),
        also(write("/d/a", EDITED), write("/d/new", "n")),
        {"/e/a": EDITED, "/e/b": "b\n", "/d/b": "b\nb\n", "/d/new": "n"},
    ),
    "deleted and written again, moved there": (
        A,
        also(delete("/a"), write("/a", EDITED)),
        move("/a /b"),
        {"/b": EDITED},
    ),
    "saved by way of another file, moved there": (
        A,
        also(write("/tmp", EDITED), move("/tmp /a")),
        move("/a /b"),
        {"/b": EDITED},
    ),
    "two files that swap names": (
        {**A, "/b": "b\n"},
        move("/a /t", "/b /a", "/t /b"),
        write("/a", EDITED),
        {"/a": "b\n", "/b": EDITED},
    ),
    "moved onto a file of a directory that moves": (
        {**D, "/x": "x\n", "/y": "y\n"},
        also(move("/d /e"), move("/x /e/b")),
        write("/y", "Y\n"),
        {"/e/a": LINES, "/e/b": "x\n", "/y": "Y\n"},
    ),
    "two directories moved to one name": (
        {"/d/a": "a", "/e/b": "b"},
        move("/d /n"),
        move("/e /n"),
        {"/n/a": "a", "/n/b": "b"},
    ),
    "both create the directory that they move into": (
        {"/a": LINES, "/b": "b\n"},
        move("/a /n/a"),
        also(move("/a /n/a"), move("/b /n/b")),
        {"/n/a": LINES, "/n/b": "b\n"},
    ),
    "moved onto another file": ({**A, "/b": "b\n"}, move("/a /b"), write("/a", EDITED), {"/b": EDITED}),
    "moved onto a name that the other side gave the same content": (
        A,
        move("/a /b"),
        write("/b", LINES),
        {"/b": LINES},
    ),
}


@pytest.mark.parametrize(("files", "one", "other", "wanted"), CLEAN.values(), ids=CLEAN)
def test_moves_are_followed_on_either_side(
    files: dict[str, str], one: Change, other: Change, wanted: dict[str, str], tmp_path: Path
) -> None:
    for number, (ours, theirs) in enumerate(((one, other), (other, one))):
        sides = two_sides(files, ours, theirs)

        assert sides.merged() == wanted
        check_history(sides.session, tmp_path / f"{number}.json")


# The files, what each side does, the kind of the conflict, and the result of taking either side.
CONFLICTS: dict[str, tuple[dict[str, str], Change, Change, str, dict[str, str], dict[str, str]]] = {
    "moved to two places": (A, move("/a /b"), move("/a /c"), "moved_twice", {"/b": LINES}, {"/c": LINES}),
    "moved and deleted": (A, move("/a /b"), delete("/a"), "moved_deleted", {"/b": LINES}, {}),
    "a directory moved and deleted": (
        {"/d/a": LINES},
        move("/d /e"),
        delete("/d"),
        "moved_deleted",
        {"/e/a": LINES},
        {},
    ),
    "moved to a name that the other side created": (
        A,
        move("/a /b"),
        write("/b", "new\n"),
        "name_taken",
        {"/b": LINES},
        {"/a": LINES, "/b": "new\n"},
    ),
    "two files moved to one name": (
        {**A, "/c": "c\n"},
        move("/a /b"),
        move("/c /b"),
        "name_taken",
        {"/b": LINES, "/c": "c\n"},
        {"/a": LINES, "/b": "c\n"},
    ),
    "directories moved into each other": (
        {"/d/a": "a", "/e/b": "b"},
        move("/d /e/d"),
        move("/e /d/e"),
        "cycle",
        {"/e/b": "b", "/e/d/a": "a"},
        {"/d/a": "a", "/d/e/b": "b"},
    ),
    "two directories with a file of the same name moved to one name": (
        {"/d/x": "1\n", "/e/x": "2\n"},
        move("/d /n"),
        move("/e /n"),
        "name_taken",
        {"/n/x": "1\n"},
        {"/n/x": "2\n"},
    ),
    "edited where it was moved": (
        A,
        also(move("/a /b"), write("/b", LINES.replace("line 2\n", "other\n"))),
        write("/a", EDITED),
        "content",
        {"/b": LINES.replace("line 2\n", "other\n")},
        {"/b": EDITED},
    ),
}


@pytest.mark.parametrize(("files", "one", "other", "kind", "of_one", "of_other"), CONFLICTS.values(), ids=CONFLICTS)
def test_incompatible_changes_are_conflicts_of_their_kind(
    files: dict[str, str],
    one: Change,
    other: Change,
    kind: str,
    of_one: dict[str, str],
    of_other: dict[str, str],
    tmp_path: Path,
) -> None:
    for ours, theirs, of_ours, of_theirs in ((one, other, of_one, of_other), (other, one, of_other, of_one)):
        conflicts = two_sides(files, ours, theirs).conflicts()
        assert {conflict.kind for conflict in conflicts} == {kind}
        assert {conflict.our_calls for conflict in conflicts} == {("our call",)}
        assert {conflict.their_calls for conflict in conflicts} == {("their call",)}

        sides = two_sides(files, ours, theirs)
        assert sides.merged("ours") == of_ours
        check_history(sides.session, tmp_path / "ours.json")
        sides = two_sides(files, ours, theirs)
        assert sides.merged("theirs") == of_theirs
        check_history(sides.session, tmp_path / "theirs.json")


@pytest.mark.parametrize("name", ["moved to a name that the other side created", "two files moved to one name"])
def test_a_conflict_about_a_name_holds_the_entries_of_both_sides(name: str) -> None:
    files, one, other, _, of_one, of_other = CONFLICTS[name]
    for ours, theirs, of_ours, of_theirs in ((one, other, of_one, of_other), (other, one, of_other, of_one)):
        (conflict,) = two_sides(files, ours, theirs).conflicts()
        assert (conflict.path, conflict.ours, conflict.theirs) == ("/b", of_ours["/b"], of_theirs["/b"])


def test_a_conflict_about_the_name_of_a_file_and_a_directory_holds_the_file() -> None:
    session = Session(session_id="s")
    fs = InMemoryFilesystem(session)
    fs.write("/a", "text\n")
    fs.mkdir("/d")
    for is_ours in (True, False):
        fork = session.fork()
        one, other = (fs, fs.bind(fork)) if is_ours else (fs.bind(fork), fs)
        with session.transaction(), pytest.raises(MergeConflict) as caught:
            one.move("/a", "/b")
            other.move("/d", "/b/d")
            session.merge(fork)
        (conflict,) = caught.value.conflicts
        assert (conflict.path, conflict.kind) == ("/b", "name_taken")
        assert (conflict.ours, conflict.theirs) == (("text\n", None) if is_ours else (None, "text\n"))
        session.rollback(session.seq - 1)


def test_a_move_and_two_edits_in_three_forks_are_combined(tmp_path: Path) -> None:
    session = Session(session_id="s")
    fs = InMemoryFilesystem(session)
    fs.write("/README.md", LINES)
    forks = [session.fork() for _ in range(3)]
    fs.bind(forks[0]).move("/README.md", "/docs.md")
    fs.bind(forks[1]).write("/README.md", EDITED)
    fs.bind(forks[2]).write("/README.md", LINES.replace("line 8\n", "eight\n"))

    for fork in forks:
        session.merge(fork)

    assert texts(fs) == {"/docs.md": EDITED.replace("line 8\n", "eight\n")}
    check_history(session, tmp_path / "s.json")


def test_a_fork_merged_repeatedly_follows_moves_in_between(tmp_path: Path) -> None:
    session = Session(session_id="s")
    fs = InMemoryFilesystem(session)
    fs.write("/a", LINES)
    fs.write("/x", "x\n")
    fork = session.fork()
    theirs = fs.bind(fork)
    fs.move("/a", "/b")
    theirs.write("/x", "y\n")
    session.merge(fork)
    theirs.write("/a", EDITED)
    session.merge(fork)
    fs.move("/b", "/c")
    theirs.move("/x", "/z")
    theirs.write("/a", EDITED + "end\n")
    fs.write("/x", "y\nmore\n")
    session.merge(fork)

    assert texts(fs) == {"/c": EDITED + "end\n", "/z": "y\nmore\n"}
    check_history(session, tmp_path / "s.json")


def test_moves_in_a_fork_of_a_fork_are_followed(tmp_path: Path) -> None:
    session = Session(session_id="s")
    fs = InMemoryFilesystem(session)
    fs.write("/d/a", LINES)
    outer = session.fork()
    inner = outer.fork()
    other = session.fork()
    fs.bind(inner).move("/d", "/e")
    fs.bind(outer).write("/d/a", EDITED)
    outer.merge(inner)
    fs.bind(other).write("/d/new", "n\n")
    session.merge(outer)
    session.merge(other)

    assert texts(fs) == {"/e/a": EDITED, "/e/new": "n\n"}
    check_history(session, tmp_path / "s.json")


def test_moves_are_followed_in_a_fork_made_before_another_was_merged() -> None:
    session = Session(session_id="s")
    fs = InMemoryFilesystem(session)
    fs.write("/a", LINES)
    early = session.fork()
    fs.write("/other", "1\n")
    late = session.fork()
    fs.bind(early).move("/a", "/b")
    session.merge(early)
    fs.bind(late).write("/a", EDITED)

    session.merge(late)

    assert texts(fs) == {"/b": EDITED, "/other": "1\n"}


def test_a_move_that_was_rolled_back_does_not_count() -> None:
    session = Session(session_id="s")
    fs = InMemoryFilesystem(session)
    fs.write("/a", LINES)
    fork = session.fork()
    before = session.seq
    fs.move("/a", "/b")
    session.rollback(before)
    fs.write("/a", LINES + "end\n")
    fs.bind(fork).write("/a", EDITED)

    session.merge(fork)

    assert texts(fs) == {"/a": EDITED + "end\n"}


def test_the_end_of_a_transaction_follows_moves_too() -> None:
    session = Session(session_id="s")
    fs = InMemoryFilesystem(session)
    fs.write("/d/a", LINES)
    fork = session.fork()
    with session.transaction():
        fs.write("/d/a", EDITED)
        session.merge(fork)
        with session.transaction(cause="inner"):
            fs.move("/d/a", "/d/b")
    other = session.fork()
    fs.bind(other).write("/d/b", EDITED + "end\n")
    fs.move("/d", "/e")
    session.merge(other)

    assert texts(fs) == {"/e/b": EDITED + "end\n"}


def test_without_the_records_of_a_move_files_merge_by_path() -> None:
    sides = two_sides(A, move("/a /b"), write("/a", EDITED))
    sides.session.compact(keep=0)

    (conflict,) = sides.conflicts()

    assert (conflict.path, conflict.kind, conflict.our_path) == ("/a", "deleted", None)


def test_beyond_the_bound_on_records_files_merge_by_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_merge, "MOST_RECORDS", 1)
    sides = two_sides(A, also(move("/a /b"), write("/c", "c")), write("/a", EDITED))

    assert [conflict.kind for conflict in sides.conflicts()] == ["deleted"]


def test_the_record_of_a_merge_is_read_after_loading(tmp_path: Path) -> None:
    sides = two_sides(A, move("/a /b"), write("/a", EDITED))
    sides.session.merge(sides.fork)
    sides.session.save(tmp_path / "s.json")
    session = Session.load(tmp_path / "s.json")
    fs = InMemoryFilesystem(session)
    fork = session.fork()
    fs.bind(fork).write("/b", EDITED + "end\n")
    fs.move("/b", "/c")

    session.merge(fork)

    assert texts(fs) == {"/c": EDITED + "end\n"}
    assert texts(InMemoryFilesystem(session.replayed())) == {"/c": EDITED + "end\n"}


def test_moves_in_an_overlay_are_followed() -> None:
    lower = InMemoryFilesystem()
    lower.write("/a", LINES)
    session = Session(session_id="s")
    fs = OverlayFilesystem(lower, session)
    fork = session.fork()
    fs.move("/a", "/b")
    fs.bind(fork).write("/a", EDITED)

    session.merge(fork)

    assert texts(fs) == {"/b": EDITED}


def test_a_merge_of_different_files_reads_no_records(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object) -> None:
        raise AssertionError("the records were read")

    monkeypatch.setattr(file_merge, "_start", refuse)
    sides = two_sides({**A, "/b": "b\n"}, move("/a /c"), also(write("/b", "B\n"), write("/d/new", "n\n")))

    assert sides.merged() == {"/c": LINES, "/b": "B\n", "/d/new": "n\n"}


def test_an_unresolved_conflict_leaves_both_sides_unchanged() -> None:
    sides = two_sides(
        {**A, "/x": "x\n"}, also(move("/a /b"), write("/x", "1\n")), also(move("/a /c"), write("/x", "2\n"))
    )

    assert [conflict.path for conflict in sides.conflicts()] == ["/b", "/x"]
    with pytest.raises(MergeConflict) as caught:
        sides.merged({"/x": "ours"})
    assert caught.value.paths == ("/b",)
    assert sides.merged({"/x": "ours", "/[bc]": "theirs"}) == {"/c": LINES, "/x": "1\n"}
