"""Random histories: for each line, blame names the same record as a model of the same work."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest
from attrs import define, field

from weakfs import InMemoryFilesystem, MergeConflict, Session
from weakfs.reducers.merging.line_merge import matches, split_lines

WORDS = ("one\n", "two\n", "}\n", "\n", "three\r\n", "vier", "fünf\n")
NAMES = ("a", "b", "c")
DIRECTORIES = ("", "/d", "/e")
NOWHERE = -1

# The lines of each file, and the record that added each line.
Files = dict[str, tuple[bytes, tuple[int, ...]]]


class Failed(Exception):
    """Raised inside a transaction, so that it is rolled back."""


def traced(old: tuple[bytes, tuple[int, ...]] | None, new: bytes, origin: int) -> tuple[int, ...]:
    """Return the origins of the lines of `new`, which replaced `old`."""
    lines = split_lines(new)
    origins = [origin] * len(lines)
    if old is not None:
        for i, j, length in matches(split_lines(old[0]), lines):
            origins[j : j + length] = old[1][i : i + length]
    return tuple(origins)


@define
class Side:
    """A session or fork with its files, and the model of them."""

    session: Session
    fs: InMemoryFilesystem
    random: Random
    files: Files = field(factory=dict)
    # The files after each record, and the moves so far.
    past: dict[int, Files] = field(factory=dict)
    moves: list[tuple[str, str]] = field(factory=list)

    def work(self, count: int) -> None:
        for _ in range(count):
            with suppress(OSError, ValueError):
                self.operate(self.random.choice(("write", "edit", "edit", "edit", "append", "move", "copy", "delete")))

    def path(self) -> str:
        return f"{self.random.choice(DIRECTORIES)}/{self.random.choice(NAMES)}"

    def operate(self, operation: str) -> None:
        fs, files, random = self.fs, self.files, self.random
        path, other = self.path(), random.choice((self.path(), *DIRECTORIES[1:], "/f"))
        if operation == "write":
            fs.write(path, self.text())
            self.became(path, fs.read_bytes(path).content)
        elif operation == "append":
            fs.append(path, self.text())
            self.became(path, fs.read_bytes(path).content)
        elif operation == "edit":
            lines = fs.read(path).content.splitlines(keepends=True)
            at = random.randint(0, len(lines))
            lines[at : at + random.randint(0, 2)] = [random.choice(WORDS) for _ in range(random.randint(0, 2))]
            fs.write(path, "".join(lines))
            self.became(path, fs.read_bytes(path).content)
        elif operation == "delete":
            fs.delete(path)
            files.pop(path, None)
        else:
            source = random.choice((path, *DIRECTORIES[1:]))
            act = fs.move if operation == "move" else fs.copy
            act(source, other)
            below = [one for one in files if f"{one}/".startswith(f"{source}/")]
            came = {other + one[len(source) :]: files[one] for one in below}
            if operation == "move":
                self.moves.append((source, other))
                for one in below:
                    del files[one]
            files |= came
        self.done()

    def became(self, path: str, content: bytes) -> None:
        self.files[path] = content, traced(self.files.get(path), content, self.session.seq)

    def text(self) -> str:
        return "".join(self.random.choice(WORDS) for _ in range(self.random.randint(0, 6)))

    def done(self) -> None:
        self.past[self.session.seq] = dict(self.files)

    def fail(self) -> None:
        """Work in a transaction that is rolled back."""
        before = dict(self.files)
        with suppress(Failed), self.session.transaction(cause="failed"):
            self.work(2)
            raise Failed
        self.files = before
        self.done()

    def roll_back(self) -> None:
        """Go back to any record, including one that was rolled back."""
        seq = self.random.choice([*self.past])
        self.session.rollback(seq)
        self.files = dict(self.past[seq])
        self.done()

    def undo(self) -> None:
        """Undo the newest operation, and perhaps redo it."""
        if self.session.seq - 1 not in self.past or self.session.seq not in self.past:
            return
        before, now = self.past[self.session.seq - 1], dict(self.files)
        if self.session.undo(preview=True).records[0] != (self.session.seq, self.session.seq):
            return
        self.session.undo()
        self.files = dict(before)
        self.done()
        if self.random.random() < 0.5:
            self.session.redo()
            self.files = now
            self.done()

    def fork(self, depth: int = 0) -> None:
        """Work on a fork and here, and merge; perhaps continue with the fork, and merge again."""
        random, session = self.random, self.session
        fork = session.fork()
        theirs = Side(fork, self.fs.bind(fork), random, dict(self.files), dict(self.past))
        # How the record numbers of the fork are mapped: which ones are shifted, and by how much.
        shifts: list[tuple[int, int]] = []
        base, our_moves = session.seq, len(self.moves)
        for _ in range(random.choice((1, 1, 2))):
            before, their_moves = session.seq, len(theirs.moves)
            left = theirs.session.seq
            theirs.work(random.randint(1, 4))
            if random.random() < 0.3:
                theirs.roll_back()
            if depth < 2 and random.random() < 0.3:
                theirs.fork(depth + 1)
            if random.random() < 0.7:
                self.work(random.randint(0, 4))
            try:
                merge = session.merge(fork).seq
            except MergeConflict:
                return
            if fork.seq == left:
                return
            shifts.append((left, merge - left))
            is_forward = merge == base + 1 == before + 1
            moves = (self.moves[our_moves:], theirs.moves[their_moves:])
            self.merged(theirs, merge, shifts, moves, is_forward=is_forward)
            self.moves += moves[1]
            self.done()
            base = -1

    def merged(
        self,
        theirs: Side,
        merge: int,
        shifts: Sequence[tuple[int, int]],
        moves: tuple[Sequence[tuple[str, str]], Sequence[tuple[str, str]]],
        *,
        is_forward: bool,
    ) -> None:
        """Blame the merged files: ours first, then theirs, followed through the moves of both sides."""
        ours, other = dict(self.files), dict[str, tuple[bytes, tuple[int, ...]]]()
        for path, (content, origins) in theirs.files.items():
            other[path] = (
                content,
                tuple(one + max([0, *(by for after, by in shifts if one > after)]) for one in origins),
            )
        self.files = {}
        for entry in self.fs.walk():
            if entry.is_directory:
                continue
            path, content = entry.path, self.fs.read_bytes(entry.path).content
            found = [other.get(path)]
            if not is_forward:
                found = [ours.get(path), *found, ours.get(unmoved(path, moves[1])), other.get(unmoved(path, moves[0]))]
            known = [one for one in found if one is not None]
            same = [one for one in known if one[0] == content]
            origins = tuple([NOWHERE] * len(split_lines(content)))
            for one in same or known:
                more = traced(one, content, NOWHERE)
                origins = tuple(b if a == NOWHERE else a for a, b in zip(origins, more, strict=True))
            self.files[path] = content, tuple(merge if one == NOWHERE else one for one in origins)


def unmoved(path: str, moves: Sequence[tuple[str, str]]) -> str:
    for source, destination in reversed(moves):
        if f"{path}/".startswith(f"{destination}/"):
            path = source + path[len(destination) :]
    return path


def worked(seed: int) -> Side:
    random = Random(seed)
    session = Session(session_id="s", clock=lambda: 0)
    side = Side(session, InMemoryFilesystem(session), random)
    side.fs.mkdir("/d")
    side.done()
    side.work(6)
    for _ in range(8):
        random.choice((lambda: side.work(3), side.fail, side.roll_back, side.undo, side.fork, side.fork))()
    return side


def blamed(session: Session, path: str, at: int | None = None) -> tuple[int, ...]:
    return tuple(line.record for line in session.blame(path, at=at))


@pytest.mark.parametrize("seed", range(400))
def test_blame_names_the_same_records_as_a_model(seed: int, tmp_path: Path) -> None:
    side = worked(seed)
    session = side.session
    for path, (content, origins) in side.files.items():
        assert side.fs.read_bytes(path).content == content
        assert blamed(session, path) == origins, path
    session.save(tmp_path / "s.json")
    again = Session.load(tmp_path / "s.json")
    for path, (_, origins) in side.files.items():
        assert blamed(again, path) == origins, path
    for seq in [*side.past][::4]:
        for path, (_, origins) in side.past[seq].items():
            assert blamed(session, path, seq) == origins, (path, seq)
