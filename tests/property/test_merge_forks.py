"""Forks of a session that change files in parallel, and their merges."""

from __future__ import annotations

from pathlib import PurePosixPath
from random import Random

import pytest

from tests.models.edits import Edit, edit_line, make, random_edits
from tests.models.merging import merge_plain
from tests.models.trees import CONTENTS, flatten, random_tree
from weakfs import MergeConflict, Session
from weakfs.backends import InMemoryFilesystem
from weakfs.filesystem import Filesystem
from weakfs.reducers import TreeRestored

LINES = [f"line {number}\n" for number in range(60)]


def opened(random: Random) -> tuple[Session, InMemoryFilesystem]:
    """Return files in a session: a random tree, and a text that both sides will change."""
    session = Session(session_id="s")
    session.dispatch(TreeRestored(random_tree(random, contents=CONTENTS[:-1], depth=3), "random", 1))
    fs = InMemoryFilesystem(session)
    fs.write("/shared.txt", "".join(LINES))
    return session, fs


def own_edits(random: Random, fs: Filesystem, side: str, own: list[str]) -> list[Edit]:
    """Generate operations on only the files that one side owns, and on new names of its own."""
    directories = ["/", *(entry.path for entry in fs.walk() if entry.is_directory)]
    own, edits = list(own), list[Edit]()
    for number in range(random.randint(1, 12)):
        new = f"{random.choice(directories).rstrip('/')}/{side}{number}"
        kind = random.randrange(8)
        if kind < 2 or not own:
            edits.append(("write", (new, f"{side} {number}\n")))
            own.append(new)
            continue
        path = random.choice(own)
        if kind == 2:
            edits.append(("write", (path, f"{side} {number}\n")))
        elif kind == 3:
            edits.append(("append", (path, side)))
        elif kind == 4:
            edits.append(("chmod", (path, random.choice((0o600, 0o711)))))
        elif kind == 5:
            edits.append(("copy", (path, new)))
            own.append(new)
        else:
            edits.append(("move", (path, new)) if kind == 6 else ("delete", (path,)))
            own.remove(path)
            if kind == 6:
                own.append(new)
    return edits


def line_edits(random: Random, side: str, numbers: list[int]) -> list[tuple[str, str]]:
    """Generate changes of lines that one side owns: they are replaced, doubled or removed."""
    chosen = random.sample(numbers, random.randint(1, 4))
    replacements = (f"{side} %d\n", f"{side} %d\nand one more of {side} %d\n", "")
    return [(LINES[n], random.choice(replacements).replace("%d", str(n))) for n in chosen]


@pytest.mark.parametrize("seed", range(60))
def test_changes_to_different_paths_and_lines_merge_in_either_order(seed: int) -> None:
    random = Random(seed)
    session, fs = opened(random)
    files = [entry.path for entry in fs.walk() if not entry.is_directory and entry.path != "/shared.txt"]
    random.shuffle(files)
    half = len(files) // 2
    sides = ("ours", "theirs")
    edits = [own_edits(random, fs, side, own) for side, own in zip(sides, (files[:half], files[half:]), strict=True)]
    # Every other pair of lines, so that no two changes touch.
    numbers = list(range(0, 60, 2))
    random.shuffle(numbers)
    lines = [line_edits(random, side, own) for side, own in zip(sides, (numbers[:15], numbers[15:]), strict=True)]

    def run(where: Filesystem, side: int) -> None:
        for edit in edits[side]:
            make(where, edit)
        for old, new in lines[side]:
            edit_line(where, "/shared.txt", old, new)

    fork, one, other = session.fork(), session.fork(), session.fork()
    one_fs, other_fs = fs.bind(one), fs.bind(other)
    for side in (0, 1):
        run(one_fs, side)
        run(other_fs, 1 - side)
    assert one_fs.tree().fingerprint == other_fs.tree().fingerprint

    run(fs, 0)
    run(fs.bind(fork), 1)
    session.merge(fork)
    assert flatten(fs.tree()) == flatten(one_fs.tree())
    assert fs.tree().fingerprint == one_fs.tree().fingerprint


@pytest.mark.parametrize("seed", range(100))
def test_any_changes_merge_like_plain_dictionaries_or_leave_both_sides_unchanged(seed: int) -> None:
    random = Random(seed)
    session = Session(session_id="s")
    fs = InMemoryFilesystem(session)
    for edit in random_edits(random, 25):
        make(fs, edit)
    base, fork = flatten(fs.tree()), session.fork()
    fork_fs = fs.bind(fork)
    for edit in random_edits(random, random.randint(0, 8)):
        make(fs, edit)
    for edit in random_edits(random, random.randint(0, 8)):
        make(fork_fs, edit)
    before = fs.tree(), session.seq, fork_fs.tree(), fork.seq
    wanted = merge_plain(base, flatten(fs.tree()), flatten(fork_fs.tree()))
    if isinstance(wanted, dict):
        session.merge(fork)
        assert flatten(fs.tree()) == wanted
        assert (fork_fs.tree(), fork.seq) == before[2:]
    else:
        with pytest.raises(MergeConflict) as caught:
            session.merge(fork)
        # A conflict names a path that moved by all of its names, and paths below it by their own.
        named = {path for conflict in caught.value.conflicts for path in conflict.paths}
        assert all(named & {path, *map(str, PurePosixPath(path).parents)} for path in wanted)
        assert (fs.tree(), session.seq, fork_fs.tree(), fork.seq) == before


def test_many_forks_of_different_files_merge_in_any_order() -> None:
    fingerprints: set[str] = set()
    for seed in range(5):
        session = Session(session_id="s")
        fs = InMemoryFilesystem(session)
        fs.write("/log.txt", "".join(f"slot {number}\n\n" for number in range(12)))
        forks = [session.fork() for _ in range(12)]
        for number, fork in enumerate(forks):
            bound = fs.bind(fork)
            bound.write(f"/d{number % 3}/f{number}", str(number))
            edit_line(bound, "/log.txt", f"slot {number}\n", f"taken by {number}\n")
        Random(seed).shuffle(forks)
        for fork in forks:
            session.merge(fork)
        assert fs.read("/log.txt").content == "".join(f"taken by {number}\n\n" for number in range(12))
        fingerprints.add(fs.tree().fingerprint)
    assert len(fingerprints) == 1


def test_a_conflict_can_be_resolved_in_the_fork_and_then_merged() -> None:
    session = Session()
    fs = InMemoryFilesystem(session)
    fs.write("/a", "1\n")
    fork = session.fork()
    bound = fs.bind(fork)
    fs.write("/a", "ours\n")
    bound.write("/a", "theirs\n")
    bound.write("/b", "more\n")
    with pytest.raises(MergeConflict) as caught:
        session.merge(fork)
    assert caught.value.paths == ("/a",)
    bound.write("/a", "ours\n")
    session.merge(fork)
    assert fs.read("/a").content == "ours\n"
    assert fs.read("/b").content == "more\n"


def test_a_merge_can_be_rolled_back() -> None:
    session = Session()
    fs = InMemoryFilesystem(session)
    fs.write("/a", "1\n")
    fork = session.fork()
    fs.bind(fork).write("/b", "2\n")
    before = session.seq
    session.merge(fork)
    session.rollback(before)
    assert [entry.path for entry in fs.walk()] == ["/a"]
    session.rollback(session.seq - 1)
    assert [entry.path for entry in fs.walk()] == ["/a", "/b"]


def test_lines_that_take_too_long_to_compare_conflict_instead_of_hanging() -> None:
    session = Session()
    fs = InMemoryFilesystem(session)

    def noise(seed: int) -> str:
        random = Random(seed)
        return "".join(f"{random.randrange(3)}\n" for _ in range(4000))

    fs.write("/noise.txt", noise(1))
    fork = session.fork()
    fs.write("/noise.txt", noise(2))
    fs.bind(fork).write("/noise.txt", noise(3))
    before = fs.tree()
    with pytest.raises(MergeConflict) as caught:
        session.merge(fork)
    assert caught.value.paths == ("/noise.txt",)
    assert fs.tree() is before
