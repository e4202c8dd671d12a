"""How thorough a run of the tests is: a sample of the cases of each rule, or all of them with `--exhaustive`.

The mark `slow` is for tests that take about a second or more of processor time: they start containers, browsers or
several processes, or need a large history. `--slow` runs a sample of these as well.

`--exhaustive` chooses a profile of Hypothesis, and `share` and `sample` follow that profile. Without it, two marks
reduce the tests: `exhaustive` leaves out the tests that it marks, and `sampled` keeps only as many combinations of
parameters as are needed to have each value of each parameter once, or with `by_rule=True` only one combination of each
test. A parameter `seed` that is a number stands for repeats of one rule, and `sample` chooses some of its values. A
third mark, `thinned`, applies with `--exhaustive` too: it keeps one combination of each test, or with
`by=NAME, whole=VALUE` one for each value of the parameter `NAME`, and all for `VALUE`. It is for behavior that other
tests check case by case, on top of the same code.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from types import FunctionType
from typing import TypeVar

import pytest
from hypothesis import HealthCheck, Phase, settings

T = TypeVar("T")

# Without `--exhaustive`, one of this many repeats is made, but at least `FEWEST`.
ONE_OF = 8
FEWEST = 3

# The distance between the moments that are tried without `--exhaustive`, in a series whose length is not known.
STRIDE = 4

_PHASES = (Phase.explicit, Phase.generate, Phase.target, Phase.shrink)


_left_out: tuple[str, ...] = ()


def load_profile(*, exhaustive: bool, slow: bool) -> None:
    """Choose how thorough the tests are. Hypothesis tries the same examples each time, without its phase `explain`."""
    global _left_out
    _left_out = () if exhaustive else ("exhaustive",) if slow else ("exhaustive", "slow")
    for name, max_examples in (("sample", 100 // ONE_OF), ("exhaustive", 100)):
        settings.register_profile(
            name,
            max_examples=max_examples,
            derandomize=True,
            deadline=None,
            # This check depends on the clock, and so on the load of the machine.
            suppress_health_check=[HealthCheck.too_slow],
            print_blob=True,
            phases=_PHASES,
        )
    settings.load_profile("exhaustive" if exhaustive else "sample")


def is_exhaustive() -> bool:
    """Return whether this run tries everything."""
    return settings.default is settings.get_profile("exhaustive")


def share(number: int) -> int:
    """Return how many of `number` examples or repeats to make."""
    return number if is_exhaustive() else max(min(number, FEWEST), number // ONE_OF)


def sample(values: Sequence[T]) -> list[T]:
    """Return the values to try: as many as `share` says, evenly spread."""
    number = share(len(values))
    return [values[index * len(values) // number] for index in range(number)]


def stride() -> int:
    """Return the step from one moment to the next."""
    return 1 if is_exhaustive() else STRIDE


def left_out_marks() -> tuple[str, ...]:
    """Return the names of the marks whose tests are not part of this run."""
    return _left_out


def is_left_out(thing: object) -> bool:
    """Return whether an object in a test module is a function or class that is marked for other runs only."""
    if not isinstance(thing, type | FunctionType):
        return False
    marks = getattr(thing, "pytestmark", [])
    return any(mark.name in _left_out for mark in (marks if isinstance(marks, list) else [marks]))


def sample_parameters(metafunc: pytest.Metafunc) -> None:
    """Keep the combinations of a test's parameters that are part of this run.

    If none is, all are kept: pytest takes an empty list for a test without parameters.
    """
    test = metafunc.definition
    # In an order in which neighbors, which share most of their parameters, are far from each other.
    calls = sorted(metafunc._calls, key=lambda call: sha256(f"{test.nodeid}[{call.id}]".encode()).digest())
    seeds = {None, *sample(sorted({seed for call in calls if (seed := _seed(call.params)) is not None}))}
    kept: set[str] = set()
    seen: set[tuple[str, str]] = set()
    for call in calls:
        marks = {mark.name: mark for mark in (*test.iter_markers(), *call.marks)}
        if _seed(call.params) not in seeds or any(name in marks for name in _left_out):
            continue
        values = _sampled(marks, call.params) or _thinned(marks, call.params)
        if values is None or not values <= seen:
            kept.add(call.id)
            seen |= values or set()
    metafunc._calls = [call for call in metafunc._calls if call.id in kept] or metafunc._calls


def _sampled(marks: Mapping[str, pytest.Mark], parameters: Mapping[str, object]) -> set[tuple[str, str]] | None:
    """Return values that must each be part of one combination in a sample, or None if it needs every combination."""
    if (mark := marks.get("sampled")) is None or is_exhaustive():
        return None
    return {("", "")} if mark.kwargs.get("by_rule") else {(name, repr(value)) for name, value in parameters.items()}


def _thinned(marks: Mapping[str, pytest.Mark], parameters: Mapping[str, object]) -> set[tuple[str, str]] | None:
    """Return the value that must be part of one combination in every run, or None if a run needs every combination."""
    if (mark := marks.get("thinned")) is None:
        return None
    value = parameters.get(mark.kwargs.get("by", ""))
    return None if value is not None and value == mark.kwargs.get("whole") else {("", repr(value))}


def _seed(parameters: Mapping[str, object]) -> int | None:
    seed = parameters.get("seed")
    return seed if isinstance(seed, int) else None
