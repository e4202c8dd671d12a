"""The HTTP server of a live page: for this machine only, for those who have the token, and for no page but its own.

The page holds no data of the session: its script asks for them with the token, which it takes from the fragment of the
address, so that the token is in no request line, log, referrer or cookie. A page of another site can neither read nor
change anything: it has no token, its requests name their origin, and a name that was bound to this machine by DNS is
not among the hosts that are answered. No path is looked up in a file system.
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
# The longest body of a request, in bytes; the page sends a hundred.
MAX_BODY = 4096
# How many connections are open at a time, and after how many seconds a silent one is closed. If there are more, the
# one that has waited longest for a request is closed, so that silent clients do not shut the page out.
MAX_CONNECTIONS = 32
SILENCE = 30.0

JSON = "application/json"


class LiveServer(ThreadingHTTPServer):
    """Serves the live page of a session on the loopback interface; port 0 takes a free port.

    `url` is the address to open, with the token. `serve_forever` serves until `shutdown` or an exception ends it.
    """

    daemon_threads = True
    # Threads that wait for a silent client do not keep the server from ending.
    block_on_close = False
    # A second server on the port would be an error, not a way to receive half of the requests.
    allow_reuse_port = False

    def __init__(self, timeline: LiveTimeline, *, port: int = 0) -> None:
        self.timeline = timeline
        self.token = secrets.token_urlsafe(32)
        self._lock = Lock()
        # How many connections are open; those that wait for their client, the longest first; those that made way.
        self._open = 0
        self._waiting: dict[socket.socket, None] = {}
        self._closed: set[socket.socket] = set()
        super().__init__((LOOPBACK, port), _Handler)

    def server_bind(self) -> None:
        """Bind the socket, without asking the DNS for the name of the machine as `HTTPServer` does."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = LOOPBACK, int(self.socket.getsockname()[1])

    @property
    def url(self) -> str:
        """The address of the page, with the token."""
        return f"http://{LOOPBACK}:{self.server_port}/#{self.token}"

    @cached_property
    def hosts(self) -> frozenset[str]:
        """The names under which it answers."""
        return frozenset({f"{LOOPBACK}:{self.server_port}", f"localhost:{self.server_port}"})

    @cached_property
    def page(self) -> tuple[bytes, str]:
        """The page, and its content security policy."""
        text, policy = live_page()
        return text.encode(), policy

    def process_request(self, request: socket.socket | tuple[bytes, socket.socket], client_address: object) -> None:
        """Answer a connection in a thread of its own; if there are too many, a waiting one is closed first."""
        assert isinstance(request, socket.socket)
        with self._lock:
            if self._open >= MAX_CONNECTIONS:
                if not self._waiting:
                    self.shutdown_request(request)
                    return
                # Its thread ends as soon as it reads the end of the connection.
                self._close(next(iter(self._waiting)))
            self._open += 1
            self._waiting[request] = None
        super().process_request(request, client_address)

    def process_request_thread(
        self, request: socket.socket | tuple[bytes, socket.socket], client_address: object
    ) -> None:
        """Answer a connection."""
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
        """Note whether a connection waits for its client; others are never closed for a new one."""
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
        """Ignore a connection that its client broke off; the page asks again."""


class _Refused(Exception):
    """A request that is not answered."""

    def __init__(self, status: HTTPStatus, message: str) -> None:
        self.status = status
        super().__init__(message)


class _Handler(BaseHTTPRequestHandler):
    server: LiveServer  # pyright: ignore[reportIncompatibleVariableOverride]
    protocol_version = "HTTP/1.1"
    timeout = SILENCE

    def do_GET(self) -> None:
        """Answer the page, its data, or the version of the session."""
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
            # The page shows it; unanswered, it would look as if the server had ended.
            message = (
                f"internal error: {type(error).__name__}: {error}; reload the page, and report it if it happens again"
            )
            self._refuse(HTTPStatus.INTERNAL_SERVER_ERROR, message)
        finally:
            self.server.set_waiting(self.connection, True)

    def _check_source(self) -> None:
        """Refuse requests for another host, and those of other sites."""
        hosts, origins = (self.headers.get_all(name, []) for name in ("Host", "Origin"))
        if len(hosts) != 1 or hosts[0].lower() not in self.server.hosts:
            raise _Refused(HTTPStatus.MISDIRECTED_REQUEST, "this server has another name")
        if self.command == "POST" and not origins:
            raise _Refused(HTTPStatus.FORBIDDEN, "a change must name its origin")
        if any(origin.lower() != f"http://{hosts[0].lower()}" for origin in origins):
            raise _Refused(HTTPStatus.FORBIDDEN, "the request comes from another site")

    def _check_token(self) -> None:
        given = self.headers.get("Authorization", "").encode("utf-8", "surrogateescape")
        if not hmac.compare_digest(given, f"Bearer {self.server.token}".encode()):
            raise _Refused(HTTPStatus.UNAUTHORIZED, "the token is wrong")

    def _page(self) -> None:
        # It needs no token, since there is nothing of the session in it.
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
            raise _Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"a body has at most {MAX_BODY} bytes")
        return self.rfile.read(int(lengths[0]))

    def _refuse(self, status: HTTPStatus, message: str) -> None:
        # A body that was not read would be taken for the next request.
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
