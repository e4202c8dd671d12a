"""A server that imitates Google Cloud Storage: `gcs_server.py PORT PORT_OF_PROGRAM PROGRAM`; run by `servers.py`.

PROGRAM is fake-gcs-server, which stores the objects and their generations. It supports the XML API, which obstore uses,
except for the request to store an object, so this server uses the JSON API for it. Everything else is passed on.
"""

from __future__ import annotations

import json
import subprocess
import sys
from http.client import HTTPConnection, HTTPResponse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import quote, unquote

BOUNDARY = "--a-boundary-that-no-content-has--"
PASSED_ON = ("Range", "If-None-Match", "If-Match", "Content-Type")


class Handler(BaseHTTPRequestHandler):
    """Passes requests on to the program at `port`."""

    protocol_version = "HTTP/1.1"
    port = 0

    def do_GET(self) -> None:
        self._answer(self._ask(self.command, self.path, self._body()))

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_DELETE(self) -> None:
        self.do_GET()

    def do_POST(self) -> None:
        self.do_GET()

    def do_PUT(self) -> None:
        bucket, _, key = self.path.partition("?")[0].lstrip("/").partition("/")
        content = self._body()
        if not key:
            self._answer(self._ask("POST", "/storage/v1/b?project=test", json.dumps({"name": bucket}).encode()))
            return
        condition = self.headers.get("x-goog-if-generation-match")
        head = json.dumps({"name": unquote(key)}).encode()
        mark = f"--{BOUNDARY}".encode()
        parts = (mark, b"Content-Type: application/json", b"", head, mark, b"Content-Type: text/plain", b"", content)
        path = f"/upload/storage/v1/b/{bucket}/o?uploadType=multipart&name={quote(unquote(key), safe='')}"
        done = self._ask(
            "POST",
            path + (f"&ifGenerationMatch={condition}" if condition is not None else ""),
            b"\r\n".join((*parts, mark + b"--")),
            kind=f"multipart/related; boundary={BOUNDARY}",
        )
        status, _, body = done
        headers: dict[str, str] = {}
        if status == 200:
            stored = json.loads(body)
            headers = {"ETag": f'"{stored["etag"]}"', "x-goog-generation": stored["generation"]}
        self._answer((status, headers, b"" if status == 200 else body))

    def _body(self) -> bytes:
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def _ask(self, method: str, path: str, body: bytes, *, kind: str = "") -> tuple[int, dict[str, str], bytes]:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            headers = {name: self.headers[name] for name in PASSED_ON if name in self.headers}
            connection.request(method, path, body, {**headers, "Content-Type": kind or "application/json"})
            found: HTTPResponse = connection.getresponse()
            return found.status, dict(found.getheaders()), found.read()
        finally:
            connection.close()

    def _answer(self, done: tuple[int, dict[str, str], bytes]) -> None:
        status, headers, body = done
        self.send_response(status)
        for name, value in headers.items():
            if name.lower() not in ("content-length", "date", "transfer-encoding", "connection"):
                self.send_header(name, value)
        size = headers.get("Content-Length", "0") if self.command == "HEAD" else str(len(body))
        self.send_header("Content-Length", size)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


def main() -> None:
    port, Handler.port, program = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    with ThreadingHTTPServer(("127.0.0.1", port), Handler) as server:
        address = f"127.0.0.1:{Handler.port}"
        options = ["-backend", "memory", "-scheme", "http", "-host", "127.0.0.1", "-log-level", "error"]
        command = ["setpriv", "--pdeathsig", "KILL", program, *options, "-port", str(Handler.port)]
        with subprocess.Popen([*command, "-public-host", address]) as process:
            try:
                server.serve_forever()
            finally:
                process.kill()


if __name__ == "__main__":
    main()
