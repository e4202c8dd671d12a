"""The HTTP server of a live page: the data is only for the page itself, on this machine and with the token.

The page itself contains no data of the session. Its script requests the data with the token, which it takes from the
fragment of the address, so that the token is never in a request line, log, referrer or cookie. A page of another site
can neither read nor change anything: it has no token, its requests name their origin, and the server does not answer to
other host names, which prevents DNS rebinding. No path is looked up on the disk.
"""

from __future__ import annotations

import hmac
import json
import secrets
import socket
import socketserver
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock

from weakfs.history.live.timeline import LiveTimeline, Wanted
from weakfs.history.page.document import live_page
from weakfs.session import SessionError

LOOPBACK = "127.0.0.1"
# The maximum size of a request body, in bytes; the page sends about a hundred.
MAX_BODY = 4096
# The maximum number of open connections, and the seconds after which a silent one is closed. If there are too many, the
# connection that has waited longest for a request is closed, so that silent clients cannot lock out the page.
MAX_CONNECTIONS = 32
SILENCE = 30.0

JSON = "application/json"


class LiveServer(ThreadingHTTPServer):
    """Serves the live page of a session on the loopback interface; port 0 means any free port.

    `url` is the address to open, with the token. `serve_forever` serves until `shutdown` or an exception ends it.
    """

    daemon_threads = True
    # Threads that wait for a silent client do not prevent the server from stopping.
    block_on_close = False
    # A second server on the same port must fail, instead of receiving half of the requests.
    allow_reuse_port = False

    def __init__(self, timeline: LiveTimeline, *, port: int = 0) -> None:
        self.timeline = timeline
        self.token = secrets.token_urlsafe(32)
        self._lock = Lock()
        # The number of open connections; those that wait for their client, longest first; those closed for new ones.
        self._open = 0
        self._waiting: dict[socket.socket, None] = {}
        self._closed: set[socket.socket] = set()
        super().__init__((LOOPBACK, port), _Handler)

    def server_bind(self) -> None:
        """Bind the socket, without looking up the machine's name in the DNS as `HTTPServer` does."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = LOOPBACK, int(self.socket.getsockname()[1])

    @property
    def url(self) -> str:
        """The address of the page, with the token."""
        return f"http://{LOOPBACK}:{self.server_port}/#{self.token}"

    @cached_property
    def hosts(self) -> frozenset[str]:
        """The host names to which the server answers."""
        return frozenset({f"{LOOPBACK}:{self.server_port}", f"localhost:{self.server_port}"})

    @cached_property
    def page(self) -> tuple[bytes, str]:
        """The page and its content security policy."""
        text, policy = live_page()
        return text.encode(), policy

    def process_request(self, request: socket.socket | tuple[bytes, socket.socket], client_address: object) -> None:
        """Handle a connection in its own thread; if there are too many, close a waiting one first."""
        assert isinstance(request, socket.socket)
        with self._lock:
            if self._open >= MAX_CONNECTIONS:
                if not self._waiting:
                    self.shutdown_request(request)
                    return
                # The thread of the closed connection ends as soon as it reads the end of the connection.
                self._close(next(iter(self._waiting)))
            self._open += 1
            self._waiting[request] = None
        super().process_request(request, client_address)

    def process_request_thread(
        self, request: socket.socket | tuple[bytes, socket.socket], client_address: object
    ) -> None:
        """Handle a connection."""
        assert isinstance(request, socket.socket)
        try:
            super().process_request_thread(request, client_address)
        finally:
            with self._lock:
                if request in self._closed:
                    self._closed.remove(request)
                else:
                    self._open -= 1
                self._waiting.pop(request, None)

    def set_waiting(self, request: socket.socket, is_waiting: bool) -> None:
        """Note whether a connection waits for its client; only waiting ones may be closed for a new one."""
        with self._lock:
            self._waiting.pop(request, None)
            if is_waiting and request not in self._closed:
                self._waiting[request] = None

    def _close(self, request: socket.socket) -> None:
        del self._waiting[request]
        self._closed.add(request)
        self._open -= 1
        with suppress(OSError):
            request.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore a connection that its client aborted; the page asks again."""


class _Refused(Exception):
    """A request is refused, with this status and message."""

    def __init__(self, status: HTTPStatus, message: str) -> None:
        self.status = status
        super().__init__(message)


class _Handler(BaseHTTPRequestHandler):
    server: LiveServer  # pyright: ignore[reportIncompatibleVariableOverride]
    protocol_version = "HTTP/1.1"
    timeout = SILENCE

    def do_GET(self) -> None:
        """Return the page, its data, or the version of the session."""
        self._answer({"/": self._page, "/favicon.ico": self._nothing, "/version": self._version, "/data": self._data})

    def do_POST(self) -> None:
        """Preview or make a change."""
        self._answer({"/take-back": self._take_back})

    def version_string(self) -> str:
        """Return the name of the server, without versions."""
        return "weakfs"

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing: each open page asks every second."""

    def _answer(self, routes: dict[str, Callable[[], None]]) -> None:
        self.server.set_waiting(self.connection, self.command == "POST")
        try:
            self._check_source()
            route = routes.get(self.path)
            if route is None:
                raise _Refused(HTTPStatus.NOT_FOUND, "there is no such page")
            route()
        except _Refused as error:
            self._refuse(error.status, str(error))
        except (SessionError, OSError, ValueError) as error:
            self._refuse(HTTPStatus.INTERNAL_SERVER_ERROR, str(error))
        except Exception as error:
            # The page shows this message; without an answer it would look as if the server had stopped.
            message = (
                f"internal error: {type(error).__name__}: {error}; reload the page, and report it if it happens again"
            )
            self._refuse(HTTPStatus.INTERNAL_SERVER_ERROR, message)
        finally:
            self.server.set_waiting(self.connection, True)

    def _check_source(self) -> None:
        """Refuse requests to other host names and from other sites."""
        hosts, origins = (self.headers.get_all(name, []) for name in ("Host", "Origin"))
        if len(hosts) != 1 or hosts[0].lower() not in self.server.hosts:
            raise _Refused(HTTPStatus.MISDIRECTED_REQUEST, "this server has another host name")
        if self.command == "POST" and not origins:
            raise _Refused(HTTPStatus.FORBIDDEN, "a change must name its origin")
        if any(origin.lower() != f"http://{hosts[0].lower()}" for origin in origins):
            raise _Refused(HTTPStatus.FORBIDDEN, "the request comes from another site")

    def _check_token(self) -> None:
        given = self.headers.get("Authorization", "").encode("utf-8", "surrogateescape")
        if not hmac.compare_digest(given, f"Bearer {self.server.token}".encode()):
            raise _Refused(HTTPStatus.UNAUTHORIZED, "the token is wrong")

    def _page(self) -> None:
        # The page needs no token, because it contains no data of the session.
        text, policy = self.server.page
        self._send(HTTPStatus.OK, text, "text/html; charset=utf-8", policy=f"{policy}; frame-ancestors 'none'")

    def _nothing(self) -> None:
        self._send(HTTPStatus.NO_CONTENT, b"", "image/x-icon")

    def _version(self) -> None:
        self._check_token()
        self._send(HTTPStatus.OK, json.dumps(self.server.timeline.version()).encode(), JSON)

    def _data(self) -> None:
        self._check_token()
        self._send(HTTPStatus.OK, self.server.timeline.data(), JSON)

    def _take_back(self) -> None:
        self._check_token()
        body = self._body()
        self.server.set_waiting(self.connection, False)
        try:
            wanted = Wanted.of(json.loads(body))
        except (ValueError, RecursionError) as error:
            raise _Refused(HTTPStatus.BAD_REQUEST, f"cannot read the request: {error}") from error
        self._send(HTTPStatus.OK, json.dumps(self.server.timeline.take_back(wanted)).encode(), JSON)

    def _body(self) -> bytes:
        if self.headers.get_content_type() != JSON:
            raise _Refused(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"a body must be {JSON}")
        lengths = self.headers.get_all("Content-Length", [])
        if (
            "Transfer-Encoding" in self.headers
            or len(lengths) != 1
            or not (lengths[0].isascii() and lengths[0].isdigit())
        ):
            raise _Refused(HTTPStatus.LENGTH_REQUIRED, "a body must have a length")
        if len(lengths[0]) > len(str(MAX_BODY)) or int(lengths[0]) > MAX_BODY:
            raise _Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"a body may have at most {MAX_BODY} bytes")
        return self.rfile.read(int(lengths[0]))

    def _refuse(self, status: HTTPStatus, message: str) -> None:
        # The connection is closed, because an unread body would be taken for the next request.
        self.close_connection = True
        self._send(status, json.dumps({"error": message}).encode(), JSON)

    def _send(self, status: HTTPStatus, body: bytes, kind: str, *, policy: str = "default-src 'none'") -> None:
        self.send_response(status)
        headers = {
            "Content-Type": kind,
            "Content-Length": str(len(body)),
            "Content-Security-Policy": policy,
            "Cross-Origin-Resource-Policy": "same-origin",
            "Cross-Origin-Opener-Policy": "same-origin",
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "no-referrer",
            "Cache-Control": "no-store",
        }
        if self.close_connection:
            headers["Connection"] = "close"
        if status == HTTPStatus.NO_CONTENT:
            del headers["Content-Length"], headers["Content-Type"]
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)
