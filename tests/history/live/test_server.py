"""The server of a live page, and requests that do not come from its page."""

from __future__ import annotations

import http.client
import json
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from threading import Thread
from typing import cast
from uuid import uuid4

import pytest

from tests.storage.servers import Server
from weakfs import InMemoryFilesystem, Session, Toolset
from weakfs.cli import main
from weakfs.history.live.server import MAX_BODY, MAX_CONNECTIONS, LiveServer
from weakfs.history.live.timeline import LiveTimeline

from .conftest import Serve, Served, serving, work

UNDO = json.dumps({"how": "undo"})
Headers = dict[str, str]


def kept(folder: Path) -> str:
    """Store a session in a folder, and return where."""
    session = Session(session_id="s")
    work(session)
    session.copy_to(f"folder:{folder}/store")
    return f"folder:{folder}/store"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server for the tests that change nothing."""
    with serving() as serve:
        yield serve(kept(tmp_path_factory.mktemp("served")))


@pytest.fixture
def alone(serve: Serve, tmp_path: Path) -> Served:
    """A server for one test."""
    return serve(kept(tmp_path))


def own(served: Served, **others: str) -> Headers:
    """The headers that the page itself sends."""
    headers = {
        "Authorization": f"Bearer {served.token}",
        "Origin": f"http://127.0.0.1:{served.port}",
        "Content-Type": "application/json",
    }
    return {**headers, **{name.replace("_", "-"): value for name, value in others.items()}}


def ask(
    served: Served, path: str, headers: Headers, *, body: str | None = None, method: str | None = None
) -> tuple[int, bytes, http.client.HTTPMessage]:
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=120)
    connection.request(method or ("GET" if body is None else "POST"), path, body, headers)
    answer = connection.getresponse()
    found = answer.status, answer.read(), answer.headers
    connection.close()
    return found


def is_unchanged(served: Served) -> bool:
    with Session.open(served.where) as session:
        return InMemoryFilesystem(session).exists("/b.txt")


def test_the_page_itself_is_answered(served: Served) -> None:
    status, body, headers = ask(served, "/", {})
    assert status == 200
    # Without the token, nothing of the session is shown.
    assert b"/b.txt" not in body
    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "connect-src 'self'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert headers["Cache-Control"] == "no-store"
    assert "Set-Cookie" not in headers
    assert ask(served, "/data", own(served))[0] == 200
    assert json.loads(ask(served, "/take-back", own(served), body=UNDO)[1])["changes"][0]["path"] == "/b.txt"
    assert is_unchanged(served)


@pytest.mark.parametrize(
    "given",
    ["", "Bearer", "Bearer ", "Bearer wrong", "bearer {token}", "{token}", "Bearer {token}x"],
)
@pytest.mark.parametrize("path", ["/data", "/version", "/take-back"])
def test_a_wrong_token_is_refused(served: Served, path: str, given: str) -> None:
    headers = own(served, Authorization=given.format(token=served.token))
    status, body, _ = ask(served, path, headers, body=UNDO if path == "/take-back" else None)
    assert (status, json.loads(body)) == (401, {"error": "the token is wrong"})
    assert is_unchanged(served)


def test_a_token_in_the_address_is_not_accepted(served: Served) -> None:
    headers = own(served)
    del headers["Authorization"]
    assert ask(served, f"/data?token={served.token}", headers)[0] == 404


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "[::1]:{port}", ""]
)
def test_another_host_is_refused(served: Served, host: str) -> None:
    for path in ("/", "/data", "/version"):
        assert ask(served, path, own(served, Host=host.format(port=served.port)))[0] == 421


def test_the_other_name_of_the_loopback_is_answered(served: Served) -> None:
    name = f"localhost:{served.port}"
    assert ask(served, "/version", own(served, Host=name, Origin=f"http://{name}"))[0] == 200


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "https://127.0.0.1:{port}", "http://127.0.0.1:1", ""]
)
def test_another_origin_is_refused(served: Served, origin: str) -> None:
    headers = own(served, Origin=origin.format(port=served.port))
    assert ask(served, "/take-back", headers, body=UNDO)[0] == 403
    assert ask(served, "/data", headers)[0] == 403
    assert is_unchanged(served)


def test_a_change_without_an_origin_is_refused(served: Served) -> None:
    headers = own(served)
    del headers["Origin"]
    assert ask(served, "/take-back", headers, body=UNDO)[0] == 403


def test_a_form_cannot_post(served: Served) -> None:
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
        assert ask(served, "/take-back", own(served, Content_Type=kind), body=UNDO)[0] == 415


def test_a_huge_body_is_refused_unread(served: Served) -> None:
    assert ask(served, "/take-back", own(served), body=" " * (MAX_BODY + 1))[0] == 413
    for length in ("9" * 4000, "1" * 30):
        assert ask(served, "/take-back", own(served, Content_Length=length), method="POST")[0] == 413
    for length in ("-1", "x", "1.0", "\u0661".encode().decode("latin-1")):
        assert ask(served, "/take-back", own(served, Content_Length=length), method="POST")[0] == 411
    assert ask(served, "/take-back", own(served, Transfer_Encoding="chunked"), method="POST")[0] == 411
    assert is_unchanged(served)


@pytest.mark.parametrize(
    "path",
    ["/../../etc/passwd", "/%2e%2e/etc/passwd", "//etc/passwd", "/page.html", "/data/../data", "/data?x", "/DATA"],
)
def test_no_other_path_exists(served: Served, path: str) -> None:
    assert ask(served, path, own(served))[0] == 404


@pytest.mark.parametrize("method", ["PUT", "DELETE", "OPTIONS", "HEAD", "TRACE"])
def test_other_methods_are_refused(served: Served, method: str) -> None:
    assert ask(served, "/take-back", own(served), method=method)[0] == 501


@pytest.mark.parametrize(
    "body",
    [
        "", "{", "[]", "null", "[" * 4000, '{"how":"delete"}', '{"how":"revert"}', '{"how":"revert","first":true}',
        '{"how":"revert","first":-1}', '{"how":"revert","first":1e400}', '{"how":"restore","first":"x"}',
        '{"how":"undo","agreed":1}', '{"how":"revert","first":1,"last":99999999999999999999}',
        "\xed\xa0\x80",
    ],
)  # fmt: skip
def test_a_wrong_request_is_refused(served: Served, body: str) -> None:
    status, answer, _ = ask(served, "/take-back", own(served), body=body)
    assert status == 400
    assert "cannot read the request" in json.loads(answer)["error"]
    assert is_unchanged(served)


def test_missing_records_get_an_error_response(served: Served) -> None:
    for body in (
        {"how": "revert", "first": 9000},
        {"how": "restore", "first": 2**52},
        {"how": "revert", "first": 4, "last": 1},
    ):
        status, answer, _ = ask(served, "/take-back", own(served), body=json.dumps(body))
        assert status == 200
        assert json.loads(answer)["error"]


def test_a_change_needs_the_digest_of_its_preview(alone: Served) -> None:
    wrong = json.dumps({"how": "undo", "agreed": "0" * 64})
    assert json.loads(ask(alone, "/take-back", own(alone), body=wrong)[1]) == {"stale": True}
    assert is_unchanged(alone)
    digest = json.loads(ask(alone, "/take-back", own(alone), body=UNDO)[1])["digest"]
    right = json.dumps({"how": "undo", "agreed": digest})
    assert json.loads(ask(alone, "/take-back", own(alone), body=right)[1]) == {"done": True}
    assert not is_unchanged(alone)
    # If it is sent twice, it is not done twice.
    assert json.loads(ask(alone, "/take-back", own(alone), body=right)[1]) == {"stale": True}


@pytest.mark.slow
def test_a_change_to_content_of_the_same_size_invalidates_the_preview(serve: Serve, tmp_path: Path) -> None:
    one = serve(kept(tmp_path))
    for how, path in ({"how": "restore", "first": 1}, "/a.txt"), ({"how": "restore", "first": 1}, "/b.txt"):
        digest = json.loads(ask(one, "/take-back", own(one), body=json.dumps(how))[1])["digest"]
        with Session.open(one.where) as session:
            files = InMemoryFilesystem(session)
            # The same number of lines and bytes.
            files.write(path, files.read(path).content.replace("e", "x").replace("b", "c"))
            now = files.read(path).content
        agreed = json.dumps({**how, "agreed": digest})
        assert json.loads(ask(one, "/take-back", own(one), body=agreed)[1]) == {"stale": True}
        with Session.open(one.where) as session:
            assert InMemoryFilesystem(session).read(path).content == now


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::weakfs.storage.DurabilityWarning")
@pytest.mark.parametrize("engine", ["postgresql", "redis"])
def test_a_session_on_a_database_server_is_changed_after_its_preview(
    request: pytest.FixtureRequest, serve: Serve, engine: str
) -> None:
    server: Server = request.getfixturevalue(f"{engine}_server")
    name = f"live-{uuid4().hex}"
    with Session.open(server.url, name) as session:
        work(session)
    one = serve(f"{server.url}#{name}")
    before = json.loads(ask(one, "/data", own(one))[1])
    stale = json.loads(ask(one, "/take-back", own(one), body=UNDO)[1])["digest"]
    with Session.open(server.url, name) as session:
        Toolset(session).call("write_file", {"path": "/c.txt", "content": "c\n"}, call_id="c5")
    agreed = json.dumps({"how": "undo", "agreed": stale})
    assert json.loads(ask(one, "/take-back", own(one), body=agreed)[1]) == {"stale": True}

    digest = json.loads(ask(one, "/take-back", own(one), body=UNDO)[1])["digest"]
    agreed = json.dumps({"how": "undo", "agreed": digest})
    assert json.loads(ask(one, "/take-back", own(one), body=agreed)[1]) == {"done": True}
    with Session.open(server.url, name) as session:
        files = InMemoryFilesystem(session)
        assert (files.exists("/c.txt"), files.exists("/b.txt")) == (False, True)
    after = json.loads(ask(one, "/data", own(one))[1])
    assert before["version"] != after["version"]
    assert len(before["rows"]) < len(after["rows"])


def test_the_server_listens_on_the_loopback_only(served: Served) -> None:
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        address, port = line.split()[1].split(":")
        if int(port, 16) == served.port:
            assert address == "0100007F"
    table = Path("/proc/net/tcp6")
    rows = table.read_text().splitlines()[1:] if table.exists() else []
    assert all(int(line.split()[1].split(":")[1], 16) != served.port for line in rows if line.split()[3] == "0A")


def test_silent_and_broken_connections_do_not_stop_the_server(served: Served) -> None:
    silent = [socket.create_connection(("127.0.0.1", served.port)) for _ in range(8)]
    for one in silent[:4]:
        one.sendall(b"\0\xff\r\n\r\nGET / HT")
        one.close()
    assert ask(served, "/version", own(served))[0] == 200
    for one in silent:
        one.close()


def test_many_silent_connections_do_not_block_a_request(alone: Served) -> None:
    silent = [socket.create_connection(("127.0.0.1", alone.port)) for _ in range(3 * MAX_CONNECTIONS)]
    for one in silent:
        one.sendall(b"GET /version HTTP/1.1\r\nHost: ")
    for _ in range(3):
        assert ask(alone, "/version", own(alone))[0] == 200
    alone.process.send_signal(signal.SIGTERM)
    assert alone.process.communicate(timeout=120)[1] == ""
    assert alone.process.returncode == 0
    for one in silent:
        one.close()


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_server(alone: Served, number: signal.Signals) -> None:
    with socket.create_connection(("127.0.0.1", alone.port)) as silent:
        silent.sendall(b"GET /")
        alone.process.send_signal(number)
        _, errors = alone.process.communicate(timeout=120)
    assert alone.process.returncode == 0
    assert errors == ""


def test_a_missing_session_is_an_error_until_it_is_restored(alone: Served, tmp_path: Path) -> None:
    (tmp_path / "store").rename(tmp_path / "away")
    status, answer, _ = ask(alone, "/version", own(alone))
    assert status == 500
    assert "no such folder" in json.loads(answer)["error"]
    assert not (tmp_path / "store").exists()
    (tmp_path / "away").rename(tmp_path / "store")
    assert ask(alone, "/version", own(alone))[0] == 200


def test_a_bug_in_the_server_gets_an_error_response() -> None:
    def broken() -> str:
        raise KeyError("path")

    unused = cast("Callable[[], AbstractContextManager[Session]]", None)
    timeline = LiveTimeline("s.json", version=broken, opened=unused, changing=unused, save=lambda session, seq: None)
    with LiveServer(timeline) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=120)
            connection.request("GET", "/data", headers={"Authorization": f"Bearer {server.token}"})
            answer = connection.getresponse()
            assert answer.status == 500
            assert json.loads(answer.read())["error"].startswith("internal error: KeyError: 'path'; reload the page")
        finally:
            server.shutdown()
            thread.join()


def test_a_server_that_ends_by_itself_is_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(LiveServer, "serve_forever", lambda self, poll_interval: None)
    assert main(["serve", kept(tmp_path)]) == 1
    assert "stopped unexpectedly; see the error above, and start it again" in capfd.readouterr().err
