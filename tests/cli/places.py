"""Directories that the tests of the command work on, and transcripts to perform there."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from attrs import frozen

WORKSPACE = Path(__file__).parents[2] / "fixtures" / "workspaces" / "shop"

Seen = dict[str, tuple[int, int, bytes]]


@frozen
class Place:
    """A directory, and the store for its snapshots."""

    root: Path
    store: Path

    @property
    def seen(self) -> Seen:
        """Every entry as the system reports it: mode, time, content or target."""
        found: Seen = {}
        for path in sorted([self.root, *self.root.rglob("*")]):
            status = path.lstat()
            content = str(path.readlink()).encode() if path.is_symlink() else b""
            if path.is_file() and not path.is_symlink():
                content = path.read_bytes()
            found[str(path.relative_to(self.root))] = (status.st_mode, status.st_mtime_ns, content)
        return found

    def disturb(self) -> None:
        """Change, remove and add entries, as other programs would."""
        (self.root / "README.md").write_text("other\n")
        (self.root / "Makefile").unlink()
        shutil.rmtree(self.root / "src")
        (self.root / "new").mkdir()
        (self.root / "new" / "file").write_text("new\n")
        (self.root / "bin" / "shop").chmod(0o600)


def make_place(folder: Path) -> Place:
    """Copy the small project."""
    shutil.copytree(WORKSPACE, folder / "shop", symlinks=True)
    return Place(folder / "shop", folder / "state")


def written(path: Path, *calls: dict[str, object]) -> Path:
    """Write a transcript."""
    path.write_text("".join(json.dumps(call) + "\n" for call in calls))
    return path


def call(tool: str, **arguments: object) -> dict[str, object]:
    """Return a call as a line of a transcript."""
    return {"id": f"id-{tool}", "tool": tool, "arguments": arguments}
