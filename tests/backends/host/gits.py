"""Directories for snapshots of kind git: their initial files, their changes, and queries to git."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from tests.snapshots.hosts import model
from weakfs.backends import HostFilesystem

CLEAN = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}


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
