"""`weakfs undo`, `redo`, `revert` and `restore-files`, on session files, in storage and in directories."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Run
from weakfs import HostFilesystem, InMemoryFilesystem, MergeConflict, Session, Toolset
from weakfs.session import Reversion

LINES = "".join(f"line {number}\n" for number in range(1, 9))


def work(session: Session, files: InMemoryFilesystem | HostFilesystem) -> None:
    tools = Toolset(session, files)
    tools.call("write_file", {"path": "/a", "content": LINES}, call_id="c1")
    tools.call("edit_file", {"path": "/a", "old_string": "line 2", "new_string": "two"}, call_id="c2")
    tools.call("edit_file", {"path": "/a", "old_string": "two", "new_string": "deux"}, call_id="c3")


@pytest.fixture(params=["file", "folder", "sqlite"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    kind = request.param
    where = str(tmp_path / "s.json") if kind == "file" else f"{kind}:{tmp_path}/store{'.db' * (kind == 'sqlite')}"
    session = Session(session_id="s", clock=lambda: 1)
    work(session, InMemoryFilesystem(session))
    if kind == "file":
        session.save(where)
    else:
        session.copy_to(where)
    return where


def test_work_is_undone_redone_and_reverted(run: Run, place: str) -> None:
    assert (
        run("undo", place, "--preview").out
        == "changed  /a  +1 -1\n1 path, +1 -1 lines, +4 -5 bytes\npreview: nothing was changed\n"
    )
    twice = "changed  /a  +1 -1\nchanged  /a  +1 -1\n1 path, +2 -2 lines, +11 -9 bytes\n"
    assert run("undo", place, "-n", "2").out == twice
    assert run("cat", place, "/a").out == LINES
    run("redo", place)
    assert run("cat", place, "/a").out == LINES.replace("line 2", "two")
    found = json.loads(run("revert", place, "c2", "--json").out)
    assert (found["how"], [change["path"] for change in found["changes"]]) == ("revert", ["/a"])
    assert run("cat", place, "/a").out == LINES


def test_the_records_of_a_log_name_what_can_be_reverted(run: Run, place: str) -> None:
    """The help of `weakfs revert` says so. The numbers in a plain log count calls, and are written with "#"."""
    rows = [line.split() for line in run("log", place, "--records").out.splitlines()]
    number = next(row[0] for row in rows if row[2:4] == ["fs/file_spliced", "c3"])
    previews = [run("revert", place, target, "--preview") for target in (number, "c3", "#3")]
    assert [preview.status for preview in previews] == [0, 0, 0]
    assert {preview.out for preview in previews} == {previews[0].out}
    assert previews[0].out.startswith("call 3  edit_file  c3\n")


def test_an_unknown_call_is_not_taken_for_one_that_failed(run: Run, place: str) -> None:
    done = run("revert", place, "c9x")
    assert done.status == 1
    assert "no call of session 's' has this id" in done.err
    assert "failed" not in done.err


def test_a_conflict_changes_nothing(run: Run, place: str) -> None:
    sides = (
        "call 2  edit_file  c2\n"
        "conflict  /a (content)\n"
        "  /a: both sides changed the same lines; ours by c3\n"
        "  at line 2 of the common base:\n"
        "  <<<<<<< ours\n"
        "  deux\n"
        "  =======\n"
        "  line 2\n"
        "  >>>>>>> theirs\n"
    )
    what_to_do = (
        "later work changed the same lines or paths; nothing was changed; choose with --on-conflict ours "
        "(as it is now), theirs (as it was before) or markers\n"
    )
    refused = run("revert", place, "c2")
    assert (refused.status, refused.out) == (1, sides)
    assert refused.err == f"weakfs: cannot revert: {what_to_do}"
    preview = run("revert", place, "c2", "--preview")
    assert (preview.status, preview.out) == (3, f"{sides}a preview found conflicts: {what_to_do}")
    (conflict,) = json.loads(run("revert", place, "c2", "--preview", "--json").out)["conflicts"]
    assert conflict["hunks"] == [{"line": 2, "base": ["two\n"], "ours": ["deux\n"], "theirs": ["line 2\n"]}]
    assert run("cat", place, "/a").out == LINES.replace("line 2", "deux")
    run("revert", place, "c2", "--on-conflict", "theirs")
    assert run("cat", place, "/a").out == LINES


def test_changes_by_another_process_between_refusal_and_preview_are_not_reported_as_done(
    run: Run, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = Session.revert

    def overtaken(self: Session, target: str, *, preview: bool, **options: Any) -> Reversion:
        if not preview:
            raise MergeConflict(whole(self, "c2", preview=True).conflicts)
        return whole(self, target, preview=True, **options)

    monkeypatch.setattr(Session, "revert", overtaken)
    refused = run("revert", place, "c3")
    assert (refused.status, refused.out, "/a" in refused.err) == (1, "", True)


def test_missing_files_and_lines_are_named(run: Run, place: str) -> None:
    for words, said in (
        (("revert", place, "c9"), "c9"),
        (("revert", place, "88-99"), "88 to 99"),
        (("redo", place), "redo"),
    ):
        done = run(*words)
        assert (done.status, said in done.err) == (1, True)


def test_the_directory_of_a_session_is_restored_with_it(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, file = tmp_path / "root", tmp_path / "s.json"
    root.mkdir()
    session = Session(session_id="s", clock=lambda: 1)
    work(session, HostFilesystem(root, session=session, store=tmp_path / "store"))
    session.save(file)
    refused = run("undo", file)
    assert (refused.status, "give --root DIR" in refused.err) == (1, True)
    options = ("--root", root, "--store", tmp_path / "store")
    (root / "new").write_text("mine\n")
    run("undo", file, *options)
    assert (root / "a").read_text() == LINES.replace("line 2", "two")
    with monkeypatch.context() as patch:

        def fails(*_: object, **__: object) -> None:
            raise OSError("the disk is full")

        patch.setattr(Session, "save", fails)
        assert run("undo", file, *options).status == 1
    assert (root / "a").read_text() == LINES.replace("line 2", "two")
    run("redo", file, *options)
    assert (root / "a").read_text() == LINES.replace("line 2", "deux")
    assert (root / "new").read_text() == "mine\n"


def test_files_of_an_earlier_moment_are_restored(run: Run, place: str) -> None:
    shown = "changed  /a  +1 -1\n1 path, +1 -1 lines, +7 -5 bytes\n"
    assert run("restore-files", place, "2", "--preview").out == f"{shown}preview: nothing was changed\n"
    assert run("restore-files", place, "2", "--path", "/b").out == "nothing to change\n"
    assert run("restore-files", place, "2", "--path", "/a").out == shown
    assert run("cat", place, "/a").out == LINES
    run("undo", place)
    assert run("cat", place, "/a").out == LINES.replace("line 2", "deux")
    missing = run("restore-files", place, "no such tag")
    assert (missing.status, "no such tag" in missing.err) == (1, True)
