"""Random histories: a session that was saved and loaded in between equals one that was not."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fixtures.sessions.kinds import registry
from fixtures.sessions.portrait import portrait
from tests.sampling import share
from tests.session.files.teller import ACTS, Act, Teller
from weakfs import Session


@settings(max_examples=share(150), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(ACTS, min_size=5, max_size=25))
def test_saving_and_loading_in_between_changes_nothing(acts: list[Act]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path, copy = Path(folder, "session.json"), Path(folder, "copy.json")
        steady, reloaded = Teller(path, reloads=False), Teller(path, reloads=True)
        steady.do(acts)
        reloaded.do(acts)
        reloaded.reload()
        Session.load(path, registry=registry()).save(copy)
        assert copy.read_bytes() == path.read_bytes()
        assert portrait(reloaded.session) == portrait(steady.session)


@settings(max_examples=share(50), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(ACTS, min_size=5, max_size=25))
def test_saving_twice_writes_the_same_bytes(acts: list[Act]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path, copy = Path(folder, "session.json"), Path(folder, "copy.json")
        one, other = Teller(path, reloads=False), Teller(copy, reloads=False)
        for teller in (one, other):
            teller.do(acts)
            teller.session.save(teller.path)
        first = path.read_bytes()
        portrait(one.session)
        one.session.save(path)
        assert path.read_bytes() == first == copy.read_bytes()
