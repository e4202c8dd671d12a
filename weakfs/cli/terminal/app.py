"""The full-screen view of a timeline: its rows above, and details of the selected row below."""

from __future__ import annotations

from itertools import islice
from typing import ClassVar, Literal

from rich.text import Text
from textual import on, work
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Footer, Input, Static
from textual.worker import get_current_worker

from weakfs import Session
from weakfs.cli.formatting import shown
from weakfs.cli.terminal.details import MAX_BYTES, differences_of, facts_of, file_lines, revert_command
from weakfs.cli.terminal.line_list import LineList
from weakfs.cli.terminal.rows import ListedRow, listed, matches, row_text
from weakfs.history.timeline_rows import changes_between, changes_of_rows
from weakfs.history.tree_patch import patch
from weakfs.history.trees import Trees
from weakfs.messages import plural
from weakfs.reducers import FileTree
from weakfs.reducers.tree.leaf import Leaf, is_special, size_of
from weakfs.reducers.tree.node import walk
from weakfs.session import MissingBlob, SessionError, SessionView

# Rows are shown in batches of this size, so that the first screen appears immediately.
BATCH = 200
# Patches longer than this (in characters) are not copied.
MAX_PATCH = 4 * 1024 * 1024

View = Literal["changes", "files", "file"]
# A file at a moment: its filesystem, path and content.
File = tuple[str | None, str, Leaf]


class TimelineApp(App[None]):
    """The timeline of a session. `where` is the session as typed in a shell, for the commands that are shown."""

    ENABLE_COMMAND_PALETTE = False
    CSS = """
    #summary, #title { height: 1; background: $panel; padding: 0 1; }
    #search { height: 1; border: none; padding: 0 1; display: none; }
    #search.shown { display: block; }
    #rows { height: 2fr; }
    #details { height: 3fr; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit", "Quit"),
        Binding("slash", "search", "Search", key_display="/"),
        Binding("f", "failed", "Failed only"),
        Binding("c", "compare", "Compare"),
        Binding("t", "toggle_files", "Files"),
        Binding("b", "blame", "Blame"),
        Binding("y", "copy_command", "Copy revert"),
        Binding("p", "copy_patch", "Copy patch"),
        Binding("escape", "go_back", "Back"),
        Binding("tab", "other_pane", "Pane", priority=True, show=False),
    ]

    def __init__(self, session: Session, where: str) -> None:
        super().__init__()
        self.session, self.where = session, where
        self.trees = Trees(session)
        self.all_rows: list[ListedRow] = []
        # The positions of the rows that match the search, the row to compare with, and the view below.
        self.found: list[int] = []
        self.marked: int | None = None
        self.view: View = "changes"
        self.opened: tuple[str | None, str] | None = None
        self.files: list[File] = []
        self.copied = ""
        self._failed_only = self._is_blamed = self._is_read = False
        # Whether the details will be shown again after the next refresh.
        self.is_due = False
        self._problem: str | None = None

    def compose(self) -> ComposeResult:
        """Lay out the screen."""
        yield Static(id="summary", markup=False)
        yield Input(
            id="search", placeholder="words in tool, target, status, caller, fork or file; press Enter when done"
        )
        yield LineList(id="rows")
        yield Static(id="title", markup=False)
        yield LineList(id="details")
        yield Footer()

    def on_mount(self) -> None:
        """Start reading the rows."""
        self.title = "weakfs timeline"
        self.rows_list.focus()
        self._read()

    @property
    def rows_list(self) -> LineList:
        """The list of rows."""
        return self.query_one("#rows", LineList)

    @property
    def details(self) -> LineList:
        """The lines below the list."""
        return self.query_one("#details", LineList)

    @property
    def selected(self) -> int | None:
        """The position of the selected row among all rows."""
        cursor = self.rows_list.cursor
        return None if cursor is None or cursor >= len(self.found) else self.found[cursor]

    @work(thread=True)
    def _read(self) -> None:
        worker = get_current_worker()
        rows = listed(changes_of_rows(self.session, self.trees))
        problem = None
        try:
            while not worker.is_cancelled and (batch := list(islice(rows, BATCH))):
                self.call_from_thread(self._add, batch)
        except (SessionError, OSError, ValueError) as error:
            problem = str(error)
        if not worker.is_cancelled:
            self.call_from_thread(self._finish, problem)

    def _add(self, batch: list[ListedRow]) -> None:
        start = len(self.all_rows)
        self.all_rows += batch
        words = self._words()
        self.found += [
            start + place for place, row in enumerate(batch) if matches(row, words, failed_only=self._failed_only)
        ]
        if self.rows_list.cursor is None:
            self._show_rows()
        else:
            self.rows_list.extend(len(self.found))
        self._summarize()

    def _finish(self, problem: str | None) -> None:
        self._is_read, self._problem = True, problem
        self._summarize()
        if not self.all_rows:
            self._update()

    def _words(self) -> list[str]:
        return self.query_one("#search", Input).value.lower().split()

    def _summarize(self) -> None:
        calls = sum(one.row.kind == "call" for one in self.all_rows)
        parts = [shown(self.session.session_id), plural(len(self.all_rows), "row"), plural(calls, "call")]
        if len(self.found) != len(self.all_rows):
            parts.append(f"{len(self.found):,} found")
        if self._failed_only:
            parts.append("failed only")
        if not self._is_read:
            parts.append("reading…")
        if self._problem is not None:
            parts.append(f"cannot read more: {shown(self._problem)}")
        self.query_one("#summary", Static).update(Text(" · ".join(parts), no_wrap=True))

    def _show_rows(self, selected: int | None = None) -> None:
        cursor = self.found.index(selected) if selected in self.found else 0
        self.rows_list.show(len(self.found), self._row_line, cursor=cursor)
        self._summarize()
        self._update()

    def _row_line(self, number: int) -> Text:
        place = self.found[number]
        width = self.rows_list.scrollable_content_region.width
        return row_text(self.all_rows[place], width, is_marked=place == self.marked)

    @on(Input.Changed, "#search")
    def _search(self) -> None:
        words = self._words()
        selected = self.selected
        self.found = [
            place for place, row in enumerate(self.all_rows) if matches(row, words, failed_only=self._failed_only)
        ]
        self._show_rows(selected)

    @on(Input.Submitted, "#search")
    def _searched(self) -> None:
        self.rows_list.focus()

    @on(LineList.Moved, "#rows")
    def _row_moved(self) -> None:
        self._update()

    @on(LineList.Chosen, "#rows")
    def _row_chosen(self) -> None:
        self.details.focus()

    @on(LineList.Chosen, "#details")
    def _file_chosen(self) -> None:
        if self.view == "files" and self.details.cursor is not None:
            filesystem, path, _ = self.files[self.details.cursor]
            self.opened, self.view = (filesystem, path), "file"
            self._update()

    def action_search(self) -> None:
        """Ask for the words to search for."""
        search = self.query_one("#search", Input)
        search.add_class("shown")
        search.focus()

    def action_failed(self) -> None:
        """Show only rows that failed, or all again."""
        self._failed_only = not self._failed_only
        self._search()

    def action_compare(self) -> None:
        """Compare the selected row with the row selected next."""
        self.marked = None if self.marked is not None else self.selected
        self.view = "changes"
        self.rows_list.refresh()
        self._update()

    def action_toggle_files(self) -> None:
        """Show the files after the selected row, or what it changed."""
        self.view = "changes" if self.view != "changes" else "files"
        self._update()

    def action_blame(self) -> None:
        """Show which calls wrote the lines of the file, or the plain file."""
        self._is_blamed = not self._is_blamed
        self._update()

    def action_go_back(self) -> None:
        """Go back by one step."""
        search = self.query_one("#search", Input)
        if search.has_class("shown"):
            search.remove_class("shown")
            search.value = ""
            self.rows_list.focus()
        elif self.view == "file":
            self.view = "files"
        elif self.view == "files":
            self.view = "changes"
        elif self.marked is not None:
            self.action_compare()
        else:
            self.rows_list.focus()
        self._update()

    def action_other_pane(self) -> None:
        """Move to the other half of the screen."""
        (self.rows_list if self.details.has_focus else self.details).focus()

    def action_copy_command(self) -> None:
        """Copy the command that previews undoing the row."""
        place = self.selected
        self._copy("command", None if place is None else revert_command(self.all_rows[place].row, self.where))

    def action_copy_patch(self) -> None:
        """Copy what the row changed as a patch for `git apply`."""
        changes = None if self.selected is None else self.all_rows[self.selected].changes.changes
        leaves = [leaf for _, change in changes or () for leaf in (change.old, change.new) if leaf is not None]
        if sum(0 if is_special(leaf) else size_of(leaf) for leaf in leaves) > MAX_PATCH:
            self.notify("the patch is too large to copy; use weakfs diff", severity="warning", markup=False)
            return
        try:
            text = b"".join(line for _, change in changes or () for line in patch(change))
        except MissingBlob as error:
            self.notify(shown(str(error)), severity="warning", markup=False)
            return
        self._copy("patch", text.decode("utf-8", "replace") or None)

    def _copy(self, what: str, text: str | None) -> None:
        if text is None:
            self.notify(f"the row has no {what}: it is not known to have changed files", markup=False)
            return
        self.copied = text
        # Surrogates stand for bytes of names that are not UTF-8.
        self.copy_to_clipboard(text.encode("utf-8", "replace").decode())
        self.notify(f"{what} copied, if the terminal allows it", markup=False)

    def _update(self) -> None:
        """Show the details after handling the keys that were pressed meanwhile."""
        if not self.is_due:
            self.is_due = True
            self.call_after_refresh(self._show_details)

    def _show_details(self) -> None:
        self.is_due = False
        place = self.selected
        if place is None:
            self._show_lines("", [Text("no rows" if self._is_read else "", "italic")])
            return
        try:
            if self.marked is not None and self.marked != place:
                self._show_comparison(*sorted((self.marked, place)))
            elif self.view == "changes":
                self._show_changes(place)
            else:
                self._show_files(place)
        except (SessionError, OSError, ValueError) as error:
            self._show_lines("", [Text(shown(str(error)), "red")])

    def _show_lines(self, title: str, lines: list[Text]) -> None:
        self.query_one("#title", Static).update(Text(title, no_wrap=True))
        self.details.show(len(lines), lambda number: lines[number].copy())

    def _title(self, place: int) -> str:
        row = self.all_rows[place].row
        number = "" if row.number is None else f"#{row.number} "
        return f"{number}{shown(row.action)} {shown(row.target)}"

    def _show_changes(self, place: int) -> None:
        one = self.all_rows[place].changes
        lines = facts_of(one.row, self.where)
        if one.changes is None:
            lines.append(Text("its changes are not known: older records were compacted away", "italic"))
        elif not one.changes:
            lines.append(Text("it changed no files", "italic"))
        else:
            lines += differences_of(one.changes)
        marking = " · select the row to compare with" if self.marked is not None else ""
        self._show_lines(f"{self._title(place)}{marking}", lines)

    def _show_comparison(self, first: int, last: int) -> None:
        title = f"from {self._title(first)} to {self._title(last)}"
        before, after = self._moment(first), self._moment(last)
        if before is None or after is None:
            self._show_lines(title, [Text("the files after one of these rows are not known", "italic")])
            return
        changes = list(changes_between(self.trees, before, after))
        self._show_lines(title, differences_of(changes) or [Text("no files differ", "italic")])

    def _moment(self, place: int) -> SessionView | None:
        """Return the state after a row; `None` if it is not known."""
        one = self.all_rows[place].changes
        if one.step is not None:
            return one.step.after
        return self.session.at(one.row.first) if one.row.kind == "snapshot" and one.row.first is not None else None

    def _show_files(self, place: int) -> None:
        view = self._moment(place)
        after = f"after {self._title(place)}"
        if view is None:
            self._show_lines(after, [Text("the files after this row are not known", "italic")])
            return
        if self.view == "file" and self.opened is not None:
            self._show_file(view, place, *self.opened)
            return
        self.files = [
            (name, path, leaf)
            for name, tree in self.trees.all(view).items()
            for path, leaf in walk(tree)
            if type(leaf) is not FileTree
        ]
        touched = {(file.filesystem, file.path) for file in self.all_rows[place].row.files}
        self.query_one("#title", Static).update(Text(f"{plural(len(self.files), 'file')} {after}", no_wrap=True))
        cursor = next((at for at, (name, path, _) in enumerate(self.files) if (name, path) == self.opened), 0)

        def line(number: int) -> Text:
            name, path, _ = self.files[number]
            origin = "" if name is None else f" in {shown(name)}"
            return Text(f" {shown(path)}{origin}", "bold" if (name, path) in touched else "")

        self.details.show(len(self.files), line, cursor=cursor)

    def _show_file(self, view: SessionView, place: int, filesystem: str | None, path: str) -> None:
        leaf = next((leaf for at, leaf in walk(self.trees.at(view, filesystem)) if at == path), None)
        title = f"{shown(path)} after {self._title(place)}"
        if leaf is None or type(leaf) is FileTree:
            self._show_lines(title, [Text("the file does not exist at this moment", "italic")])
            return
        blame = None
        if self._is_blamed and not is_special(leaf) and size_of(leaf) <= MAX_BYTES:
            try:
                blame = self.session.blame(path, at=view.seq, filesystem=filesystem)
            except (SessionError, OSError, ValueError) as error:
                title = f"{title} · no blame: {shown(str(error))}"
        lines = file_lines(leaf, path, blame)
        self.query_one("#title", Static).update(Text(title, no_wrap=True))
        self.details.show(len(lines), lambda number: lines[number].copy(), keep_place=True)
