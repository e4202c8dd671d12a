"""A host directory next to a durable session, and work that changes both."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.models.host import left_in_journals
from weakfs import HostFilesystem, Session, Toolset
from weakfs.reducers import ExternalFsSnapshot
from weakfs.reducers.external_trees import ExternalTrees
from weakfs.tools.defaults import DEFAULT_TOOLS
from weakfs.tools.handlers import ShellOptions, shell_tool
from weakfs.tools.slices import ToolCall


class Desk:
    """A host directory, and the durable session of those who work in it."""

    def __init__(self, place: Path, engine: str = "folder", *, session: Session | None = None) -> None:
        """Open the session, unless it was opened already."""
        self.session = Session.open(f"{engine}:{place / engine}", "s") if session is None else session
        self.files = HostFilesystem(place / "root", session=self.session, store=place / "store")
        self.tools = Toolset(
            self.session,
            self.files,
            tools=[*(tool for tool in DEFAULT_TOOLS if tool.name != "shell"), shell_tool(ShellOptions(sandbox="off"))],
        )
        self.store = place / "store"

    def call(self, name: str, call_id: str, **arguments: object) -> None:
        result = self.tools.call(name, arguments, call_id=call_id)
        assert result.success, result.message

    def calls(self) -> set[str]:
        return {call.call_id for call in self.session[ToolCall].all()}

    def check(self) -> None:
        """Check that the files are as the session says, that nothing is left over, and that no call is half done."""
        assert left_in_journals(self.store, after_interrupt=True) == []
        known = self.session[ExternalTrees].latest()
        assert known is not None
        assert self.files.tree().fingerprint == known.tree(self.files.filesystem_id).fingerprint
        causes = {record.cause for record in self.session.records if record.cause is not None}
        assert causes <= self.calls()


def standard_desk(place: Path, engine: str = "folder", *, session: Session | None = None) -> None:
    (place / "root").mkdir()
    desk = Desk(place, engine, session=session)
    desk.files.write("/file", "one\ntwo\n")
    desk.session.snapshot("empty")
    prepare(desk)
    desk.session.snapshot("start")
    desk.session.close()


def prepare(desk: Desk) -> None:
    """Prepare the files so that every kind of work changes something."""
    fs = desk.files
    with desk.session.transaction():
        for path in ("/new", "/moved", "/made"):
            if fs.exists(path):
                fs.delete(path, recursive=True)
        for path in ("/dir/a", "/dir/b", "/dir/sub/c"):
            fs.write(path, path)
        fs.write("/file", "one\ntwo\n")


def several(desk: Desk, name: str) -> None:
    with desk.session.transaction():
        desk.call("write_file", f"{name}a", path="new/first", content="first")
        desk.call("rm", f"{name}b", path="dir", recursive=True)


WORKS: dict[str, Callable[[Desk, str], object]] = {
    "write": lambda desk, name: desk.call("write_file", name, path="new/file", content="new\n" * 2000),
    "edit": lambda desk, name: desk.call("edit_file", name, path="file", old_string="two", new_string="three"),
    "rm": lambda desk, name: desk.call("rm", name, path="dir", recursive=True),
    "mv": lambda desk, name: desk.call("mv", name, source="dir", destination="moved"),
    "shell": lambda desk, name: desk.call("shell", name, command="rm -r dir; mkdir made; echo >> file"),
    "several": several,
    "direct": lambda desk, name: desk.files.move("/dir", "/moved"),
    "restore": lambda desk, name: desk.files.restore(desk.session[ExternalFsSnapshot].all()[0]),
    "rollback": lambda desk, name: desk.session.rollback("empty"),
    "rollback to a record": lambda desk, name: desk.session.rollback(3),
    "snapshot": lambda desk, name: desk.session.snapshot(name),
}
