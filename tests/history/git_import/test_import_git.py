"""Git repositories as sessions: each commit as it was, hostile repositories without harm."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.history.git_import.repositories import Files, Writer, git
from tests.sampling import share
from weakfs import InMemoryFilesystem, Session, Toolset
from weakfs.history import ImportRefused, ImportReport, export_git, import_git
from weakfs.reducers import FileTree
from weakfs.reducers.tree import name_escaping as names
from weakfs.reducers.tree.leaf import MODE, content_of, is_link
from weakfs.reducers.tree.node import is_tree, walk
from weakfs.session import SessionView
from weakfs.tools import ToolCall

FILE, PROGRAM, LINK, SUBMODULE = b"100644", b"100755", b"120000", b"160000"


def imported(repository: Path, **options: object) -> tuple[Session, ImportReport]:
    session = Session(session_id="imported")
    return session, import_git(repository, session, **options)  # type: ignore[arg-type]  # each test passes its own


def files_in_git(repository: Path, commit: str) -> dict[str, tuple[str, bytes]]:
    listed = git(repository, "ls-tree", "-r", "-z", commit).split("\0")[:-1]
    found = {}
    for line in listed:
        (mode, _, object_id), name = line.partition("\t")[0].split(), line.partition("\t")[2]
        found[name] = (mode, git(repository, "cat-file", "blob", object_id).encode())
    return found


def files_in(view: Session | SessionView) -> dict[str, tuple[str, bytes]]:
    found = {}
    for path, node in walk(view[FileTree].latest() or FileTree()):
        if isinstance(node, tuple):
            mode = "120000" if is_link(node) else "100755" if node[MODE] & 0o100 else "100644"
            found[path[1:]] = (mode, content_of(node))
    return found


PATHS = [b"a", b"b", b"d/a", b"d/e/f", b"g/h", b"a/x"]
ENTRIES = st.one_of(
    st.none(),
    st.tuples(st.sampled_from([FILE, FILE, PROGRAM]), st.sampled_from([b"", b"one\n", b"one\ntwo\n", b"three\n"])),
    st.tuples(st.just(LINK), st.sampled_from([b"a", b"../b"])),
)
CHANGES = st.dictionaries(st.sampled_from(PATHS), ENTRIES, min_size=1, max_size=4)
TEXTS = st.sampled_from([b"change\n", b"", b"no newline", b"subject\n\nbody: x\n", "zwölf\n".encode(), b"\xff odd\n"])
ZONES = st.sampled_from([b"+0000", b"-0730", b"+0545"])


@settings(max_examples=share(40))
@given(st.lists(st.tuples(CHANGES, TEXTS, ZONES), min_size=1, max_size=8))
def test_a_linear_history_is_exported_with_the_same_ids(
    tmp_path_factory: pytest.TempPathFactory, changes: list[tuple[Files, bytes, bytes]]
) -> None:
    folder = tmp_path_factory.mktemp("linear")
    writer = Writer(folder / "one.git")
    last = 0
    for files, message, zone in changes:
        last = writer.commit(_possible(files), parents=[last] if last else [], message=message, zone=zone)
    repository = writer.finish()
    commits = git(repository, "rev-list", "--reverse", "main").split()

    session, report = imported(repository)

    assert (report.head, report.commits, report.flattened, report.skipped) == (commits[-1], len(commits), 0, ())
    for commit, call in zip(commits, session[ToolCall].all(), strict=True):
        assert call.call_id == commit
        if call.last_seq is not None:
            assert files_in(session.at(call.last_seq)) == files_in_git(repository, commit)
    assert files_in(session) == files_in_git(repository, "main")
    assert not [path for path, node in walk(session[FileTree].latest() or FileTree()) if is_tree(node) and not node]
    # Git can have commits that change nothing; a session exports none.
    trees = git(repository, "rev-list", "--reverse", "--format=%T", "--no-commit-header", "main").split()
    empty = git(repository, "hash-object", "-t", "tree", os.devnull).strip()
    is_plain = all(one != other for one, other in zip([empty, *trees], trees, strict=False))
    assert report.is_exact == is_plain
    exported = export_git(session, folder / "two.git")
    if is_plain:
        assert git(folder / "two.git", "rev-list", "--reverse", "main").split() == commits
    if exported.head is not None:
        assert git(folder / "two.git", "fsck", "--strict") == ""
        assert files_in_git(folder / "two.git", "main") == files_in_git(repository, "main")


def _possible(files: Files) -> Files:
    """If a file and a directory have the same name, keep only the file: a tree in git cannot have both."""
    return files if not (b"a" in files and b"a/x" in files) else {b"a": files[b"a"]}


@settings(max_examples=share(30))
@given(st.lists(st.tuples(st.sampled_from(["main", "side", "merge", "back"]), CHANGES), min_size=2, max_size=10))
def test_the_files_of_every_commit_of_a_branched_history_are_correct(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, Files]]
) -> None:
    folder = tmp_path_factory.mktemp("branched")
    writer = Writer(folder / "one.git")
    main = side = writer.commit({b"start": (FILE, b"x")})
    for number, (what, files) in enumerate(steps):
        own = {**_possible(files), b"n%d" % number: (FILE, b"%d" % number)}
        if what == "main":
            main = writer.commit(own, parents=[main])
        elif what == "side":
            side = writer.commit(own, parents=[side], branch="side")
        elif what == "merge" and main != side:
            main = writer.commit(own, parents=[main, side])
            side = main if number % 2 else side
        elif what == "back" and main != side:
            side = writer.commit(own, parents=[side, main], branch="side")
    repository = writer.finish()

    session, report = imported(repository)

    total = int(git(repository, "rev-list", "--count", "main"))
    assert report.commits + report.flattened == total
    assert files_in(session) == files_in_git(repository, "main")
    commits = git(repository, "rev-list", "--first-parent", "--reverse", "main").split()
    own_calls = {call.call_id: call for call in session[ToolCall].all()}
    states = {}
    for record in session.records:
        if isinstance(record.event, ToolCall):
            states[record.event.call_id] = record.seq
    for commit in commits:
        assert commit in own_calls
        assert files_in(session.at(states[commit])) == files_in_git(repository, commit)
    export_git(session, folder / "two.git")
    assert git(folder / "two.git", "fsck", "--strict") == ""
    assert files_in_git(folder / "two.git", "main") == files_in_git(repository, "main")
    if report.is_exact:
        assert git(folder / "two.git", "rev-parse", "main").strip() == report.head


def test_a_merged_branch_is_imported_as_a_fork_and_exported_again(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "one.git")
    first = writer.commit({b"a": (FILE, b"1\n2\n3\n4\n5\n")})
    side = writer.commit({b"a": (FILE, b"1\n2\n3\n4\nfive\n")}, parents=[first], branch="side", author=b"Bob <b@x>")
    side = writer.commit({b"b": (FILE, b"b")}, parents=[side], branch="side")
    main = writer.commit({b"a": (FILE, b"one\n2\n3\n4\n5\n")}, parents=[first])
    # Resolved in a way that no merge would produce.
    writer.commit({b"a": (FILE, b"one\n2\n3\n4\nfive!\n"), b"b": None}, parents=[main, side], message=b"merge\n")
    repository = writer.finish()

    session, report = imported(repository)

    assert (report.commits, report.merged, report.flattened, report.is_exact) == (5, 2, 0, True)
    assert InMemoryFilesystem(session).read("/a").content == "one\n2\n3\n4\nfive!\n"
    assert {line.caller for line in session.blame("/a")} == {"Ann Example"}
    export_git(session, tmp_path / "two.git")
    assert git(tmp_path / "two.git", "rev-parse", "main").strip() == report.head


def test_export_import_export_gives_the_same_commits(tmp_path: Path) -> None:
    ticks = iter(range(1_777_541_373_000_000_000, 10**19, 10**9))
    session = Session(session_id="main", clock=ticks.__next__)
    tools = Toolset(session)
    tools.call("write_file", {"path": "/src/a.py", "content": "one\ntwo\n"}, call_id="c1", caller="ann")
    fork = session.fork("idea")
    Toolset(fork).call("write_file", {"path": "/idea", "content": "x"}, call_id="f1", caller="fay")
    tools.call("mv", {"source": "/src/a.py", "destination": "/b.py"}, call_id="c2", caller="bob")
    session.merge(fork)
    session.snapshot("v 1.0")
    tools.call("edit_file", {"path": "/b.py", "old_string": "two", "new_string": "2"}, call_id="c3", caller="bob")
    one = export_git(session, tmp_path / "one.git")

    again, report = imported(tmp_path / "one.git")
    two = export_git(again, tmp_path / "two.git")

    assert report.is_exact
    assert two.head == one.head == report.head
    assert git(tmp_path / "two.git", "tag") == git(tmp_path / "one.git", "tag") == "v%201%2E0\n"
    assert [one.tag for one in again.snapshots] == ["v 1.0"]
    assert export_git(again, tmp_path / "two.git").commits == 0


def test_work_on_an_imported_session_is_added_to_its_repository(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "one.git")
    first = writer.commit({b"a": (FILE, b"a")})
    side = writer.commit({b"b": (FILE, b"b")}, parents=[first], branch="side")
    # The branch was brought up to date, so it is not a fork: the merge becomes one change here.
    main = writer.commit({b"c": (FILE, b"c")}, parents=[first])
    side = writer.commit({b"c": (FILE, b"c")}, parents=[side, main], branch="side")
    writer.commit({b"b": (FILE, b"b")}, parents=[main, side, first])
    repository = writer.finish()
    session, report = imported(repository)
    assert not report.is_exact

    Toolset(session).call("write_file", {"path": "/new", "content": "n"}, call_id="c1", caller="ann")
    done = export_git(session, repository)

    assert done.commits == 1
    assert git(repository, "log", "-1", "--format=%an %P", "main").split() == ["ann", report.head]
    assert git(repository, "fsck", "--strict") == ""
    assert export_git(session, repository).commits == 0


def test_entries_that_a_session_cannot_hold_are_skipped_and_named(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "one.git")
    first = writer.commit(
        {
            b"sub": (SUBMODULE, b"1" * 40),
            b"big": (FILE, b"x" * 2_000),
            b"d/\xff\\\n": (FILE, b"odd name"),
            b"d/ok": (FILE, b"ok"),
            b"long": (LINK, b"y" * 5_000),
        }
    )
    writer.commit({b"d/ok": (SUBMODULE, b"2" * 40)}, parents=[first])
    session, report = imported(writer.finish(), max_file_size=1_000)

    assert not report.is_exact
    assert [(one.path, one.reason.partition(",")[0]) for one in report.skipped] == [
        ("/big", "it has 2000 bytes"),
        ("/long", "it has 5000 bytes"),
        ("/sub", "it is a submodule"),
        ("/d/ok", "it is a submodule"),
    ]
    assert {path: content for path, (_, content) in files_in(session).items()} == {
        "d/" + names.from_bytes(b"\xff\\\n"): b"odd name"
    }


def raw_tree(repository: Path, *entries: tuple[str, bytes, str]) -> str:
    data = b"".join(b"%s %s\0%s" % (mode.encode(), name, bytes.fromhex(one)) for mode, name, one in entries)
    return git(repository, "hash-object", "-t", "tree", "-w", "--stdin", "--literally", given=data).strip()


def point_main_at(repository: Path, tree: str) -> None:
    person = "A <a@x> 1700000000 +0000"
    text = f"tree {tree}\nauthor {person}\ncommitter {person}\n\nx\n".encode()
    commit = git(repository, "hash-object", "-t", "commit", "-w", "--stdin", "--literally", given=text).strip()
    git(repository, "update-ref", "refs/heads/main", commit)


def test_names_that_lead_elsewhere_are_skipped(tmp_path: Path) -> None:
    repository = tmp_path / "one.git"
    Writer(repository)
    blob = git(repository, "hash-object", "-w", "--stdin", given=b"evil").strip()
    inner = raw_tree(repository, ("100644", b"hooks", blob))
    bad = [b"..", b".", b"a/../../b", b".git", b".GIT ", b"git~1", b"x" * 300]
    tree = raw_tree(
        repository,
        *(("100644", name, blob) for name in bad),
        ("40000", b".Git", inner),
        ("100644", b"fine", blob),
        ("120755", b"mode", blob),
    )
    point_main_at(repository, tree)

    session, report = imported(repository)

    assert files_in(session) == {"fine": ("100644", b"evil")}
    assert report.skipped_count == len(bad) + 2


def test_a_tree_that_expands_to_endless_files_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from weakfs.history.git_import import tree_changes

    monkeypatch.setattr(tree_changes, "MAX_CHANGES", 2_000)
    repository = tmp_path / "one.git"
    Writer(repository)
    tree = raw_tree(repository, ("100644", b"f", git(repository, "hash-object", "-w", "--stdin").strip()))
    for _ in range(12):
        tree = raw_tree(repository, *(("40000", b"%d" % number, tree) for number in range(10)))
    point_main_at(repository, tree)
    with pytest.raises(ImportRefused, match="more than 2000 files"):
        imported(repository)


def test_nothing_in_the_repository_is_executed(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "one.git")
    writer.commit({b"a.txt": (FILE, b"text\n"), b".gitattributes": (FILE, b"* filter=evil diff=evil\n")})
    repository = writer.finish()
    mark = tmp_path / "it-ran"
    evil = f"sh -c 'touch {mark}'"
    options = """core.fsmonitor core.sshCommand core.pager core.editor core.askPass diff.external diff.evil.textconv
        filter.evil.smudge filter.evil.clean core.alternateRefsCommand credential.helper gpg.program"""
    for name in options.split():
        git(repository, "config", name, evil)
    # A missing object would be fetched from a promisor, whose address may be a command.
    git(repository, "config", "remote.origin.url", f"ext::touch {mark}")
    git(repository, "config", "remote.origin.promisor", "true")
    git(repository, "config", "protocol.ext.allow", "always")
    git(repository, "config", "extensions.partialClone", "origin")
    git(repository, "config", "core.repositoryFormatVersion", "1")
    for hook in (repository / "hooks").iterdir():
        hook.unlink()
    hook = repository / "hooks" / "post-checkout"
    hook.write_text(f"#!/bin/sh\ntouch {mark}\n")
    hook.chmod(0o755)
    blob = git(repository, "rev-parse", "main:a.txt").strip()
    _remove_object(repository, blob)

    session, report = imported(repository)

    assert not mark.exists()
    assert [(one.path, one.reason) for one in report.skipped] == [("/a.txt", "its contents are missing")]
    assert list(files_in(session)) == [".gitattributes"]


def small_repository(tmp_path: Path) -> Path:
    writer = Writer(tmp_path / "one.git")
    writer.commit({b"a": (FILE, b"text")})
    return writer.finish()


@pytest.mark.parametrize(
    "name",
    [
        "HEAD",
        "config",
        "packed-refs",
        "shallow",
        "refs/heads/other",
        "objects/ab/cdef",
        "objects/info/commit-graph",
        "objects/info/alternates",
    ],
)
def test_a_fifo_in_the_place_of_a_file_is_refused_without_waiting(tmp_path: Path, name: str) -> None:
    path = small_repository(tmp_path) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    with pytest.raises(ImportRefused, match=re.escape(str(path))):
        imported(tmp_path / "one.git")


@pytest.mark.parametrize(
    "name", ["commondir", "config.worktree", "info/grafts", "info/attributes", "index", "included"]
)
def test_files_of_a_repository_that_an_import_does_not_need_are_not_read(tmp_path: Path, name: str) -> None:
    repository = small_repository(tmp_path)
    git(repository, "config", "include.path", str(repository / "included"))
    git(repository, "config", "core.worktree", str(tmp_path))
    git(repository, "config", "core.repositoryFormatVersion", "1")
    git(repository, "config", "extensions.worktreeConfig", "true")
    (repository / name).parent.mkdir(exist_ok=True)
    (repository / name).unlink(missing_ok=True)
    os.mkfifo(repository / name)
    session, report = imported(repository)
    assert (report.commits, report.is_exact) == (1, True)
    assert list(files_in(session)) == ["a"]


def test_objects_and_refs_outside_of_a_repository_are_not_read(tmp_path: Path) -> None:
    repository = small_repository(tmp_path)
    git(tmp_path, "clone", "-q", "--bare", "--shared", str(repository), "shared.git")
    with pytest.raises(ImportRefused, match=r"needs the objects of another repository.*alternates"):
        imported(tmp_path / "shared.git")
    for name in ("objects", "refs"):
        linked = tmp_path / f"linked-{name}.git"
        git(tmp_path, "clone", "-q", "--bare", "--no-local", str(repository), str(linked))
        (linked / name).rename(tmp_path / name)
        (linked / name).symlink_to(tmp_path / name)
        with pytest.raises(ImportRefused, match="is a symbolic link; clone the repository first"):
            imported(linked)


@pytest.mark.parametrize(("name", "value"), [("objectFormat", "md5"), ("refStorage", "table")])
def test_a_repository_of_an_unknown_format_is_refused(tmp_path: Path, name: str, value: str) -> None:
    repository = small_repository(tmp_path)
    with (repository / "config").open("a") as config:
        config.write(f"[extensions]\n\t{name} = {value}\n")
    with pytest.raises(ImportRefused, match=f"its extensions.{name} is '{value}'"):
        imported(repository)


def test_a_malformed_configuration_is_named(tmp_path: Path) -> None:
    repository = small_repository(tmp_path)
    (repository / "config").write_text("[[[\n")
    with pytest.raises(ImportRefused, match=r"one\.git': 'git config' failed .*bad config line 1"):
        imported(repository)


def test_a_repository_with_sha_256_ids_is_imported(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "--object-format=sha256", "--initial-branch=main", "two")
    (tmp_path / "two" / "a").write_text("text")
    git(tmp_path / "two", "add", "a")
    git(tmp_path / "two", "-c", "user.name=Ann", "-c", "user.email=ann@example.org", "commit", "-q", "-m", "first")
    session, report = imported(tmp_path / "two")
    assert (report.commits, len(report.head), list(files_in(session))) == (1, 64, ["a"])


def _remove_object(repository: Path, object_id: str) -> None:
    for pack in list((repository / "objects/pack").glob("*.pack")):
        data = pack.read_bytes()
        for one in (pack, pack.with_suffix(".idx")):
            one.unlink()
        git(repository, "-c", "core.bigFileThreshold=1g", "unpack-objects", "-q", given=data)
    (repository / "objects" / object_id[:2] / object_id[2:]).unlink()


def test_a_damaged_repository_is_refused(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "one.git")
    writer.commit({b"d/a": (FILE, b"a")})
    repository = writer.finish()
    _remove_object(repository, git(repository, "rev-parse", "main:d").strip())
    with pytest.raises(ImportRefused, match="is missing"):
        imported(repository)


def test_a_shallow_clone_starts_where_it_is_cut(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "one.git")
    last = 0
    for number in range(4):
        last = writer.commit({b"a": (FILE, b"%d" % number)}, parents=[last] if last else [])
    repository = writer.finish()
    git(tmp_path, "clone", "-q", "--depth=2", f"file://{repository}", "two")

    session, report = imported(tmp_path / "two")

    assert (report.commits, report.is_exact) == (2, False)
    assert InMemoryFilesystem(session).read("/a").content == "3"


def test_branches_and_tags_outside_the_imported_history_are_named(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "one.git")
    first = writer.commit({b"a": (FILE, b"a")})
    second = writer.commit({b"b": (FILE, b"b")}, parents=[first], branch="open")
    writer.tag("v1.0", first)
    writer.tag("draft", second)
    session, report = imported(writer.finish())
    assert report.other_refs == ("refs/heads/open", "refs/tags/draft")
    assert [one.tag for one in session.snapshots] == ["v1.0"]
    _, of_open = imported(tmp_path / "one.git", branch="open")
    assert (of_open.branch, of_open.commits, of_open.other_refs) == ("open", 2, ())


@pytest.mark.parametrize("branch", [None, "none"])
def test_a_repository_without_the_branch_is_refused(tmp_path: Path, branch: str | None) -> None:
    Writer(tmp_path / "one.git")
    with pytest.raises(ImportRefused, match="branch"):
        imported(tmp_path / "one.git", branch=branch)
    with pytest.raises(ImportRefused, match="not a git repository"):
        imported(tmp_path)
    (tmp_path / ".git").write_text("gitdir: /\n")
    with pytest.raises(ImportRefused, match="elsewhere"):
        imported(tmp_path)


def test_only_a_new_session_can_be_imported_into(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "one.git")
    writer.commit({b"a": (FILE, b"a")})
    session, _ = imported(writer.finish())
    with pytest.raises(ValueError, match="pass a new session"):
        import_git(tmp_path / "one.git", session)


def test_an_imported_session_is_stored_and_saved(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "one.git")
    first = writer.commit({b"a": (FILE, b"a")})
    side = writer.commit({b"b": (FILE, b"b")}, parents=[first], branch="side")
    writer.commit({b"b": (FILE, b"b")}, parents=[first, side])
    repository = writer.finish()
    with Session.open(f"folder:{tmp_path}/s", "mine") as stored:
        head = import_git(repository, stored).head
    with Session.open(f"folder:{tmp_path}/s", "mine") as again:
        again.save(tmp_path / "mine.json")
        assert export_git(again, tmp_path / "two.git").head == head
    assert export_git(Session.load(tmp_path / "mine.json"), tmp_path / "three.git").head == head
