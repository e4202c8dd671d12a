"""A process that is killed: a call is completely in the files and in the durable session, or in neither."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from tests.faults.dying import Death, dying
from tests.sampling import is_exhaustive, sample, share
from weakfs import HostFilesystem, Session, Toolset
from weakfs.reducers import ExternalFsSnapshot
from weakfs.reducers.external_trees import ExternalTrees
from weakfs.session.durable.checkpoints import checkpoints
from weakfs.tools.defaults import DEFAULT_TOOLS
from weakfs.tools.handlers import ShellOptions, shell_tool
from weakfs.tools.slices import ToolCall

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


class Desk:
    """A directory of the host, and the durable session of those who work in it."""

    def __init__(self, place: Path, engine: str = "folder") -> None:
        self.session = Session.open(f"{engine}:{place / engine}", "s")
        self.files = HostFilesystem(place / "root", session=self.session, store=place / "store")
        self.tools = Toolset(
            self.session,
            self.files,
            tools=[*(tool for tool in DEFAULT_TOOLS if tool.name != "shell"), shell_tool(ShellOptions(sandbox="off"))],
        )
        self.journals = place / "store" / "journals"

    def call(self, name: str, call_id: str, **arguments: object) -> None:
        result = self.tools.call(name, arguments, call_id=call_id)
        assert result.success, result.message

    def calls(self) -> set[str]:
        return {call.call_id for call in self.session[ToolCall].all()}

    def check(self) -> None:
        """Check that the files are as the session says, that nothing is left over, and that no call is half done."""
        assert list(self.journals.rglob("log")) == []
        known = self.session[ExternalTrees].latest()
        assert known is not None
        assert self.files.tree().fingerprint == known.tree(self.files.filesystem_id).fingerprint
        causes = {record.cause for record in self.session.records if record.cause is not None}
        assert causes <= self.calls()


def standard_desk(place: Path, engine: str = "folder") -> None:
    (place / "root").mkdir()
    desk = Desk(place, engine)
    desk.files.write("/file", "one\ntwo\n")
    desk.session.snapshot("empty")
    prepare(desk)
    desk.session.snapshot("start")
    desk.session.close()


def prepare(desk: Desk) -> None:
    """Prepare the files so that every kind of work changes something."""
    fs = desk.files
    with desk.session.transaction():
        for path in ("/new", "/moved", "/made"):
            if fs.exists(path):
                fs.delete(path, recursive=True)
        for path in ("/dir/a", "/dir/b", "/dir/sub/c"):
            fs.write(path, path)
        fs.write("/file", "one\ntwo\n")


def several(desk: Desk, name: str) -> None:
    with desk.session.transaction():
        desk.call("write_file", f"{name}a", path="new/first", content="first")
        desk.call("rm", f"{name}b", path="dir", recursive=True)


WORKS: dict[str, Callable[[Desk, str], object]] = {
    "write": lambda desk, name: desk.call("write_file", name, path="new/file", content="new\n" * 2000),
    "edit": lambda desk, name: desk.call("edit_file", name, path="file", old_string="two", new_string="three"),
    "rm": lambda desk, name: desk.call("rm", name, path="dir", recursive=True),
    "mv": lambda desk, name: desk.call("mv", name, source="dir", destination="moved"),
    "shell": lambda desk, name: desk.call("shell", name, command="rm -r dir; mkdir made; echo >> file"),
    "several": several,
    "direct": lambda desk, name: desk.files.move("/dir", "/moved"),
    "restore": lambda desk, name: desk.files.restore(desk.session[ExternalFsSnapshot].all()[0]),
    "rollback": lambda desk, name: desk.session.rollback("empty"),
    "rollback to a record": lambda desk, name: desk.session.rollback(3),
    "snapshot": lambda desk, name: desk.session.snapshot(name),
}


@pytest.mark.sampled(by_rule=True)
@pytest.mark.parametrize("what", WORKS)
def test_a_call_changes_both_the_files_and_the_session_or_neither(what: str, tmp_path: Path) -> None:
    standard_desk(tmp_path)
    moment, dice = Random(what).randrange(4), Random(what)
    outcomes: set[bool] = set()
    while True:
        desk = Desk(tmp_path)
        prepare(desk)
        before, seq = desk.files.tree().fingerprint, desk.session.seq
        desk.session.close()
        name = f"{what}-{moment}"

        def work(acknowledge: Callable[[str], None], name: str = name, moment: int = moment) -> None:
            desk = Desk(tmp_path)
            Death(moment).install()
            WORKS[what](desk, name)
            acknowledge(name)

        def settle(_: Callable[[str], None], moment: int = dice.randrange(12)) -> None:
            Death(moment).install()
            Desk(tmp_path)

        acknowledged, was_killed = dying(work)
        if dice.random() < 0.5:
            # Whoever settles it may be killed as well.
            dying(settle)

        desk = Desk(tmp_path)
        desk.check()
        is_done = desk.session.seq > seq or desk.session.snapshots[-1].tag == name
        if what != "snapshot":
            assert is_done == (desk.files.tree().fingerprint != before)
        assert is_done or not acknowledged
        desk.session.close()
        outcomes.add(is_done)
        if not was_killed:
            break
        moment += 1 if is_exhaustive() else 5
    assert outcomes == {True, False}


@pytest.mark.slow
def test_a_transaction_of_a_fork_is_in_the_session_only_if_it_is_in_the_files(tmp_path: Path) -> None:
    standard_desk(tmp_path)
    moment, outcomes = 0, set[tuple[bool, bool]]()
    while True:
        desk = Desk(tmp_path)
        prepare(desk)
        before, seq = desk.files.tree().fingerprint, desk.session.seq
        desk.session.close()

        def work(acknowledge: Callable[[str], None], moment: int = moment) -> None:
            desk = Desk(tmp_path)
            Death(moment).install()
            fork = desk.session.fork()
            files = desk.files.bind(fork)
            with fork.transaction():
                files.write("/new/file", "new")
                files.delete("/dir", recursive=True)
            acknowledge("changed")
            desk.session.merge(fork)
            acknowledge("merged")

        acknowledged, was_killed = dying(work)

        desk = Desk(tmp_path)
        assert list(desk.journals.rglob("log")) == []
        files = desk.files.tree().fingerprint != before
        is_stored = desk.session.seq > seq
        for path, is_there in (("/new/file", files), ("/dir/sub/c", not files)):
            assert desk.files.exists(path) == is_there
        # Until it is merged, only the files have what a fork did: see docs/howto/storage.md.
        assert files or not is_stored
        assert files or "changed" not in acknowledged
        assert is_stored or "merged" not in acknowledged
        desk.session.close()
        outcomes.add((files, is_stored))
        if not was_killed:
            break
        moment += 1 if is_exhaustive() else 3
    assert outcomes >= {(False, False), (True, True)}


@pytest.mark.sampled(by_rule=True)
@pytest.mark.parametrize("engine", ["folder", "sqlite"])
@pytest.mark.parametrize("seed", sample(range(8)))
def test_acknowledged_changes_survive_a_kill_at_any_moment(
    seed: int, engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoints, "LEAST", 20_000)
    standard_desk(tmp_path, engine)
    dice = Random(seed)
    for turn in range(share(16)):

        def work(acknowledge: Callable[[str], None], turn: int = turn) -> None:
            own = Random(f"{seed} {turn}")
            desk = Desk(tmp_path, engine)
            for number in range(1000):
                prepare(desk)
                what = own.choice(list(WORKS))
                WORKS[what](desk, f"{turn}-{number}")
                acknowledge(f"{turn}-{number} {what}")

        acknowledged, was_killed = dying(work, kill_after=dice.randrange(1, 12))

        assert was_killed
        desk = Desk(tmp_path, engine)
        desk.check()
        with_call = [
            word.split()[0] for word in acknowledged if word.split()[1] in ("write", "edit", "rm", "mv", "shell")
        ]
        assert set(with_call) <= desk.calls()
        desk.session.close()
