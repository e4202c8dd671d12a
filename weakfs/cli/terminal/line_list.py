"""A widget with many lines that renders only the visible ones, with or without a cursor."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

# The maximum width of a line; the rest is cut.
MAX_WIDTH = 2_000

MakeLine = Callable[[int], Text]


class LineList(ScrollView, can_focus=True):
    """Lines that are made when they become visible. `show` replaces them; with a cursor, one of them is selected.

    Posts `Moved` when the cursor moves, and `Chosen` when Enter is pressed on a line.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", "up", show=False),
        Binding("down,j", "move(1)", "down", show=False),
        Binding("pageup", "move_page(-1)", "page up", show=False),
        Binding("pagedown", "move_page(1)", "page down", show=False),
        Binding("home,g", "move_to_end(False)", "first", show=False),
        Binding("end,G", "move_to_end(True)", "last", show=False),
        Binding("left,h", "scroll_sideways(-16)", "left", show=False),
        Binding("right,l", "scroll_sideways(16)", "right", show=False),
        Binding("enter", "choose", "open", show=False),
    ]
    DEFAULT_CSS = "LineList { height: 1fr; overflow: auto auto; }"

    class Moved(Message):
        """The cursor has moved to another line."""

        def __init__(self, lines: LineList) -> None:
            self.lines = lines
            super().__init__()

        @property
        def control(self) -> LineList:
            """The widget whose cursor moved."""
            return self.lines

    class Chosen(Moved):
        """Enter was pressed on a line."""

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self.cursor: int | None = None
        self.count = 0
        self._make_line: MakeLine = lambda _: Text()

    def show(self, count: int, make_line: MakeLine, *, cursor: int | None = None, keep_place: bool = False) -> None:
        """Show `count` lines. `cursor` is the selected line, `None` for no cursor."""
        self.count, self._make_line = count, make_line
        self.virtual_size = Size(MAX_WIDTH if cursor is None else 0, count)
        self.cursor = None if cursor is None or not count else min(cursor, count - 1)
        if self.cursor is not None:
            self._reveal()
        elif not keep_place:
            self.scroll_to(0, 0, animate=False)
        self.refresh()

    def extend(self, count: int) -> None:
        """Show more lines, `count` in total; the existing lines are unchanged."""
        self.count = count
        self.virtual_size = Size(self.virtual_size.width, count)
        self.refresh()

    def text_of(self, number: int) -> str:
        """Return the text of a line."""
        return self._make_line(number).plain

    def render_line(self, y: int) -> Strip:
        """Render one line of the screen."""
        left, top = self.scroll_offset
        number, width = top + y, self.size.width
        if number >= self.count:
            return Strip.blank(width, self.rich_style)
        text = self._make_line(number)
        if number == self.cursor:
            # The whole line gets one style.
            text = Text(text.plain, "reverse" if self.has_focus else "underline")
        text.no_wrap, text.end = True, ""
        strip = Strip(text.render(self.app.console))
        return strip.crop_extend(left, left + width, self.rich_style).apply_style(self.rich_style)

    def go_to(self, number: int) -> None:
        """Move the cursor to a line, or to the nearest one that exists."""
        number = max(0, min(number, self.count - 1))
        if self.cursor is None or not self.count or number == self.cursor:
            return
        self.cursor = number
        self._reveal()
        self.refresh()
        self.post_message(self.Moved(self))

    def action_move(self, step: int) -> None:
        """Move the cursor, or scroll."""
        if self.cursor is None:
            self.scroll_relative(y=step, animate=False)
        else:
            self.go_to(self.cursor + step)

    def action_move_page(self, step: int) -> None:
        """Move by a screen."""
        self.action_move(step * max(self.size.height - 1, 1))

    def action_move_to_end(self, is_last: bool) -> None:
        """Move to the first line or to the last."""
        self.action_move(self.count if is_last else -self.count)

    def action_scroll_sideways(self, step: int) -> None:
        """Scroll to the left or right."""
        self.scroll_relative(x=step, animate=False)

    def action_choose(self) -> None:
        """Open the line at the cursor."""
        if self.cursor is not None:
            self.post_message(self.Chosen(self))

    def _reveal(self) -> None:
        if self.cursor is not None:
            self.scroll_to_region(Region(0, self.cursor, 1, 1), animate=False, force=True, x_axis=False)
