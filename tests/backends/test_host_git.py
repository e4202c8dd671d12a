"""Snapshots of kind git: ordinary commits, exact, and deaf to whatever else git is told."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from errno import EDQUOT
from pathlib import Path
from typing import Any

import pytest

from tests.snapshots.hosts import model
from weakfs.backends import HostFilesystem, InMemoryFilesystem
from weakfs.reducers import ExternalFsSnapshot, FileTree
from weakfs.reducers import children as maps
from weakfs.session import Session, UnknownSnapshot
from weakfs.snapshots import Store
from weakfs.snapshots.git import GitUnavailable
from weakfs.snapshots.git.names import is_refused

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="there is no git on this machine")

CLEAN = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    root.mkdir()
    return root


@pytest.fixture
def fs(root: Path, tmp_path: Path) -> HostFilesystem:
    return HostFilesystem(root, store=tmp_path / "store", snapshots="git")


def git(fs: HostFilesystem, *arguments: str, env: dict[str, str] | None = None) -> str:
    done = subprocess.run(
        ["git", "--git-dir", fs.store.git.path, *arguments], capture_output=True, env=env or CLEAN, check=True
    )
    return os.fsdecode(done.stdout)


def fill(root: Path) -> None:
    for path, content in {
        b"a.txt": b"text\n",
        b"run.sh": b"#!/bin/sh\n",
        b"crlf.txt": b"one\r\ntwo\r\n",
        b"src/deep/er/b.py": b"x = 1\n",
        b"src/c.py": b"y = 2\n",
        b"build/ignored.log": b"ignored\n",
        b".gitignore": b"build/\n*.log\n",
        b".gitattributes": b"*.txt text eol=crlf ident\n*.py filter=spoil working-tree-encoding=UTF-16\n",
        b"$Id$.txt": b"$Id$\n",
        b"new\nline": b"n",
        b'"quoted': b"q",
        b"tab\tand\\backslash": b"t",
        b"not\xffutf8": b"u",
        b" leading": b"l",
        b"trailing ": b"t",
        b"empty.bin": b"",
    }.items():
        place = os.path.join(os.fsencode(root), path)
        os.makedirs(os.path.dirname(place), exist_ok=True)
        with open(place, "wb") as stream:
            stream.write(content)
    (root / "run.sh").chmod(0o755)
    (root / "link").symlink_to("src/c.py")
    (root / "dangling").symlink_to("../no\nwhere")


def fill_with_what_git_refuses(root: Path) -> None:
    fill(root)
    for name in (".GIT", "git~1", ".git. .", ".g\u200cit", ".git:stream", "dir/.git"):
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_bytes(f"gitdir: of {name}\n".encode())
    (root / ".gitmodules").symlink_to("elsewhere")
    (root / "empty/inner").mkdir(parents=True)
    (root / "private").mkdir(mode=0o700)
    (root / "private/key").write_bytes(b"key")
    (root / "private/key").chmod(0o4600)
    os.mkfifo(root / "fifo")
    nested = root / "vendor/lib"
    nested.mkdir(parents=True)
    (nested / "kept.c").write_bytes(b"int x;\n")
    in_repository(nested, "init", "--quiet")
    in_repository(nested, "add", "--all")
    in_repository(nested, "commit", "--quiet", "--message=one")


def in_repository(folder: Path, *arguments: str) -> None:
    options = ("-c", "user.name=n", "-c", "user.email=e", "-c", "core.hooksPath=/dev/null", "-c", "commit.gpgsign=no")
    env = {**CLEAN, "GIT_CONFIG_GLOBAL": os.devnull}
    subprocess.run(["git", *options, *arguments], cwd=folder, env=env, check=True)


def damage(root: Path) -> None:
    for place in root.iterdir():
        if place.is_dir() and not place.is_symlink():
            shutil.rmtree(place)
        else:
            place.unlink()
    (root / "src").write_bytes(b"a file where a directory was")


def state(root: Path) -> tuple[str, dict[bytes, tuple[int, int]]]:
    found = {}
    for here, directories, files in os.walk(os.fsencode(root)):
        for name in (*directories, *files, b"."):
            status = os.lstat(os.path.join(here, name))
            found[os.path.join(here, name)] = status.st_mode, status.st_mtime_ns
    return model(root).fingerprint, found


def test_a_snapshot_is_a_commit_whose_tree_has_the_digest_of_the_files(fs: HostFilesystem, root: Path) -> None:
    fill(root)
    snapshot = fs.snapshot("before")
    assert snapshot.kind == "git"
    assert snapshot.git_dir == fs.store.git.path
    assert git(fs, "rev-parse", f"{snapshot.ref}^{{tree}}").strip() == fs.tree().digest == model(root).digest
    assert git(fs, "fsck", "--strict", "--full") == ""
    assert git(fs, "show", f"{snapshot.ref}:src/c.py") == "y = 2\n"
    message = git(fs, "log", "--format=%an %cn %B", snapshot.ref)
    assert message.startswith("weakfs weakfs snapshot ")
    assert snapshot.snapshot_id in message
    assert "tag: before" in message


def test_git_agrees_on_the_files(fs: HostFilesystem, root: Path, tmp_path: Path) -> None:
    fill(root)
    snapshot = fs.snapshot()
    env = {**CLEAN, "GIT_DIR": str(tmp_path / "other"), "GIT_WORK_TREE": str(root), "GIT_CONFIG_GLOBAL": os.devnull}

    def other(*arguments: str) -> str:
        return subprocess.run(["git", *arguments], env=env, check=True, capture_output=True, text=True).stdout.strip()

    other("init", "--quiet", "--object-format=sha256")
    (tmp_path / "other/info").mkdir(exist_ok=True)
    (tmp_path / "other/info/attributes").write_text("* -text -eol -filter -ident -working-tree-encoding\n")
    other("add", "--all", "--force")
    assert other("write-tree") == git(fs, "rev-parse", f"{snapshot.ref}^{{tree}}").strip()


CHANGES = {
    "a_file_becomes_a_directory": ("rm a.txt", "mkdir a.txt", "echo x > a.txt/x"),
    "a_directory_becomes_a_file": ("rm -r src", "echo x > src"),
    "a_directory_becomes_a_link": ("mv src other", "ln -s other src"),
    "a_file_becomes_a_link": ("rm a.txt", "ln -s run.sh a.txt"),
    "a_file_becomes_a_fifo": ("rm a.txt", "mkfifo a.txt"),
    "a_directory_becomes_empty": ("rm -r src/deep/er/*",),
    "a_file_becomes_a_program": ("chmod +x a.txt",),
    "only_bits_that_git_does_not_have_change": ("chmod 600 a.txt",),
    "everything_goes": ("rm -rf * .git*",),
    "a_directory_moves": ("mv src/deep elsewhere",),
    "a_file_becomes_a_repository": ("mv src .git",),
    "odd_names_change": ("echo x > 'new\nline'", "rm '\"quoted'", "echo y > '\"\n'"),
    "nothing": (),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_later_snapshot_is_told_as_a_difference_and_is_whole(fs: HostFilesystem, root: Path, change: str) -> None:
    fill(root)
    first = fs.snapshot()
    before = state(root)
    for command in CHANGES[change]:
        subprocess.run(["sh", "-ec", command], cwd=root, check=True)
    held = model(root)
    second = fs.snapshot()
    after = state(root)
    if change != "a_file_becomes_a_repository":
        assert git(fs, "rev-parse", f"{second.ref}^{{tree}}").strip() == held.digest
    assert git(fs, "fsck", "--strict", "--full") == ""
    fs.restore(first)
    assert state(root) == before
    fs.restore(second)
    assert state(root) == after


def test_what_git_cannot_hold_is_restored_as_well(fs: HostFilesystem, root: Path) -> None:
    fill_with_what_git_refuses(root)
    before = state(root)
    snapshot = fs.snapshot()
    assert git(fs, "fsck", "--strict", "--full") == ""
    names = git(fs, "ls-tree", "-r", "-z", "--name-only", snapshot.ref).split("\0")
    assert "private/key" in names
    assert "vendor/lib/kept.c" in names
    assert not any(is_refused(part) for name in names for part in name.split("/"))
    damage(root)
    fs.restore(snapshot)
    assert state(root) == before


def test_a_nested_repository_goes_back_to_before_its_later_commits(fs: HostFilesystem, root: Path) -> None:
    fill_with_what_git_refuses(root)
    nested = root / "vendor/lib"
    before = state(root)
    snapshot = fs.snapshot()
    (nested / "kept.c").write_bytes(b"int y;\n")
    in_repository(nested, "commit", "--quiet", "--all", "--message=two")
    in_repository(nested, "gc", "--quiet")
    fs.restore(snapshot)
    assert state(root) == before
    in_repository(nested, "fsck", "--strict")
    in_repository(nested, "diff", "--quiet", "HEAD")


def test_compaction_keeps_what_the_kept_snapshots_need_and_nothing_else(fs: HostFilesystem, root: Path) -> None:
    fill_with_what_git_refuses(root)
    before = state(root)
    kept = fs.snapshot()
    (root / "large.bin").write_bytes(os.urandom(3 << 20))
    dropped = fs.snapshot()
    (account,) = (one for one in fs.store.account() if one.snapshot.snapshot_id == dropped.snapshot_id)
    assert 3 << 20 < account.frees < 4 << 20
    damage(root)
    size = fs.store.disk_size()
    fs.store.drop(dropped.snapshot_id)
    fs.store.compact()
    assert fs.store.disk_size() < size - (2 << 20)
    assert git(fs, "log", "--all", "--format=%H").split() == [
        commit for _, commit in fs.store.git.refs().items() if commit in git(fs, "log", "--all", "--format=%H")
    ]
    with pytest.raises(UnknownSnapshot):
        fs.store.get(dropped.snapshot_id)
    again = HostFilesystem(root, store=fs.store.path, snapshots="git")
    again.restore(kept)
    assert state(root) == before
    later = again.snapshot()
    assert git(again, "fsck", "--strict", "--full") == ""
    assert git(again, "rev-parse", f"{later.ref}^{{tree}}") == git(again, "rev-parse", f"{kept.ref}^{{tree}}")


def test_contents_that_are_in_use_survive_a_compaction(fs: HostFilesystem, root: Path) -> None:
    fill(root)
    snapshot = fs.snapshot()
    (root / "a.txt").write_bytes(b"seen, and then changed\n")
    fs.tree()
    fs.store.drop(snapshot.snapshot_id)
    fs.compact()
    before = model(root).fingerprint
    damage(root)
    fs.restore(snapshot)
    assert (root / "a.txt").read_bytes() == b"text\n"
    assert model(root).fingerprint != before


def test_the_users_own_gc_loses_nothing(fs: HostFilesystem, root: Path) -> None:
    fill_with_what_git_refuses(root)
    before = state(root)
    snapshot = fs.snapshot()
    git(fs, "gc", "--quiet", "--prune=now", "--aggressive")
    damage(root)
    HostFilesystem(root, store=fs.store.path, snapshots="git").restore(snapshot)
    assert state(root) == before


def test_large_files_come_back(fs: HostFilesystem, root: Path) -> None:
    content = os.urandom(1 << 20) * 9 + b"end"
    (root / "large.bin").write_bytes(content)
    snapshot = fs.snapshot()
    (root / "large.bin").unlink()
    fs.restore(snapshot)
    assert (root / "large.bin").read_bytes() == content


def test_a_snapshot_is_restored_from_what_another_process_loads(root: Path, tmp_path: Path) -> None:
    fill_with_what_git_refuses(root)
    before = state(root)
    session = Session()
    HostFilesystem(root, session=session, store=tmp_path / "store", snapshots="git").snapshot("tagged")
    session.save(tmp_path / "session.json")
    damage(root)
    loaded = Session.load(tmp_path / "session.json")
    taken = loaded[ExternalFsSnapshot].latest()
    assert taken is not None
    assert (taken.kind, taken.tag, taken.git_dir) == ("git", "tagged", str(tmp_path / "store/git"))
    fs = HostFilesystem(root, session=loaded, store=tmp_path / "store")
    assert fs.restore(taken, dry_run=True).changed > 10
    fs.restore(taken)
    assert state(root) == before


def test_a_snapshot_is_restored_into_memory(fs: HostFilesystem, root: Path) -> None:
    fill_with_what_git_refuses(root)
    snapshot = fs.snapshot()
    memory = InMemoryFilesystem()
    memory.restore(snapshot, foreign=True)
    assert memory.tree().fingerprint == model(root).fingerprint
    assert memory.read("/dir/.git").content == "gitdir: of dir/.git\n"


def test_a_snapshot_that_was_dropped_is_named(fs: HostFilesystem, root: Path) -> None:
    fs.snapshot()
    taken = fs.session[ExternalFsSnapshot].latest()
    assert taken is not None
    fs.store.drop(taken.snapshot_id)
    # Another session has not seen the files itself.
    with pytest.raises(UnknownSnapshot, match=r"dropped or never taken"):
        HostFilesystem(root, store=fs.store.path).restore(taken)


# Hostile surroundings


@pytest.fixture
def hostile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Tell git everything that could spoil a snapshot; nothing of it may run."""
    home, ran = tmp_path / "home", tmp_path / "ran"
    hooks = home / "hooks"
    template = home / "template/hooks"
    for folder in (hooks, template):
        folder.mkdir(parents=True)
        for hook in (
            "pre-commit",
            "commit-msg",
            "post-commit",
            "reference-transaction",
            "post-checkout",
            "pre-auto-gc",
        ):
            (folder / hook).write_text(f"#!/bin/sh\necho {hook} >> {ran}\nexit 1\n")
            (folder / hook).chmod(0o755)
    (home / "excludes").write_text("*\n")
    (home / "attributes").write_text("* text eol=crlf filter=spoil ident working-tree-encoding=UTF-16\n")
    configuration = f"""
[core]
    hooksPath = {hooks}
    autocrlf = true
    eol = crlf
    safecrlf = true
    excludesFile = {home}/excludes
    attributesFile = {home}/attributes
    fileMode = false
    symlinks = false
    ignoreCase = true
    precomposeUnicode = true
    protectNTFS = false
    quotePath = true
    bare = false
    worktree = {home}
    fsmonitor = {hooks}/pre-commit
    compression = 99
[commit]
    gpgSign = true
    template = {home}/missing
[gpg]
    program = false
[user]
    useConfigOnly = true
[init]
    templateDir = {home}/template
    defaultBranch = "../../outside"
    defaultObjectFormat = sha1
[fastimport]
    unpackLimit = 1000000
[filter "spoil"]
    clean = tr a-z A-Z
    smudge = false
    required = true
[pack]
    packSizeLimit = 1
[gc]
    pruneExpire = now
    auto = 1
[transfer]
    hideRefs = refs/weakfs
[i18n]
    commitEncoding = UTF-16
[log]
    showSignature = true
"""
    (home / ".gitconfig").write_text(configuration)
    (home / "git").mkdir()
    (home / "git/config").write_text(configuration)
    for name, value in {
        "HOME": str(home),
        "XDG_CONFIG_HOME": str(home),
        "GIT_CONFIG_GLOBAL": str(home / ".gitconfig"),
        "GIT_CONFIG_SYSTEM": str(home / ".gitconfig"),
        "GIT_CONFIG_COUNT": "2",
        "GIT_CONFIG_KEY_0": "core.hooksPath",
        "GIT_CONFIG_VALUE_0": str(hooks),
        "GIT_CONFIG_KEY_1": "core.autocrlf",
        "GIT_CONFIG_VALUE_1": "true",
        "GIT_CONFIG_PARAMETERS": f"'core.hooksPath={hooks}'",
        "GIT_DIR": str(home / "elsewhere.git"),
        "GIT_COMMON_DIR": str(home / "common.git"),
        "GIT_INDEX_FILE": str(home / "index"),
        "GIT_WORK_TREE": str(home),
        "GIT_OBJECT_DIRECTORY": str(home / "objects"),
        "GIT_ALTERNATE_OBJECT_DIRECTORIES": str(home / "alternates"),
        "GIT_QUARANTINE_PATH": str(home / "quarantine"),
        "GIT_NAMESPACE": "hostile",
        "GIT_CEILING_DIRECTORIES": "/",
        "GIT_DEFAULT_HASH": "sha1",
        "GIT_TEMPLATE_DIR": str(home / "template"),
        "GIT_AUTHOR_DATE": "nonsense",
        "GIT_COMMITTER_DATE": "nonsense",
        "GIT_COMMITTER_NAME": "",
        "GIT_LITERAL_PATHSPECS": "1",
        "GIT_EXEC_PATH": str(home / "no-exec"),
        "GIT_TRACE": str(home / "trace"),
        "GIT_REF_STORAGE": "nonsense",
        "LC_ALL": "de_DE.UTF-8",
    }.items():
        monkeypatch.setenv(name, value)
    yield
    left = {path.name for path in home.iterdir()}
    assert left == {"hooks", "template", "excludes", "attributes", ".gitconfig", "git"}
    assert not ran.exists()


@pytest.mark.usefixtures("hostile")
def test_nothing_that_git_is_told_elsewhere_makes_a_difference(fs: HostFilesystem, root: Path) -> None:
    fill_with_what_git_refuses(root)
    before = state(root)
    snapshot = fs.snapshot("tag with ümlaut")
    damage(root)
    fs.snapshot()
    fs.restore(snapshot)
    assert state(root) == before
    fs.store.keep_last(0)
    fs.store.compact()
    assert fs.store.git.refs() == {}


@pytest.mark.usefixtures("hostile")
def test_the_digest_is_the_same_with_a_hostile_configuration(fs: HostFilesystem, root: Path) -> None:
    fill(root)
    snapshot = fs.snapshot()
    assert git(fs, "rev-parse", f"{snapshot.ref}^{{tree}}").strip() == model(root).digest
    assert git(fs, "config", "core.hooksPath").strip() == os.devnull
    assert sorted(os.listdir(fs.store.git.path)) == ["HEAD", "config", "objects", "refs"]


def test_a_damaged_or_foreign_configuration_of_the_root_is_not_read(fs: HostFilesystem, root: Path) -> None:
    (root / ".git").mkdir()
    (root / ".git/config").write_text("[core\nthis is no configuration")
    (root / "a.txt").write_text("a")
    snapshot = fs.snapshot()
    shutil.rmtree(root / ".git")
    fs.restore(snapshot)
    assert (root / ".git/config").read_text().startswith("[core\n")


# Names


REFUSED = [".git", ".GIT", ".Git", "git~1", "GIT~1", ".git ", ".git.", ".git . .", "git~1 .", ".git:x", ".git::$INDEX"]
REFUSED += [".g\u200cit", "\u200e.git", ".git\ufeff", ".G\u202aIT", "a\\.git", "a\\git~1", "x\\.git\\y"]
TAKEN = ["git", ".gitignore", ".gita", "git~2", ".git-x", "x.git", ". git", ".gitmodules", ".gitattributes", "a:.git"]
TAKEN += ["...", "git~10", ".gït", "\u200cgit", "con", "a\nb", ".git\n"]


def test_the_refused_names_are_those_that_git_finds_fault_with(fs: HostFilesystem, root: Path) -> None:
    (root / "a").write_text("a")
    fs.snapshot()
    blob = git(fs, "rev-parse", f"{next(iter(fs.store.git.refs()))}:a").strip()
    trees = {}
    for name in REFUSED + TAKEN:
        given = f"100644 blob {blob}\t{name}\0".encode()
        command = ["git", "--git-dir", fs.store.git.path, "mktree", "-z"]
        trees[name] = subprocess.run(command, input=given, capture_output=True, check=True).stdout.decode().strip()
    checked = subprocess.run(["git", "--git-dir", fs.store.git.path, "fsck"], capture_output=True, env=CLEAN, text=True)
    found = {name for name, tree in trees.items() if f"{tree}: hasDotgit" in checked.stderr}
    assert found == set(REFUSED)
    assert {name for name in trees if is_refused(name.replace("\\", "\uf75c"))} == found


# Several at once, and what goes wrong


def test_eight_threads_take_snapshots_at_once(tmp_path: Path) -> None:
    store = tmp_path / "store"
    roots = []
    for number in range(8):
        roots.append(tmp_path / f"root{number}")
        roots[-1].mkdir()
        fill(roots[-1])
        (roots[-1] / "own").write_text(str(number))
    filesystems = [HostFilesystem(root, store=store, snapshots="git") for root in roots]
    with ThreadPoolExecutor(8) as pool:
        snapshots = list(pool.map(lambda fs: [fs.snapshot() for _ in range(3)], filesystems))
    assert git(filesystems[0], "fsck", "--strict", "--full") == ""
    assert len(filesystems[0].store.list()) == 24
    for root, fs, taken in zip(roots, filesystems, snapshots, strict=True):
        before = state(root)
        damage(root)
        fs.restore(taken[-1])
        assert state(root) == before


def entries(tree: FileTree) -> dict[str, Any]:
    return dict(maps.items(tree.children))


SCRIPT = """
import sys
from weakfs.backends import HostFilesystem
from weakfs.session import Session
root, store, number = sys.argv[1:]
# All of one id: they contend for the ids of snapshots as well.
fs = HostFilesystem(root, session=Session(session_id="same"), store=store, snapshots="git")
for turn in range(int(number)):
    fs.write("/turn.txt", str(turn) * 1000)
    print(fs.snapshot().snapshot_id, flush=True)
"""


def start(root: Path, store: Path, number: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", SCRIPT, str(root), str(store), str(number)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_eight_processes_take_snapshots_at_once(tmp_path: Path) -> None:
    roots = [tmp_path / f"root{number}" for number in range(8)]
    for root in roots:
        root.mkdir()
        fill(root)
        (root / "own").write_text(root.name)
    running = [start(root, tmp_path / "store", 2) for root in roots]
    said = [process.communicate()[0].split() for process in running]
    assert all(process.returncode == 0 for process in running)
    store = Store(tmp_path / "store")
    assert len({snapshot_id for ids in said for snapshot_id in ids}) == 16 == len(store.list())
    for root, ids in zip(roots, said, strict=True):
        for snapshot_id in ids:
            stored = store.get(snapshot_id)
            assert stored.extra["commit"] in store.git.refs().values()
            assert entries(store.tree(stored))["own"][0].join() == root.name.encode()


def wait_for_the_last_of_its_programs(imports: str) -> None:
    """A killed process's `git fast-import` may still be about to notice; it holds a lock for as long."""
    for name in os.listdir(imports):
        if not name.endswith(".git"):
            with suppress(FileNotFoundError), open(os.path.join(imports, name), "rb") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)


@pytest.mark.parametrize("delay", [0.0, 0.02, 0.05, 0.1, 0.2])
def test_a_kill_loses_no_snapshot_that_was_reported(root: Path, tmp_path: Path, delay: float) -> None:
    fill(root)
    process = start(root, tmp_path / "store", 1000)
    assert process.stdout is not None
    reported = [process.stdout.readline().strip()]
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(delay or 0.001)
    process.kill()
    reported += process.communicate()[0].split("\n")[:-1]
    fs = HostFilesystem(root, store=tmp_path / "store", snapshots="git")
    wait_for_the_last_of_its_programs(fs.store.git.imports)
    fs.store.compact()
    for turn, snapshot_id in enumerate(reported):
        leaf = entries(fs.store.tree(fs.store.get(snapshot_id)))["turn.txt"]
        assert leaf[0].join() == str(turn).encode() * 1000
    assert os.listdir(fs.store.git.imports) == []
    assert git(fs, "fsck", "--strict", "--full") == ""


def test_what_is_left_of_a_broken_snapshot_is_removed(fs: HostFilesystem, root: Path) -> None:
    fill(root)
    fs.snapshot()
    (root / "new.bin").write_bytes(os.urandom(1 << 20))
    with pytest.raises(RuntimeError), fs.store.git_writer() as sink:
        sink.add(os.urandom(1 << 21))
        assert os.listdir(fs.store.git.imports) != []
        raise RuntimeError
    assert os.listdir(fs.store.git.imports) == []
    assert git(fs, "fsck", "--strict", "--full") == ""


def test_a_snapshot_that_does_not_fit_is_refused_and_the_others_are_whole(root: Path, tmp_path: Path) -> None:
    fs = HostFilesystem(root, store=Store(tmp_path / "store", max_bytes=4 << 20), snapshots="git")
    fill(root)
    before = state(root)
    kept = fs.snapshot()
    (root / "large.bin").write_bytes(os.urandom(8 << 20))
    with pytest.raises(OSError, match="drop snapshots and compact it") as caught:
        fs.snapshot()
    assert caught.value.errno == EDQUOT
    assert [entry.snapshot_id for entry in fs.store.list()] == [kept.snapshot_id]
    assert len(fs.store.git.refs()) == 1
    (root / "large.bin").unlink()
    damage(root)
    fs.restore(kept)
    assert state(root) == before


def test_a_machine_without_git_is_told(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fs = HostFilesystem(root, store=tmp_path / "store", snapshots="git")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(GitUnavailable, match=r"there is no git .* install git 2.29 or newer, or .*snapshots='tree'"):
        fs.snapshot()
    assert HostFilesystem(root, store=tmp_path / "store").snapshot().kind == "tree"


def test_a_git_without_sha256_is_told(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "git").write_text(
        '#!/bin/sh\n[ "$1" = --version ] && echo git version 2.11.0 && exit\n'
        'echo "error: unknown option \\`object-format=sha256\'" >&2\nexit 129\n'
    )
    (tmp_path / "git").chmod(0o755)
    fs = HostFilesystem(root, store=tmp_path / "store", snapshots="git")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(GitUnavailable, match=r"git version 2\.11\.0 cannot make .* SHA-256 .* install git 2\.29"):
        fs.snapshot()
