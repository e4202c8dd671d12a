"""`weakfs serve`: show the timeline as a live page in a browser on this machine."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from threading import Thread
from typing import TYPE_CHECKING

import click
from attrs import field

from weakfs.class_decorators import frozen
from weakfs.cli.errors import DONE, Failure, as_failure
from weakfs.cli.options import expansion_option, file_argument, registry_option, store_option
from weakfs.cli.output import Output
from weakfs.cli.signals import interrupts_deferred
from weakfs.session import SessionError

if TYPE_CHECKING:
    from weakfs import Session
    from weakfs.session import Session as AnySession


@click.command("serve")
@file_argument
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="The port.  [default: a free one]")
@click.option("--root", metavar="DIR", type=click.Path(), help="The directory that the session worked in.")
@store_option
@registry_option
@expansion_option
def serve_command(
    file: str, port: int, root: str | None, store: str | None, registry: str | None, max_expansion: float | None
) -> int:
    """Show the timeline of a session in a browser, live.

    FILE is a saved session, or a location such as sqlite:sessions.db#ID; other programs may change it meanwhile. The
    page is that of "weakfs timeline --html", and it can also undo, redo, revert and restore, each after a preview. If
    the session worked in a directory, give it as --root DIR.

    The printed address works on this machine only. Anyone who has it can change the session. Ctrl-C stops the server.
    """
    from weakfs.cli.formatting import typed
    from weakfs.history.live import LiveServer, LiveTimeline
    from weakfs.storage.engines.urls import redacted

    source = _SessionSource(file, root, store, registry, max_expansion)
    # Opened once now, so that errors are reported before the server starts.
    with as_failure(f"open {redacted(file)!r}"), source.opened(is_to_change=True):
        pass
    timeline = LiveTimeline(typed(redacted(file)), source.version, source.opened, source.changing, source.save)
    with as_failure(f"serve on port {port}"):
        server = LiveServer(timeline, port=port)
    # The server runs in another thread: in this one, an interrupt could leave open a connection that was just accepted.
    serving = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.2}, daemon=True)
    with server:
        with interrupts_deferred():
            serving.start()
        try:
            Output(finish_unread=True).line(f"serving {server.url}")
            while serving.is_alive():
                # A signal that arrives just before a wait is noticed when the wait ends.
                serving.join(0.5)
        except KeyboardInterrupt:
            # The usual way to stop the server; a change in progress is finished first.
            server.shutdown()
            timeline.finish()
            return DONE
    raise Failure(
        f"the server at {server.url.partition('#')[0]} stopped unexpectedly; see the error above, and start it again"
    )


@frozen
class _SessionSource:
    """A session file or a session in storage, reopened for each request."""

    file: str
    root: str | None
    store: str | None
    registry: str | None
    max_expansion: float | None
    # The version of the file before the session was opened for a change.
    _seen: list[str] = field(factory=list[str], init=False)

    def version(self) -> str:
        """Return a string that is different after each change: the newest frame, or the state of the file."""
        from weakfs.cli.sessions import Location, file_version, is_location
        from weakfs.session.durable.open_session import stream_of
        from weakfs.storage import open_event_store

        if not is_location(self.file):
            return file_version(self.file) or "none"
        location = Location.of(self.file)
        # Opening the store could create it.
        location.check()
        opened = open_event_store(location.where)
        try:
            stream = stream_of(opened, location.session_id)
            return "0" if stream is None else str(opened.head(stream))
        finally:
            opened.close()

    @contextmanager
    def opened(self, *, is_to_change: bool = False) -> Generator[Session]:
        """Open the session, and close it at the end."""
        from weakfs.cli.sessions import load

        try:
            session = load(self.file, self.registry, self.max_expansion, is_to_change=is_to_change)
        except Failure as error:
            raise SessionError(str(error)) from error
        with session:
            yield session

    @contextmanager
    def changing(self) -> Generator[Session]:
        """Open the session with its directory."""
        from weakfs.cli.commands.sessions.undo import open_root

        self._seen[:] = [self.version()]
        with self.opened(is_to_change=True) as session:
            try:
                open_root(session, self.file, self.root, self.store)
            except Failure as error:
                raise SessionError(str(error)) from error
            yield session

    def save(self, session: AnySession, before: int) -> None:
        """Save a session file that changed after record `before`; a session in storage is saved already."""
        from weakfs.cli.commands.sessions.undo import save_change
        from weakfs.cli.sessions import is_location

        if not is_location(self.file) and self._seen != [self.version()]:
            session.rollback(before)
            raise SessionError(
                "cannot save the session: another program saved it meanwhile; reload the page and try again"
            )
        save_change(session, self.file, before)
