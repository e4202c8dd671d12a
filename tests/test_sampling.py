"""What a run leaves out, with and without `--exhaustive`: repetitions and combinations, but no rule."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.sampling import FEWEST, ONE_OF, sample, share
from weakfs.backends.host.host_paths import default_store

TOP = Path(__file__).parents[1]

SUITE = """
import pytest

@pytest.mark.sampled
@pytest.mark.parametrize("place", ["root", "store", "both"])
@pytest.mark.parametrize("operation", ["write", "append", "move", "copy", "delete", "mkdir"])
def test_product(operation, place): pass

@pytest.mark.sampled
def test_plain(): pass

@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("kind", ["tree", "git"])
def test_repeated(kind, seed): pass

@pytest.mark.parametrize("kind", ["tree", pytest.param("tar", marks=pytest.mark.exhaustive)])
def test_kinds(kind): pass

@pytest.mark.exhaustive
def test_long(): pass

@pytest.mark.thinned(by="engine", whole="a")
@pytest.mark.parametrize("engine", ["a", "b", "c"])
@pytest.mark.parametrize("case", range(10))
def test_thinned(engine, case): pass

@pytest.mark.thinned
@pytest.mark.parametrize("case", range(10))
def test_thinned_wholly(case): pass

@pytest.mark.exhaustive
class TestLong:
    def test_long(self): pass

@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.parametrize("kind", ["tree", "tar"])
@pytest.mark.parametrize("case", range(2))
def test_slow(kind, case): pass

@pytest.mark.parametrize("kind", ["tree", pytest.param("image", marks=pytest.mark.slow)])
def test_partly_slow(kind): pass
"""


def collected(folder: Path, *options: str) -> set[str]:
    """Return the names of the tests of `SUITE`, as they are collected with the options of this suite."""
    (folder / "test_suite.py").write_text(SUITE)
    words = ["-m", "pytest", "--collect-only", "-q", "-p", "tests.conftest", "test_suite.py", *options]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(TOP), os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run(
        [sys.executable, *words], cwd=folder, env=environment, capture_output=True, text=True, check=True
    )
    return {line.partition("::")[2] for line in done.stdout.splitlines() if "::" in line}


def values(tests: set[str]) -> set[tuple[str, str]]:
    """Return each value of each parameter, with its test."""
    return {
        (name, value)
        for name, _, parameters in (test.partition("[") for test in tests)
        for value in parameters.rstrip("]").split("-")
    }


def of(function: str, tests: set[str]) -> set[str]:
    return {test for test in tests if test.partition("[")[0] == function}


@pytest.mark.slow
def test_a_sample_has_each_value_of_each_parameter_but_fewer_combinations_and_repeats(tmp_path: Path) -> None:
    some, every = collected(tmp_path, "--slow"), collected(tmp_path, "--exhaustive")
    assert some < every
    others = {"test_thinned", "test_thinned_wholly", "test_slow", "test_partly_slow"}
    assert sum(test.partition("[")[0] not in others for test in every) == 6 * 3 + 1 + 2 * 40 + 2 + 2
    assert len(of("test_thinned", every)) == 10 + 1 + 1
    assert values(of("test_thinned", every)) == values(of("test_thinned", some))
    assert len(of("test_thinned_wholly", every)) == 1
    assert len(of("test_product", some)) <= 9
    assert values(of("test_product", some)) == values(of("test_product", every))
    assert some & {"test_plain", "test_kinds[tree]", "test_kinds[tar]"} == {"test_plain", "test_kinds[tree]"}
    assert len(of("test_repeated", some)) == 2 * max(FEWEST, 40 // ONE_OF)
    assert {kind for _, kind in values(of("test_repeated", some))} >= {"tree", "git"}
    assert not any("test_long" in test for test in some)
    assert len(of("test_slow", some)) < len(of("test_slow", every)) == 4
    assert some - collected(tmp_path) == of("test_slow", some) | {"test_partly_slow[image]"}


def test_a_share_is_never_empty_and_never_more_than_the_whole() -> None:
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


def test_stores_are_below_the_directory_of_the_test_run(tmp_path: Path) -> None:
    state = os.environ["XDG_STATE_HOME"]
    assert not Path(state).is_relative_to(Path.home())
    assert default_store(str(tmp_path)).startswith(state)
