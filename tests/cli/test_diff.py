"""`weakfs diff`, and that git accepts its output."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.sampling import share
from weakfs import HostMount, InMemoryFilesystem, Session, Toolset

from .conftest import WORKSPACE, Run


def names(lines: list[str]) -> list[str]:
    return [line for line in lines[: lines.index("") if "" in lines else None] if line[1:3] == "  "]


def test_diff_says_how_each_entry_changed(run: Run, saved: Path) -> None:
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


def test_diff_of_a_compacted_session_begins_with_the_oldest_record(run: Run, tmp_path: Path) -> None:
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


def test_entries_moved_into_or_out_of_a_path_are_added_or_removed(run: Run, saved: Path) -> None:
    assert run("diff", saved, "/src", "--at", "before", "--names").lines == ["M  /src/app.py", "D  /src/old.py"]
    assert run("diff", saved, "/attic", "--at", "before", "--names").lines == ["A  /attic", "A  /attic/old.py"]


def test_the_exit_code_says_whether_anything_differs(run: Run, saved: Path) -> None:
    assert run("diff", saved, "--exit-code").status == 3
    assert run("diff", saved, "--exit-code", "--at", "5", "--to", "5").status == 0
    assert run("diff", saved).status == 0


def test_binary_files_are_only_named(run: Run, saved: Path) -> None:
    assert "Binary files /dev/null and b/logo.png differ" in run("diff", saved, "/logo.png").lines


def test_diff_as_json_has_the_text_of_each(run: Run, saved: Path) -> None:
    found = {one["path"]: one for one in run("diff", saved, "--at", "before", "--json").objects}
    assert found["/attic/old.py"]["change"] == "moved"
    assert found["/attic/old.py"]["from"] == "/src/old.py"
    assert "+port = 8080\n" in found["/src/app.py"]["diff"]
    assert "diff" not in run("diff", saved, "--json", "--names").objects[0]


# Only a few different lines, so that texts share some; the last line may lack a newline.
LINES = st.lists(st.sampled_from(["a\n", "b\n", "c\n", "\n", "long line\r\n"]), max_size=30)
PATHS = st.sampled_from(["/a", "/b.txt", "/d/a", "/d/e/f", "/with space", '/q"uote', "/new\nline", "/tab\t", "/ä"])


# What git stores of files: text and permission bits by path.
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
@settings(
    max_examples=share(40),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
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
        # Outside any repository, wherever the temporary directory is.
        environment = {**os.environ, "GIT_CEILING_DIRECTORIES": str(place), "GIT_CONFIG_GLOBAL": os.devnull}
        words = ["git", "apply", "--whitespace=nowarn", str(patch)]
        done = subprocess.run(words, cwd=root, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    assert on_disk(root) == after


@pytest.fixture
def called(tmp_path: Path) -> Path:
    """Save a session of calls, two of them with one id, and one whose id is the number of another."""
    session = Session()
    tools = Toolset(session)
    tools.call("write_file", {"path": "/a.txt", "content": "one\ntwo\n"}, call_id="first")
    tools.call("edit_file", {"path": "/a.txt", "old_string": "two", "new_string": "2"}, call_id="second")
    tools.call("write_file", {"path": "/b.txt", "content": "b\n"}, call_id="twice")
    tools.call("read_file", {"path": "/b.txt"}, call_id="twice")
    tools.call("rm", {"path": "/b.txt"}, call_id="1")
    session.save(tmp_path / "calls.json")
    return tmp_path / "calls.json"


@pytest.mark.parametrize("name", ["second", "2", "#2"])
def test_diff_shows_what_one_call_changed(run: Run, called: Path, name: str) -> None:
    done = run("diff", called, "--call", name)
    assert (done.status, done.err) == (0, "")
    assert done.lines[0] == "M  /a.txt"
    assert done.lines[-3:] == [" one", "-two", "+2"]


def test_diff_of_a_call_that_changed_nothing_is_empty(run: Run, called: Path) -> None:
    done = run("diff", called, "--call", "4", "--exit-code")
    assert (done.status, done.out, done.err) == (0, "", "")


def test_diff_of_a_call_can_be_limited_to_a_path(run: Run, called: Path) -> None:
    assert run("diff", called, "/other", "--call", "2").out == ""
    assert run("diff", called, "/a.txt", "--call", "2", "--names").lines == ["M  /a.txt"]


def test_an_unknown_call_is_named_with_the_remedy(run: Run, called: Path) -> None:
    for name, remedy in (("secnd", "did you mean 'second'?"), ("77", "weakfs log shows"), ("#0", "weakfs log shows")):
        done = run("diff", called, "--call", name)
        assert (done.status, done.out) == (2, "")
        assert f"no call {name!r}" in done.err
        assert remedy in done.err


def test_a_name_that_matches_several_calls_is_refused(run: Run, called: Path) -> None:
    done = run("diff", called, "--call", "twice")
    assert (done.status, "#3, #4" in done.err) == (2, True)
    done = run("diff", called, "--call", "1")
    assert (done.status, "#1, #5" in done.err) == (2, True)
    assert run("diff", called, "--call", "#1", "--names").lines == ["A  /a.txt"]


def test_a_call_has_its_own_before_and_after(run: Run, called: Path, tmp_path: Path) -> None:
    assert run("diff", called, "--call", "1", "--at", "1").status == 2
    assert run("diff", tmp_path, "--call", "1").status == 2


def test_diff_of_a_call_whose_records_were_dropped_says_so(run: Run, tmp_path: Path) -> None:
    session = Session()
    tools = Toolset(session)
    for number in range(3):
        tools.call("write_file", {"path": f"/{number}", "content": "x"}, call_id=f"c{number}")
    session.compact(keep=2)
    session.save(tmp_path / "s.json")
    done = run("diff", tmp_path / "s.json", "--call", "c1")
    assert (done.status, "compacted" in done.err) == (1, True)
    assert run("diff", tmp_path / "s.json", "--call", "c2", "--names").lines == ["A  /2"]


def test_diff_of_a_call_of_a_directory_of_the_host(run: Run, tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "a.txt").write_text("old\n")
    transcript = tmp_path / "t.jsonl"
    calls = [("write_file", {"path": "/a.txt", "content": "new\n"}), ("write_file", {"path": "/b", "content": "b"})]
    transcript.write_text(
        "".join(json.dumps({"id": f"c{n}", "tool": tool, "arguments": a}) + "\n" for n, (tool, a) in enumerate(calls))
    )
    store = tmp_path / "store"
    done = run("run", transcript, "--root", tmp_path / "root", "--store", store, "--save", tmp_path / "s.json")
    assert done.status == 0
    done = run("diff", tmp_path / "s.json", "--call", "1")
    assert (done.lines[0], done.lines[-2:]) == ("M  /a.txt", ["-old", "+new"])
