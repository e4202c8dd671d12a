"""Worker processes that are killed at random: no engine loses anything acknowledged, and merging loses no update.

The work, the kills and the checks are those of `python -m benchmarks.scale`, in a separate process.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.sampling import is_exhaustive
from tests.storage.findings import findings
from tests.storage.servers import ENGINES, empty_location

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


@pytest.fixture
def location(request: pytest.FixtureRequest, engine: str, tmp_path: Path) -> str:
    return empty_location(engine, request, tmp_path)


def results(engine: str, location: str, *options: str) -> dict[str, object]:
    """Run the benchmark, and return what it found."""
    always = ("--json", "--seconds", "3600", "--engine", engine, "--url", location)
    return findings("benchmarks.scale", *always, *options)


@pytest.mark.slow
@pytest.mark.sampled(by_rule=True)
@pytest.mark.parametrize("engine", ENGINES)
def test_acknowledged_changes_survive_kills(engine: str, location: str) -> None:
    # Short sessions, because every new worker opens some. A request takes milliseconds if S3 is simulated.
    thorough = (400, 300 if engine == "s3" else 3_000, 3)
    sessions, calls, calls_per_kill = thorough if is_exhaustive() else (8, 30, 5)
    found = results(
        engine,
        location,
        *("--sessions", str(sessions), "--workers", "3"),
        *("--calls", str(calls), "--calls-per-kill", str(calls_per_kill)),
    )
    assert int(str(found["calls"])) >= calls
    assert int(str(found["kills"])) > calls // calls_per_kill // 8


@pytest.mark.slow
@pytest.mark.sampled(by_rule=True)
@pytest.mark.parametrize("engine", ["postgresql"])
@pytest.mark.parametrize(
    "awaited",
    [pytest.param((), id="call"), pytest.param(("--awaited",), id="acall", marks=pytest.mark.exhaustive)],
)
def test_eight_workers_that_merge_lose_no_update(engine: str, location: str, awaited: tuple[str, ...]) -> None:
    calls = 1_000 if is_exhaustive() else 32
    options = ("--calls", str(calls), "--calls-per-kill", str(calls // 4), *awaited)
    found = results(engine, location, "--shared", "--workers", "8", *options)
    assert int(str(found["calls"])) >= calls
