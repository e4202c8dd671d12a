"""The versions that callers have seen are part of the session."""

from __future__ import annotations

from pathlib import Path

from tests.tools.stale_writes.conftest import TEXT, edit, read, write
from weakfs import HostFilesystem, InMemoryFilesystem, Session, Toolset
from weakfs.session.blobs.blob import digest_of
from weakfs.tools.slices import FilesSeen


def test_seen_versions_survive_saving_and_loading(tmp_path: Path) -> None:
    session = Session()
    tools = Toolset(session, InMemoryFilesystem(session))
    tools.filesystem.write("/a.txt", TEXT)
    read(tools, "ann")
    session.save(tmp_path / "session.json")

    loaded = Session.load(tmp_path / "session.json")
    again = Toolset(loaded, InMemoryFilesystem(loaded))
    edit(again, "bob", "line 7\n", "line seven\n")

    result = edit(again, "ann", "line 12\n", "line twelve\n")
    assert result.error_code == "changed_by_another"
    assert "-line 7\n+line seven\n" in result.message


def test_two_toolsets_of_one_session_share_seen_versions(tools: Toolset) -> None:
    other = Toolset(tools.session, tools.filesystem)
    read(tools, "ann")
    edit(other, "bob", "line 7\n", "line seven\n")

    assert edit(other, "ann", "line 12\n", "line twelve\n").status == "conflict"
    read(other, "ann")
    assert edit(tools, "ann", "line 12\n", "line twelve\n").success


def test_a_file_that_another_program_changed_is_not_overwritten(tmp_path: Path) -> None:
    session = Session()
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "a.txt").write_text(TEXT)
    tools = Toolset(session, HostFilesystem(tmp_path / "root", session=session, store=tmp_path / "store"))
    read(tools, "ann")
    (tmp_path / "root" / "a.txt").write_text("of another program\n")

    result = write(tools, "ann", "all new\n")

    assert (result.status, result.error_code) == ("conflict", "changed_by_another")
    assert "it has changed since you last read it" in result.message
    assert (tmp_path / "root" / "a.txt").read_text() == "of another program\n"


def test_a_rollback_makes_changed_files_stale_for_callers(tools: Toolset) -> None:
    tools.session.snapshot("before")
    edit(tools, "ann", "line 7\n", "line seven\n")
    tools.session.rollback("before")

    assert write(tools, "ann", "all new\n").status == "conflict"
    read(tools, "ann")
    assert write(tools, "ann", "all new\n").success


def test_a_file_that_a_rollback_removed_may_be_created_again(tools: Toolset) -> None:
    tools.session.snapshot("before")
    new = {"path": "/new.txt", "content": "1\n"}
    tools.call("write_file", new, caller="ann")
    tools.session.rollback("before")
    assert tools.call("write_file", new, caller="ann").success


def test_a_rollback_does_not_make_unchanged_files_stale() -> None:
    session = Session()
    tools = Toolset(session, InMemoryFilesystem(session), require_read=True)
    tools.filesystem.write("/a.txt", TEXT)
    session.snapshot("before")
    read(tools, "ann")
    session.rollback("before")

    assert write(tools, "ann", "all new\n").success


def test_a_call_without_a_caller_is_refused_only_if_it_overwrites_a_callers_change(tools: Toolset) -> None:
    tools.call("read_file", {"path": "/a.txt"})
    tools.filesystem.write("/a.txt", "by the runtime\n")
    arguments: dict[str, object] = {"path": "/a.txt", "content": "1\n"}
    assert tools.call("write_file", arguments).success
    write(tools, "bob", "2\n")
    assert tools.call("write_file", arguments).status == "conflict"


def test_only_one_digest_of_a_read_file_is_kept(tools: Toolset) -> None:
    read(tools, "ann")
    read(tools, "ann")

    (seen,) = tools.session[FilesSeen].all()
    filesystem = getattr(tools.filesystem, "filesystem_id", "")
    assert seen.paths(filesystem, "ann") == ["/a.txt"]
    sight = seen.sight(filesystem, "ann", "/a.txt")
    assert sight is not None
    assert sight[0] == digest_of(TEXT.encode()).hex()


def test_a_directory_that_a_caller_moved_itself_is_not_a_conflict(tools: Toolset) -> None:
    tools.call("write_file", {"path": "/d/a.txt", "content": "1\n"}, caller="ann")
    tools.call("mv", {"source": "/d", "destination": "/e"}, caller="ann")
    assert tools.call("write_file", {"path": "/d/a.txt", "content": "2\n"}, caller="ann").success
