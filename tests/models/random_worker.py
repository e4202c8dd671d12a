"""A worker that makes random changes to files: edits, moves, copies and deletions."""

from __future__ import annotations

from random import Random

from attrs import define, field

from weakfs.filesystem import Filesystem

OPERATIONS = (
    *("edit",) * 6,
    *("append", "write", "write", "move", "move", "rename", "move directory", "move and edit", "move to new"),
    *("delete", "delete directory", "chmod", "back up", "swap", "replace", "copy", "rewrite", "save"),
)


@define
class Worker:
    """One side: makes random changes, and records those that git would not see."""

    name: str
    random: Random
    fs: Filesystem
    # The paths of the base state.
    before: frozenset[str]
    notes: set[str] = field(factory=set[str])

    def work(self, count: int) -> None:
        for _ in range(count):
            operation = self.random.choice(OPERATIONS)
            files = [entry.path for entry in self.fs.walk() if not entry.is_directory]
            directories = [entry.path for entry in self.fs.walk() if entry.is_directory]
            try:
                self.change(operation, files, directories)
            except (OSError, ValueError, IndexError):
                # A random operation that is impossible on these files.
                continue

    def change(self, operation: str, files: list[str], directories: list[str]) -> None:
        random, fs = self.random, self.fs
        path = random.choice(files)
        into = random.choice(["/", *directories]).rstrip("/")
        name = path.rpartition("/")[2]
        if operation == "edit":
            self.edit(path)
        elif operation == "append":
            fs.append(path, f"{self.name} appended {random.random()}\n")
        elif operation == "write":
            fs.write(f"{into}/{self.name}{random.randrange(1000)}", text(random))
        elif operation == "move" or operation == "rename":
            self.move(path, f"{into}/{name}" if operation == "move" else f"{path.rpartition('/')[0]}/{self.letter()}")
        elif operation == "move and edit":
            self.move(path, f"{into}/{name}")
            self.edit(f"{into}/{name}")
        elif operation == "move to new":
            self.move(path, f"{into}/{self.name}new/{name}")
        elif operation == "move directory":
            self.notes.add("directory moved")
            fs.move(random.choice(directories), f"{into}/{self.letter()}")
        elif operation == "delete":
            fs.delete(path)
        elif operation == "delete directory":
            self.notes.add("directory deleted")
            fs.delete(random.choice(directories), recursive=True)
        elif operation == "chmod":
            fs.chmod(path, random.choice((0o755, 0o644)))
        elif operation == "back up":
            self.notes.add("backed up")
            content = fs.read(path).content
            fs.move(path, path + ".bak")
            fs.write(path, content + f"{self.name} {random.random()}\n")
        elif operation == "swap":
            other = random.choice([other for other in files if other != path])
            self.notes.add("name reused")
            for source, destination in ((path, "/swapped"), (other, path), ("/swapped", other)):
                fs.move(source, destination)
        elif operation == "replace":
            self.move(path, random.choice(files))
        elif operation == "copy":
            self.notes.add("copied")
            fs.copy(path, f"{into}/{self.name}copy{random.randrange(100)}")
        else:
            content = fs.read(path).content + f"{self.name} {random.random()}\n"
            if operation == "rewrite":
                fs.delete(path)
                fs.write(path, content)
            else:
                fs.write("/saving", content)
                fs.move("/saving", path)

    def letter(self) -> str:
        return self.random.choice("pqrstuvw")

    def move(self, source: str, destination: str) -> None:
        if source != destination and (destination in self.before or self.fs.exists(destination)):
            self.notes.add("name reused")
        self.fs.move(source, destination)

    def edit(self, path: str) -> None:
        lines = self.fs.read(path).content.splitlines(keepends=True)
        at = self.random.randrange(len(lines))
        new = [f"{self.name} edited {self.random.random()}\n"] * self.random.randint(0, 2)
        lines[at : at + self.random.randint(0, 2)] = new
        self.fs.write(path, "".join(lines))


def text(random: Random) -> str:
    topic = random.random()
    return "".join(f"{topic} line {number} {random.randrange(1000)}\n" for number in range(random.randint(12, 25)))
