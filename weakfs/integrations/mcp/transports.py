"""Running a server: over standard input and output, or over HTTP."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from io import FileIO
from threading import Thread
from typing import Any, TypeAlias

from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.stdio import stdio_server
from mcp.server.transport_security import TransportSecuritySettings
from starlette.applications import Starlette

AnyServer: TypeAlias = Server[Any]

LOOPBACK = ("127.0.0.1", "localhost", "::1")


async def serve_stdio(server: AnyServer) -> None:
    """Serve one client over standard input and output, until it closes them.

    Meanwhile everything else that is printed goes to standard error. If the task is cancelled, it ends at once.
    """
    options = server.create_initialization_options(NotificationOptions(resources_changed=True))
    with _stdin_through_pipe() as end:
        async with stdio_server() as (read, write):
            try:
                await server.run(read, write, options)
            finally:
                end()


@contextmanager
def _stdin_through_pipe() -> Generator[Callable[[], None]]:
    """Put a pipe in the place of standard input, and yield a function that ends it.

    The transport reads in a thread that it waits for, however long the client keeps standard input open.
    """
    original = os.dup(0)
    reader, writer = os.pipe()
    os.dup2(reader, 0)
    os.close(reader)
    pipe = FileIO(writer, "wb")
    Thread(target=_copy, args=(original, pipe), name="weakfs mcp input", daemon=True).start()
    try:
        yield pipe.close
    finally:
        pipe.close()
        os.dup2(original, 0)


def _copy(source: int, pipe: FileIO) -> None:
    # The pipe is closed meanwhile if nobody wants more.
    with suppress(OSError, ValueError), pipe:
        while data := os.read(source, 1 << 16):
            while data:
                data = data[pipe.write(data) or 0 :]


def http_app(server: AnyServer, *, host: str = "127.0.0.1", allowed_hosts: Sequence[str] = ()) -> Starlette:
    """Return the ASGI application of a server, with one endpoint, `/mcp`.

    Requests are refused whose `Host` header is neither this machine's nor in `allowed_hosts`, such as
    "files.example.com", or whose `Origin` is another's: pages in a browser cannot reach it by rebinding a name. There
    is no authentication. Raises `ValueError` for a `host` other than a loopback address without `allowed_hosts`.
    """
    if host not in LOOPBACK and not allowed_hosts:
        raise ValueError(
            f"cannot serve on {host!r}: everyone who can reach it could change the files; serve on 127.0.0.1, or name "
            f"the hosts that clients use in allowed_hosts and put a proxy with authentication before it"
        )
    names = [*(name if ":" not in name else f"[{name}]" for name in LOOPBACK), *allowed_hosts]
    security = TransportSecuritySettings(
        enable_dns_rebinding_protection=True,
        allowed_hosts=[*(f"{name}:*" for name in names), *allowed_hosts],
        allowed_origins=[
            f"{scheme}://{name}{end}" for name in names for end in (":*", "") for scheme in ("http", "https")
        ],
    )
    return server.streamable_http_app(host=host, transport_security=security)


async def serve_http(
    server: AnyServer, *, host: str = "127.0.0.1", port: int = 8000, allowed_hosts: Sequence[str] = ()
) -> None:
    """Serve any number of clients over HTTP, until the task is cancelled or the process is told to end."""
    import uvicorn

    app = http_app(server, host=host, allowed_hosts=allowed_hosts)
    # Nothing goes to standard output.
    config = uvicorn.Config(app, host=host, port=port, log_level="warning", access_log=False)
    await uvicorn.Server(config).serve()
