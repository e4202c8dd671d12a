"""Work like an agent's: calls that read, edit, write, move and patch the files of a project, some of which fail."""

from __future__ import annotations

from collections.abc import Callable
from difflib import unified_diff
from itertools import count
from pathlib import Path
from random import Random

from attrs import field, frozen

from weakfs import InMemoryFilesystem, Toolset
from weakfs.reducers import FileTree
from weakfs.reducers.tree.leaf import content_of, is_file
from weakfs.reducers.tree.node import walk
from weakfs.search import is_binary

CODE = Path(__file__).parents[2] / "fixtures" / "code"


@frozen
class Call:
    """A call of a tool, with its id."""

    tool: str
    arguments: dict[str, object]
    call_id: str


@frozen
class Agent:
    """Chooses each call according to the current files, as agents do: half of the calls change something."""

    random: Random
    files: InMemoryFilesystem
    tools: Toolset
    _names: count[int] = field(factory=lambda: count(1))

    def work(self, number: int) -> list[Call]:
        """Make this many calls."""
        kinds: list[tuple[int, Callable[[], tuple[str, dict[str, object]]]]] = [
            (30, self.read),
            (12, self.search),
            (30, self.edit),
            (10, self.write),
            (8, self.patch),
            (2, self.move),
            (1, self.copy),
            (2, self.remove),
            (5, self.mistake),
        ]
        chosen = self.random.choices([make for _, make in kinds], [often for often, _ in kinds], k=number)
        made: list[Call] = []
        for position, make in enumerate(chosen):
            tool, arguments = make()
            made.append(Call(tool, arguments, f"call-{position}"))
            self.tools.call(tool, arguments, call_id=made[-1].call_id)
        return made

    def paths(self) -> list[str]:
        """List the text files."""
        return [
            path
            for path, leaf in walk(self.files.tree())
            if type(leaf) is not FileTree and is_file(leaf) and not is_binary(content_of(leaf))
        ]

    def path(self) -> str:
        return self.random.choice(self.paths())

    def new_path(self, like: str) -> str:
        folder = self.random.choice([path.rpartition("/")[0] for path in self.paths()])
        return f"{folder}/part{next(self._names)}{Path(like).suffix}"

    def lines(self, path: str) -> list[str]:
        return self.files.read(path).content.splitlines(keepends=True)

    def changed(self, lines: list[str]) -> list[str]:
        """Return the lines with one or two changed, or some added or removed."""
        at = self.random.randrange(len(lines) + 1)
        part = lines[at : at + self.random.randint(0, 3)]
        new = [f"{line.rstrip()}  # {next(self._names)}\n" for line in part[: self.random.randint(0, 2)]]
        if new == part or self.random.random() < 0.6:
            new.append(f"added = {next(self._names)}\n")
        return [*lines[:at], *new, *lines[at + len(part) :]]

    def read(self) -> tuple[str, dict[str, object]]:
        return "read_file", {"path": self.path()}

    def search(self) -> tuple[str, dict[str, object]]:
        kinds: list[tuple[str, dict[str, object]]] = [
            ("grep", {"pattern": "def |added"}),
            ("glob", {"pattern": "**/*.py"}),
            ("ls", {}),
        ]
        return self.random.choice(kinds)

    def edit(self) -> tuple[str, dict[str, object]]:
        path = self.path()
        lines = self.lines(path)
        at = self.random.randrange(max(1, len(lines) - 2))
        old = lines[at : at + self.random.randint(1, 3)]
        return "edit_file", {"path": path, "old_string": "".join(old), "new_string": "".join(self.changed(old))}

    def write(self) -> tuple[str, dict[str, object]]:
        source = self.random.choice(sorted(CODE.iterdir()))
        path = self.path() if self.random.random() < 0.2 else self.new_path(source.name)
        return "write_file", {"path": path, "content": source.read_text()}

    def patch(self) -> tuple[str, dict[str, object]]:
        text = ""
        for path in self.random.sample(paths := self.paths(), min(len(paths), self.random.randint(1, 3))):
            lines = self.lines(path)
            text += "".join(unified_diff(lines, self.changed(lines), f"a{path}", f"b{path}"))
        return "apply_patch", {"patch": text, "patch_format": "unified"}

    def move(self) -> tuple[str, dict[str, object]]:
        path = self.path()
        return "mv", {"source": path, "destination": self.new_path(path)}

    def copy(self) -> tuple[str, dict[str, object]]:
        path = self.path()
        return "cp", {"source": path, "destination": self.new_path(path)}

    def remove(self) -> tuple[str, dict[str, object]]:
        return "rm", {"path": self.path()}

    def mistake(self) -> tuple[str, dict[str, object]]:
        kinds: list[tuple[str, dict[str, object]]] = [
            ("read_file", {"path": "/no/such/file.py"}),
            ("edit_file", {"path": self.path(), "old_string": "nowhere to be found", "new_string": ""}),
            ("mv", {"source": "/missing", "destination": "/elsewhere"}),
        ]
        return self.random.choice(kinds)
