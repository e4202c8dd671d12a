"""`Proxy`: a connection to a server that is cut at a request, before it arrives or before its answer does."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable
from typing import Literal

Cut = Literal["request", "answer"]


class Proxy:
    """Forwards connections on a loopback port to a server."""

    def __init__(self, connect: Callable[[], socket.socket]) -> None:
        self._connect = connect
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._cut: Cut = "request"
        self._left, self._lock = 0, threading.Lock()
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def arm(self, cut: Cut, *, at: int) -> None:
        """Cut the connection at the `at`-th request from now on, counted from 1."""
        with self._lock:
            self._cut, self._left = cut, at

    @property
    def is_armed(self) -> bool:
        return self._left > 0

    def close(self) -> None:
        for one in [self._listener, *self._open]:
            _close(one)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = self._connect()
                self._open += [client, server]
                is_cut = threading.Event()
                threading.Thread(target=self._requests, args=(client, server, is_cut), daemon=True).start()
                threading.Thread(target=self._answers, args=(client, server, is_cut), daemon=True).start()

    def _requests(self, client: socket.socket, server: socket.socket, is_cut: threading.Event) -> None:
        with contextlib.suppress(OSError):
            while data := client.recv(1 << 20):
                with self._lock:
                    self._left -= 1
                    if self._left == 0:
                        is_cut.set()
                if is_cut.is_set() and self._cut == "request":
                    break
                server.sendall(data)
        if not is_cut.is_set() or self._cut == "request":
            _close(client)
            _close(server)

    def _answers(self, client: socket.socket, server: socket.socket, is_cut: threading.Event) -> None:
        with contextlib.suppress(OSError):
            while (data := server.recv(1 << 20)) and not is_cut.is_set():
                client.sendall(data)
        _close(client)
        _close(server)


def _close(one: socket.socket) -> None:
    with contextlib.suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
    one.close()
