"""`weakfs diff`, and that git takes what it prints."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from weakfs import HostMount, InMemoryFilesystem, Session

from .conftest import WORKSPACE, Run


def names(lines: list[str]) -> list[str]:
    return [line for line in lines[: lines.index("") if "" in lines else None] if line[1:3] == "  "]


def test_diff_names_what_became_of_each_entry(run: Run, saved: Path) -> None:
    done = run("diff", saved, "--at", "before", "--names")
    assert done.status == 0
    assert done.lines == [
        "A  /attic",
        "R  /src/old.py -> /attic/old.py",
        "A  /current",
        "A  /line\\nbreak \\x1b[31mred.txt",
        "M  /src/app.py",
    ]


def test_diff_shows_texts_as_git_does(run: Run, saved: Path) -> None:
    done = run("diff", saved, "/src/app.py", "--at", "before")
    assert done.lines == [
        "M  /src/app.py",
        "diff --git a/src/app.py b/src/app.py",
        "old mode 100644",
        "new mode 100755",
        "--- a/src/app.py",
        "+++ b/src/app.py",
        "@@ -1,2 +1,2 @@",
        "-port = 80",
        "+port = 8080",
        " host = 'a'",
    ]


def test_diff_begins_after_the_mounts(run: Run, tmp_path: Path) -> None:
    session = Session()
    files = InMemoryFilesystem(session, mounts=[HostMount(WORKSPACE)])
    files.write("/new.txt", "new\n")
    session.save(tmp_path / "s.json")
    assert run("diff", tmp_path / "s.json", "--names").lines == ["A  /new.txt"]


def test_diff_of_a_compacted_session_begins_with_what_is_left(run: Run, tmp_path: Path) -> None:
    session = Session()
    files = InMemoryFilesystem(session)
    for number in range(4):
        files.write(f"/{number}", "x")
    session.compact(keep=1)
    session.save(tmp_path / "s.json")
    assert run("diff", tmp_path / "s.json", "--names").lines == ["A  /3"]


def test_diff_between_two_moments(run: Run, saved: Path) -> None:
    assert run("diff", saved, "--at", "1", "--to", "2", "--names").lines == ["A  /src/old.py"]
    assert run("diff", saved, "--at", "2", "--to", "1", "--names").lines == ["D  /src/old.py"]


def test_what_moved_across_the_border_of_a_path_was_added_or_removed(run: Run, saved: Path) -> None:
    assert run("diff", saved, "/src", "--at", "before", "--names").lines == ["M  /src/app.py", "D  /src/old.py"]
    assert run("diff", saved, "/attic", "--at", "before", "--names").lines == ["A  /attic", "A  /attic/old.py"]


def test_exit_code_tells_whether_something_differs(run: Run, saved: Path) -> None:
    assert run("diff", saved, "--exit-code").status == 3
    assert run("diff", saved, "--exit-code", "--at", "5", "--to", "5").status == 0
    assert run("diff", saved).status == 0


def test_binary_files_are_named_only(run: Run, saved: Path) -> None:
    assert "Binary files /dev/null and b/logo.png differ" in run("diff", saved, "/logo.png").lines


def test_diff_as_json_has_the_text_of_each(run: Run, saved: Path) -> None:
    found = {one["path"]: one for one in run("diff", saved, "--at", "before", "--json").objects}
    assert found["/attic/old.py"]["change"] == "moved"
    assert found["/attic/old.py"]["from"] == "/src/old.py"
    assert "+port = 8080\n" in found["/src/app.py"]["diff"]
    assert "diff" not in run("diff", saved, "--json", "--names").objects[0]


# Lines of few kinds, so that texts share some; a last line may have no end.
LINES = st.lists(st.sampled_from(["a\n", "b\n", "c\n", "\n", "long line\r\n"]), max_size=30)
PATHS = st.sampled_from(["/a", "/b.txt", "/d/a", "/d/e/f", "/with space", '/q"uote', "/new\nline", "/tab\t", "/ä"])


# What git knows of files: text and permission bits by path.
Tree = dict[str, tuple[str, int]]


@st.composite
def texts(draw: st.DrawFn) -> str:
    return "".join(draw(LINES)) + draw(st.sampled_from(["", "end"]))


@st.composite
def trees(draw: st.DrawFn) -> Tree:
    return draw(st.dictionaries(PATHS, st.tuples(texts(), st.sampled_from([0o644, 0o755])), max_size=6))


def write(files: InMemoryFilesystem, tree: Tree) -> None:
    for path, (text, mode) in tree.items():
        files.write(path, text)
        files.chmod(path, mode)


def on_disk(root: Path) -> Tree:
    return {
        f"/{path.relative_to(root).as_posix()}": (path.read_bytes().decode(), path.stat().st_mode & 0o777)
        for path in root.rglob("*")
        if path.is_file()
    }


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(before=trees(), after=trees())
def test_git_applies_a_diff(
    run: Run,
    tmp_path_factory: pytest.TempPathFactory,
    before: Tree,
    after: Tree,
) -> None:
    place = tmp_path_factory.mktemp("apply")
    session = Session()
    files = InMemoryFilesystem(session)
    write(files, before)
    first = session.seq
    for path in before.keys() - after.keys():
        files.delete(path)
    write(files, after)
    session.save(place / "s.json")
    root = place / "root"
    root.mkdir()
    for path, (text, mode) in before.items():
        (root / path[1:]).parent.mkdir(parents=True, exist_ok=True)
        (root / path[1:]).write_bytes(text.encode())
        (root / path[1:]).chmod(mode)
    patch = place / "p.diff"
    patch.write_bytes(run("diff", place / "s.json", "--at", str(first)).out.encode())
    if before != after:
        # Outside of any repository, whatever holds the temporary directory.
        environment = {**os.environ, "GIT_CEILING_DIRECTORIES": str(place), "GIT_CONFIG_GLOBAL": os.devnull}
        words = ["git", "apply", "--whitespace=nowarn", str(patch)]
        done = subprocess.run(words, cwd=root, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    assert on_disk(root) == after
