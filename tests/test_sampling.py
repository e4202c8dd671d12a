"""What a run without `--exhaustive` leaves out: repeats and combinations, but no rule and no value."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.sampling import sample, share
from weakfs.backends.host.root import default_store

TOP = Path(__file__).parents[1]
# Operations on a full disk, each with the root, the store or both on it.
PRODUCT = "tests/faults/test_host_full.py"


def collected(*options: str) -> set[str]:
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", PRODUCT, *options]
    done = subprocess.run(command, cwd=TOP, capture_output=True, text=True, check=True)
    return {line for line in done.stdout.splitlines() if line.startswith(PRODUCT)}


def values(tests: set[str]) -> set[tuple[str, str]]:
    """Return each value of each parameter, with its test."""
    return {
        (name, value)
        for name, _, parameters in (test.partition("[") for test in tests)
        for value in parameters.rstrip("]").split("-")
    }


def test_a_sample_has_each_test_and_each_value_of_its_parameters_and_fewer_combinations() -> None:
    some, every = collected(), collected("--exhaustive")
    assert some < every
    assert len(some) <= len(every) // 2
    assert values(some) == values(every)


def test_a_share_is_never_more_than_the_whole_and_never_nothing() -> None:
    assert [share(number) for number in (0, 1, 3)] == [0, 1, 3]
    assert all(0 < share(number) <= number for number in range(1, 2000))


def test_a_sample_is_spread_over_all_values() -> None:
    assert sample([]) == []
    assert sample("abc") == ["a", "b", "c"]
    chosen = sample(range(1000))
    assert chosen == sorted(set(chosen))
    assert len(chosen) == share(1000)
    assert chosen[0] == 0
    assert chosen[-1] >= 1000 - 2 * 1000 // len(chosen)


def test_stores_lie_below_the_directory_of_the_test_run(tmp_path: Path) -> None:
    state = os.environ["XDG_STATE_HOME"]
    assert not Path(state).is_relative_to(Path.home())
    assert default_store(str(tmp_path)).startswith(state)
