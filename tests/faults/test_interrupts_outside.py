"""Interrupts while a session also changes external files: they match the slices, or an error says otherwise."""

from __future__ import annotations

from contextlib import suppress

import pytest

from tests.faults.interrupting import every_place, interrupted_at, worked_session
from tests.session.external.fakes import FakeExternal
from tests.session.ledger import Added, make_session, total_of
from weakfs import RollbackIncomplete

# An interrupt that comes while a generator is being closed cannot be raised anywhere.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


@pytest.mark.parametrize("fails", [False, True])
def test_an_interrupted_transaction_leaves_external_files_matching_the_slices_or_says_so(fails: bool) -> None:
    def attempt(place: int) -> bool:
        session = worked_session()
        disk = FakeExternal("disk", {"/a": "old", "/b": "old"})
        session.attach(disk)

        def write() -> None:
            with suppress(LookupError, RollbackIncomplete), session.transaction():
                session.dispatch(Added(1))
                disk.write("/a", "new")
                disk.write("/b", "new")
                if fails:
                    raise LookupError

        there = interrupted_at(place, write)
        session.repair()

        expected = "new" if total_of(session) == 6 else "old"
        assert disk.files == {"/a": expected, "/b": expected}, f"place {place}"
        assert there or expected == ("old" if fails else "new")
        return there

    every_place(attempt)


def test_an_interrupted_rollback_leaves_external_files_matching_the_slices_or_says_so() -> None:
    def attempt(place: int) -> bool:
        session = make_session()
        disks = [FakeExternal(name, {"/a": "old"}) for name in ("one", "two")]
        for disk in disks:
            session.attach(disk)
        session.snapshot("s")
        session.dispatch(Added(1))
        for disk in disks:
            disk.write("/a", "new")

        def rollback() -> None:
            with suppress(RollbackIncomplete):
                session.rollback("s")

        there = interrupted_at(place, rollback)
        session.repair()

        expected = "new" if total_of(session) == 1 else "old"
        assert [disk.files["/a"] for disk in disks] == [expected] * 2, f"place {place}"
        assert there or expected == "old"
        return there

    every_place(attempt)
