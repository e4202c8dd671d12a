"""`weakfs mcp`: a directory or a session for clients of the Model Context Protocol."""

from __future__ import annotations

import os
from collections.abc import Coroutine, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click
from attrs import frozen

from weakfs.cli.errors import DONE, USAGE, Failure, as_failure
from weakfs.cli.options import EXIT_STATUSES, store_option

if TYPE_CHECKING:
    from weakfs import HostFilesystem, Session
    from weakfs.filesystem import Filesystem
    from weakfs.integrations.mcp.transports import AnyServer


@frozen(kw_only=True)
class Asked:
    """The options that say what is served."""

    directories: tuple[str, ...]
    location: str | None
    profile: str
    read_only: bool
    history_tools: bool
    store: str | None
    is_shared: bool


@click.command("mcp", epilog=EXIT_STATUSES)
@click.argument("directories", metavar="[DIR]...", nargs=-1, type=click.Path())
@click.option("--session", "location", metavar="LOCATION", help="Keep the session there, as in sqlite:sessions.db#ID.")
@click.option(
    "--profile",
    type=click.Choice(["weakfs", "filesystem"]),
    default="weakfs",
    show_default=True,
    help="The tools: those of weakfs, or those of @modelcontextprotocol/server-filesystem.",
)
@click.option("--read-only", is_flag=True, help="Offer only tools that change nothing.")
@click.option(
    "--history-tools/--no-history-tools",
    default=True,
    show_default=True,
    help="Whether to offer timeline, undo, redo, revert, restore and snapshot.",
)
@click.option("--http", "port", metavar="PORT", type=click.IntRange(0, 65535), help="Serve HTTP instead of stdio.")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address for HTTP.")
@click.option(
    "--allow-host", "allowed_hosts", metavar="NAME", multiple=True, help="A host name by which clients reach HTTP."
)
@store_option
def mcp_command(
    directories: tuple[str, ...],
    location: str | None,
    profile: str,
    read_only: bool,
    history_tools: bool,
    port: int | None,
    host: str,
    allowed_hosts: tuple[str, ...],
    store: str | None,
) -> int:
    """Serve a directory or a session to an MCP client.

    Speaks the Model Context Protocol. Every call of a tool is recorded, and undone if it fails or is cancelled. With
    --session, the history is kept, so that "weakfs timeline" and "weakfs undo" can be used while the server runs and
    afterwards; otherwise it ends with the server. A DIR is changed in place.

    With --profile filesystem, the tools are those of the reference filesystem server, and several DIRs may be given;
    an older client's roots replace them. HTTP is served at /mcp, without authentication, for this machine only unless
    --host and --allow-host say otherwise.
    """
    import asyncio

    asked = Asked(
        directories=directories,
        location=location,
        profile=profile,
        read_only=read_only,
        history_tools=history_tools,
        store=store,
        is_shared=port is not None,
    )
    _check(asked)
    try:
        from weakfs.integrations.mcp import serve_http, serve_stdio
    except ModuleNotFoundError as error:
        raise Failure(str(error)) from error
    with _session(location) as session:
        server = _server(asked, session)
        if port is None:
            _run(serve_stdio(server))
        else:
            with as_failure(f"serve on {host!r}"):
                # It handles signals itself.
                asyncio.run(serve_http(server, host=host, port=port, allowed_hosts=allowed_hosts))
    return DONE


def _run(serving: Coroutine[object, object, None]) -> None:
    """Serve until a termination signal cancels it: an exception that a signal raises could hit any task."""
    import asyncio

    from weakfs.cli.signals import TERMINATION_SIGNALS

    async def serve() -> None:
        task = asyncio.current_task()
        assert task is not None
        for number in TERMINATION_SIGNALS:
            asyncio.get_running_loop().add_signal_handler(number, task.cancel)
        await serving

    try:
        asyncio.run(serve())
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None


def _check(asked: Asked) -> None:
    if asked.profile == "filesystem":
        return
    if len(asked.directories) > 1:
        raise Failure(
            f"cannot serve {len(asked.directories)} directories with --profile weakfs: its paths have one root; name "
            f"one, or use --profile filesystem",
            status=USAGE,
        )
    if not asked.directories and asked.location is None:
        raise Failure("there is nothing to serve; name a directory, or a session with --session LOCATION", status=USAGE)


@contextmanager
def _session(location: str | None) -> Generator[Session]:
    """Open the session, create it, or make one in memory; close it at the end."""
    from weakfs import Session
    from weakfs.cli.sessions import Location, is_location
    from weakfs.storage.engines.urls import redacted

    if location is None:
        yield Session()
        return
    if os.path.isfile(location) and not is_location(location):
        raise Failure(
            f"cannot serve the saved session {location!r}: it would have to be saved again after every call; copy it "
            f"into storage: weakfs import {location} FOLDER"
        )
    place = Location.of(location)
    with as_failure(f"open {redacted(place.where)!r}"):
        # Other processes, such as `weakfs undo`, may change it meanwhile.
        session = Session.open(place.where, place.session_id, on_conflict="merge")
    with session:
        yield session


def _server(asked: Asked, session: Session) -> AnyServer:
    from weakfs.integrations.mcp import SESSION_TOOLS, filesystem_server, toolset_server
    from weakfs.tools import DEFAULT_TOOLS, Toolset

    if asked.profile == "filesystem":
        with as_failure("serve the directories"):
            return filesystem_server(
                asked.directories,
                session=session,
                history_tools=asked.history_tools,
                read_only=asked.read_only,
                # The roots of one client are not those of another.
                use_roots=not asked.is_shared,
                store=asked.store,
            )
    tools = (*DEFAULT_TOOLS, *(SESSION_TOOLS if asked.history_tools else ()))
    chosen = [tool for tool in tools if tool.read_only or not asked.read_only]
    return toolset_server(Toolset(session, _files(asked, session), tools=chosen, provider="mcp"))


def _files(asked: Asked, session: Session) -> Filesystem:
    from weakfs.backends import InMemoryFilesystem
    from weakfs.filesystem import Limits
    from weakfs.reducers import ExternalTrees

    known = [*(session[ExternalTrees].latest() or ExternalTrees()).trees]
    if asked.directories:
        return _directory(asked, session, known)
    if known:
        raise Failure(
            f"cannot serve {asked.location!r} without its directory: it worked in {', '.join(known)}; name DIR too",
            status=USAGE,
        )
    return InMemoryFilesystem(session, limits=Limits(), read_only=asked.read_only)


def _directory(asked: Asked, session: Session, known: list[str]) -> HostFilesystem:
    from weakfs.cli.directories import open_directory

    return open_directory(
        asked.directories[0],
        store=asked.store,
        session=session,
        read_only=asked.read_only,
        filesystem_id=known[0] if len(known) == 1 else None,
    )
