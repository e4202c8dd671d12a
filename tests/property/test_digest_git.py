"""Digests of trees compared with `git write-tree` of a real git, for everything that git can store."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from tests.models.trees import CONTENTS, ODD_NAMES, Plain, flatten, grow, random_tree, write_out
from weakfs.reducers import FileTree
from weakfs.reducers.tree import name_escaping as names

needs_git = pytest.mark.skipif(
    shutil.which("git") is None,
    reason="there is no git on this machine: install it, the digest is compared with its own",
)
pytestmark = needs_git

# Whatever `.gitattributes` and the user's configuration say, take the bytes as they are.
NEUTRAL = "* -text -eol -filter -ident -working-tree-encoding\n"

HOSTILE = """
[core]
    autocrlf = true
    eol = crlf
    excludesFile = {directory}/excludes
    attributesFile = {directory}/attributes
    bigFileThreshold = 1k
    quotePath = true
    fsmonitor = false
[filter "spoil"]
    clean = tr a-z A-Z
    smudge = tr A-Z a-z
    required = true
[add]
    ignoreErrors = true
[user]
    useConfigOnly = true
"""
HOSTILE_ATTRIBUTES = "* text eol=crlf filter=spoil ident working-tree-encoding=UTF-16\n"

# Files that git itself reads in a worktree, and contents that it would change.
GIT_FILES: dict[str, tuple[bytes, ...]] = {
    ".gitignore": (b"*\n", b"!/a\n*.txt\n"),
    ".gitattributes": (HOSTILE_ATTRIBUTES.encode(), b"* text=auto\n*.txt -diff export-ignore export-subst\n"),
    ".gitmodules": (b'[submodule "a"]\n\tpath = a\n\turl = ../x\n',),
    ".mailmap": (b"",),
    "crlf.txt": (b"a\r\nb\r\n", b"a\nb\r\nc", b"\r\r\n"),
    "ident.c": (b"$Id$ $Id: 0123$\n", b"$Format:%H$"),
    "utf16.txt": ("\ufeffa\n".encode("utf-16-le"),),
}


class Repository:
    """A bare SHA-256 repository, used with one worktree after another."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory / "repository.git"
        (directory / "excludes").write_text("*\n")
        (directory / "attributes").write_text(HOSTILE_ATTRIBUTES)
        (directory / "gitconfig").write_text(HOSTILE.format(directory=directory))
        self._environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(directory),
            "GIT_CONFIG_GLOBAL": str(directory / "gitconfig"),
            "GIT_CONFIG_NOSYSTEM": "1",
            "LC_ALL": "C",
        }
        self._git("init", "--quiet", "--bare", "--object-format=sha256", str(self.directory))
        (self.directory / "info").mkdir(exist_ok=True)
        (self.directory / "info" / "attributes").write_text(NEUTRAL)
        (self.directory / "info" / "exclude").write_text("*\n")

    def write_tree(self, worktree: Path) -> str:
        """Return the id of the tree object that git makes of a worktree."""
        (self.directory / "index").unlink(missing_ok=True)
        # Without these two options, git refuses names that would cause problems on other systems, such as `git~1`.
        lenient = ("-c", "core.protectNTFS=false", "-c", "core.protectHFS=false")
        place = (f"--git-dir={self.directory}", f"--work-tree={worktree}")
        self._git(*lenient, *place, "-c", "core.bare=false", "add", "-Af", "--", ".", cwd=worktree)
        return self._git(*lenient, *place, "write-tree", cwd=worktree)

    def _git(self, *arguments: str, cwd: Path | None = None) -> str:
        done = subprocess.run(
            ["git", *arguments], cwd=cwd, env=self._environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    return Repository(tmp_path_factory.mktemp("git"))


WriteTree = Callable[[FileTree], str]


@pytest.fixture
def write_tree(repository: Repository, tmp_path: Path) -> WriteTree:
    count = 0

    def written(tree: FileTree) -> str:
        nonlocal count
        count += 1
        worktree = tmp_path / str(count)
        worktree.mkdir()
        write_out(tree, worktree)
        return repository.write_tree(worktree)

    return written


def f(content: bytes = b"x\n", mode: int = 0o644) -> tuple[str, bytes, int]:
    return ("f", content, mode)


D = ("d", 0o755)

SHAPES: dict[str, Plain] = {
    "nothing": {},
    "an empty directory": {"/a": D},
    "empty directories in a directory next to a file": {"/a": D, "/a/b": D, "/a/c": D, "/f": f()},
    "an empty file": {"/a": f(b"")},
    "executables": {"/a": f(mode=0o755), "/b": f(mode=0o700), "/c": f(mode=0o744), "/d": f(mode=0o654)},
    "odd permission bits": {"/a": f(mode=0o4755), "/b": f(mode=0o600), "/c": f(mode=0o666), "/d": f(mode=0o2644)},
    "links": {"/a": ("l", "b"), "/b": ("l", "/etc/passwd"), "/c": ("l", "../.."), "/d": ("l", "\u00e9 \n")},
    "a link to bytes that are not text": {"/a": ("l", names.from_bytes(b"\xff\\x"))},
    "a directory sorts as if its name ended in a slash": {
        "/a": D,
        "/a/x": f(),
        "/a-b": f(),
        "/a.b": f(),
        "/a0": f(),
        "/a b": f(),
        "/a-c": D,
        "/a-c/x": f(),
    },
    "a file where a directory would sort elsewhere": {"/a": f(), "/a-b": f(), "/a.b": f(), "/a0": f()},
    "names of other scripts sort by their bytes": {"/\uffff": f(), "/\U0001f600": f(), "/\u00e9": f(), "/z": f()},
    "deep": {**{"/" + "/".join("d" * n): D for n in range(1, 40)}, "/" + "d/" * 39 + "f": f()},
    "large": {"/a": f(bytes(range(256)) * 9000), "/b": f(b"line\r\n" * 300_000)},
    "many": {f"/f{n}": f(b"%d" % n) for n in range(300)},
    "files that git reads": {
        "/.gitignore": f(b"*\n"),
        "/.gitattributes": f(HOSTILE_ATTRIBUTES.encode()),
        "/a.txt": f(b"a\r\nb\r\n$Id$\n"),
        "/d": D,
        "/d/.gitignore": f(b"!*\n*\n"),
        "/d/.gitattributes": f(b"* text=auto eol=crlf\n"),
        "/d/b": f(b"a\r\nb\n"),
    },
}


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_git_agrees_on_every_shape(shape: Plain, write_tree: WriteTree) -> None:
    tree = grow({"/": D, **shape})
    assert tree.digest == write_tree(tree)


@pytest.mark.parametrize("name", ODD_NAMES)
def test_git_agrees_on_odd_names_of_files_links_and_directories(name: str, write_tree: WriteTree) -> None:
    tree = grow({"/": D, f"/{name}": D, f"/{name}/{name}": f(), f"/{name}/2": ("l", name), f"/{name[:240]}-": f()})
    assert tree.digest == write_tree(tree)


def test_all_odd_names_in_one_directory_sort_as_in_git(write_tree: WriteTree) -> None:
    for every_other in (0, 1):
        flat: Plain = {"/": D}
        for number, name in enumerate(ODD_NAMES):
            if number % 2 == every_other:
                flat[f"/{name}"] = f()
            else:
                flat |= {f"/{name}": D, f"/{name}/x": f()}
        tree = grow(flat)
        assert tree.digest == write_tree(tree)


@pytest.mark.parametrize("seed", range(60))
def test_git_agrees_on_random_trees(seed: int, write_tree: WriteTree) -> None:
    random = Random(seed)
    tree = random_tree(random, names=ODD_NAMES, width=9, contents=(*CONTENTS, b"a\r\n" * 2000))
    flat = flatten(tree)
    for directory in [path for path, entry in flat.items() if entry[0] == "d"]:
        for name in random.sample(sorted(GIT_FILES), 2):
            flat[f"{directory.rstrip('/')}/{name}"] = f(random.choice(GIT_FILES[name]))
    tree = grow(flat)
    assert tree.digest == write_tree(tree)


def test_the_neutral_attributes_are_needed(repository: Repository, tmp_path: Path) -> None:
    tree = grow({"/": D, "/a": f(b"a\r\n$Id: 1$\n"), "/.gitattributes": f(b"* text ident\n")})
    write_out(tree, tmp_path)
    attributes = repository.directory / "info" / "attributes"
    attributes.write_text("* -filter -working-tree-encoding\n")
    try:
        assert repository.write_tree(tmp_path) != tree.digest
    finally:
        attributes.write_text(NEUTRAL)
    assert repository.write_tree(tmp_path) == tree.digest
