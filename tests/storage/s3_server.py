"""A server that imitates S3, at the given port; started by `tests.storage.servers`.

It answers one request at a time: moto compares a version and then stores the object, and another thread could store its
own in between. On demand, requests fail.
"""

from __future__ import annotations

import json
import socket
import sys
import time
from collections.abc import Callable, Iterable
from io import BytesIO
from random import Random
from threading import Lock, Thread
from typing import Any

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import run_simple

Application = Callable[[dict[str, Any], Any], Iterable[bytes]]

LOCK = Lock()
MOTO = DomainDispatcherApplication(create_backend_app)


def application(environ: Any, start_response: Any) -> Iterable[bytes]:
    with LOCK:
        answer: Iterable[bytes] = MOTO(environ, start_response)
        return answer


class Faults:
    """An application that fails at random, as a request to `/faults` demands: see `s3_faults.set_faults`."""

    def __init__(self, application: Application) -> None:
        self._application = application
        self._lock = Lock()
        self._random, self._rate = Random(0), 0.0
        self._kinds, self._left = list[str](), 0

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        environ["wsgi.input"] = BytesIO(body)
        if environ["PATH_INFO"] == "/faults":
            with self._lock:
                given = json.loads(body)
                self._random, self._rate = Random(given["seed"]), given["rate"]
                self._kinds, self._left = given["kinds"], given["limit"]
            start_response("200 OK", [])
            return []
        with self._lock:
            pause, fault = self._random.uniform(0.05, 0.8), ""
            if self._left and self._random.random() < self._rate:
                fault = self._random.choice(self._kinds)
                self._left -= 1
        method = environ["REQUEST_METHOD"]
        if not fault or (fault == "cut" and method != "GET") or (fault == "conflict" and method != "PUT"):
            return self._application(environ, start_response)
        return self._fail(fault, pause, environ, start_response)

    def _fail(self, fault: str, pause: float, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        if fault == "failed":
            return _error(start_response, "500 Internal Server Error", "InternalError")
        if fault == "throttled":
            return _error(start_response, "503 Slow Down", "SlowDown")
        if fault == "expired":
            return _error(start_response, "400 Bad Request", "ExpiredToken")
        if fault == "conflict":
            return _error(start_response, "409 Conflict", "ConditionalRequestConflict")
        if fault == "request lost":
            return _hang_up(environ)
        if fault == "late":
            Thread(target=self._perform_later, args=(pause, dict(environ))).start()
            return _hang_up(environ)
        if fault == "slow":
            time.sleep(pause)
            return self._application(environ, start_response)
        answer = b"".join(self._application(environ, _ignored))
        if fault == "failed after":
            return _error(start_response, "500 Internal Server Error", "InternalError")
        if fault == "cut":
            start_response("200 OK", [("Content-Length", str(len(answer) + 1))])
            return [answer]
        return _hang_up(environ)

    def _perform_later(self, pause: float, environ: dict[str, Any]) -> None:
        time.sleep(pause)
        b"".join(self._application(environ, _ignored))


def _ignored(*_: Any) -> None:
    """Take the place of `start_response` for an answer that is not sent."""


def _error(start_response: Any, status: str, code: str) -> Iterable[bytes]:
    start_response(status, [("Content-Type", "application/xml")])
    return [f"<Error><Code>{code}</Code><Message>as the tests asked for</Message></Error>".encode()]


def _hang_up(environ: dict[str, Any]) -> Iterable[bytes]:
    connection: socket.socket = environ["werkzeug.socket"]
    connection.shutdown(socket.SHUT_RDWR)
    raise ConnectionAbortedError("as the tests asked for")


if __name__ == "__main__":
    run_simple("127.0.0.1", int(sys.argv[1]), Faults(application), threaded=True)
