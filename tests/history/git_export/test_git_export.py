"""Sessions as git repositories: how git sees them, and exports that continue from an earlier one."""

from __future__ import annotations

import os
import re
import subprocess
from hashlib import sha256
from itertools import count
from pathlib import Path
from random import Random

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.sampling import sample, share
from weakfs import HostFilesystem, InMemoryFilesystem, Session, Toolset
from weakfs.history import ExportRefused, export_git
from weakfs.history.commit_graph import commits_of
from weakfs.reducers import content_of
from weakfs.reducers.tree.node import walk


def git(repository: Path, *arguments: str) -> str:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    done = subprocess.run(
        ["git", "-C", str(repository), *arguments], capture_output=True, text=True, check=True, env=environment
    )
    return done.stdout


def subjects(repository: Path, *arguments: str) -> list[str]:
    return git(repository, "log", "--reverse", "--topo-order", "--format=%s", *arguments).splitlines()


@pytest.fixture
def session() -> Session:
    ticks = iter(range(1_777_541_373_000_000_000, 10**19, 10**9))
    session = Session(session_id="main", clock=ticks.__next__)
    tools = Toolset(session)
    tools.call("write_file", {"path": "/src/a.py", "content": "one\ntwo\n"}, call_id="c1", caller="ann")
    tools.call("edit_file", {"path": "/src/a.py", "old_string": "two", "new_string": "2"}, call_id="c2", caller="bob")
    tools.call("edit_file", {"path": "/src/a.py", "old_string": "none", "new_string": "x"}, call_id="c3")
    tools.call("mv", {"source": "/src/a.py", "destination": "/b.py"}, call_id="c4", caller="bob")
    return session


def test_each_call_that_changed_files_is_a_commit(session: Session, tmp_path: Path) -> None:
    done = export_git(session, tmp_path / "repo")
    assert subjects(tmp_path / "repo") == ["write_file /src/a.py", "edit_file /src/a.py", "mv /src/a.py to /b.py"]
    assert (done.commits, done.head) == (3, git(tmp_path / "repo", "rev-parse", "main").strip())
    assert git(tmp_path / "repo", "fsck", "--strict") == ""
    assert git(tmp_path / "repo", "status", "--porcelain") == ""
    assert (tmp_path / "repo" / "b.py").read_text() == "one\n2\n"


def test_a_commit_names_its_caller_its_time_its_call_and_its_records(session: Session, tmp_path: Path) -> None:
    export_git(session, tmp_path / "repo")
    form = "%an <%ae>%n%cn%n%at%n%b"
    lines = git(tmp_path / "repo", "log", "-1", "--skip=1", f"--format={form}").splitlines()
    record = session.records[3]
    assert lines[:3] == ["bob <bob@localhost>", "weakfs", str(record.at // 10**9)]
    assert '{"path":"/src/a.py","old_string":"two","new_string":"2"}' in lines
    assert lines[-4:] == ["Weakfs-Call: c2", "Weakfs-Records: 4-4", "Weakfs-Session: main", ""]


def test_turns_are_consecutive_calls_of_one_caller(session: Session, tmp_path: Path) -> None:
    tools = Toolset(session)
    tools.call("write_file", {"path": "/c.py", "content": "c"}, call_id="c5", caller="bob")
    export_git(session, tmp_path / "repo", per="turn")
    assert subjects(tmp_path / "repo") == ["write_file /src/a.py", "3 calls: edit_file, mv, write_file"]


def test_forks_are_branches_and_merges_have_two_parents(session: Session, tmp_path: Path) -> None:
    fork = session.fork("idea")
    InMemoryFilesystem(fork).write("/idea.txt", "x\n")
    InMemoryFilesystem(session).write("/own.txt", "y\n")
    session.merge(fork)
    late = session.fork("late")
    InMemoryFilesystem(late).write("/late.txt", "z\n")
    session.merge(late)
    export_git(session, tmp_path / "repo")
    head, main, side = git(tmp_path / "repo", "rev-list", "--parents", "-1", "main").split()
    assert git(tmp_path / "repo", "log", "-1", "--format=%s", side).strip() == "File written /late.txt"
    # The second fork branched off after the first merge.
    assert git(tmp_path / "repo", "merge-base", main, side).strip() == main
    assert len(git(tmp_path / "repo", "rev-list", "--parents", "-1", main).split()) == 3
    assert git(tmp_path / "repo", "ls-tree", "-r", "--name-only", head).split() == [
        "b.py", "idea.txt", "late.txt", "own.txt",
    ]  # fmt: skip
    branches = git(tmp_path / "repo", "for-each-ref", "--format=%(refname:short)", "refs/heads").split()
    assert branches == ["forks/main%2Fidea1", "forks/main%2Flate2", "main"]
    assert git(tmp_path / "repo", "fsck", "--strict") == ""


def test_a_fork_merged_twice_continues_from_its_own_work(session: Session, tmp_path: Path) -> None:
    fork = session.fork("idea")
    InMemoryFilesystem(fork).write("/1.txt", "1\n")
    session.merge(fork)
    InMemoryFilesystem(fork).write("/2.txt", "2\n")
    session.merge(fork)
    export_git(session, tmp_path / "repo")
    side = subjects(tmp_path / "repo", "--first-parent", "forks/main%2Fidea1")
    assert side[-2:] == ["File written /1.txt", "File written /2.txt"]


def test_tagged_snapshots_are_tags(session: Session, tmp_path: Path) -> None:
    session.snapshot("v 1..0")
    InMemoryFilesystem(session).write("/later.txt", "x")
    export_git(session, tmp_path / "repo")
    assert git(tmp_path / "repo", "tag").split() == ["v%201%2E%2E0"]
    assert git(tmp_path / "repo", "log", "-1", "--format=%s", "v%201%2E%2E0").strip() == "mv /src/a.py to /b.py"


def test_notes_for_git_ai_name_the_lines_that_a_call_wrote(session: Session, tmp_path: Path) -> None:
    Toolset(session).call("write_file", {"path": "/two words.py", "content": "a\nb\nc\n"}, call_id="c5", caller="ann")
    export_git(session, tmp_path / "repo")
    attested, _, metadata = git(tmp_path / "repo", "notes", "--ref", "ai", "show", "HEAD").partition("---\n")
    told = orjson.loads(metadata)
    key = "s_" + sha256(b"weakfs:main/ann").hexdigest()[:14]
    assert re.fullmatch(rf'"two words.py"\n  {key}::t_[0-9a-f]{{14}} 1-3\n', attested)
    assert told["schema_version"] == "authorship/3.0.0"
    assert told["base_commit_sha"] == git(tmp_path / "repo", "rev-parse", "HEAD").strip()
    assert told["prompts"] == {}
    assert told["sessions"][key]["agent_id"]["tool"] == "weakfs"
    # The note of an edit names only the lines that it changed; a move has no note.
    assert git(tmp_path / "repo", "notes", "--ref", "ai", "show", "HEAD~2").splitlines()[1].endswith(" 2")
    assert len(git(tmp_path / "repo", "notes", "--ref", "ai", "list").splitlines()) == 3


def test_agent_trace_records_name_the_same_lines(session: Session, tmp_path: Path) -> None:
    export_git(session, tmp_path / "repo")
    record = orjson.loads(git(tmp_path / "repo", "notes", "--ref", "agent-trace", "show", "HEAD~1"))
    assert re.fullmatch(r"[0-9]+\.[0-9]+", record["version"])
    assert record["vcs"] == {"type": "git", "revision": git(tmp_path / "repo", "rev-parse", "HEAD~1").strip()}
    (file,) = record["files"]
    assert file["path"] == "src/a.py"
    (conversation,) = file["conversations"]
    assert conversation["url"] == "weakfs:session/main#record=4"
    assert conversation["ranges"] == [{"start_line": 2, "end_line": 2}]
    assert record["metadata"]["dev.weakfs"]["calls"] == ["c2"]


def test_notes_of_a_later_export_are_added_to_existing_ones(session: Session, tmp_path: Path) -> None:
    export_git(session, tmp_path / "repo")
    git(
        tmp_path / "repo",
        "-c",
        "user.name=x",
        "-c",
        "user.email=x@x",
        "notes",
        "--ref",
        "ai",
        "add",
        "-m",
        "mine",
        "HEAD",
    )
    Toolset(session).call("write_file", {"path": "/c.py", "content": "c\n"}, call_id="c5")
    export_git(session, tmp_path / "repo")
    assert git(tmp_path / "repo", "notes", "--ref", "ai", "show", "HEAD~1").strip() == "mine"
    assert len(git(tmp_path / "repo", "notes", "--ref", "ai", "list").splitlines()) == 4
    assert git(tmp_path / "repo", "fsck", "--strict") == ""


def test_a_rollback_is_a_commit(session: Session, tmp_path: Path) -> None:
    session.rollback(1)
    export_git(session, tmp_path / "repo")
    assert subjects(tmp_path / "repo")[-1] == "Roll back to record 1"
    assert (tmp_path / "repo" / "src" / "a.py").read_text() == "one\ntwo\n"


def test_another_export_adds_only_what_is_new(session: Session, tmp_path: Path) -> None:
    first = export_git(session, tmp_path / "repo")
    assert export_git(session, tmp_path / "repo").commits == 0
    fork = session.fork("idea")
    InMemoryFilesystem(fork).write("/idea.txt", "x\n")
    session.merge(fork)
    again = export_git(session, tmp_path / "repo")
    assert again.commits == 2
    assert first.head in git(tmp_path / "repo", "rev-list", "main").split()
    # The commits are the same as in an export of everything.
    assert export_git(session, tmp_path / "whole").head == again.head
    assert git(tmp_path / "repo", "status", "--porcelain") == ""


def test_an_export_continues_after_the_records_were_compacted(session: Session, tmp_path: Path) -> None:
    export_git(session, tmp_path / "repo")
    session.compact(keep=0)
    InMemoryFilesystem(session).write("/new.txt", "x\n")
    # One for what was compacted away, which changed no files, and one for the file.
    assert export_git(session, tmp_path / "repo").commits == 2
    assert git(tmp_path / "repo", "diff", "HEAD~2", "HEAD~1") == ""
    assert export_git(session, tmp_path / "repo").commits == 0
    export_git(session, tmp_path / "fresh")
    assert subjects(tmp_path / "fresh") == ["Files before the first record", "File written /new.txt"]


def test_records_that_were_compacted_before_they_were_exported_are_one_commit(session: Session, tmp_path: Path) -> None:
    export_git(session, tmp_path / "repo")
    files = InMemoryFilesystem(session)
    files.write("/lost.txt", "x\n")
    files.delete("/b.py")
    session.compact(keep=0)
    files.write("/new.txt", "x\n")
    assert export_git(session, tmp_path / "repo").commits == 2
    assert git(tmp_path / "repo", "ls-tree", "--name-only", "main").split() == ["lost.txt", "new.txt"]


def test_a_work_tree_keeps_local_changes(session: Session, tmp_path: Path) -> None:
    export_git(session, tmp_path / "repo")
    (tmp_path / "repo" / "mine.txt").write_text("mine")
    InMemoryFilesystem(session).write("/new.txt", "x\n")
    export_git(session, tmp_path / "repo")
    assert (tmp_path / "repo" / "mine.txt").read_text() == "mine"
    assert (tmp_path / "repo" / "new.txt").read_text() == "x\n"


def test_a_relative_path_is_relative_to_the_current_directory(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    export_git(session, "repo")
    assert len(subjects(tmp_path / "repo")) == 3


def test_a_bare_repository_has_no_work_tree(session: Session, tmp_path: Path) -> None:
    export_git(session, tmp_path / "repo.git")
    assert len(subjects(tmp_path / "repo.git", "main")) == 3
    assert git(tmp_path / "repo.git", "rev-parse", "--is-bare-repository").strip() == "true"


def test_a_branch_with_other_commits_is_refused(session: Session, tmp_path: Path) -> None:
    export_git(session, tmp_path / "repo")
    other = Session(session_id="other")
    InMemoryFilesystem(other).write("/x", "x")
    before = git(tmp_path / "repo", "for-each-ref")
    with pytest.raises(ExportRefused, match="does not belong to session 'other'; give another branch"):
        export_git(other, tmp_path / "repo")
    assert git(tmp_path / "repo", "for-each-ref") == before
    assert export_git(other, tmp_path / "repo", branch="other").commits == 1


def test_different_options_than_before_are_refused(session: Session, tmp_path: Path) -> None:
    Toolset(session).call("write_file", {"path": "/c.py", "content": "c"}, call_id="c5", caller="bob")
    export_git(session, tmp_path / "repo", per="turn")
    with pytest.raises(ExportRefused, match="export with the same options as before"):
        export_git(session, tmp_path / "repo")


@pytest.mark.parametrize("branch", ["", "-x", "a..b", "x.lock", "a b", "refs/", "a\nb"])
def test_names_that_are_not_valid_branch_names_are_refused(session: Session, tmp_path: Path, branch: str) -> None:
    with pytest.raises(ExportRefused, match="cannot export to the branch"):
        export_git(session, tmp_path / "repo", branch=branch)
    assert not (tmp_path / "repo").exists()


def test_a_folder_with_files_is_refused(session: Session, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("x")
    with pytest.raises(ExportRefused, match="it is not empty; name another folder"):
        export_git(session, tmp_path)
    assert [one.name for one in tmp_path.iterdir()] == ["mine.txt"]


def test_names_messages_and_callers_may_hold_anything(tmp_path: Path) -> None:
    session = Session(session_id="odd\nWeakfs-Session: x")
    tools = Toolset(session)
    path = '/"q" \\ line\nbreak\t\x1b.txt'
    tools.call(
        "write_file", {"path": path, "content": "x"}, call_id="c\n1", caller="A <evil@x>\nauthor B <b@b> 0 +0000"
    )
    InMemoryFilesystem(session).symlink("x\ny", "/li\nnk")
    export_git(session, tmp_path / "repo")
    assert export_git(session, tmp_path / "repo").commits == 0
    assert git(tmp_path / "repo", "fsck", "--strict") == ""
    assert len(git(tmp_path / "repo", "ls-files", "-z").split("\0")) == 3


def test_hooks_and_configuration_of_the_user_are_ignored(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "config").write_text("[core]\n\thooksPath = /nonexistent\n[init]\n\tdefaultBranch = trunk\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "config"))
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    export_git(session, tmp_path / "repo")
    assert not (tmp_path / "elsewhere").exists()


def test_files_of_a_directory_of_the_host_can_be_exported(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    session = Session(session_id="main")
    host = HostFilesystem(tmp_path / "work", session=session, store=tmp_path / "store")
    host.write("/a.txt", "a\n")
    host.snapshot()
    host.write("/a.txt", "b\n")
    export_git(session, tmp_path / "repo", filesystem=host.filesystem_id)
    assert git(tmp_path / "repo", "show", "HEAD:a.txt") == "b\n"
    assert git(tmp_path / "repo", "show", "HEAD~1:a.txt") == "a\n"
    # It is the only filesystem, and so the default.
    assert export_git(session, tmp_path / "repo").commits == 0
    with pytest.raises(ValueError, match="no filesystem 'host:other'; it has: "):
        export_git(session, tmp_path / "new", filesystem="host:other")
    assert not (tmp_path / "new").exists()


def test_an_empty_session_makes_an_empty_repository(tmp_path: Path) -> None:
    done = export_git(Session(session_id="empty"), tmp_path / "repo")
    assert (done.commits, done.head) == (0, None)


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["write", "fork", "fork_write", "merge", "rollback", "delete", "mkdir"]),
        st.integers(0, 3),
        st.text("ab\n", max_size=6),
    ),
    max_size=14,
)


@settings(max_examples=share(25))
@given(STEPS)
def test_every_commit_has_its_parents_first_and_the_last_one_is_the_present(
    steps: list[tuple[str, int, str]],
) -> None:
    session = Session(session_id="main")
    forks: list[Session] = []
    for what, number, text in steps:
        _take(session, forks, what, number, text)
    seen: set[int] = set()
    last = None
    for commit in commits_of(session):
        assert all(id(parent) in seen for parent in commit.parents)
        seen.add(id(commit))
        if commit.fork is None:
            last = commit
        if commit.records and len(commit.parents) < 2:
            state = InMemoryFilesystem(session).tree() if commit.last == session.seq else None
            assert state is None or _contents(state) == _contents(commit.tree)
    present = _contents(InMemoryFilesystem(session).tree())
    assert present == (_contents(last.tree) if last is not None else {})


@pytest.mark.parametrize("seed", sample(range(24)))
def test_git_blame_agrees_with_the_blame_of_the_session(seed: int, tmp_path: Path) -> None:
    random = Random(seed)
    session = Session(session_id="main", clock=iter(range(10**18, 10**19, 10**9)).__next__)
    numbers = count()
    # Lines that are all different: with equal lines, git may choose another one as the old line.
    for name in "ab":
        text = "".join(f"line {next(numbers)} of {name}\n" for _ in range(12))
        InMemoryFilesystem(session).write(f"/{name}", text)
    for step in range(20):
        fork = session.fork() if step % 5 == 4 else None
        for work in (session, fork):
            if work is not None:
                _edit_or_move(work, random, numbers)
        if fork is not None:
            session.merge(fork, on_conflict="theirs")
    export_git(session, tmp_path / "repo")
    trailer = "%H %(trailers:key=Weakfs-Records,valueonly,separator=%x2C)"
    records = dict(line.split(" ") for line in git(tmp_path / "repo", "log", f"--format={trailer}").splitlines())
    for path, leaf in walk(InMemoryFilesystem(session).tree()):
        if content_of(leaf):  # type: ignore[arg-type]
            blamed = re.findall("^([0-9a-f]{40}) ", git(tmp_path / "repo", "blame", "--line-porcelain", path[1:]), re.M)
            for commit, line in zip(blamed, session.blame(path), strict=True):
                first, last = map(int, records[commit].split("-"))
                assert first <= line.record <= last, (path, line)


def _edit_or_move(session: Session, random: Random, numbers: count[int]) -> None:
    files = InMemoryFilesystem(session)
    path = random.choice([path for path, _ in walk(files.tree())])
    if random.random() < 0.15:
        files.move(path, f"/moved{next(numbers)}")
        return
    lines = files.read(path).content.splitlines(keepends=True)
    start = random.randrange(len(lines) + 1)
    new = [f"line {next(numbers)}\n" for _ in range(random.randint(0, 3))]
    files.write(path, "".join([*lines[:start], *new, *lines[start + random.randint(0, 2) :]]))


def _take(session: Session, forks: list[Session], what: str, number: int, text: str) -> None:
    files = InMemoryFilesystem(session)
    if what == "write":
        files.write(f"/{number}", text)
    elif what == "mkdir":
        files.mkdir(f"/dir{number}")
    elif what == "delete":
        if files.exists(f"/{number}"):
            files.delete(f"/{number}")
    elif what == "fork":
        forks.append(session.fork())
    elif what == "rollback":
        session.rollback(max(session.seq - number, 0))
    elif forks and what == "fork_write":
        InMemoryFilesystem(forks[number % len(forks)]).write(f"/{number}", text)
    elif forks:
        session.merge(forks[number % len(forks)], on_conflict="theirs")


def _contents(tree: object) -> dict[str, object]:
    return {path: content_of(node) if type(node) is tuple else None for path, node in walk(tree)}  # type: ignore[arg-type]
