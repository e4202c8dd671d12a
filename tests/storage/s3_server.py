"""A server that speaks as S3 does, at the port that is given; started by `tests.storage.servers`.

It answers one request at a time: moto compares a version and then puts the object, between which another thread could
put its own.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from threading import Lock
from typing import Any

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import run_simple

LOCK = Lock()
MOTO = DomainDispatcherApplication(create_backend_app)


def application(environ: Any, start_response: Any) -> Iterable[bytes]:
    with LOCK:
        answer: Iterable[bytes] = MOTO(environ, start_response)
        return answer


if __name__ == "__main__":
    run_simple("127.0.0.1", int(sys.argv[1]), application, threaded=True)
