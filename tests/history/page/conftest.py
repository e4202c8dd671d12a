"""A browser for the tests of the page, and the sessions that they show."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from weakfs import InMemoryFilesystem, Session, Toolset
from weakfs.history.page import timeline_page

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

CHROMIUM = "/usr/bin/chromium"
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)

# Names and contents that would be markup if the page interpreted them.
HOSTILE = "</script><img src=x onerror=\"document.title='owned'\"><!--<script>"

Show = Callable[..., "Page"]


# Closed after each module, because Playwright keeps an event loop running in this thread.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    if shutil.which(CHROMIUM) is None:
        pytest.skip(f"there is no browser {CHROMIUM}; install Debian's package chromium")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def show(browser: Browser, tmp_path: Path) -> Iterator[Show]:
    """Open the page of a session; after the test, nothing may have gone to the console or the network."""
    told: list[str] = []
    asked: list[str] = []
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    page = context.new_page()
    page.on("console", lambda message: told.append(message.text))
    page.on("pageerror", lambda error: told.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.on("dialog", lambda dialog: told.append(f"dialog {dialog.message}"))

    def show_session(session: Session, *, with_contents: bool = True) -> Page:
        file = tmp_path / "page.html"
        file.write_bytes(timeline_page(session, "s.json", with_contents=with_contents).encode())
        page.goto(file.as_uri())
        return page

    yield show_session
    context.close()
    assert told == []
    assert {*asked} <= {(tmp_path / "page.html").as_uri()}


@pytest.fixture
def story() -> Session:
    """A session of six calls, with a fork that was merged, a change outside calls, a snapshot and a rollback."""
    ticks = iter(range(1_777_541_373_000_000_000, 1 << 62, 10**8))
    session = Session(session_id="story", clock=ticks.__next__)
    tools = Toolset(session)
    tools.call("write_file", {"path": "/src/a.py", "content": "one = 1\ntwo = 'x'\n"}, call_id="c1", caller="ann")
    tools.call("edit_file", {"path": "/src/a.py", "old_string": "none", "new_string": "x"}, call_id="c2", caller="bob")
    fork = session.fork("idea")
    Toolset(fork).call("write_file", {"path": "/idea.txt", "content": "idea"}, call_id="f1", caller="eve")
    session.snapshot("before")
    tools.call("edit_file", {"path": "/src/a.py", "old_string": "1", "new_string": "100"}, call_id="c3", caller="bob")
    session.merge(fork)
    InMemoryFilesystem(session).write("/own.md", "# own\n")
    tools.call("mv", {"source": "/src/a.py", "destination": "/b.py"}, call_id="c4", caller="ann")
    tools.call("write_file", {"path": "/logo.png", "content": "\0png"}, call_id="c5", caller="ann")
    return session
