"""The page in a real browser: each of its controls, by mouse and by keyboard, with nothing in the console."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

from weakfs import InMemoryFilesystem, Session, Toolset
from weakfs.history.page.rows import page_data
from weakfs.reducers import FileTree
from weakfs.reducers.tree.leaf import content_of
from weakfs.reducers.tree.node import walk

from .conftest import HOSTILE, Show

if TYPE_CHECKING:
    from playwright.sync_api import Page


pytestmark = pytest.mark.slow


def targets(page: Page) -> list[str]:
    return cast(
        "list[str]",
        page.locator(".row").evaluate_all("all => all.map(one => one.querySelector('.target').textContent)"),
    )


def names(page: Page) -> list[str]:
    return cast(
        "list[str]", page.locator("#tree .entry").evaluate_all("all => all.map(one => one.firstChild.textContent)")
    )


def select(page: Page, text: str, **options: Any) -> None:
    page.locator(".row", has_text=text).first.click(**options)


def copied(page: Page, button: str) -> str:
    """Press a button that copies, and return what it copied."""
    page.evaluate(
        """() => Object.defineProperty(
            navigator, "clipboard",
            {configurable: true, value: {writeText: async (text) => { window.copy = text; }}})"""
    )
    page.get_by_role("button", name=button, exact=True).first.click()
    page.wait_for_function("document.getElementById('said').textContent.endsWith('copied')")
    return str(page.evaluate("window.copy"))


def test_the_rows_say_what_happened(show: Show, story: Session) -> None:
    page = show(story)
    assert page.title() == "Timeline of story"
    assert "6 calls" in page.locator("#summary").inner_text()
    assert "1 failed" in page.locator("#summary").inner_text()
    assert targets(page)[:4] == ["/src/a.py", "/src/a.py", "before", "/src/a.py"]
    assert page.locator(".row .result").nth(1).inner_text() == "edit_target_not_found"
    assert page.locator(".row svg path.c1").count() >= 2


def test_a_row_shows_its_difference_and_how_to_undo_it(show: Show, story: Session) -> None:
    page = show(story)
    page.locator(".row").nth(3).click()
    assert page.locator("#changes h2").inner_text() == "#3 edit_file /src/a.py"
    assert page.locator("#changes .line.removed .text").all_inner_texts() == ["one = 1"]
    assert page.locator("#changes .line.added .text").all_inner_texts() == ["one = 100"]
    assert page.locator("#changes .line.added .number").inner_text() == "100"
    assert page.locator("#changes .command code").inner_text().startswith("weakfs revert s.json ")
    assert copied(page, "Copy").endswith(" --preview")


@pytest.mark.exhaustive
def test_the_command_of_each_row_undoes_it(show: Show, story: Session, tmp_path: Path) -> None:
    page = show(story)
    commands = 0
    for number in range(page.locator(".row").count()):
        page.locator(f"#row-{number}").click()
        command = page.locator("#changes .command code")
        if not command.count():
            continue
        commands += 1
        story.save(tmp_path / "s.json")
        before = (tmp_path / "s.json").read_bytes()
        words = shlex.split(command.inner_text())
        assert words[0] == "weakfs"
        run = [sys.executable, "-m", "weakfs", *words[1:]]
        previewed = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True)
        assert (tmp_path / "s.json").read_bytes() == before
        done = subprocess.run(run[:-1], cwd=tmp_path, capture_output=True, text=True)
        assert bool(previewed.returncode) == bool(done.returncode), previewed.stderr + done.stderr
        first, _, last = words[3].partition("-")
        records = range(int(first), int(last or first) + 1)
        changed = story.revert(records, preview=True)
        assert bool(changed.conflicts) == (done.returncode != 0)
        if done.returncode == 0:
            assert all(one.path in previewed.stdout for one in changed.changes)
            story.revert(records)
            with Session.load(tmp_path / "s.json") as saved:
                assert files_of(saved) == files_of(story)
            story.undo()
    assert commands >= 5


def files_of(session: Session) -> dict[str, bytes]:
    tree = session[FileTree].latest()
    assert tree is not None
    return {path: content_of(leaf) for path, leaf in walk(tree) if type(leaf) is not FileTree}


def test_copying_works_without_the_clipboard_api(show: Show, story: Session) -> None:
    page = show(story)
    page.locator(".row").nth(3).click()
    page.evaluate("Object.defineProperty(navigator, 'clipboard', {value: undefined})")
    page.get_by_role("button", name="Copy", exact=True).click()
    page.wait_for_function("document.getElementById('said').textContent.endsWith('copied')")
    page.locator("#search").focus()
    page.keyboard.press("Control+V")
    assert page.locator("#search").input_value().startswith("weakfs revert s.json ")


def test_rows_without_files_say_why(show: Show, story: Session) -> None:
    page = show(story)
    page.locator(".row").nth(1).click()
    assert "It changed no files." in page.locator("#changes").inner_text()
    select(page, "merged")
    assert "in the rows of the fork" in page.locator("#changes").inner_text()
    select(page, "snapshot")
    assert "A snapshot changes no files" in page.locator("#changes").inner_text()
    story.compact(keep=0)
    page = show(story)
    page.locator(".row").nth(0).click()
    assert "compacted away" in page.locator("#changes").inner_text()
    page.get_by_role("tab", name="Files").click()
    assert "not known" in page.locator("#tree").inner_text()


def test_a_patch_applies_with_git(show: Show, story: Session, tmp_path: Path) -> None:
    files = InMemoryFilesystem(story)
    files.write('/names/with "quotes"\tand ü.txt', "no line end")
    files.chmod("/own.md", 0o755)
    page = show(story)
    page.locator(".row").first.click()
    page.locator(".row").last.click(modifiers=["Shift"])
    later = copied(page, "Copy as patch")
    page.get_by_role("button", name="Stop comparing").click()
    first = copied(page, "Copy as patch")
    repository = tmp_path / "repository"
    repository.mkdir()
    subprocess.run(["git", "init", "-q", str(repository)], check=True)
    for patch in (first, later.replace(_binary(later), "")):
        subprocess.run(["git", "apply", "-"], cwd=repository, input=patch.encode(), check=True)
    tree = story[FileTree].latest()
    assert tree is not None
    for path, leaf in walk(tree):
        if type(leaf) is not FileTree and path != "/logo.png":
            assert (repository / path[1:]).read_bytes() == content_of(leaf)
    assert (repository / "own.md").stat().st_mode & 0o111
    assert not (repository / "src/a.py").exists()


def _binary(patch: str) -> str:
    """Return the part of a patch that is about the binary file."""
    start = patch.index("diff --git a/logo.png")
    end = patch.find("diff --git", start + 1)
    return patch[start : end if end > 0 else len(patch)]


def test_two_rows_are_compared(show: Show, story: Session) -> None:
    page = show(story)
    page.locator(".row").nth(0).click()
    page.get_by_role("button", name="Compare with…").click()
    page.locator(".row").last.click()
    text = page.locator("#changes").inner_text()
    assert "Compare" in text
    assert {"/b.py", "/idea.txt", "/logo.png", "/own.md"} <= set(page.locator("#changes .path").all_inner_texts())
    assert page.locator(".row[aria-selected=true]").count() == 2
    page.get_by_role("button", name="Stop comparing").click()
    assert page.locator("#changes h2").inner_text() == "#1 write_file /src/a.py"


@pytest.mark.sampled(by_rule=True)
@pytest.mark.parametrize(
    ("control", "value", "found"),
    [
        ("search", "idea.txt", ["/idea.txt"]),
        ("search", "EVE write", ["/idea.txt"]),
        ("search", "nothing like it", []),
        ("kind", "merge", ["3 records of story/idea1"]),
        ("status", "failed", ["/src/a.py"]),
        ("status", "=edit_target_not_found", ["/src/a.py"]),
        ("caller", "ceve", ["/idea.txt"]),
        ("caller", "fstory/idea1", ["/idea.txt"]),
    ],
)
def test_rows_are_filtered(show: Show, story: Session, control: str, value: str, found: list[str]) -> None:
    page = show(story)
    if control == "search":
        page.get_by_role("searchbox").fill(value)
    else:
        page.locator(f"#{control}").select_option(value)
    assert targets(page) == found
    assert page.locator("#count").inner_text().startswith(f"{len(found)} of ")
    assert page.locator("#empty").is_visible() is (not found)
    page.keyboard.press("Escape")


def test_only_rows_with_files_are_shown_on_request(show: Show, story: Session) -> None:
    page = show(story)
    page.get_by_label("Changed files").check()
    assert page.locator(".row").count() == 6
    assert page.locator(".row.snapshot").count() == 0


def test_the_files_at_each_moment(show: Show, story: Session) -> None:
    page = show(story)
    page.get_by_role("tab", name="Files").click()
    slider = page.get_by_role("slider")
    slider.fill("0")
    assert names(page) == ["a.py"]
    page.get_by_role("button", name="a.py").click()
    assert page.locator("#file .line .text").all_inner_texts() == ["one = 1", "two = 'x'"]
    slider.press("End")
    assert "9" in (slider.get_attribute("aria-valuetext") or "")
    assert names(page) == ["b.py", "idea.txt", "logo.png", "own.md"]
    page.locator(".entry", has_text="logo.png").click()
    assert "binary file" in page.locator("#file").inner_text()


def test_blame_leads_to_the_row_that_wrote_a_line(show: Show, story: Session) -> None:
    page = show(story)
    page.get_by_role("tab", name="Files").click()
    page.get_by_role("slider").press("End")
    page.locator(".entry", has_text="b.py").click()
    assert page.locator("#file button.origin").all_inner_texts() == ["#3 edit_file", "#1 write_file"]
    page.get_by_label("Blame").uncheck()
    assert page.locator("#file .origin").count() == 0
    page.get_by_label("Blame").check()
    page.locator("#file button.origin").first.click()
    assert page.locator("#changes h2").inner_text() == "#3 edit_file /src/a.py"
    page.get_by_role("tab", name="Files").click()
    page.get_by_role("slider").press("Home")
    page.locator(".entry", has_text="a.py").click()
    assert page.locator("#file button.origin").all_inner_texts() == ["#1 write_file"]


def test_blame_of_any_moment_names_the_calls_up_to_that_moment(show: Show) -> None:
    session = Session(session_id="main")
    tools = Toolset(session)
    tools.call("write_file", {"path": "/f", "content": "".join(f"line {number}\n" for number in range(40))})
    for number in range(0, 40, 3):
        tools.call("edit_file", {"path": "/f", "old_string": f"line {number}\n", "new_string": f"new {number}\n"})
    assert '"same"' in json.dumps(page_data(session))
    page = show(session)
    page.get_by_role("tab", name="Files").click()
    for keys, edits in ((["End"], 14), (["End", "ArrowLeft"], 13), (["Home"], 0)):
        for key in keys:
            page.get_by_role("slider").press(key)
        page.locator(".entry", has_text="f").click()
        shown = page.locator("#file button.origin").all_inner_texts()
        assert [name for name in shown if "edit" in name] == [f"#{number + 2} edit_file" for number in range(edits)]


def test_everything_is_reachable_by_keyboard(show: Show, story: Session) -> None:
    page = show(story)
    page.locator("#rows").focus()
    page.keyboard.press("Home")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    assert page.locator("#changes h2").inner_text() == "#3 edit_file /src/a.py"
    active = page.locator("#rows").get_attribute("aria-activedescendant")
    assert page.locator(f"#{active}").get_attribute("aria-selected") == "true"
    page.keyboard.press("c")
    page.keyboard.press("End")
    assert page.locator("#changes h2").inner_text() == "Compare"
    page.keyboard.press("Home")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "details"
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.id") == "rows"
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "search"
    page.locator("#tab-changes").focus()
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.id") == "tab-files"
    assert page.locator("#files").is_visible()


def test_every_control_has_an_accessible_name(show: Show, story: Session) -> None:
    page = show(story)
    for tab in ("Files", "Changes"):
        page.get_by_role("tab", name=tab).click()
        nameless = page.locator("button, input, select, [role=option], [role=region], [role=listbox]").evaluate_all(
            """all => all
                .filter(one => !(one.getAttribute("aria-label") || one.labels?.length || one.textContent.trim()))
                .map(one => one.outerHTML)"""
        )
        assert nameless == []
    assert page.locator("html").get_attribute("lang") == "en"


def test_light_and_dark(show: Show, story: Session) -> None:
    page = show(story)
    background = "getComputedStyle(document.body).backgroundColor"
    page.emulate_media(color_scheme="dark")
    dark = page.evaluate(background)
    button = page.locator("#theme")
    button.click()
    assert button.inner_text() == "Light"
    assert page.evaluate(background) != dark
    button.click()
    assert page.evaluate(background) == dark
    button.click()
    assert button.get_attribute("aria-label") == "Colors: as the system"


def test_on_a_narrow_screen_the_details_cover_the_rows(show: Show, story: Session) -> None:
    page = show(story)
    page.set_viewport_size({"width": 400, "height": 700})
    assert not page.locator("#details").is_visible()
    page.locator(".row").nth(3).click()
    assert page.locator("#changes h2").is_visible()
    assert page.evaluate("document.documentElement.scrollWidth") == 400
    page.get_by_role("button", name="Compare with…").click()
    page.locator(".row").last.click()
    assert page.locator("#changes h2").inner_text() == "Compare"
    page.get_by_role("button", name="← Rows").click()
    assert not page.locator("#details").is_visible()


def test_hostile_names_and_contents_are_only_text(show: Show) -> None:
    session = Session(session_id=HOSTILE)
    path = f"/{HOSTILE.replace('/', '')}/__proto__\u202e\x1b.py"
    tools = Toolset(session)
    tools.call("write_file", {"path": path, "content": f"{HOSTILE}\n"}, call_id=HOSTILE, caller=HOSTILE)
    tools.call("write_file", {"path": "/__proto__", "content": "x"}, call_id="constructor", caller="__proto__")
    session.snapshot(HOSTILE)
    page = show(session)
    page.get_by_role("tab", name="Files").click()
    page.get_by_role("slider").press("End")
    for entry in page.locator(".entry").all():
        entry.click()
    page.get_by_role("tab", name="Changes").click()
    for row in page.locator(".row").all():
        row.click()
    page.locator(".row").first.click()
    assert HOSTILE in page.locator("#changes").inner_text()
    assert page.locator("img").count() == 0
    assert page.title() != "owned"
    assert "\u202e" not in page.locator("body").inner_text()
    assert "\\u202e\\x1b.py" in page.locator("#changes").inner_text()


def test_direction_marks_and_invisible_characters_are_visible(show: Show) -> None:
    marks = "\u061c\u200e\u200f\u2028\u202e\u2066\u200b\u2060\ufeff\u00ad\U000e0041"
    session = Session(session_id=f"s{marks}")
    Toolset(session).call("write_file", {"path": f"/a{marks}.py", "content": f"b{marks}\n"}, caller=f"c{marks}")
    page = show(session)
    page.locator(".row").first.click()
    text = page.locator("body").inner_text() + page.title()
    assert not set(text) & set(marks)
    assert "b\\u061c\\u200e\\u200f\\u2028\\u202e\\u2066\\u200b\\u2060\\ufeff\\xad\\u{e0041}" in text


def test_long_names_do_not_widen_the_page(show: Show) -> None:
    long = "n" * 3000
    session = Session(session_id=long)
    Toolset(session).call("write_file", {"path": f"/{long[:200]}", "content": long}, call_id=long, caller=long)
    session.snapshot(long)
    page = show(session)
    for width in (1280, 400):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") == width
        assert page.locator("#rows").evaluate("one => one.clientHeight") > 300


def test_many_rows_use_few_elements_and_large_files_are_shown_in_parts(show: Show) -> None:
    session = Session(session_id="many")
    files = InMemoryFilesystem(session)
    for number in range(3000):
        files.write(f"/{number % 7}", f"{number}\n")
    files.write("/large", "".join(f"{number}\n" for number in range(4000)))
    page = show(session)
    assert page.locator(".row").count() < 100
    page.locator("#rows").focus()
    page.keyboard.press("End")
    page.locator("#row-3000").wait_for()
    assert page.locator("#changes .line.added").count() < 2000
    page.get_by_role("button", name="Show more").click()
    page.get_by_role("button", name="Show more").click()
    assert page.locator("#changes .line.added").count() == 4000
    page.evaluate("document.getElementById('rows').scrollTop = 30000")
    page.locator("#row-1000").wait_for()


def test_texts_without_common_lines_are_compared_within_the_bound(show: Show) -> None:
    session = Session(session_id="bound")
    files = InMemoryFilesystem(session)
    files.write("/a", "".join(f"{number}\n" for number in range(6000)))
    files.write("/a", "".join(f"{number}\n" for number in range(6000, 0, -1)))
    page = show(session)
    page.locator(".row").last.click()
    assert page.locator("#changes .line.removed").count() > 0


def test_a_page_without_contents_says_so(show: Show, story: Session) -> None:
    page = show(story, with_contents=False)
    page.locator(".row").first.click()
    assert "left out on request" in page.locator("#changes").inner_text()
    assert "left out" in page.locator("#summary").inner_text()


def test_an_empty_session_says_so(show: Show) -> None:
    page = show(Session(session_id="empty"))
    assert "no rows yet" in page.locator("#empty").inner_text()
    page.get_by_role("tab", name="Files").click()
