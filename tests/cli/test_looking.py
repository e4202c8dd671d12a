"""`weakfs ls` and `weakfs cat`."""

from __future__ import annotations

import base64
import subprocess
from pathlib import Path

import pytest

from weakfs import Session
from weakfs.reducers import FileTree
from weakfs.reducers.tree import leaf as leaves
from weakfs.reducers.tree.node import tree_of

from .conftest import COMMAND, Run


def names(lines: list[str]) -> list[str]:
    return [line.split(maxsplit=3)[3] for line in lines]


def test_ls_lists_the_root_at_the_end_of_the_session(run: Run, saved: Path) -> None:
    done = run("ls", saved)
    assert done.status == 0
    assert names(done.lines) == [
        "attic/",
        "current -> src/app.py",
        "empty/",
        "line\\nbreak \\x1b[31mred.txt",
        "logo.png",
        "src/",
    ]


def test_ls_shows_permission_bits_size_and_time(run: Run, saved: Path) -> None:
    assert run("ls", saved, "src").lines == ["-rwxr-xr-x  23  2026-04-30T09:29:37Z  app.py"]


def test_ls_of_a_file_shows_that_file(run: Run, saved: Path) -> None:
    assert names(run("ls", saved, "/logo.png").lines) == ["/logo.png"]


@pytest.mark.parametrize(
    ("at", "expected"),
    [
        ("0", []),
        ("1", ["/src", "/src/app.py"]),
        ("before", ["/empty", "/logo.png", "/src", "/src/app.py", "/src/old.py"]),
        ("story/s1", ["/empty", "/logo.png", "/src", "/src/app.py", "/src/old.py"]),
    ],
)
def test_ls_shows_any_moment(run: Run, saved: Path, at: str, expected: list[str]) -> None:
    listed = run("ls", "-R", saved, "--at", at, "--json").objects
    assert [one["path"] for one in listed] == expected


def test_ls_as_json_prints_names_unchanged(run: Run, saved: Path) -> None:
    listed = {one["path"]: one for one in run("ls", saved, "--json").objects}
    assert "/line\nbreak \x1b[31mred.txt" in listed
    assert listed["/current"] == {
        "path": "/current",
        "kind": "link",
        "size": 0,
        "mode": "0777",
        "modified_at": listed["/current"]["modified_at"],
        "created_at": listed["/current"]["created_at"],
        "target": "src/app.py",
    }


def test_cat_prints_every_byte(saved: Path) -> None:
    done = subprocess.run([*COMMAND, "cat", str(saved), "/logo.png"], capture_output=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"\x89PNG\0\xff", b"")


def test_cat_shows_any_moment(run: Run, saved: Path) -> None:
    assert run("cat", saved, "src/app.py", "--at", "before").out == "port = 80\nhost = 'a'\n"
    assert run("cat", saved, "src/app.py").out == "port = 8080\nhost = 'a'\n"


def test_cat_as_json_marks_bytes_that_are_not_text(run: Run, saved: Path) -> None:
    assert run("cat", saved, "/src/app.py", "--json").objects[0]["text"] == "port = 8080\nhost = 'a'\n"
    assert base64.b64decode(run("cat", saved, "/logo.png", "--json").objects[0]["base64"]) == b"\x89PNG\0\xff"


def test_cat_of_a_directory_is_refused(run: Run, saved: Path) -> None:
    done = run("cat", saved, "/src")
    assert (done.status, done.out) == (1, "")
    assert done.err.startswith("weakfs: cannot read '/src': ")


def test_a_tree_that_is_mostly_copies_of_itself_is_refused_in_one_line(run: Run, tmp_path: Path) -> None:
    tree = tree_of({"f": leaves.file(b"x", at=1)})
    for _ in range(28):
        tree = tree_of({"a": tree, "b": tree})
    session = Session(session_id="s")
    session[FileTree].seed(tree)
    session.save(tmp_path / "s.json")

    refused = run("ls", "-R", tmp_path / "s.json")

    assert refused.status == 1
    assert refused.err.count("\n") == 1
    assert "most of which are copies" in refused.err
    assert names(run("ls", tmp_path / "s.json").lines) == ["a/", "b/"]
    assert run("stats", tmp_path / "s.json").status == 0
