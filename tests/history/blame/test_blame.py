"""Blame of every kind of change, for every kind of files and sessions."""

from __future__ import annotations

from pathlib import Path

import pytest
from attrs import frozen

from weakfs import HostFilesystem, HostMount, InMemoryFilesystem, OverlayFilesystem, Session, Toolset
from weakfs.history import BlameLine
from weakfs.reducers import FileTree, FileWritten, content_of, find, reduce
from weakfs.reducers.apply import segments_of
from weakfs.session import event

TEXT = "one\ntwo\nthree\n"


@pytest.fixture
def session() -> Session:
    return Session(session_id="s", clock=lambda: 7)


@pytest.fixture
def fs(session: Session) -> InMemoryFilesystem:
    return InMemoryFilesystem(session)


def records(session: Session, path: str, at: int | str | None = None) -> list[int]:
    return [line.record for line in session.blame(path, at=at)]


def causes(session: Session, path: str, at: int | str | None = None) -> list[str | None]:
    return [line.call_id for line in session.blame(path, at=at)]


def test_a_line_names_the_call_that_wrote_it(session: Session) -> None:
    tools = Toolset(session)
    tools.call("write_file", {"path": "/a", "content": TEXT}, call_id="c1", caller="main")
    tools.call("edit_file", {"path": "/a", "old_string": "two", "new_string": "zwei"}, call_id="c2")
    tools.call("mv", {"source": "/a", "destination": "/b"}, call_id="c3")
    tools.call(
        "apply_patch",
        {"patch": "*** Begin Patch\n*** Update File: /b\n@@\n three\n+four\n*** End Patch"},
        call_id="c4",
    )
    first = session.records[0].seq
    lines = session.blame("/b")
    assert lines[0] == BlameLine(1, "one", first, "c1", "write_file", "main", 7)
    assert [(line.text, line.call_id, line.tool) for line in lines[1:]] == [
        ("zwei", "c2", "edit_file"),
        ("three", "c1", "write_file"),
        ("four", "c4", "apply_patch"),
    ]


def test_an_id_that_was_used_twice_means_the_call_that_made_the_record(session: Session) -> None:
    tools = Toolset(session)
    tools.call("write_file", {"path": "/a", "content": "1\n"}, call_id="c")
    tools.call("edit_file", {"path": "/a", "old_string": "1\n", "new_string": "1\n2\n"}, call_id="c")
    assert [line.tool for line in session.blame("/a")] == ["write_file", "edit_file"]


def test_the_second_blame_is_answered_from_memory(session: Session, fs: InMemoryFilesystem) -> None:
    fs.write("/a", TEXT)
    before = session.blame("/a")
    fs.write("/b", TEXT)
    assert session.blame("/a") is before
    fs.append("/a", "four\n")
    assert session.blame("/a")[:3] == before
    assert records(session, "/a") == [1, 1, 1, 3]


def test_the_call_is_known_as_soon_as_it_is_recorded(session: Session, fs: InMemoryFilesystem) -> None:
    tools = Toolset(session)
    seen: list[str | None] = []
    session.subscribe(FileWritten, lambda _: seen.append(session.blame("/a")[0].tool))
    tools.call("write_file", {"path": "/a", "content": "1\n"}, call_id="c")
    assert session.blame("/a")[0].tool == "write_file"


@pytest.mark.parametrize(
    ("content", "texts"),
    [
        (b"", []),
        (b"a", ["a"]),
        (b"a\n", ["a"]),
        (b"a\n\n", ["a", ""]),
        (b"a\r\nb\r\n", ["a\r", "b\r"]),
        (b"a\x0c\xe2\x80\xa8b\n", ["a\x0c\u2028b"]),
        (b"caf\xe9\nb\xff", ["caf\ufffd", "b\ufffd"]),
        ("\ufeffgrün\n".encode(), ["\ufeffgrün"]),
    ],
)
def test_blame_splits_any_text_into_lines(
    session: Session, fs: InMemoryFilesystem, content: bytes, texts: list[str]
) -> None:
    fs.write_bytes("/a", content)
    assert [line.text for line in session.blame("/a")] == texts
    assert [line.number for line in session.blame("/a")] == [*range(1, len(texts) + 1)]


def test_adding_a_line_ending_changes_a_line(session: Session, fs: InMemoryFilesystem) -> None:
    fs.write("/a", "one\ntwo")
    fs.append("/a", "\nthree")
    assert records(session, "/a") == [1, 2, 2]


def test_entries_without_lines_are_refused(session: Session, fs: InMemoryFilesystem) -> None:
    fs.write_bytes("/binary", b"\0")
    fs.write("/d/a", TEXT)
    fs.symlink("/d/a", "/link")
    for path, error, said in (
        ("/binary", ValueError, "binary"),
        ("/d", IsADirectoryError, "directory"),
        ("/", IsADirectoryError, "directory"),
        ("/link", ValueError, "'/d/a'"),
        ("/nothing", FileNotFoundError, "'/nothing'"),
        ("/d/a/b", FileNotFoundError, "'/d/a/b'"),
        ("/../a", PermissionError, "/../a"),
    ):
        with pytest.raises(error, match=said):
            session.blame(path)
    with pytest.raises(FileNotFoundError):
        session.blame("/d/a", at=1)
    with pytest.raises(ValueError, match="host:none"):
        session.blame("/d/a", filesystem="host:none")


def test_rolled_back_work_is_not_blamed_until_it_is_restored(session: Session, fs: InMemoryFilesystem) -> None:
    fs.write("/a", TEXT)
    fs.write("/a", "one\nzwei\nthree\n")
    session.rollback(1)
    assert records(session, "/a") == [1, 1, 1]
    session.rollback(2)
    assert records(session, "/a") == [1, 2, 1]
    assert records(session, "/a", at=3) == [1, 1, 1]


def test_undo_redo_and_revert_give_lines_their_old_blame(session: Session, fs: InMemoryFilesystem) -> None:
    for number, text in enumerate((TEXT, "one\nzwei\nthree\n", "one\nzwei\nthree\nfour\n"), 1):
        with session.transaction(cause=f"c{number}"):
            fs.write("/a", text)
    session.revert("c2")
    assert causes(session, "/a") == ["c1", "c1", "c1", "c3"]
    session.undo()
    assert causes(session, "/a") == ["c1", "c2", "c1", "c3"]
    session.undo()
    assert causes(session, "/a") == ["c1", "c2", "c1"]
    session.redo()
    assert causes(session, "/a") == ["c1", "c2", "c1", "c3"]


def test_restored_files_get_their_old_blame_back_and_others_keep_theirs(
    session: Session, fs: InMemoryFilesystem
) -> None:
    fs.write("/a", TEXT)
    fs.write("/b", TEXT)
    snapshot = fs.snapshot()
    session.snapshot("tagged")
    fs.write("/a", "other\n")
    fs.write("/b", "other\n")
    session.restore("tagged", paths=["/a"])
    assert (records(session, "/a"), records(session, "/b")) == ([1, 1, 1], [4])
    fs.write("/a", "again\n")
    session.restore(2)
    assert (records(session, "/a"), records(session, "/b")) == ([1, 1, 1], [2, 2, 2])
    assert records(session, "/a", at="tagged") == [1, 1, 1]
    now = iter(range(1_000, 2_000))
    session = Session(session_id="t", clock=lambda: next(now))
    fs = InMemoryFilesystem(session)
    fs.write("/a", TEXT)
    snapshot = fs.snapshot()
    fs.write("/a", "other\n")
    fs.restore(snapshot)
    assert records(session, "/a") == [1, 1, 1]


def test_conflict_markers_belong_to_the_merge(session: Session, fs: InMemoryFilesystem) -> None:
    fs.write("/a", TEXT)
    fork = session.fork()
    fs.bind(fork).write("/a", "one\nzwei\nthree\n")
    fs.write("/a", "one\ndeux\nthree\n")
    merge = session.merge(fork, on_conflict="markers").seq
    assert [line.record for line in session.blame("/a")] == [1, merge, 2, merge, merge + 1, merge, 1]


def test_a_file_moved_by_a_program_keeps_its_blame(session: Session, fs: InMemoryFilesystem) -> None:
    fs.write("/src/a", TEXT)
    fs.write("/b", "b\n")
    with session.transaction(cause="shell"), fs.checkout() as laid:
        root = Path(laid.directory)
        (root / "src").rename(root / "lib")
        (root / "b").write_text("b\nc\n", encoding="utf-8")
    assert causes(session, "/lib/a") == [None] * 3
    assert causes(session, "/b") == [None, "shell"]
    with session.transaction(cause="shell 2"), fs.checkout() as laid:
        root = Path(laid.directory)
        (root / "lib/a").rename(root / "c")
    assert causes(session, "/c") == [None] * 3


@pytest.mark.parametrize("way", ["delete and write", "write and move"])
def test_a_file_that_is_saved_by_replacing_it_keeps_its_blame(
    session: Session, fs: InMemoryFilesystem, way: str
) -> None:
    fs.write("/a", TEXT)
    with session.transaction(cause="saved"):
        if way == "delete and write":
            fs.delete("/a")
            fs.write("/a", "one\nzwei\nthree\n")
        else:
            fs.write("/a.tmp", "one\nzwei\nthree\n")
            fs.move("/a.tmp", "/a")
    assert causes(session, "/a") == [None, "saved", None]


def test_a_mount_is_blamed_for_the_files_that_it_copied(tmp_path: Path) -> None:
    (tmp_path / "a").write_text(TEXT, encoding="utf-8")
    session = Session(session_id="s", clock=lambda: 1)
    fs = InMemoryFilesystem(session, mounts=[HostMount(tmp_path, "/m")])
    fs.append("/m/a", "four\n")
    assert records(session, "/m/a") == [1, 1, 1, 2]


def host(session: Session, tmp_path: Path) -> HostFilesystem:
    (tmp_path / "root").mkdir()
    (tmp_path / "root/a").write_text(TEXT, encoding="utf-8")
    return HostFilesystem(tmp_path / "root", session=session, store=tmp_path / "store")


def test_lines_found_in_a_directory_are_attributed_to_nobody(session: Session, tmp_path: Path) -> None:
    files = host(session, tmp_path)
    with session.transaction(cause="c1"):
        files.write("/a", TEXT + "four\n")
    kinds = [(line.kind, line.call_id) for line in session.blame("/a", filesystem=files)]
    assert kinds == [("found", None)] * 3 + [("written", "c1")]
    # An editor changes the file meanwhile.
    (tmp_path / "root/a").write_text("zero\n" + TEXT + "four\n", encoding="utf-8")
    with session.transaction(cause="c2"):
        files.append("/a", "five\n")
    assert [line.kind for line in session.blame("/a")] == ["found"] * 4 + ["written"] * 2
    assert causes(session, "/a") == [None] * 4 + ["c1", "c2"]
    found = session.blame("/a")[0].record
    assert found > session.blame("/a")[1].record


def test_undo_in_a_directory_gives_lines_their_old_blame(session: Session, tmp_path: Path) -> None:
    files = host(session, tmp_path)
    texts = (TEXT + "four\n", "one\nzwei\nthree\nfour\n", "one\nzwei\nthree\nfour\nfive\n")
    for number, text in enumerate(texts, 1):
        with session.transaction(cause=f"c{number}"):
            files.write("/a", text)
    session.revert("c2")
    assert causes(session, "/a") == [None, None, None, "c1", "c3"]
    session.undo()
    assert causes(session, "/a") == [None, "c2", None, "c1", "c3"]
    seq = session.seq
    with session.transaction(cause="rm"):
        files.delete("/a")
    session.rollback(seq)
    assert causes(session, "/a") == [None, "c2", None, "c1", "c3"]


def test_a_restored_snapshot_of_a_directory_has_its_old_blame(session: Session, tmp_path: Path) -> None:
    files = host(session, tmp_path)
    with session.transaction(cause="c1"):
        files.write("/a", TEXT + "four\n")
    snapshot = files.snapshot()
    with session.transaction(cause="c2"):
        files.write("/a", "other\n")
    files.restore(snapshot)
    assert causes(session, "/a") == [None, None, None, "c1"]


def test_a_command_in_a_directory_is_blamed_for_the_lines_that_it_changed(session: Session, tmp_path: Path) -> None:
    files = host(session, tmp_path)
    with session.transaction(cause="shell"), files.checkout():
        (tmp_path / "root/a").write_text("one\nzwei\nthree\n", encoding="utf-8")
    assert causes(session, "/a") == [None, "shell", None]


def test_blame_works_before_a_directory_was_first_scanned(session: Session, tmp_path: Path) -> None:
    files = host(session, tmp_path)
    files.write("/b", "b\n")
    before = session.seq
    files.append("/a", "four\n")
    lines = session.blame("/a", at=before)
    assert [(line.text, line.kind) for line in lines] == [("one", "found"), ("two", "found"), ("three", "found")]


def test_blame_in_a_layer_over_a_directory(session: Session, tmp_path: Path) -> None:
    (tmp_path / "a").write_text(TEXT, encoding="utf-8")
    lower = HostFilesystem(tmp_path, store=tmp_path.parent / "store")
    layer = OverlayFilesystem(lower, session)
    with session.transaction(cause="c1"):
        layer.append("/a", "four\n")
    assert causes(session, "/a") == [None, None, None, "c1"]
    layer.commit()
    with session.transaction(cause="c2"):
        layer.append("/a", "five\n")
    assert causes(session, "/a") == [None, None, None, "c1", "c2"]


def test_lines_older_than_the_records_are_marked(session: Session, fs: InMemoryFilesystem) -> None:
    for number in range(1, 6):
        fs.append("/a", f"{number}\n")
    session.compact(keep=2)
    assert [(line.record, line.kind) for line in session.blame("/a")] == [
        (3, "boundary"),
        (3, "boundary"),
        (3, "boundary"),
        (4, "written"),
        (5, "written"),
    ]
    assert session.blame("/a")[0].at is None


def test_blame_of_a_snapshot_in_a_fork_does_not_change_later_answers(session: Session, fs: InMemoryFilesystem) -> None:
    fs.write("/a", TEXT)
    fork = session.fork()
    theirs = fs.bind(fork)
    theirs.append("/a", "four\n")
    inside = fork.snapshot("inside")
    theirs.append("/a", "five\n")
    fs.write("/a", TEXT.replace("one", "eins"))
    session.merge(fork)
    fs.append("/a", "six\n")
    expected = records(Session.from_bytes(session.to_bytes()), "/a")
    assert [line.record for line in session.blame("/a", at=inside)] == [1, 1, 1, 4]
    assert records(session, "/a") == expected == [2, 1, 1, 4, 5, 6]


def test_blame_after_a_compaction_inside_a_merge(session: Session, fs: InMemoryFilesystem) -> None:
    fs.write("/a", TEXT)
    fork = session.fork()
    theirs = fs.bind(fork)
    theirs.append("/a", "four\n")
    theirs.append("/a", "five\n")
    fs.write("/b", TEXT)
    session.merge(fork)
    fs.append("/a", "six\n")
    session.compact(keep=2)
    assert [line.kind for line in session.blame("/a")] == ["boundary"] * 5 + ["written"]
    assert fork.blame("/a")[3].record == 2


def test_blame_in_a_session_opened_from_a_checkpoint(tmp_path: Path) -> None:
    with Session.open(tmp_path / "store", "s") as session:
        fs = InMemoryFilesystem(session)
        for number in range(1, 6):
            fs.append("/a", f"{number}\n")
        session.checkpoint()
        fs.append("/a", "6\n")
    with Session.open(tmp_path / "store", "s") as session:
        assert records(session, "/a") == [1, 2, 3, 4, 5, 6]
        assert records(session, "/a", at=4) == [1, 2, 3, 4]


def test_blame_of_files_that_were_set_directly(session: Session, fs: InMemoryFilesystem) -> None:
    fs.write("/a", TEXT)
    tree = session[FileTree].latest()
    assert tree is not None
    fs.write("/a", "one\ntwo\n")
    session[FileTree].seed(tree)
    assert records(session, "/a") == [1, 1, 3]


def test_blame_in_an_open_transaction_includes_its_own_work(session: Session, fs: InMemoryFilesystem) -> None:
    fs.write("/a", TEXT)
    with session.transaction(cause="c"):
        fs.append("/a", "four\n")
        assert causes(session, "/a") == [None, None, None, "c"]
    assert causes(session, "/a") == [None, None, None, "c"]


def test_blame_in_a_fork_uses_its_record_numbers(session: Session, fs: InMemoryFilesystem) -> None:
    fs.write("/a", TEXT)
    fork = session.fork()
    fs.bind(fork).append("/a", "four\n")
    fs.write("/b", TEXT)
    assert records(fork, "/a") == [1, 1, 1, 2]
    session.merge(fork)
    assert records(session, "/a") == [1, 1, 1, 4]


@event("test/shouted")
@frozen
class Shouted:
    """A custom event: the first line of a file was capitalized."""

    path: str


def on_shouted(tree: FileTree, event: Shouted) -> FileTree:
    leaf = find(tree, segments_of(event.path))
    assert type(leaf) is tuple
    first, _, rest = content_of(leaf).partition(b"\n")
    return reduce(tree, FileWritten(event.path, first.upper() + b"\n" + rest, 0))


def test_a_programs_own_events_are_blamed_for_what_they_changed(session: Session, fs: InMemoryFilesystem) -> None:
    fs.write("/a", TEXT)
    session[FileTree].register(Shouted, on_shouted)
    session.dispatch(Shouted("/a"), cause="shout")
    fs.append("/a", "four\n")
    assert [(line.text, line.record) for line in session.blame("/a")] == [
        ("ONE", 2),
        ("two", 1),
        ("three", 1),
        ("four", 3),
    ]
