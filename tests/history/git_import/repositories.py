"""Git repositories for tests, written by `git fast-import`."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

# What a commit does: maps a path to (mode, content), or to nothing for a deletion.
Files = Mapping[bytes, tuple[bytes, bytes] | None]


def git(repository: Path, *arguments: str, given: bytes = b"") -> str:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environment |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    done = subprocess.run(
        ["git", "-C", str(repository), *arguments], input=given, capture_output=True, check=True, env=environment
    )
    return done.stdout.decode("utf-8", "backslashreplace")


class Writer:
    """A repository under construction; commits are named by marks."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        git(folder, "init", "--quiet", "--bare", "--initial-branch=main", ".")
        self.folder = folder
        self._stream: list[bytes] = []
        self._count = 0

    def commit(
        self,
        files: Files,
        *,
        parents: Sequence[int] = (),
        branch: str = "main",
        message: bytes = b"change\n",
        author: bytes = b"Ann Example <ann@example.org>",
        at: int | None = None,
        zone: bytes = b"+0000",
    ) -> int:
        self._count += 1
        at = 1_700_000_000 + self._count if at is None else at
        ref = b"refs/heads/" + branch.encode()
        lines = [] if parents else [b"reset %s\n" % ref]
        lines += [b"commit %s\nmark :%d\n" % (ref, self._count)]
        lines += [b"author %s %d %s\ncommitter Com Mitter <c@example.org> %d +0130\n" % (author, at, zone, at)]
        lines += [b"data %d\n%s\n" % (len(message), message)]
        lines += [b"%s :%d\n" % (word, one) for word, one in zip((b"from", b"merge", b"merge"), parents, strict=False)]
        for path, entry in files.items():
            quoted = b'"' + b"".join(b"\\%03o" % byte for byte in path) + b'"'
            if entry is None:
                lines.append(b"D %s\n" % quoted)
            elif entry[0] == b"160000":
                lines.append(b"M 160000 %s %s\n" % (entry[1], quoted))
            else:
                lines.append(b"M %s inline %s\ndata %d\n%s\n" % (entry[0], quoted, len(entry[1]), entry[1]))
        self._stream += [*lines, b"\n"]
        return self._count

    def tag(self, name: str, mark: int) -> None:
        self._stream.append(b"reset refs/tags/%s\nfrom :%d\n\n" % (name.encode(), mark))

    def finish(self) -> Path:
        git(self.folder, "fast-import", "--quiet", "--date-format=raw", given=b"".join(self._stream))
        return self.folder
