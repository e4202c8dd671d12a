"""Programs work on a mounted session, break it, and get it back: `python -m examples.integrations.mount`.

Needs FUSE. The second half runs in another process.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from weakfs import InMemoryFilesystem, Session, Toolset
from weakfs.integrations.mount import mount
from weakfs.tools import ExternalCallFailed, ToolCall

COMMANDS = [
    "sed -i 's/80/8000/' src/app.py",
    "mkdir docs && echo '8000: the server' > docs/ports.md",
    "git init -q . && git add . && git -c user.name=a -c user.email=a@example.com commit -qm all",
    "echo broken > src/app.py && cat src/settings.py",
    "rm -r src docs .git",
]


def run(tools: Toolset, number: int, command: str) -> None:
    """Run a command in the mount as one call, which is undone if it fails."""
    try:
        with tools.external_call("bash", {"command": command}, call_id=f"call-{number}") as call:
            subprocess.run(command, shell=True, cwd=call.directory, check=True, stderr=subprocess.DEVNULL)
    except (ExternalCallFailed, subprocess.CalledProcessError):
        print(f"failed: {command}")


def shown(session: Session) -> str:
    """Return the files of a session in one line, without those of git."""
    paths = (one.path[1:] for one in InMemoryFilesystem(session).walk("/") if one.is_file)
    return " ".join(path for path in paths if not path.startswith(".git/")) or "nothing"


def first_half(place: Path) -> None:
    with Session.open(place / "sessions", "chat") as session:
        files = InMemoryFilesystem(session)
        files.write("/src/app.py", "port = 80\n")
        with mount(files, place / "work") as mounted:
            tools = Toolset(session, mounted.files)
            for number, command in enumerate(COMMANDS):
                run(tools, number, command)
        print(f"left: {shown(session)}", flush=True)


def second_half(place: Path) -> None:
    """Undo everything in another process, and continue."""
    with Session.open(place / "sessions", "chat") as session:
        session.undo()
        print(f"left: {shown(session)}", flush=True)
        files = InMemoryFilesystem(session)
        with mount(files, place / "work") as mounted:
            log = subprocess.run(
                ["git", "log", "--format=%s"], cwd=mounted.directory, capture_output=True, text=True, check=True
            )
            print(f"log: {log.stdout.strip()}", flush=True)
            for call in ("call-2", "call-1", "call-0"):
                session.revert(call)
            print(f"left: {shown(session)}", flush=True)
            assert Path(mounted.directory, "src/app.py").read_text() == "port = 80\n"
            run(Toolset(session, mounted.files), len(COMMANDS), "echo 'all is well' > notes.md")
        print(f"left: {shown(session)}", flush=True)
        print("calls:", " ".join(call.status for call in session[ToolCall].all()), flush=True)


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        (place / "work").mkdir()
        first_half(place)
        subprocess.run([sys.executable, "-m", "examples.integrations.mount", str(place)], check=True)


if __name__ == "__main__":
    if len(sys.argv) == 2:
        second_half(Path(sys.argv[1]))
    else:
        main()
