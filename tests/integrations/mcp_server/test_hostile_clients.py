"""Clients that break the protocol, over the standard input and output of a real server."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Queue
from threading import Thread
from typing import Any

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("never_hung")]


class RawClient:
    """A client that may send anything, and waits for the server's answers by id."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self._answers: Queue[dict[str, Any] | None] = Queue()
        self._kept: list[dict[str, Any]] = []
        self.reader = Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._answers.put(json.loads(line))
        self._answers.put(None)

    def send(self, message: bytes | dict[str, Any]) -> None:
        assert self.process.stdin is not None
        line = message if isinstance(message, bytes) else json.dumps({"jsonrpc": "2.0", **message}).encode()
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def answer(self, wanted: object) -> dict[str, Any]:
        """Return the next answer with an id."""
        for kept in self._kept:
            if kept.get("id") == wanted:
                self._kept.remove(kept)
                return kept
        while (found := self._answers.get(timeout=300)) is not None:
            if found.get("id") == wanted and "method" not in found:
                return found
            self._kept.append(found)
        raise AssertionError("the server has ended")

    def begin(self, number: int, name: str, **arguments: object) -> None:
        self.send({"id": number, "method": "tools/call", "params": {"name": name, "arguments": arguments}})

    def call(self, number: int, name: str, **arguments: object) -> Any:
        self.begin(number, name, **arguments)
        return self.answer(number)["result"]


@contextmanager
def connected(*arguments: str) -> Iterator[RawClient]:
    command = [sys.executable, "-m", "weakfs", "mcp", *arguments]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        client = RawClient(process)
        info = {"name": "a\nclient\u202e", "version": "1"}
        params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info}
        client.send({"id": 0, "method": "initialize", "params": params})
        client.answer(0)
        client.send({"method": "notifications/initialized"})
        try:
            yield client
        finally:
            if process.poll() is None:
                process.kill()
            # The stream must not be closed while it is read.
            client.reader.join()


JUNK = [
    b"garbage",
    b"{",
    b"[]",
    b"null",
    b"\xff\xfe\x00",
    b"[" * 100_000,
    b'{"a":' * 100_000,
    b'{"jsonrpc":"2.0"}',
    b'{"jsonrpc":"1.0","id":5,"method":"ping"}',
    b'{"jsonrpc":"2.0","id":{"a":1},"method":"ping"}',
    b'{"jsonrpc":"2.0","id":7,"method":"nope/nope"}',
    b'{"jsonrpc":"2.0","id":8,"method":"tools/call"}',
    b'{"jsonrpc":"2.0","id":8,"method":"tools/call","params":[]}',
    b'{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":5}}',
    b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":12345}}',
    b'{"jsonrpc":"2.0","id":12345,"result":{}}',
    b'{"jsonrpc":"2.0","id":3,"error":{"code":1,"message":"x"}}',
]
WRITE = b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"write_file","arguments":{%s}}}'


def test_a_message_that_cannot_be_read_is_answered_and_the_next_is_handled(tmp_path: Path) -> None:
    with connected("--session", str(tmp_path / "session")) as client:
        for junk in JUNK:
            client.send(junk)
        assert client.answer(5)["error"]["code"] == -32600
        assert client.answer(7)["error"]["code"] == -32601
        # Halves of surrogate pairs, as a model may write them, and a number that no parser accepts.
        for number, arguments in enumerate(
            [rb'"path":"/a\ud800","content":"x"', rb'"path":"/a","content":"x\ud800"', b'"path":' + b"9" * 5000], 20
        ):
            client.send(WRITE % (number, arguments))
            assert client.answer(number)["error"]["code"] == -32700
        assert not client.call(30, "write_file", path="/ok", content="1")["isError"]
        assert [one["name"] for one in client.call(31, "ls", path="/")["structuredContent"]["entries"]] == ["ok"]


def test_hostile_arguments_change_nothing(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    with connected(str(root), "--store", str(tmp_path / "store")) as client:
        hostile: list[dict[str, Any]] = [
            {"path": "../../x", "content": "x"},
            {"path": str(tmp_path / "x"), "content": "x"},
            {"path": "/a\0b", "content": "x"},
            {"path": "/big", "content": "x" * (33 << 20)},
            {"path": "/many", "content": "x", **{f"k{one}": one for one in range(50_000)}},
            {"path": "/" + "d/" * 70, "content": "x"},
            {"path": ["/a"], "content": {"a": 1}},
        ]
        for number, arguments in enumerate(hostile, 1):
            # A path of the host outside the root is treated as one below it.
            refused = client.call(number, "write_file", **arguments)["isError"]
            assert refused or arguments["path"] == str(tmp_path / "x")
        assert [path.name for path in root.rglob("x")] == ["x"]
        assert not (tmp_path / "x").exists()
        made = client.call(50, "write_file", path="/a\nb\u202e", content="x")
        assert made["content"][0]["text"] == "Created /a\\nb\\u202e (1 byte)"


def test_a_client_that_reads_no_answers_loses_none(tmp_path: Path) -> None:
    with connected("--session", str(tmp_path / "session")) as client:
        count = 1000
        for number in range(count):
            client.begin(100 + number, "ls", path="/")
        assert not any(client.answer(100 + number)["result"]["isError"] for number in range(count))


def test_one_id_for_two_requests_makes_two_calls(tmp_path: Path) -> None:
    with connected("--session", str(tmp_path / "session")) as client:
        client.begin(1, "write_file", path="/a", content="1")
        client.begin(1, "write_file", path="/b", content="2")
        ids = {client.answer(1)["result"]["_meta"]["weakfs/callId"] for _ in range(2)}
        assert len(ids) == 2
        assert client.call(2, "ls", path="/")["structuredContent"]["count"] == 2


@pytest.mark.parametrize("end", ["cancel", "disconnect", "kill"])
def test_a_command_that_is_cut_off_is_undone(tmp_path: Path, end: str) -> None:
    root = tmp_path / "root"
    root.mkdir()
    options = (str(root), "--session", str(tmp_path / "session"), "--store", str(tmp_path / "store"))
    with connected(*options) as client:
        assert not client.call(1, "write_file", path="/kept", content="1")["isError"]
        client.begin(2, "shell", command="touch half; sleep 60")
        while not (root / "half").exists():
            assert client.process.poll() is None
            time.sleep(0.01)
        if end == "cancel":
            client.send({"method": "notifications/cancelled", "params": {"requestId": 2}})
            until = time.monotonic() + 300
            while (root / "half").exists():
                assert time.monotonic() < until
                time.sleep(0.01)
        elif end == "disconnect":
            assert client.process.stdin is not None
            client.process.stdin.close()
            assert client.process.wait(300) == 0
        else:
            client.process.kill()
            client.process.wait()
    # The next server removes what was left behind.
    with connected(*options) as client:
        assert [one["name"] for one in client.call(1, "ls", path="/")["structuredContent"]["entries"]] == ["kept"]
    assert [path.name for path in root.iterdir()] == ["kept"]
