"""The repository that a session is exported to: its branch, and the commits of earlier exports."""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path

from weakfs.class_decorators import define
from weakfs.errors import WeakfsError
from weakfs.history.git_export.commit_text import RECORDS, SESSION, trailer
from weakfs.history.git_import.commit_calls import commit_of
from weakfs.session import Session
from weakfs.snapshots.git import command
from weakfs.tools import ToolCall


class ExportRefused(WeakfsError, ValueError):
    """A session cannot be exported to a repository; the repository is unchanged."""


@define
class ExportedRepository:
    """The repository, and the branch to which the session itself is exported."""

    folder: Path
    git_dir: str
    branch: str

    @classmethod
    def at(cls, folder: Path, branch: str) -> ExportedRepository:
        if not re.fullmatch(r"[\w][\w./-]*", branch) or re.search(r"\.\.|//|/\.|\.lock(/|$)|[./]$", branch):
            raise ExportRefused(f"cannot export to the branch {branch!r}: git does not allow that name; give another")
        git_dir = folder if (folder / "objects").is_dir() else folder / ".git"
        if not git_dir.is_dir():
            if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
                raise ExportRefused(f"cannot export to {str(folder)!r}: it is not empty; name another folder")
            is_bare = folder.suffix == ".git"
            git_dir = folder if is_bare else folder / ".git"
            folder.mkdir(parents=True, exist_ok=True)
            command.run(str(git_dir), "init", "--quiet", "--template=", *(["--bare"] if is_bare else []))
            command.run(str(git_dir), "symbolic-ref", "HEAD", f"refs/heads/{branch}")
        return cls(folder, str(git_dir), branch)

    @property
    def ref(self) -> str:
        return f"refs/heads/{self.branch}"

    def head(self) -> str | None:
        return self._object_at(self.ref)

    def has(self, ref: str) -> bool:
        return self._object_at(ref) is not None

    def _object_at(self, ref: str) -> str | None:
        found = command.run(self.git_dir, "for-each-ref", "--format=%(objectname)", ref)
        return found.decode().strip() or None

    def those_there(self, session: Session) -> frozenset[str]:
        """Return the commits that the session has imported and that are in the repository."""
        every = (commit_of(call) for call in session[ToolCall].all())
        wanted = [commit.object_id for commit in every if commit is not None]
        if not wanted:
            return frozenset()
        answers = command.run(self.git_dir, "cat-file", "--batch-check", given="\n".join(wanted).encode() + b"\n")
        rows = (line.split() for line in answers.decode("ascii", "replace").splitlines())
        return frozenset(row[0] for row in rows if len(row) == 3 and row[1] == "commit")

    def known(self, session_id: str, imported: Collection[str]) -> dict[tuple[int, int], str]:
        """Return the commits of earlier exports by their first and last record, without imported ones."""
        old = self.head()
        if old is None:
            return {}
        form = (
            f"%H %(trailers:key={RECORDS},valueonly,separator=%x2C) %(trailers:key={SESSION},valueonly,separator=%x2C)"
        )
        found: dict[tuple[int, int], str] = {}
        # Everything before an imported commit belongs to it.
        asked = "".join(f"{name}\n" for name in (old, *(f"^{one}" for one in sorted(imported))))
        log = command.run(self.git_dir, "log", "--stdin", f"--format={form}", given=asked.encode()).decode(
            "utf-8", "replace"
        )
        for line in log.splitlines():
            name, records, owner = [*line.split(" ", 2), "", ""][:3]
            numbers = re.fullmatch(r"(\d+)-(\d+)", records)
            if numbers is None or owner != trailer(session_id):
                raise ExportRefused(
                    f"cannot export to the branch {self.branch!r}: its commit {name[:12]} does not belong to session "
                    f"{session_id!r}; give another branch or repository"
                )
            found[int(numbers[1]), int(numbers[2])] = name
        return found

    def check_out(self, old: str | None, head: str | None) -> None:
        """Update a work tree that has the branch checked out, from commit `old` to `head`; local changes are kept."""
        if head in (None, old) or self.git_dir == str(self.folder):
            return
        if command.run(self.git_dir, "rev-parse", "--symbolic-full-name", "HEAD").decode().strip() == self.ref:
            ends = [one for one in (old, head) if one is not None]
            command.run(self.git_dir, f"--work-tree={self.folder}", "read-tree", "-m", "-u", *ends)
