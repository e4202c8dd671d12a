"""A live page of a session in storage or in a file, served by the command itself, and a browser that shows it."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from attrs import frozen

from tests.history.page.conftest import browser as browser
from weakfs import Session, Toolset

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

# Warnings are errors, except for PostgreSQL's: the server of the tests does not sync.
WARNINGS = ("-W", "error", "-W", "ignore:'postgresql")
COMMAND = (sys.executable, *WARNINGS, "-m", "weakfs", "serve")
LINES = "".join(f"line {number}\n" for number in range(1, 9))


@frozen
class Served:
    """A server in a separate process; `where` is its session."""

    where: str
    url: str
    process: subprocess.Popen[str]

    @property
    def port(self) -> int:
        return int(self.url.split(":")[2].split("/")[0])

    @property
    def token(self) -> str:
        return self.url.rpartition("#")[2]


def work(session: Session) -> None:
    tools = Toolset(session)
    tools.call("write_file", {"path": "/a.txt", "content": LINES}, call_id="c1")
    tools.call("edit_file", {"path": "/a.txt", "old_string": "line 2", "new_string": "two"}, call_id="c2")
    tools.call("edit_file", {"path": "/a.txt", "old_string": "two", "new_string": "deux"}, call_id="c3")
    tools.call("write_file", {"path": "/b.txt", "content": "b\n"}, call_id="c4")


def loaded(where: str) -> Session:
    return Session.load(where) if where.endswith(".json") else Session.open(where)


Serve = Callable[..., Served]


@contextmanager
def serving() -> Iterator[Serve]:
    """Serve sessions, and end the servers as Ctrl-C does."""
    running: list[subprocess.Popen[str]] = []

    def serve_session(where: str, *options: str) -> Served:
        process = subprocess.Popen(
            [*COMMAND, where, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, bufsize=1
        )
        running.append(process)
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith("serving http://127.0.0.1:"), process.communicate()
        return Served(where, line.split()[1], process)

    try:
        yield serve_session
    finally:
        for process in running:
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
            process.communicate(timeout=120)


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Serve sessions until the test ends."""
    with serving() as serve_session:
        yield serve_session


@pytest.fixture
def where(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A session of four calls; the third changed a line that the second had changed."""
    session = Session(session_id="s")
    work(session)
    kind = getattr(request, "param", "folder")
    if kind == "file":
        session.save(tmp_path / "s.json")
        return str(tmp_path / "s.json")
    place = f"folder:{tmp_path}/store" if kind == "folder" else f"sqlite:{tmp_path}/s.db"
    session.copy_to(place)
    return place


@pytest.fixture
def served(serve: Serve, where: str) -> Served:
    return serve(where)


@pytest.fixture
def show(browser: Browser, serve: Serve) -> Iterator[Callable[[Served], Page]]:
    """Open a live page; after the test, the console must be empty and only its server may have received requests."""
    told: list[str] = []
    asked: list[str] = []
    servers: list[str] = []
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    page = context.new_page()
    page.set_default_timeout(120_000)
    page.on("console", lambda message: told.append(message.text))
    page.on("pageerror", lambda error: told.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))

    def show_page(one: Served) -> Page:
        servers.append(one.url.partition("#")[0])
        page.goto(one.url)
        page.locator("#connection", has_text="Live").wait_for()
        return page

    yield show_page
    context.close()
    assert told == []
    assert all(any(url.startswith(server) for server in servers) for url in asked)
