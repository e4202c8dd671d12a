"""A directory as other programs see it: git, and a plain walk by the operating system."""

from __future__ import annotations

import hashlib
import os
import stat
import subprocess
from pathlib import Path
from shutil import which

# Git with its defaults, whatever the user's configuration; status must not write anything.
GIT = ("git", "--no-optional-locks", "-c", "core.hooksPath=/dev/null", "-c", "commit.gpgsign=false")
IDENTITY = ("-c", "user.name=demo", "-c", "user.email=demo@example.com")


class Repository:
    """A directory under git; if git is not installed, all results are empty."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.exists = which("git") is not None
        if self.exists:
            self._git("init", "--quiet")
        self.commit("as it was")

    def commit(self, message: str) -> None:
        """Commit all files."""
        if self.exists:
            self._git("add", "--all")
            self._git("commit", "--quiet", "--message", message)

    def status(self) -> str:
        """Return the output of `git status --porcelain`, and the newest commit."""
        if not self.exists:
            return ""
        return self._git("status", "--porcelain", "--untracked-files=all", "--ignored") + self._git("log", "--oneline")

    def _git(self, *words: str) -> str:
        clean = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        clean |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
        command = [*GIT, *IDENTITY, *words]
        return subprocess.run(command, cwd=self.directory, env=clean, check=True, capture_output=True, text=True).stdout


def walked(directory: Path) -> str:
    """Hash every entry below a directory: its path, kind, permission bits, time, and content or target."""
    found = hashlib.sha256()
    for folder, directories, names in os.walk(directory):
        directories.sort()
        for name in [".", *sorted(names), *(one for one in directories if os.path.islink(os.path.join(folder, one)))]:
            path = os.path.join(folder, name)
            status = os.lstat(path)
            content = b""
            if stat.S_ISREG(status.st_mode):
                content = Path(path).read_bytes()
            elif stat.S_ISLNK(status.st_mode):
                content = os.fsencode(os.readlink(path))
            about = (os.path.relpath(path, directory), status.st_mode, status.st_mtime_ns, len(content))
            found.update(repr(about).encode() + content)
    return found.hexdigest()
