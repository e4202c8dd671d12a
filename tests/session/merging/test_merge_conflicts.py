"""Conflicts as values: what they contain, how they are shown, and how they can be resolved."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from tests.models.two_sides import EDITED, LINES, Change, also, check_history, delete, texts, two_sides, write
from tests.session.ledger import Added, Put, Total, make_session, shelf_of, total_of
from weakfs import InMemoryFilesystem, MergeConflict, Session
from weakfs.session import Choice, ConflictEntry, ConflictHunk, Merged, OnConflict, Resolution

A = {"/a": LINES}
OURS = LINES.replace("line 2\n", "ours\n")
THEIRS = LINES.replace("line 2\n", "theirs\n").replace("line 8\n", "eight\n")
MARKED = LINES.replace("line 2\n", "<<<<<<< ours\nours\n=======\ntheirs\n>>>>>>> theirs\n").replace("line 8", "eight")


def test_a_conflict_holds_both_sides_the_hunks_and_the_calls() -> None:
    (conflict,) = two_sides(A, write("/a", OURS), write("/a", THEIRS)).conflicts()

    assert conflict == ConflictEntry(
        "/a",
        "content",
        "fs/tree",
        LINES,
        OURS,
        THEIRS,
        (ConflictHunk(2, ("line 2\n",), ("ours\n",), ("theirs\n",)),),
        "/a",
        "/a",
        "/a",
        ("our call",),
        ("their call",),
    )


def test_calls_that_were_rolled_back_are_not_named() -> None:
    session = Session()
    fs = InMemoryFilesystem(session)
    fs.write("/a", LINES)
    fork = session.fork()
    fs.bind(fork).write("/a", THEIRS)
    before = session.seq
    with session.transaction(cause="undone"):
        fs.write("/a", "x")
    session.rollback(before)
    with session.transaction(cause="kept"):
        fs.write("/a", OURS)

    with pytest.raises(MergeConflict) as caught:
        session.merge(fork)

    assert caught.value.conflicts[0].our_calls == ("kept",)


@pytest.mark.parametrize(
    ("kind", "ours", "theirs"),
    [
        ("mode", lambda fs: fs.chmod("/a", 0o600), lambda fs: fs.chmod("/a", 0o755)),
        ("binary", lambda fs: fs.write_bytes("/a", b"\0a"), lambda fs: fs.write_bytes("/a", b"\0b")),
        ("deleted", delete("/a"), write("/a", EDITED)),
        ("type", also(delete("/a"), lambda fs: fs.mkdir("/a")), write("/a", EDITED)),
    ],
)
def test_either_side_can_be_chosen_for_every_kind_of_conflict(
    kind: str, ours: Change, theirs: Change, tmp_path: Path
) -> None:
    for one, other in ((ours, theirs), (theirs, ours)):
        (conflict,) = two_sides(A, one, other).conflicts()
        assert conflict.kind == kind
        choices: tuple[Choice, ...] = ("ours", "theirs")
        for choice in choices:
            sides = two_sides(A, one, other)
            wanted = getattr(sides, choice).tree().fingerprint
            sides.session.merge(sides.fork, on_conflict=choice)
            assert sides.ours.tree().fingerprint == wanted
            check_history(sides.session, tmp_path / "s.json")


RESOLVED: dict[str, tuple[OnConflict, str]] = {
    "our side of each hunk": ("ours", OURS.replace("line 8", "eight")),
    "their side of each hunk": ("theirs", THEIRS),
    "markers": ("markers", MARKED),
    "by path": ({"/a": "theirs"}, THEIRS),
    "by glob": ({"/*": "markers"}, MARKED),
    "the first key that matches": ({"/a": "theirs", "/*": "ours"}, THEIRS),
    "a content": ({"/a": Resolution("new\n")}, "new\n"),
    "a function": (lambda entry: Resolution(f"{entry.path} {entry.kind}\n"), "/a content\n"),
    "a function for a path": ({"/a": lambda entry: "ours"}, OURS.replace("line 8", "eight")),
}


@pytest.mark.parametrize(("on_conflict", "wanted"), RESOLVED.values(), ids=RESOLVED)
def test_a_text_is_resolved_as_asked(on_conflict: OnConflict, wanted: str, tmp_path: Path) -> None:
    sides = two_sides(A, write("/a", OURS), write("/a", THEIRS))

    assert sides.merged(on_conflict) == {"/a": wanted}
    check_history(sides.session, tmp_path / "s.json")
    again = Session.load(tmp_path / "s.json")
    assert texts(InMemoryFilesystem(again)) == {"/a": wanted}
    assert texts(InMemoryFilesystem(again.replayed())) == {"/a": wanted}


def test_a_resolution_can_delete_and_its_answer_is_recorded() -> None:
    sides = two_sides(A, write("/a", OURS), write("/a", THEIRS))

    record = sides.session.merge(sides.fork, on_conflict={"/a": Resolution(None)})

    assert texts(sides.ours) == {}
    assert isinstance(record.event, Merged)
    assert record.event.resolutions == (("fs/tree", "/a", "content", "content", None),)


@pytest.mark.parametrize("on_conflict", ["markers", {"/b": "ours"}, {}, lambda entry: "raise"])
def test_unresolved_conflicts_remain_and_nothing_changes(on_conflict: OnConflict) -> None:
    sides = two_sides(A, lambda fs: fs.write_bytes("/a", b"\0a"), write("/a", EDITED))
    before = sides.ours.tree(), sides.session.seq

    with pytest.raises(MergeConflict):
        sides.session.merge(sides.fork, on_conflict=on_conflict)

    assert (sides.ours.tree(), sides.session.seq) == before


@pytest.mark.parametrize("wrong", ["both", None, Resolution("x"), {"/a": "both"}, {"a[": "ours"}, lambda entry: "both"])
def test_a_wrong_choice_is_refused_and_changes_nothing(wrong: OnConflict) -> None:
    sides = two_sides(A, write("/a", OURS), write("/a", THEIRS))
    before = sides.ours.tree(), sides.session.seq

    with pytest.raises(ValueError, match=r"resolve|choice|content|glob|bracket|unclosed"):
        sides.session.merge(sides.fork, on_conflict=wrong)

    assert (sides.ours.tree(), sides.session.seq) == before
    assert sides.merged("theirs") == {"/a": THEIRS}


def test_an_error_in_the_function_changes_nothing() -> None:
    def fail(entry: ConflictEntry) -> Choice:
        raise ZeroDivisionError

    sides = two_sides(A, write("/a", OURS), write("/a", THEIRS))
    before = sides.ours.tree(), sides.session.seq

    with pytest.raises(ZeroDivisionError):
        sides.session.merge(sides.fork, on_conflict=fail)

    assert (sides.ours.tree(), sides.session.seq) == before


def test_markers_use_the_line_endings_and_complete_the_last_line() -> None:
    windows = two_sides({"/a": "1\r\n2\r\n"}, write("/a", "o\r\n2\r\n"), write("/a", "t\r\n2\r\n"))
    assert windows.merged("markers") == {"/a": "<<<<<<< ours\r\no\r\n=======\r\nt\r\n>>>>>>> theirs\r\n2\r\n"}
    short = two_sides({"/a": "1"}, write("/a", "1\no"), write("/a", "1\nt"))
    assert short.merged("markers") == {"/a": "1\n<<<<<<< ours\no\n=======\nt\n>>>>>>> theirs\n"}


def test_a_preview_shows_what_would_change_and_changes_nothing() -> None:
    sides = two_sides(
        {**A, "/gone": "1\n", "/b": LINES, "/m": "m\n"},
        also(write("/a", OURS), write("/mine", "x")),
        also(write("/a", THEIRS), delete("/gone"), write("/b", EDITED + "end\n"), write("/new", "1\n2\n")),
    )
    before = sides.ours.tree(), sides.session.seq, sides.theirs.tree(), sides.fork.seq

    report = sides.session.merge(sides.fork, preview=True)

    assert (sides.ours.tree(), sides.session.seq, sides.theirs.tree(), sides.fork.seq) == before
    assert [(change.path, change.change, change.lines_added, change.lines_removed) for change in report.changes] == [
        ("/b", "changed", 2, 1),
        ("/gone", "removed", 0, 1),
        ("/new", "added", 2, 0),
    ]
    assert (report.lines_added, report.lines_removed) == (4, 2)
    assert [conflict.path for conflict in report.conflicts] == ["/a"]

    resolved = sides.session.merge(sides.fork, on_conflict="theirs", preview=True)
    sides.session.merge(sides.fork, on_conflict="theirs")

    assert resolved.conflicts == ()
    assert resolved.paths == ("/a", "/b", "/gone", "/new")


def test_a_preview_of_a_fork_whose_parent_did_nothing() -> None:
    sides = two_sides(A, lambda fs: None, lambda fs: fs.move("/a", "/b"))

    (change,) = sides.session.merge(sides.fork, preview=True).changes

    assert (change.path, change.change, change.source) == ("/b", "moved", "/a")


def test_the_message_shows_both_sides_and_what_to_do() -> None:
    sides = two_sides(A, write("/a", OURS), write("/a", THEIRS))

    with pytest.raises(MergeConflict) as caught:
        sides.session.merge(sides.fork)

    assert str(caught.value) == (
        "cannot merge: both sides changed /a; nothing was changed. Make the change again on the newer state, or say "
        "which side to take (on_conflict)\n"
        "/a: both sides changed the same lines; ours by our call; theirs by their call\n"
        "at line 2 of the common base:\n<<<<<<< ours\nours\n=======\ntheirs\n>>>>>>> theirs"
    )


@pytest.mark.slow
def test_the_message_is_bounded_and_escapes_control_characters() -> None:
    files = {f"/f{number}\x1b": "1\n" for number in range(30)}
    long = "\x1b[31m\u202e" + "x" * 10_000 + "\n"

    def fill(side: str) -> Change:
        return also(*(write(path, "".join(f"{side} {line} {long}" for line in range(100))) for path in files))

    sides = two_sides(files, fill("o"), fill("t"))
    with pytest.raises(MergeConflict) as caught:
        sides.session.merge(sides.fork)

    message = str(caught.value)
    assert len(caught.value.conflicts) == 30
    assert len(message) < 40_000
    assert "and 20 more" in message
    assert not any(character in message for character in "\x1b\u202e")


def test_a_conflict_survives_pickling() -> None:
    sides = two_sides(A, write("/a", OURS), write("/a", THEIRS))
    with pytest.raises(MergeConflict) as caught:
        sides.session.merge(sides.fork)

    again = pickle.loads(pickle.dumps(caught.value))

    assert again.conflicts == caught.value.conflicts
    assert str(again) == str(caught.value)


# Slices without paths


def test_the_message_names_the_first_calls_of_a_side() -> None:
    calls = tuple(f"call {number}" for number in range(7))
    conflict = ConflictEntry("/a", "content", "fs/tree", our_calls=calls)

    assert "ours by call 0, call 1, call 2, call 3, call 4\n" in f"{MergeConflict((conflict,))}\n"


def test_a_slice_without_paths_names_its_tag_and_its_calls() -> None:
    session = make_session()
    fork = session.fork()
    fork.dispatch(Added(1), cause="theirs")
    session.dispatch(Added(2), cause="ours")
    session.dispatch(Put("a", 1), cause="another")

    with pytest.raises(MergeConflict) as caught:
        session.merge(fork)

    (conflict,) = caught.value.conflicts
    assert (conflict.path, conflict.slice, conflict.kind) == ("ledger/total", "ledger/total", "slice")
    assert (conflict.our_calls, conflict.their_calls) == (("ours",), ("theirs",))


@pytest.mark.parametrize(("choice", "total"), [("ours", 2), ("theirs", 1)])
def test_either_side_of_a_slice_can_be_chosen(choice: Choice, total: int) -> None:
    ways: tuple[OnConflict, ...] = (choice, {"ledger/total": choice})
    for on_conflict in ways:
        session = make_session()
        fork = session.fork()
        fork.dispatch(Added(1))
        session.dispatch(Added(2))
        preview = session.merge(fork, on_conflict=on_conflict, preview=True)

        session.merge(fork, on_conflict=on_conflict)

        assert preview.paths == (("ledger/total",) if choice == "theirs" else ())
        assert total_of(session) == total
        assert session.at(session.seq)[Total].latest() == Total(total)


def test_a_slice_merged_as_a_whole_is_not_taken_from_both_sides() -> None:
    session = make_session()
    fork = session.fork()
    for value, side in enumerate((session, fork)):
        side.dispatch(Put("a", value))
        side.dispatch(Put("b", value))

    with pytest.raises(ValueError, match="choose 'ours' or 'theirs' for all"):
        session.merge(fork, on_conflict={"a": "ours", "b": "theirs"})
    session.merge(fork, on_conflict={"a": "theirs", "b": "theirs"})

    assert shelf_of(session) == {"a": 1, "b": 1}


def test_a_slice_has_no_markers() -> None:
    session = make_session()
    fork = session.fork()
    fork.dispatch(Added(1))
    session.dispatch(Added(2))

    with pytest.raises(MergeConflict):
        session.merge(fork, on_conflict="markers")
