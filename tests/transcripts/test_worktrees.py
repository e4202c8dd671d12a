"""Sessions that work in several working trees of one repository: each has its own directory."""

from __future__ import annotations

import pytest

from tests.transcripts.claude_code_lines import answer, use
from tests.transcripts.claude_code_model import Line
from tests.transcripts.codex_lines import item, meta, output, patch_call, shell_call
from tests.transcripts.imported import Import, Imported
from weakfs.transcripts import Source
from weakfs.transcripts.line_context import made_worktrees
from weakfs.transcripts.path_mapping import Outside, below_root


def write(id: str, path: str, cwd: str) -> list[Line]:
    return [{**use(id, "Write", file_path=path, content=id), "cwd": cwd}, answer(id)]


def files(done: Imported) -> list[str]:
    return sorted(done.contents())


def test_a_working_tree_next_to_the_session_has_its_own_directory(imported: Import) -> None:
    done = imported(
        *write("1", "/x/repo/a", "/x/repo"),
        *write("2", "/x/repo-feature/a", "/x/repo-feature"),
        *write("3", "b", "/x/repo-feature/src"),
        *write("4", "/x/repo/.worktrees/fix/a", "/x/repo/.worktrees/fix"),
        *write("5", "a", "/x/repo"),
    )

    assert files(done) == [
        "/.worktrees/fix/a",
        "/.worktrees/repo-feature/a",
        "/.worktrees/repo-feature/src/b",
        "/a",
    ]
    assert done.text("/a") == "5"
    assert {agreement for agreement, _ in done.agreements} == {"agreed"}


def test_a_working_tree_is_recognized_before_the_session_enters_it(imported: Import) -> None:
    done = imported(*write("1", "/x/repo-feature/a", "/x/repo"), *write("2", "/x/repo-feature/b", "/x/repo-feature"))

    assert files(done) == ["/.worktrees/repo-feature/a", "/.worktrees/repo-feature/b"]


def test_a_working_tree_that_git_created_is_recognized_without_entering_it(imported: Import) -> None:
    command = {**use("1", "Bash", command="cd /x/repo && git worktree add -b fix /y/fix main"), "cwd": "/x/repo"}

    done = imported(command, answer("1"), *write("2", "/y/fix/a", "/x/repo"))

    assert files(done) == ["/.worktrees/fix/a"]


def test_a_session_that_begins_in_a_working_tree_may_enter_the_main_one(imported: Import) -> None:
    done = imported(
        *write("1", "/x/repo/.claude/worktrees/fix/a", "/x/repo/.claude/worktrees/fix"),
        *write("2", "/x/repo/a", "/x/repo"),
    )

    assert files(done) == ["/.worktrees/repo/a", "/a"]


def test_a_working_tree_is_recognized_in_codex_by_the_directory_of_its_commands(imported: Import) -> None:
    turn: Line = {"timestamp": "t", "type": "turn_context", "payload": {"cwd": "/x/two"}}
    done = imported(
        meta("/x/repo"),
        shell_call("1", ["bash", "-lc", "ls"], workdir="/x/repo-feature"),
        output("1", ""),
        patch_call("2", "*** Add File: /x/repo-feature/a", "+one"),
        output("2"),
        turn,
        patch_call("3", "*** Add File: a", "+one"),
        output("3"),
        item(type="message", role="user", content=[]),
    )

    assert files(done) == ["/.worktrees/repo-feature/a", "/.worktrees/two/a"]


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("/x/repo/a", "/a"),
        # Those that git created come first.
        ("/y/repo-2/a", "/.worktrees/repo-2/a"),
        ("/x/repo-2/a", "/.worktrees/repo-2-2/a"),
        ("/x/repo-2", "/.worktrees/repo-2-2"),
        ("/x/repo/.worktrees/fix/a", "/.worktrees/fix/a"),
        ("/x/fix/a", "/.worktrees/fix-2/a"),
        ("/home/ann/.codex/worktrees/12/repo/a", "/.worktrees/repo/a"),
    ],
)
def test_each_working_tree_has_a_different_directory(path: str, found: str) -> None:
    visited = ("/x/repo/.worktrees/fix", "/x/repo-2/src", "/x/fix", "/home/ann/.codex/worktrees/12/repo")
    source = Source("codex", "/x/repo", "/x/repo", visited, ("/y/repo-2",))

    assert below_root(path, source) == found


@pytest.mark.parametrize(
    ("root", "directory", "path"),
    [
        ("/x/repo", "/tmp", "/tmp/a"),
        ("/x/repo", "/", "/etc/passwd"),
        ("/x/repo", "/x", "/x/other/a"),
        ("/repo", "/etc", "/etc/passwd"),
        ("/home/ann/shop", "/home/ann/.ssh", "/home/ann/.ssh/id"),
        ("/home/ann/shop", "/home/ann", "/home/ann/a"),
        ("/x/repo", "/x/repo-feature", "/x/repo-other/a"),
        ("/x/repo", "/x/repo-feature", "/x/repo-feature/../../etc/passwd"),
    ],
)
def test_a_directory_that_is_not_a_working_tree_stays_outside(root: str, directory: str, path: str) -> None:
    with pytest.raises(Outside):
        below_root(path, Source("claude-code", root, root, (directory,)))


def test_on_windows_case_is_ignored_in_working_trees_too() -> None:
    source = Source("claude-code", r"C:\src\repo", None, (r"C:\src\repo-feature",))

    assert below_root(r"c:\SRC\Repo-Feature\a.py", source) == "/.worktrees/repo-feature/a.py"


@pytest.mark.parametrize(
    ("command", "paths"),
    [
        ("git worktree add ../feature", ["../feature"]),
        ("git worktree add -b new --lock '../my feature' main && ls", ["../my feature"]),
        ("git -C /x/repo worktree add ../two HEAD", ["/x/repo/../two"]),
        ("cd /x/repo; git worktree add -f ../two", ["/x/repo/../two"]),
        ("git worktree list", []),
        ("git worktree add '", []),
        (["bash", "-lc", "git worktree add ../two"], ["../two"]),
    ],
)
def test_the_path_of_a_new_working_tree_is_read_from_its_command(command: object, paths: list[str]) -> None:
    assert sorted(set(made_worktrees({"command": command}))) == paths
