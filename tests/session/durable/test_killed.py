"""A process that is killed: everything that it acknowledged is present, and nothing is half done."""

from __future__ import annotations

import os
import signal
from itertools import product
from pathlib import Path
from random import Random

import pytest

from tests.sampling import sample
from weakfs import InMemoryFilesystem, Session, Toolset
from weakfs.session.durable.checkpoints import checkpoints

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


def work(where: str, acknowledge: int) -> None:
    """Write numbered pairs of files in transactions endlessly, and acknowledge each."""
    session = Session.open(where, "s")
    tools = Toolset(session)
    fs = InMemoryFilesystem(session)
    number = 0
    while True:
        number += 1
        with session.transaction():
            fs.write("/first", f"{number} " * 300)
            fs.write("/second", f"{number} " * 300)
        tools.call("write_file", {"path": f"{number % 50}", "content": str(number)})
        if number % 10 == 0:
            session.snapshot(str(number))
        os.write(acknowledge, b"%d\n" % number)


def killed_after(where: str, acknowledged: int) -> int:
    """Run `work` in a separate process, kill it after some acknowledgements, and return the last one."""
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            work(where, theirs)
        finally:
            os._exit(1)
    os.close(theirs)
    last = 0
    with os.fdopen(ours) as lines:
        for line in lines:
            last = int(line)
            if last == acknowledged:
                os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return last


@pytest.mark.sampled(by_rule=True)
@pytest.mark.parametrize(("engine", "seed"), sample([*product(("folder", "sqlite"), range(40))]))
def test_acknowledged_changes_survive_a_kill(
    engine: str, seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    where = f"{engine}:{tmp_path / 'store'}"
    monkeypatch.setattr(checkpoints, "LEAST", 20_000)
    dice = Random(seed)
    for _ in range(2):
        last = killed_after(where, dice.randint(1, 150))
        session = Session.open(where)
        fs = InMemoryFilesystem(session)
        first = fs.read("/first").content
        assert first == fs.read("/second").content
        assert int(first.split()[0]) in (last, last + 1)
        assert fs.read(f"/{last % 50}").content == str(last)
        if last >= 10:
            assert session.at(str(last // 10 * 10)).seq <= session.seq
        assert session.replayed().to_bytes() == session.to_bytes()
        session.close()
