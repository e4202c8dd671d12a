"""The full-screen timeline, by keyboard alone, with textual's own driver for tests: no terminal, no timing."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest

from tests.forked_command import run_command
from weakfs import InMemoryFilesystem, Session, Toolset

if TYPE_CHECKING:
    from textual.pilot import Pilot

    from weakfs.cli.terminal.app import TimelineApp

Act = Callable[["TimelineApp", "Pilot[None]"], Awaitable[None]]

# Text that a terminal, or a library that interprets markup, would obey.
HOSTILE = "\x1b]0;owned\x07[red]x[/red]\u202e[@click=app.quit]y[/]"


def drive(session: Session, act: Act, *, where: str = "s.json", size: tuple[int, int] = (120, 40)) -> None:
    """Show a session, wait until its rows are read, and act."""
    pytest.importorskip("textual", reason="textual is not installed")
    from weakfs.cli.terminal.app import TimelineApp

    async def run() -> None:
        app = TimelineApp(session, where)
        async with app.run_test(size=size) as pilot:
            await app.workers.wait_for_complete()
            await settle(pilot)
            await act(app, pilot)

    asyncio.run(run())


async def settle(pilot: Pilot[None]) -> None:
    """Wait until the messages are handled and the details are those of the selected row."""
    await pilot.pause()
    while cast("TimelineApp", pilot.app).is_due:
        await pilot.pause()


async def press(pilot: Pilot[None], *keys: str) -> None:
    await pilot.press(*keys)
    await settle(pilot)


def rows_of(app: TimelineApp) -> list[str]:
    return [app.rows_list.text_of(number) for number in range(app.rows_list.count)]


def details_of(app: TimelineApp) -> list[str]:
    return [app.details.text_of(number) for number in range(app.details.count)]


@pytest.fixture
def story() -> Session:
    ticks = iter(range(1_777_541_373_000_000_000, 1 << 62, 10**8))
    session = Session(session_id="story", clock=ticks.__next__)
    tools = Toolset(session)
    tools.call("write_file", {"path": "/a.py", "content": "one = 1\ntwo = 2\n"}, call_id="c1", caller="ann")
    tools.call("edit_file", {"path": "/a.py", "old_string": "none", "new_string": "x"}, call_id="c2", caller="bob")
    fork = session.fork("idea")
    Toolset(fork).call("write_file", {"path": "/idea.txt", "content": "idea"}, call_id="f1", caller="eve")
    session.snapshot("before")
    tools.call("edit_file", {"path": "/a.py", "old_string": "2", "new_string": "20"}, call_id="c3", caller="bob")
    session.merge(fork)
    InMemoryFilesystem(session).write("/own.md", "# own\n")
    return session


def test_rows_say_what_happened_in_the_order_of_the_page(story: Session) -> None:
    async def act(app: TimelineApp, pilot: Pilot[None]) -> None:
        rows = rows_of(app)
        assert [row.row.kind for row in app.all_rows] == [
            *("call", "call", "snapshot", "call", "call", "merge", "change")
        ]
        # The fork's row is on a lane of its own.
        assert [row.lane for row in app.all_rows] == [0, 0, 0, 0, 1, 0, 0]
        assert rows[4].startswith(" │ ●")
        assert "─╯" in rows[5]
        assert all(part in rows[0] for part in ("1 ", "write_file", "/a.py", "+2", "1 file", "ann", " ms"))
        assert "edit_target_not_found" in rows[1]

    drive(story, act)


@pytest.mark.slow
@pytest.mark.parametrize("width", [40, 72, 95, 200])
def test_a_row_fits_any_width(story: Session, width: int) -> None:
    async def act(app: TimelineApp, pilot: Pilot[None]) -> None:
        room = app.rows_list.scrollable_content_region.width
        # The list has a scroll bar.
        assert room < width
        assert all(len(row) <= room for row in rows_of(app))

    drive(story, act, size=(width, 8))


def test_a_selected_row_shows_its_difference_in_colors(story: Session) -> None:
    async def act(app: TimelineApp, pilot: Pilot[None]) -> None:
        await press(pilot, "j", "down", "down")
        lines = details_of(app)
        assert {"caller   bob", "M /a.py", "- two = 2", "+ two = 20"} <= {*lines}
        added = app.details._make_line(lines.index("+ two = 20"))
        # The sign, the number, and the background.
        assert len(added.spans) == 3

    drive(story, act)


@pytest.mark.slow
def test_a_search_finds_files_tools_and_failures(story: Session) -> None:
    async def act(app: TimelineApp, pilot: Pilot[None]) -> None:
        await press(pilot, "slash", *"idea", "enter")
        assert [app.all_rows[place].row.name for place in app.found][:1] == ["f1"]
        assert app.rows_list.has_focus
        await press(pilot, "escape")
        assert len(app.found) == 7
        await press(pilot, "f")
        assert [app.all_rows[place].row.name for place in app.found] == ["c2"]
        await press(pilot, "f", "slash", *"nothing such")
        assert (app.found, details_of(app)) == ([], ["no rows"])

    drive(story, act)


def test_two_rows_are_compared(story: Session) -> None:
    async def act(app: TimelineApp, pilot: Pilot[None]) -> None:
        await press(pilot, "c", "end")
        lines = details_of(app)
        assert [line for line in lines if line[:2] in ("A ", "M ")] == ["M /a.py", "A /idea.txt", "A /own.md"]
        await press(pilot, "escape")
        assert app.marked is None
        assert "status   change" in details_of(app)

    drive(story, act)


def test_the_files_follow_the_selected_row(story: Session) -> None:
    async def act(app: TimelineApp, pilot: Pilot[None]) -> None:
        await press(pilot, "t")
        assert details_of(app) == [" /a.py"]
        await press(pilot, "end")
        assert details_of(app) == [" /a.py", " /idea.txt", " /own.md"]

    drive(story, act)


def test_a_file_is_shown_with_blame_at_any_moment(story: Session) -> None:
    async def act(app: TimelineApp, pilot: Pilot[None]) -> None:
        await press(pilot, "end", "t", "tab", "enter")
        assert [line.strip() for line in details_of(app)] == ["1  one = 1", "2  two = 20"]
        await press(pilot, "b")
        assert ["ann" in details_of(app)[0], "bob" in details_of(app)[1]] == [True, True]
        await press(pilot, "tab", "home")
        assert details_of(app)[1].endswith("two = 2")
        assert not any("bob" in line for line in details_of(app))
        await press(pilot, "escape", "escape")
        assert app.view == "changes"

    drive(story, act)


def test_the_copied_patch_is_what_the_row_changed(story: Session) -> None:
    async def act(app: TimelineApp, pilot: Pilot[None]) -> None:
        await press(pilot, "p")
        assert app.copied.startswith("diff --git a/a.py b/a.py\nnew file mode")
        await press(pilot, "down", "y")
        assert app.copied.startswith("diff")

    drive(story, act)


def test_the_copied_command_previews_and_without_preview_reverts(story: Session, tmp_path: Path) -> None:
    file = tmp_path / "it's a session.json"
    story.save(file)
    commands: list[str] = []

    async def act(app: TimelineApp, pilot: Pilot[None]) -> None:
        await press(pilot, "down", "down", "down", "y")
        commands.append(app.copied)
        assert any(line.endswith(app.copied) for line in details_of(app))

    drive(story, act, where=shlex.quote(str(file)))
    program, *words = shlex.split(commands[0])
    assert (program, words[-1]) == ("weakfs", "--preview")

    def run(*words: str) -> str:
        done = run_command(*words)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert "/a.py" in run(*words)
    before = Session.load(file)
    assert InMemoryFilesystem(before).read("/a.py").content == "one = 1\ntwo = 20\n"
    run(*words[:-1])
    after = InMemoryFilesystem(Session.load(file))
    assert after.read("/a.py").content == "one = 1\ntwo = 2\n"
    # Later changes stay.
    assert after.exists("/own.md")


@pytest.mark.slow
def test_hostile_names_and_contents_are_only_shown() -> None:
    session = Session(session_id=HOSTILE)
    name = HOSTILE.replace("/", "-")
    arguments = {"path": f"/{name}.py", "content": f"{HOSTILE}\n" + "x" * 100_000 + "\n"}
    Toolset(session).call("write_file", arguments, call_id=HOSTILE, caller=HOSTILE)
    InMemoryFilesystem(session).write("/plain.py", f"{HOSTILE}\n")
    InMemoryFilesystem(session).write("/large", "line\n" * 2_000_000)

    async def act(app: TimelineApp, pilot: Pilot[None]) -> None:
        seen = rows_of(app) + details_of(app)
        for keys in (("down",), ("t",), ("tab", "enter"), ("b",), ("escape", "escape", "tab", "end"), ("y",), ("p",)):
            await press(pilot, *keys)
            seen += details_of(app)
        assert app.is_running
        assert any("[red]x[/red]" in line for line in seen)
        assert any("too large to be shown" in line for line in seen)
        assert not any(character in line for line in seen for character in "\x1b\x07\u202e")
        assert max(map(len, seen)) < 3_000

    drive(session, act)


def test_an_empty_session_and_one_without_old_records_are_shown(story: Session) -> None:
    async def nothing(app: TimelineApp, pilot: Pilot[None]) -> None:
        assert details_of(app) == ["no rows"]
        await press(pilot, "down", "t", "c", "b", "y", "p", "enter", "tab", "end")
        assert app.is_running

    async def act(app: TimelineApp, pilot: Pilot[None]) -> None:
        assert "its changes are not known: older records were compacted away" in details_of(app)
        await press(pilot, "t")
        assert details_of(app) == ["the files after this row are not known"]

    drive(Session(session_id="empty"), nothing)
    story.compact(keep=0)
    drive(story, act)


def test_only_visible_lines_are_rendered() -> None:
    session = Session(session_id="many")
    files = InMemoryFilesystem(session)
    for number in range(1_000):
        files.write("/a.txt", f"{number}\n")
    made: list[int] = []

    async def act(app: TimelineApp, pilot: Pilot[None]) -> None:
        make = app.rows_list._make_line

        def counted(number: int) -> object:
            made.append(number)
            return make(number)

        app.rows_list._make_line = counted  # type: ignore[assignment]
        await press(pilot, "end")
        assert app.selected == 999
        # A few renderings of the screen, not the rows that were passed.
        assert len(set(made)) <= 2 * app.rows_list.size.height
        assert min(made) > 900 or 0 in made

    drive(session, act)
