"""`weakfs serve`: the timeline as a live page in a browser of this machine."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from threading import Thread

import click
from attrs import field

from weakfs import Session
from weakfs.class_decorators import frozen
from weakfs.cli.errors import DONE, Failure, as_failure
from weakfs.cli.options import expansion_option, registry_option, store_option
from weakfs.cli.output import Output
from weakfs.cli.signals import interrupts_deferred
from weakfs.session import Session as AnySession
from weakfs.session import SessionError


@click.command("serve")
@click.argument("file")
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
    page is that of "weakfs timeline --html", and it can undo, redo, revert and restore, each after a preview. If the
    session worked in a directory, give it as --root DIR.

    The address that is printed works on this machine only, and whoever has it may change the session. Ctrl-C ends the
    server.
    """
    from weakfs.cli.formatting import typed
    from weakfs.history.live import LiveServer, LiveTimeline
    from weakfs.storage.engines.urls import redacted

    place = _Place(file, root, store, registry, max_expansion)
    # Whatever is wrong with it is reported now.
    with as_failure(f"open {redacted(file)!r}"), place.opened(is_to_change=True):
        pass
    timeline = LiveTimeline(typed(redacted(file)), place.version, place.opened, place.changing, place.save)
    with as_failure(f"serve on port {port}"):
        server = LiveServer(timeline, port=port)
    # Not in this thread: an interrupt would leave a connection behind that was just accepted.
    serving = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.2}, daemon=True)
    with server:
        with interrupts_deferred():
            serving.start()
        try:
            Output(finish_unread=True).line(f"serving {server.url}")
            while serving.is_alive():
                # A signal that comes just before a wait is noticed when the wait ends.
                serving.join(0.5)
        except KeyboardInterrupt:
            # The usual way to end it; a change that is under way is finished first.
            server.shutdown()
            timeline.finish()
            return DONE
    raise Failure(
        f"the server at {server.url.partition('#')[0]} ended by itself; see the error above, and start it again"
    )


@frozen
class _Place:
    """A session file or a session in storage, opened anew for each request."""

    file: str
    root: str | None
    store: str | None
    registry: str | None
    max_expansion: float | None
    # The version that was there before the session was opened to be changed.
    _seen: list[str] = field(factory=list[str], init=False)

    def version(self) -> str:
        """Return a string that differs after each change: the newest frame, or the state of the file."""
        from weakfs.cli.sessions import Location, is_location
        from weakfs.session.durable.opening import stream_of
        from weakfs.storage import open_event_store

        if not is_location(self.file):
            found = os.stat(self.file)
            return f"{found.st_ino}-{found.st_size}-{found.st_mtime_ns}"
        location = Location.of(self.file)
        # A store that is opened could be created.
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
        """Save a session file that was changed after record `before`; storage has the change already."""
        from weakfs.cli.commands.sessions.undo import save_change
        from weakfs.cli.sessions import is_location

        if not is_location(self.file) and self._seen != [self.version()]:
            session.rollback(before)
            raise SessionError("cannot save the session: another program saved it meanwhile; look at it again")
        save_change(session, self.file, before)
