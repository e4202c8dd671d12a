"""A session with files and a toolset whose calls are numbered."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from weakfs import HostFilesystem, InMemoryFilesystem, OverlayFilesystem, Session, Toolset
from weakfs.filesystem import Filesystem

LINES = "".join(f"line {number}\n" for number in range(1, 9))


class Desk:
    """A session with a toolset, whose calls are numbered."""

    def __init__(self, session: Session, fs: Filesystem) -> None:
        self.session, self.fs = session, fs
        self.tools = Toolset(session, fs)
        self.count = 0

    def call(self, name: str, **arguments: Any) -> str:
        self.count += 1
        call_id = f"c{self.count}"
        self.tools.call(name, arguments, call_id=call_id, caller="ann")
        return call_id

    def write(self, path: str, content: str) -> str:
        return self.call("write_file", path=path, content=content)

    def edit(self, path: str, old: str, new: str) -> str:
        return self.call("edit_file", path=path, old_string=old, new_string=new)

    def text(self, path: str) -> str | None:
        return self.fs.read(path).content if self.fs.exists(path) else None


def in_memory() -> Desk:
    session = Session(session_id="s", clock=lambda: 0)
    return Desk(session, InMemoryFilesystem(session))


def on_host(tmp_path: Path) -> Desk:
    (tmp_path / "root").mkdir()
    session = Session(session_id="s", clock=lambda: 0)
    return Desk(session, HostFilesystem(tmp_path / "root", session=session, store=tmp_path / "store"))


def over_lower() -> Desk:
    lower, session = InMemoryFilesystem(Session()), Session(session_id="s", clock=lambda: 0)
    lower.write("/below", LINES)
    return Desk(session, OverlayFilesystem(lower, session))
