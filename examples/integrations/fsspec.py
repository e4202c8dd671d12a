"""A pipeline writes its data through fsspec, breaks it, and gets it back: `python -m examples.integrations.fsspec`.

The second half runs in another process.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import fsspec

from weakfs import Session, Toolset
from weakfs.integrations.fsspec import WeakfsFileSystem
from weakfs.tools.handlers import ShellOptions, shell_tool


def shown(fs: WeakfsFileSystem) -> str:
    """Return the files of a filesystem in one line."""
    return " ".join(path[1:] for path in fs.find("/")) or "nothing"


def first_half(sessions: Path) -> None:
    with Session.open(sessions, "data") as session:
        fs = fsspec.filesystem("weakfs", session=session)
        with fs.transaction:
            fs.pipe("/raw/a.csv", b"x,y\n1,2\n")
            fs.pipe("/raw/b.csv", b"x,y\n3,4\n")
        session.snapshot("start")
        with fs.open("/out/all.csv", "wb") as out:
            out.writelines(fs.cat(path) for path in sorted(fs.glob("/raw/*.csv")))
        fs.mv("/raw/b.csv", "/raw/c.csv")
        try:
            with fs.transaction:
                fs.rm("/raw", recursive=True)
                fs.cp("/out/none.csv", "/raw/a.csv")
        except FileNotFoundError as error:
            print(f"failed: {error}")
        print(f"left: {shown(fs)}", flush=True)
        toolset = Toolset(session, tools=[shell_tool(ShellOptions(sandbox="auto"))])
        toolset.call("shell", {"command": "rm -r raw out"})
        print(f"left: {shown(fs)}", flush=True)


def second_half(sessions: Path) -> None:
    """Undo everything in another process, and continue."""
    with Session.open(sessions, "data") as session:
        fs = fsspec.filesystem("weakfs", session=session)
        session.undo()
        print(f"left: {shown(fs)}", flush=True)
        session.restore("start")
        print(f"left: {shown(fs)}", flush=True)
        assert fs.cat("/raw/b.csv") == b"x,y\n3,4\n"
        fs.pipe("/notes.md", b"all is well\n")
        print(f"left: {shown(fs)}", flush=True)


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        sessions = Path(directory) / "sessions"
        first_half(sessions)
        subprocess.run([sys.executable, "-m", "examples.integrations.fsspec", str(sessions)], check=True)


if __name__ == "__main__":
    if len(sys.argv) == 2:
        second_half(Path(sys.argv[1]))
    else:
        main()
