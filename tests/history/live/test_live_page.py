"""The live page in a real browser: it follows the session, and undoes work after a preview."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from weakfs import HostFilesystem, InMemoryFilesystem, Session, Toolset

from .conftest import LINES, Serve, Served, loaded, work

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.slow

Show = Callable[[Served], "Page"]


def content(where: str, path: str) -> str | None:
    with loaded(where) as session:
        files = InMemoryFilesystem(session)
        return files.read(path).content if files.exists(path) else None


def press(page: Page, name: str) -> None:
    page.get_by_role("button", name=name, exact=True).click()


def preview(page: Page, name: str) -> str:
    """Ask for a preview, and return what it says."""
    press(page, name)
    page.locator("#preview-title").wait_for()
    return page.locator("#preview").inner_text()


def apply(page: Page) -> None:
    """Do what the preview shows; its dialog closes when that is done."""
    page.locator("#apply").click()
    page.locator("#preview").wait_for(state="hidden")


@pytest.mark.sampled(by_rule=True)
@pytest.mark.parametrize("where", ["file", "folder", "sqlite"], indirect=True)
def test_undo_and_redo_after_their_preview(show: Show, served: Served) -> None:
    page = show(served)
    assert "D /b.txt +0 \u22121" in preview(page, "Undo…")
    assert content(served.where, "/b.txt") == "b\n"
    apply(page)
    assert content(served.where, "/b.txt") is None
    preview(page, "Redo…")
    apply(page)
    assert content(served.where, "/b.txt") == "b\n"


@pytest.mark.exhaustive
def test_a_preview_that_is_cancelled_changes_nothing(show: Show, served: Served) -> None:
    page = show(served)
    preview(page, "Undo…")
    press(page, "Cancel")
    preview(page, "Undo…")
    page.keyboard.press("Escape")
    page.locator("#preview").wait_for(state="hidden")
    with loaded(served.where) as session:
        assert len(session.records) > 0
        assert InMemoryFilesystem(session).exists("/b.txt")


def test_a_call_is_reverted_and_later_work_stays(show: Show, served: Served) -> None:
    page = show(served)
    page.locator("#row-2").click()
    assert "M /a.txt +1 \u22121" in preview(page, "Revert…")
    apply(page)
    assert content(served.where, "/a.txt") == LINES.replace("line 2", "two")
    assert content(served.where, "/b.txt") == "b\n"


def test_a_conflict_is_shown_with_both_sides_and_nothing_is_written(show: Show, served: Served) -> None:
    page = show(served)
    page.locator("#row-1").click()
    preview(page, "Revert…")
    sides = page.locator("#preview .sides pre").all_inner_texts()
    assert "deux" in sides[0]
    assert "line 2" in sides[1]
    assert page.locator("#apply").count() == 0
    press(page, "Close")
    assert content(served.where, "/a.txt") == LINES.replace("line 2", "deux")


@pytest.mark.exhaustive
def test_the_files_after_a_row_are_restored(show: Show, served: Served) -> None:
    page = show(served)
    page.locator("#row-0").click()
    preview(page, "Restore…")
    apply(page)
    assert content(served.where, "/a.txt") == LINES
    assert content(served.where, "/b.txt") is None


def test_an_open_page_shows_changes_by_another_program(show: Show, served: Served) -> None:
    page = show(served)
    page.locator("#row-1").click()
    page.evaluate("document.querySelector('#changes details').dataset.mark = 'same'")
    with loaded(served.where) as session:
        Toolset(session).call("write_file", {"path": "/new.txt", "content": "new\n"}, call_id="c5")
        if served.where.endswith(".json"):
            session.save(served.where)
    page.locator(".row", has_text="/new.txt").wait_for()
    # The part that the reader was looking at stays as it was.
    assert page.locator("#row-1").get_attribute("aria-selected") == "true"
    assert page.locator("#changes details[data-mark=same]").count() == 1
    assert page.locator("#moment").get_attribute("max") == "4"


def test_changes_that_the_preview_did_not_show_are_not_made(show: Show, served: Served) -> None:
    page = show(served)
    assert "/b.txt" in preview(page, "Undo…")
    with loaded(served.where) as session:
        Toolset(session).call("write_file", {"path": "/new.txt", "content": "new\n"}, call_id="c5")
        if served.where.endswith(".json"):
            session.save(served.where)
    page.locator("#apply").click()
    page.locator("#preview", has_text="The session has changed since").wait_for()
    assert "/new.txt" in page.locator("#preview").inner_text()
    assert content(served.where, "/new.txt") == "new\n"
    apply(page)
    assert content(served.where, "/new.txt") is None
    assert content(served.where, "/b.txt") == "b\n"


@pytest.mark.exhaustive
def test_an_error_is_shown(show: Show, served: Served) -> None:
    page = show(served)
    preview(page, "Redo…")
    assert "nothing to redo" in page.locator("#preview [role=alert]").inner_text()
    press(page, "Close")


@pytest.mark.exhaustive
def test_the_token_leaves_the_address_and_outlives_a_reload(show: Show, served: Served) -> None:
    page = show(served)
    assert page.evaluate("location.href") == served.url.partition("#")[0]
    page.reload()
    page.locator("#connection", has_text="Live").wait_for()
    assert page.locator(".row").count() == 4


@pytest.mark.exhaustive
def test_without_the_token_the_page_says_what_to_do(show: Show, served: Served) -> None:
    page = show(served)
    page.evaluate("sessionStorage.clear()")
    page.reload()
    page.locator("#connection", has_text="open the address that weakfs serve printed").wait_for()
    assert page.locator(".row").count() == 0


@pytest.mark.exhaustive
def test_work_in_a_directory_is_undone_there(show: Show, serve: Serve, tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    where, store = f"folder:{tmp_path}/sessions", str(tmp_path / "store")
    with Session.open(where) as session:
        files = HostFilesystem(root, session=session, store=store)
        Toolset(session, files).call("write_file", {"path": "/a.txt", "content": "a\n"}, call_id="c1")
    page = show(serve(where))
    assert "give --root DIR" in preview(page, "Undo…")
    page = show(serve(where, "--root", str(root), "--store", store))
    preview(page, "Undo…")
    assert (root / "a.txt").read_text() == "a\n"
    apply(page)
    assert not (root / "a.txt").exists()


@pytest.mark.exhaustive
def test_an_empty_filter_and_a_merged_fork(show: Show, serve: Serve, tmp_path: Path) -> None:
    session = Session(session_id="forked")
    work(session)
    fork = session.fork("idea")
    Toolset(fork).call("write_file", {"path": "/idea.txt", "content": "idea"}, call_id="f1")
    session.merge(fork)
    session.save(tmp_path / "s.json")
    page = show(serve(str(tmp_path / "s.json")))
    page.locator(".row", has_text="/idea.txt").first.click()
    assert page.locator("#changes .revert").count() == 1
    assert page.locator("#changes .restore").count() == 0
    assert "D /idea.txt" in preview(page, "Revert…")
