"""The command on sessions whose files are external, or are in a layer over others."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from weakfs import Session
from weakfs.backends import HostFilesystem, InMemoryFilesystem, OverlayFilesystem
from weakfs.reducers import EntryFound, FileWritten
from weakfs.reducers.tree.leaf import file
from weakfs.reducers.tree.node import tree_of

HOST = "host:/w"


def found(path: str, content: bytes, filesystem: str = HOST) -> EntryFound:
    return EntryFound(path, tree_of({path.rpartition("/")[2]: file(content, at=1)}), 1, filesystem)


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    session = Session(session_id="s", clock=count(10**18, 10**9).__next__)
    session.dispatch(found("/kept", b"kept\n"))
    session.dispatch(found("/src/a.py", b"one\ntwo\n"))
    session.dispatch(FileWritten("/src/a.py", b"one\nTWO\n", 2, filesystem=HOST), cause="call1")
    session.snapshot("edited")
    session.dispatch(found("/late", b"l\n"))
    session.dispatch(FileWritten("/new", b"n\n", 3, filesystem=HOST))
    session.save(tmp_path / "s.json")
    return tmp_path / "s.json"


def test_the_only_external_filesystem_is_the_default_if_the_session_has_no_files(run: Run, outside: Path) -> None:
    assert run("cat", outside, "/src/a.py").out == "one\nTWO\n"
    assert [line.rpartition(" ")[2] for line in run("ls", outside, "-R", "/").lines] == [
        "kept",
        "late",
        "new",
        "src/",
        "src/a.py",
    ]
    stats = run("stats", outside, "--json").objects[0]["files"]
    assert (stats["filesystem"], stats["files"]) == (HOST, 4)


def test_a_found_file_is_not_a_difference_but_an_edited_one_is(run: Run, outside: Path) -> None:
    assert run("diff", outside, "--names").lines == ["A  /new", "M  /src/a.py"]
    assert "-two\n+TWO\n" in run("diff", outside, "/src").out
    assert run("diff", outside, "--at", "edited", "--names").lines == ["A  /new"]
    assert run("diff", outside, "--at", "edited", "--to", "0", "--names").lines == ["M  /src/a.py"]


def test_an_early_moment_shows_files_that_were_found_later(run: Run, outside: Path) -> None:
    assert run("cat", outside, "/src/a.py", "--at", "0").out == "one\ntwo\n"
    assert run("cat", outside, "/late", "--at", "edited").out == "l\n"


def test_the_log_shows_external_files_like_others(run: Run, outside: Path) -> None:
    paths = [
        entry["event"]["path"] for entry in run("log", "--records", outside, "--json", "--filesystem", HOST).objects
    ]
    assert paths == ["/kept", "/src/a.py", "/src/a.py", "/late", "/new"]
    assert len(run("log", "--records", outside, "--path", "/src").lines) == 2
    assert "call1" in run("log", outside, "--cause", "call1").out


def test_an_unknown_filesystem_is_named_with_the_known_ones(run: Run, outside: Path) -> None:
    for words in (["ls", outside], ["log", outside], ["stats", outside], ["diff", outside], ["cat", outside, "/a"]):
        outcome = run(*words, "--filesystem", "host:/none")
        assert (outcome.status, "host:/none" in outcome.err, HOST in outcome.err) == (2, True, True)


def test_one_of_several_external_filesystems_must_be_named(run: Run, tmp_path: Path) -> None:
    session = Session()
    session.dispatch(found("/a", b"1"))
    session.dispatch(found("/a", b"2", "host:/other"))
    session.save(tmp_path / "s.json")
    outcome = run("cat", tmp_path / "s.json", "/a")
    assert outcome.status == 2
    assert "--filesystem" in outcome.err
    assert run("cat", tmp_path / "s.json", "/a", "--filesystem", "host:/other").out == "2"


def test_a_session_with_its_own_files_shows_them(run: Run, tmp_path: Path) -> None:
    session = Session()
    InMemoryFilesystem(session).write("/a", "own")
    session.dispatch(found("/a", b"theirs"))
    session.save(tmp_path / "s.json")
    assert run("cat", tmp_path / "s.json", "/a").out == "own"
    assert run("cat", tmp_path / "s.json", "/a", "--filesystem", HOST).out == "theirs"


def test_a_real_directory_that_was_edited_in_place(run: Run, tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "a").write_text("one\ntwo\n")
    (root / "b").write_text("b\n")
    session = Session()
    fs = HostFilesystem(root, session=session, store=tmp_path / "store")
    fs.splice("/a", [(0, 3, b"ONE")])
    fs.chmod("/b", 0o755)
    fs.move("/b", "/c")
    fs.write("/n", "n\n")
    session.save(tmp_path / "s.json")
    assert run("diff", tmp_path / "s.json", "--names").lines == ["M  /a", "R  /b -> /c", "A  /n"]
    assert "-one\n+ONE\n two\n" in run("diff", tmp_path / "s.json", "/a").out


def test_a_layer_shows_its_entries_and_how_they_differ(run: Run, tmp_path: Path) -> None:
    lower = InMemoryFilesystem()
    lower.write("/a", "one\ntwo\n")
    lower.write("/gone", "x")
    session = Session()
    layer = OverlayFilesystem(lower, session)
    layer.splice("/a", [(0, 3, b"ONE")])
    layer.delete("/gone")
    layer.write("/n", "n\n")
    session.save(tmp_path / "s.json")
    assert run("diff", tmp_path / "s.json", "--names").lines == ["M  /a", "D  /gone", "A  /n"]
    assert "-one\n+ONE\n two\n" in run("diff", tmp_path / "s.json", "/a").out
    assert "fs/entry_hidden" in run("log", "--records", tmp_path / "s.json", "--path", "/gone").out


def test_entries_that_a_layer_hides_are_shown_as_removed(run: Run, tmp_path: Path) -> None:
    lower = InMemoryFilesystem()
    lower.write("/gone.txt", "text")
    lower.write("/away/deep/a.txt", "text")
    lower.write("/kept.txt", "text")
    layer = OverlayFilesystem(lower, Session())
    layer.read("/kept.txt")
    layer.delete("/gone.txt")
    layer.delete("/away", recursive=True)
    assert layer.session is not None
    layer.session.save(tmp_path / "s.json")

    assert run("diff", tmp_path / "s.json", "--names").lines == ["D  /away", "D  /gone.txt"]
    assert run("ls", tmp_path / "s.json").lines == []
