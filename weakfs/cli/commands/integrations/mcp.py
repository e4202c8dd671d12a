"""`weakfs mcp`: serve a directory or a session to clients of the Model Context Protocol."""

from __future__ import annotations

import os
from collections.abc import Coroutine, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click
from attrs import frozen

from weakfs.cli.errors import DONE, Failure, as_failure, usage
from weakfs.cli.options import EXIT_STATUSES, store_option

if TYPE_CHECKING:
    from weakfs import Session
    from weakfs.filesystem import Filesystem
    from weakfs.integrations.mcp.transports import AnyServer


@frozen(kw_only=True)
class ServeOptions:
    """The options that select what is served."""

    directories: tuple[str, ...]
    location: str | None
    profile: str
    read_only: bool
    history_tools: bool
    store: str | None
    is_shared: bool


@click.command("mcp", epilog=EXIT_STATUSES)
@click.argument("directories", metavar="[DIR]...", nargs=-1, type=click.Path())
@click.option(
    "--session", "location", metavar="LOCATION", help="Store the session there, such as sqlite:sessions.db#ID."
)
@click.option(
    "--profile",
    type=click.Choice(["weakfs", "filesystem"]),
    default="weakfs",
    show_default=True,
    help="Which tools to serve: those of weakfs, or those of @modelcontextprotocol/server-filesystem.",
)
@click.option("--read-only", is_flag=True, help="Offer only tools that change nothing.")
@click.option(
    "--history-tools/--no-history-tools",
    default=True,
    show_default=True,
    help="Whether to offer timeline, undo, redo, revert, restore and snapshot.",
)
@click.option(
    "--http",
    "port",
    metavar="PORT",
    type=click.IntRange(0, 65535),
    help="Serve HTTP instead of stdio; 0 for a free port.",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="The address for HTTP.")
@click.option(
    "--allow-host", "allowed_hosts", metavar="NAME", multiple=True, help="A host name that HTTP clients may use."
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

    Speaks the Model Context Protocol. Every tool call is recorded, and undone if it fails or is cancelled. With
    --session, the history is kept, so that "weakfs timeline" and "weakfs undo" work while the server runs and
    afterwards; otherwise the history is lost when the server ends. A DIR is changed in place.

    With --profile filesystem, the tools are those of the reference filesystem server, and several DIRs may be given;
    the roots that an older client sends replace them. HTTP is served at the printed address, without authentication,
    and only to this machine unless --host and --allow-host say otherwise.
    """
    import asyncio

    options = ServeOptions(
        directories=directories,
        location=location,
        profile=profile,
        read_only=read_only,
        history_tools=history_tools,
        store=store,
        is_shared=port is not None,
    )
    _check(options)
    try:
        from weakfs.cli.output import Output
        from weakfs.integrations.mcp import serve_http, serve_stdio
    except ModuleNotFoundError as error:
        raise Failure(str(error)) from error
    with _session(location) as session:
        server = _server(options, session)
        if port is None:
            _run(serve_stdio(server))
        else:
            with as_failure(f"serve on {host!r}, port {port}"):
                # uvicorn handles signals itself.
                asyncio.run(
                    serve_http(
                        server,
                        host=host,
                        port=port,
                        allowed_hosts=allowed_hosts,
                        on_listening=lambda url: Output(finish_unread=True).line(f"serving {url}"),
                    )
                )
    return DONE


def _run(serving: Coroutine[object, object, None]) -> None:
    """Serve until a termination signal cancels the main task; a signal handler that raises could interrupt any task."""
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


def _check(options: ServeOptions) -> None:
    if options.profile == "filesystem":
        return
    if len(options.directories) > 1:
        raise usage(
            f"cannot serve {len(options.directories)} directories with --profile weakfs: its paths have one root; name "
            f"one, or use --profile filesystem"
        )
    if not options.directories and options.location is None:
        raise usage("there is nothing to serve; name a directory, or a session with --session LOCATION")


@contextmanager
def _session(location: str | None) -> Generator[Session]:
    """Open or create the session in storage, or make one in memory; close it at the end."""
    from weakfs import Session
    from weakfs.cli.sessions import Location, is_location, opened_or_created

    if location is None:
        yield Session()
        return
    if os.path.isfile(location) and not is_location(location):
        raise Failure(
            f"cannot serve the saved session {location!r}: it would have to be saved again after every call; copy it "
            f"into storage: weakfs import {location} FOLDER"
        )
    with opened_or_created(Location.of(location)) as session:
        yield session


def _server(options: ServeOptions, session: Session) -> AnyServer:
    from weakfs.integrations.mcp import SESSION_TOOLS, filesystem_server, toolset_server
    from weakfs.tools import DEFAULT_TOOLS, Toolset

    if options.profile == "filesystem":
        with as_failure("serve the directories"):
            return filesystem_server(
                options.directories,
                session=session,
                history_tools=options.history_tools,
                read_only=options.read_only,
                # Each client has its own roots.
                use_roots=not options.is_shared,
                store=options.store,
            )
    tools = (*DEFAULT_TOOLS, *(SESSION_TOOLS if options.history_tools else ()))
    chosen = [tool for tool in tools if tool.read_only or not options.read_only]
    return toolset_server(Toolset(session, _files(options, session), tools=chosen, provider="mcp"))


def _files(options: ServeOptions, session: Session) -> Filesystem:
    from weakfs.backends import InMemoryFilesystem
    from weakfs.cli.directories import open_directory
    from weakfs.filesystem import Limits
    from weakfs.reducers.external_trees import external_trees

    known = [*external_trees(session).trees]
    if options.directories:
        return open_directory(
            options.directories[0],
            store=options.store,
            session=session,
            read_only=options.read_only,
            filesystem_id=known[0] if len(known) == 1 else None,
        )
    if known:
        raise usage(
            f"cannot serve {options.location!r} without its directory: the session worked in {', '.join(known)}; "
            "name DIR too"
        )
    return InMemoryFilesystem(session, limits=Limits(), read_only=options.read_only)
