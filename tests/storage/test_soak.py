"""Merging writers together with a compactor and a deleter, all of which may be killed; see `tests.storage.soak`."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.sampling import is_exhaustive
from tests.storage.findings import findings
from tests.storage.servers import ENGINES, OBJECT_STORES, empty_location
from weakfs.cli import main

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


@pytest.mark.slow
@pytest.mark.sampled(by_rule=True)
@pytest.mark.filterwarnings("ignore::weakfs.storage.DurabilityWarning")
@pytest.mark.parametrize("engine", ENGINES)
def test_writers_lose_nothing_while_others_compact_and_delete(
    engine: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    check_soak(empty_location(engine, request, tmp_path), 2_000 if is_exhaustive() else 60)


@pytest.mark.slow
@pytest.mark.parametrize("engine", OBJECT_STORES)
def test_writers_lose_nothing_in_other_object_stores(
    engine: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    check_soak(empty_location(engine, request, tmp_path), 300 if is_exhaustive() else 30)


def check_soak(location: str, jobs: int) -> None:
    found = findings("tests.storage.soak", location, "--jobs", str(jobs))

    assert sum(found["done"].values()) > jobs // 2
    assert main(["fsck", location]) == 0
