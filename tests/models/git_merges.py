"""Merges by git of the same three trees, many at a time: `git merge-tree`, which uses the strategy merge-ort."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

Files = Mapping[str, tuple[int, bytes]]

ENVIRONMENT = {
    "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@b",
    "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@b",
}


class GitMerges:
    """A bare repository of cases, each with a base and two sides."""

    def __init__(self, path: Path, *, directory_renames: str = "conflict") -> None:
        self.path = path
        self._run("init", "-q", "--bare", str(path), cwd=path.parent)
        self._run("config", "merge.directoryRenames", directory_renames)

    def _run(self, *arguments: str, cwd: Path | None = None, data: bytes = b"") -> str:
        done = subprocess.run(
            ["git", *arguments], cwd=cwd or self.path, input=data, env=ENVIRONMENT, capture_output=True, check=True
        )
        return done.stdout.decode("utf-8", "surrogateescape")

    def add(self, commits: Iterable[tuple[str, Files, str | None]]) -> None:
        """Add commits: `(name, files, name of the parent)`."""
        stream: list[bytes] = []
        marks: dict[str, int] = {}
        for mark, (name, files, parent) in enumerate(commits, 1):
            marks[name] = mark
            head = b"commit refs/heads/%s\nmark :%d\ncommitter a <a@b> 0 +0000\ndata 0\n"
            stream.append(head % (name.encode(), mark))
            if parent is not None:
                stream.append(b"from :%d\n" % marks[parent])
            stream.append(b"deleteall\n")
            for path, (mode, content) in sorted(files.items()):
                bits = b"100755" if mode & 0o100 else b"100644"
                quoted = b'"' + path[1:].encode().replace(b"\\", b"\\\\").replace(b'"', b'\\"') + b'"'
                stream.append(b"M %s inline %s\ndata %d\n%s\n" % (bits, quoted, len(content), content))
        self._run("fast-import", "--quiet", data=b"".join(stream))

    def trees(self) -> dict[str, str]:
        """Return the tree of each commit by its name."""
        listed = self._run("for-each-ref", "--format=%(refname:lstrip=2) %(tree)", "refs/heads")
        return dict(line.split(" ") for line in listed.splitlines())

    def merge(self, ours: str, theirs: str) -> str | None:
        """Return the merged tree of two commits, or `None` if they conflict."""
        done = subprocess.run(
            ["git", "merge-tree", "--write-tree", "--no-messages", ours, theirs],
            cwd=self.path,
            env=ENVIRONMENT,
            capture_output=True,
            check=False,
        )
        assert done.returncode in (0, 1), done.stderr
        return done.stdout.decode().strip() if done.returncode == 0 else None

    def files(self, tree: str) -> dict[str, tuple[int, bytes]]:
        """Return the files of a tree."""
        found: dict[str, tuple[int, bytes]] = {}
        for line in self._run("ls-tree", "-r", "-z", tree).split("\0")[:-1]:
            facts, path = line.split("\t")
            mode, _, blob = facts.split(" ")
            found[f"/{path}"] = (int(mode, 8) & 0o777, self._run("cat-file", "blob", blob).encode())
        return found
