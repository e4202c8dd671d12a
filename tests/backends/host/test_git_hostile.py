"""Snapshots of kind git ignore the user's configuration of git, and leave out what git refuses."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.backends.host.gits import CLEAN, damage, fill, fill_with_what_git_refuses, git, state
from tests.snapshots.hosts import model
from weakfs import MissingBlob
from weakfs.backends import HostFilesystem
from weakfs.session.blobs.blob import digest_of
from weakfs.snapshots.git.reserved_names import is_refused

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="there is no git on this machine")


@pytest.fixture
def fs(root: Path, tmp_path: Path) -> HostFilesystem:
    return HostFilesystem(root, store=tmp_path / "store", snapshots="git")


@pytest.fixture
def hostile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Configure git in every way that could spoil a snapshot; none of it may run."""
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
def test_configuration_and_environment_of_git_make_no_difference(fs: HostFilesystem, root: Path) -> None:
    fill_with_what_git_refuses(root)
    before = state(root)
    snapshot = fs.snapshot("tag with ümlaut")
    damage(root)
    fs.snapshot()
    fs.restore(snapshot)
    assert state(root) == before
    fs.store.keep_last(0, drop_tagged=True)
    fs.store.compact()
    assert fs.store.git.refs() == {}


@pytest.mark.usefixtures("hostile")
def test_the_digest_is_the_same_with_a_hostile_configuration(fs: HostFilesystem, root: Path) -> None:
    fill(root)
    snapshot = fs.snapshot()
    assert git(fs, "rev-parse", f"{snapshot.ref}^{{tree}}").strip() == model(root).digest
    assert git(fs, "config", "core.hooksPath").strip() == os.devnull
    assert sorted(os.listdir(fs.store.git.path)) == ["HEAD", "config", "objects", "refs"]


def make_hostile(repository: Path, ran: Path) -> None:
    """Let the configuration of a repository name commands in every way that git may run one."""
    command = repository / "hooks" / "run"
    command.parent.mkdir()
    command.write_text(f"#!/bin/sh\necho $0 $* >> {ran}\nexit 1\n")
    command.chmod(0o755)
    for hook in ("reference-transaction", "pre-auto-gc", "post-index-change", "post-rewrite"):
        os.link(command, command.parent / hook)
    os.mkfifo(repository / "endless")
    (repository / "config.worktree").write_text(f"[core]\n\tfsmonitor = {command}\n")
    with (repository / "config").open("a") as stream:
        stream.write(f"""
[core]
    hooksPath = {command.parent}
    fsmonitor = {command}
    sshCommand = {command}
    gitProxy = {command}
    alternateRefsCommand = {command}
    attributesFile = {repository}/endless
[extensions]
    worktreeConfig = true
    partialClone = hostile
[remote "hostile"]
    url = ext::{command} %S
    promisor = true
    uploadpack = {command}
[protocol "ext"]
    allow = always
[protocol]
    allow = always
[gc]
    recentObjectsHook = {command}
    auto = 1
[hook "hostile"]
    command = {command}
    event = reference-transaction
[trace2]
    normalTarget = {ran}
[pack]
    packSizeLimit = 1
""")


def test_no_command_that_the_configuration_of_a_store_names_is_run(
    fs: HostFilesystem, root: Path, tmp_path: Path
) -> None:
    fill_with_what_git_refuses(root)
    before = state(root)
    first, second = fs.snapshot(), fs.snapshot()
    make_hostile(Path(fs.store.git.path), tmp_path / "ran")
    # As a process that opens the store anew.
    fs = HostFilesystem(root, store=fs.store.path, snapshots="git")
    damage(root)
    fs.snapshot()
    fs.restore(first)
    assert state(root) == before
    fs.store.account()
    fs.store.drop(second.snapshot_id)
    fs.store.compact()
    (pack,) = Path(fs.store.git.objects, "pack").glob("*.pack")
    pack.rename(tmp_path / "taken away")
    # Git would fetch what is missing if it read that the objects are promised by a remote.
    with pytest.raises(MissingBlob):
        fs.store.read(digest_of((root / "a.txt").read_bytes()))
    assert not (tmp_path / "ran").exists()


def test_a_configuration_of_a_store_that_includes_an_endless_file_is_not_read(fs: HostFilesystem, root: Path) -> None:
    fill(root)
    before = state(root)
    first = fs.snapshot()
    repository = Path(fs.store.git.path)
    (repository / "config").unlink()
    os.mkfifo(repository / "config")
    damage(root)
    fs.snapshot()
    fs.restore(first)
    fs.store.compact()
    assert state(root) == before


def test_a_damaged_or_foreign_configuration_of_the_root_is_not_read(fs: HostFilesystem, root: Path) -> None:
    (root / ".git").mkdir()
    (root / ".git/config").write_text("[core\nthis is no configuration")
    (root / "a.txt").write_text("a")
    snapshot = fs.snapshot()
    shutil.rmtree(root / ".git")
    fs.restore(snapshot)
    assert (root / ".git/config").read_text().startswith("[core\n")


REFUSED = [".git", ".GIT", ".Git", "git~1", "GIT~1", ".git ", ".git.", ".git . .", "git~1 .", ".git:x", ".git::$INDEX"]
REFUSED += [".g\u200cit", "\u200e.git", ".git\ufeff", ".G\u202aIT", "a\\.git", "a\\git~1", "x\\.git\\y"]
TAKEN = ["git", ".gitignore", ".gita", "git~2", ".git-x", "x.git", ". git", ".gitmodules", ".gitattributes", "a:.git"]
TAKEN += ["...", "git~10", ".gït", "\u200cgit", "con", "a\nb", ".git\n"]


def test_the_refused_names_are_those_that_git_rejects(fs: HostFilesystem, root: Path) -> None:
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
