"""Running a server: over standard input and output, or over HTTP."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from io import FileIO
from threading import Thread
from typing import Any, TypeAlias, cast

import anyio
import mcp_types as types
from anyio.streams.memory import MemoryObjectSendStream
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.stdio import stdio_server
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.message import SessionMessage
from pydantic import ValidationError
from starlette.applications import Starlette

AnyServer: TypeAlias = Server[Any]

LOOPBACK = ("127.0.0.1", "localhost", "::1")


async def serve_stdio(server: AnyServer) -> None:
    """Serve one client over standard input and output, until it closes them.

    Meanwhile all other output to standard output goes to standard error. If the task is cancelled, the server ends
    immediately.
    """
    options = server.create_initialization_options(NotificationOptions(resources_changed=True))
    with _stdin_through_pipe() as end:
        async with stdio_server() as (read, write), anyio.create_task_group() as tasks:
            messages, valid = anyio.create_memory_object_stream[Any]()
            tasks.start_soon(_pass_valid, read, messages, write)
            try:
                await server.run(valid, write, options)
            finally:
                end()
                tasks.cancel_scope.cancel()


async def _pass_valid(read: Any, messages: MemoryObjectSendStream[Any], write: Any) -> None:
    """Pass messages on, and answer those that cannot be read, so that their senders do not wait forever."""
    async with messages:
        async for item in read:
            await (write.send(_refusal(item)) if isinstance(item, Exception) else messages.send(item))


def _refusal(problem: Exception) -> SessionMessage:
    """Return the answer to a line that is not a valid message, with its id if that can be found."""
    errors = problem.errors(include_url=False) if isinstance(problem, ValidationError) else []
    is_json = not any(error["type"] == "json_invalid" for error in errors)
    # If a field is missing, the problem's input is the whole message.
    found = next((error["input"] for error in errors if isinstance(error["input"], dict)), None)
    if errors and not is_json:
        with suppress(RecursionError, ValueError):
            # Python does not parse integers with thousands of digits.
            found = json.loads(errors[0]["input"], parse_int=lambda number: int(number[:20]))
    request_id = cast("dict[str, object]", found).get("id") if isinstance(found, dict) else None
    error = types.ErrorData(
        code=types.INVALID_REQUEST if is_json else types.PARSE_ERROR,
        message="the line is not a JSON-RPC 2.0 message in valid Unicode; send one without lone surrogates",
    )
    known = request_id if isinstance(request_id, str | int) and not isinstance(request_id, bool) else None
    return SessionMessage(types.JSONRPCError(jsonrpc="2.0", id=known, error=error))


@contextmanager
def _stdin_through_pipe() -> Generator[Callable[[], None]]:
    """Replace standard input with a pipe, and yield a function that closes the pipe.

    The transport waits for a thread that reads standard input, and the client may keep that open.
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
    # The pipe may be closed meanwhile if no more input is wanted.
    with suppress(OSError, ValueError), pipe:
        while data := os.read(source, 1 << 16):
            while data:
                data = data[pipe.write(data) or 0 :]


def http_app(server: AnyServer, *, host: str = "127.0.0.1", allowed_hosts: Sequence[str] = ()) -> Starlette:
    """Return the ASGI application of a server, with one endpoint, `/mcp`.

    To prevent DNS rebinding by pages in a browser, a request is refused if its `Host` header names neither this machine
    nor one of `allowed_hosts`, such as "files.example.com", or if its `Origin` is a different host. There is no
    authentication. Raises `ValueError` if `host` is not a loopback address and `allowed_hosts` is not given.
    """
    if host not in LOOPBACK and not allowed_hosts:
        raise ValueError(
            f"cannot serve on {host!r}: anyone who can reach it could change the files; serve on 127.0.0.1, or name "
            f"the hosts that clients use in allowed_hosts and put a proxy with authentication in front of it"
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
    server: AnyServer,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    allowed_hosts: Sequence[str] = (),
    on_listening: Callable[[str], object] | None = None,
) -> None:
    """Serve any number of clients over HTTP, until the task is cancelled or the process gets a termination signal.

    Port 0 means any free port. `on_listening` is called with the URL once clients can connect. Raises `OSError` if the
    address cannot be used.
    """
    import uvicorn

    app = http_app(server, host=host, allowed_hosts=allowed_hosts)
    # Log nothing to standard output.
    config = uvicorn.Config(app, log_level="warning", access_log=False)
    with socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET) as listening:
        if on_listening is not None:
            shown = f"[{host}]" if ":" in host else host
            on_listening(f"http://{shown}:{listening.getsockname()[1]}/mcp")
        await uvicorn.Server(config).serve([listening])
