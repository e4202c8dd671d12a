"""Files that other programs changed while forks worked: kept when the merged work of nested forks is undone."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

import weakfs
from weakfs import HostFilesystem, MergeConflict
from weakfs.session import Session


def on_host(tmp_path: Path) -> tuple[HostFilesystem, Session, Path]:
    (tmp_path / "root").mkdir()
    files = HostFilesystem(tmp_path / "root", store=tmp_path / "store")
    return files, files.session, tmp_path / "root" / "a"


@pytest.mark.parametrize("is_known", [False, True])
@pytest.mark.parametrize("depth", [2, 3])
def test_a_change_found_by_a_fork_of_a_fork_is_kept(tmp_path: Path, depth: int, is_known: bool) -> None:
    files, session, path = on_host(tmp_path)
    if is_known:
        files.write("/a", "ours\n")
    forks = [session.fork()]
    while len(forks) < depth:
        forks.append(forks[-1].fork())
    path.write_text("theirs\n")
    files.bind(forks[-1]).write("/a", "of the fork\n")
    for parent, fork in zip([*forks[-2::-1], session], forks[::-1], strict=True):
        parent.merge(fork)

    assert session.undo().paths == ("/a",)
    assert path.read_text() == "theirs\n"
    session.redo()
    assert path.read_text() == "of the fork\n"


def test_changes_between_merges_into_a_fork_are_kept(tmp_path: Path) -> None:
    files, session, path = on_host(tmp_path)
    outer = session.fork()
    inner = outer.fork()
    files.bind(outer).write("/b", "1\n")
    for number in (1, 2):
        path.write_text(f"theirs {number}\n")
        files.bind(inner).write("/a", f"of the fork {number}\n")
        outer.merge(inner)
    path.with_name("b").write_text("theirs\n")
    files.bind(outer).write("/b", "2\n")
    session.merge(outer)

    session.undo()

    assert path.read_text() == "theirs 2\n"
    assert path.with_name("b").read_text() == "theirs\n"


@pytest.mark.parametrize("before", ["written", "unknown"])
def test_a_change_is_kept_although_the_record_at_which_the_fork_began_was_dropped(tmp_path: Path, before: str) -> None:
    files, session, path = on_host(tmp_path)
    if before == "written":
        files.write("/a", "ours\n")
    fork = session.fork()
    path.write_text("theirs\n")
    files.bind(fork).write("/a", "of the fork\n")
    files.write("/other", "1\n")
    session.compact(keep=0)
    session.merge(fork)

    session.undo()

    assert path.read_text() == "theirs\n"


def test_a_change_is_kept_in_a_session_that_was_saved_in_between(tmp_path: Path) -> None:
    files, session, path = on_host(tmp_path)
    files.write("/a", "ours\n")
    outer = session.fork()
    inner = outer.fork()
    path.write_text("theirs\n")
    files.bind(inner).write("/a", "of the fork\n")
    files.write("/other", "1\n")
    session.compact(keep=0)
    outer.merge(inner)
    session.merge(outer)
    session.save(tmp_path / "s.json")
    loaded = weakfs.Session.load(tmp_path / "s.json")
    HostFilesystem(tmp_path / "root", session=loaded, store=tmp_path / "store")

    loaded.undo()

    assert path.read_text() == "theirs\n"


class Program:
    """A random program of a session, forks in forks, and another program that changes the same files.

    `versions` holds the versions of each file, oldest first, with the one who wrote them.
    """

    paths = ("a", "b", "d/c")

    def __init__(self, tmp_path: Path, seed: int) -> None:
        self.random = Random(seed)
        self.root = tmp_path / "root"
        (self.root / "d").mkdir(parents=True)
        self.files = HostFilesystem(self.root, store=tmp_path / "store")
        self.session = self.files.session
        self.versions: dict[str, list[tuple[str, str]]] = {path: [] for path in self.paths}
        self.count = 0

    def happens(self, probability: float) -> bool:
        return self.random.random() < probability

    def change(self, who: str, files: HostFilesystem | None = None) -> None:
        self.count += 1
        path, text = self.random.choice(self.paths), f"{who} {self.count}\n"
        if files is None:
            (self.root / path).write_text(text)
        else:
            files.write(f"/{path}", text)
        self.versions[path].append((who, text))

    def work_in_fork(self, parent: Session, depth: int) -> None:
        fork = parent.fork()
        files = self.files.bind(fork)
        for _ in range(self.random.randrange(1, 4)):
            if self.happens(0.5):
                self.change("another program")
            if depth < 3 and self.happens(0.5):
                self.work_in_fork(fork, depth + 1)
            with fork.transaction():
                self.change("the fork", files)
            if self.happens(0.4):
                self.change("the session", self.files)
            if self.happens(0.4):
                self.session.compact(keep=self.random.randrange(3))
            if depth > 1 and self.happens(0.2):
                parent.merge(fork)
        parent.merge(fork)

    def without_fork(self, path: str) -> str | None:
        """Return the text of a file if the work of the fork is undone."""
        versions = self.versions[path]
        if versions and versions[-1][0] != "the fork":
            return versions[-1][1]
        return next((text for who, text in reversed(versions) if who != "the fork"), None)

    @property
    def has_later_changes(self) -> bool:
        """Whether a file that the fork changed was changed again by others."""
        return any(
            versions[-1][0] != "the fork" and "the fork" in dict(versions)
            for versions in self.versions.values()
            if versions
        )

    def texts(self) -> dict[str, str | None]:
        return {path: (self.root / path).read_text() if (self.root / path).exists() else None for path in self.paths}


@pytest.mark.parametrize("seed", range(24))
def test_the_work_of_forks_is_undone_and_that_of_others_stays(tmp_path: Path, seed: int) -> None:
    program = Program(tmp_path, seed)
    for _ in range(program.random.randrange(4)):
        program.change("another program")
        program.change("the session", program.files)
    program.work_in_fork(program.session, 1)
    before = program.texts()

    try:
        program.session.undo()
    except MergeConflict:
        assert program.has_later_changes
        assert program.texts() == before
        return

    assert program.texts() == {path: program.without_fork(path) for path in program.paths}
    program.session.redo()
    assert program.texts() == before
