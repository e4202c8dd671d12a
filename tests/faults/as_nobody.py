"""Use filesystems as an unprivileged user: `python -m tests.faults.as_nobody`.

Each line of the input is a JSON list: root, store, action, path. The answer is a JSON list of lines: what was seen, and
finally the error with its number, or `done`. One process does all of them, because starting one takes longer than the
work.
"""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path

from tests.faults.saving import give_up_rights
from weakfs import Session
from weakfs.backends import HostFilesystem, InMemoryFilesystem


def fail_after_restoring(fs: HostFilesystem, path: str) -> None:
    """Restore the only snapshot in a transaction that fails."""
    snapshot = fs.snapshot()
    fs.chmod("/d", 0o755)
    fs.write("/d/a", "changed")
    fs.write("/d/new", "new")
    try:
        with fs.session.transaction():
            fs.restore(snapshot)
            raise RuntimeError
    except RuntimeError:
        print(fs.read("/d/a").content, fs.exists("/d/new"), oct(fs.stat("/d").mode))


def fail_after_changing(fs: HostFilesystem, path: str) -> None:
    """Change the entries of a directory in a transaction that fails."""
    try:
        with fs.session.transaction():
            change_entries(fs, path)
            raise RuntimeError
    except RuntimeError as error:
        print(*getattr(error, "__notes__", ()))


def restore(fs: HostFilesystem, path: str) -> None:
    """Restore a snapshot after the entries of a directory have changed."""
    snapshot = fs.snapshot()
    change_entries(fs, path)
    print(*fs.restore(snapshot).notes)


def fail_after_restore(fs: HostFilesystem, path: str) -> None:
    """Restore a snapshot in a transaction that fails."""
    snapshot = fs.snapshot()
    change_entries(fs, path)
    try:
        with fs.session.transaction():
            fs.restore(snapshot)
            raise RuntimeError
    except RuntimeError as error:
        print(*getattr(error, "__notes__", ()))
    fs.restore(snapshot)


def change_entries(fs: HostFilesystem, path: str) -> None:
    """Change, delete and create an entry of a directory."""
    fs.write(f"{path}/a", "changed")
    fs.delete(f"{path}/b")
    fs.write(f"{path}/new", "new")


def fail_after_deleting(fs: HostFilesystem, path: str) -> None:
    """Delete and move read-only directories, in a transaction that fails."""
    before = fs.tree().fingerprint
    try:
        with fs.session.transaction():
            fs.move("/d", "/moved")
            fs.delete("/e", recursive=True)
            raise RuntimeError
    except RuntimeError:
        print(fs.tree().fingerprint == before)


def fail_after_a_program(fs: HostFilesystem, path: str) -> None:
    """Let a program overwrite a file, in a checkout that fails."""
    try:
        with fs.checkout() as laid:
            Path(laid.directory + path).write_text("changed")
            raise RuntimeError
    except RuntimeError as error:
        print(*getattr(error, "__notes__", ()), end="")


WORKS: dict[str, Callable[[HostFilesystem, str], object]] = {
    "open": lambda fs, path: None,
    "read": lambda fs, path: fs.read(path),
    "list": lambda fs, path: fs.list(path),
    "grep": lambda fs, path: fs.grep("x"),
    "glob": lambda fs, path: fs.glob("**"),
    "statistics": lambda fs, path: fs.statistics(),
    "snapshot": lambda fs, path: fs.snapshot(),
    "write": lambda fs, path: fs.write(path, "new"),
    "append": lambda fs, path: fs.append(path, "new"),
    "mkdir": lambda fs, path: fs.mkdir(path),
    "delete": lambda fs, path: fs.delete(path, recursive=True),
    "move": lambda fs, path: fs.move(path, path + ".moved"),
    "move away": lambda fs, path: fs.move("/a", path),
    "copy": lambda fs, path: fs.copy(path, "/copied"),
    "chmod": lambda fs, path: fs.chmod(path, 0o600),
    "symlink": lambda fs, path: fs.symlink("x", path),
    "import": lambda fs, path: fs.import_bytes(InMemoryFilesystem().export_bytes()),
    "restore": restore,
    "fail after changing": fail_after_changing,
    "fail after restore": fail_after_restore,
    "fail after restoring": fail_after_restoring,
    "fail after deleting": fail_after_deleting,
    "fail after a program": fail_after_a_program,
}


def do(root: str, store: str, what: str, path: str) -> None:
    """Do one thing."""
    try:
        fs = HostFilesystem(root, session=Session(), store=store)
        WORKS[what](fs, path)
    except OSError as error:
        print(f"{type(error).__name__} {error.errno}: {error}")
    else:
        print("done")


def main() -> None:
    """Do what each line of the input says."""
    give_up_rights()
    for line in sys.stdin:
        with redirect_stdout(io.StringIO()) as said:
            do(*json.loads(line))
        print(json.dumps(said.getvalue().splitlines()), flush=True)


if __name__ == "__main__":
    main()
