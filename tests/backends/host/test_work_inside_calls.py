"""Changes made through the session during an external call: each is recorded once, and undone exactly."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Literal

import pytest

from weakfs import HostFilesystem, Session, Toolset
from weakfs.reducers.events import FileWritten


def on_disk(root: Path) -> dict[str, str | None]:
    return {
        str(path.relative_to(root)): path.read_text() if path.is_file() else None for path in sorted(root.rglob("*"))
    }


def change(random: Random, fs: HostFilesystem, value: str) -> None:
    """Make one change through the session."""
    files = [entry.path for entry in fs.walk() if entry.is_file]
    kind = random.choice(("write", "append", "move", "delete", "new"))
    if not files or kind == "new":
        fs.write(f"/{random.choice('xyz')}/{random.choice('123')}", value)
    elif kind == "write":
        fs.write(random.choice(files), value)
    elif kind == "append":
        fs.append(random.choice(files), value)
    elif kind == "move":
        fs.move(random.choice(files), f"/{random.choice('xyz')}/moved{value}")
    else:
        fs.delete(random.choice(files))


def outside(random: Random, root: Path, value: str) -> None:
    """Make one change as the external program."""
    files = [path for path in sorted(root.rglob("*")) if path.is_file()]
    if files and random.random() < 0.4:
        random.choice(files).unlink()
    elif files and random.random() < 0.4:
        random.choice(files).write_text(value)
    else:
        directory = root / random.choice("xyz")
        directory.mkdir(exist_ok=True)
        (directory / "program").write_text(value)


@pytest.mark.parametrize("foreign", ["keep", "replace", None])
@pytest.mark.parametrize("seed", range(40))
def test_a_rollback_is_exact(seed: int, foreign: Literal["keep", "replace"] | None, tmp_path: Path) -> None:
    random = Random(seed)
    session = Session(session_id="s")
    fs = HostFilesystem(tmp_path, session=session)
    tools = Toolset(session, fs)
    moments = {session.seq: on_disk(tmp_path)}
    for number in range(8):
        if random.random() < 0.6:
            call = tools.external_call("program").begin()
            for step in range(random.randint(1, 3)):
                value = f"{number}.{step}\n"
                if random.random() < 0.5:
                    call.run(lambda value=value: change(random, fs, value))  # type: ignore[misc]
                else:
                    outside(random, tmp_path, value)
            assert call.end().success
        else:
            change(random, fs, f"{number}\n")
        moments[session.seq] = on_disk(tmp_path)
    for seq in random.sample(sorted(moments), 4):
        session.rollback(seq, foreign=foreign)
        assert on_disk(tmp_path) == moments[seq]


def test_changes_made_through_the_session_are_recorded_once(tmp_path: Path) -> None:
    session = Session(session_id="s")
    fs = HostFilesystem(tmp_path, session=session)
    with Toolset(session, fs).external_call("program") as call:
        call.run(lambda: fs.write("/a", "1"))
    written = [record.event for record in session.records if isinstance(record.event, FileWritten)]
    assert [event.path for event in written] == ["/a"]
