"""Measure many sessions on one storage, and prove that nothing acknowledged is lost: `python -m benchmarks.scale`.

Workers are processes. They open sessions, make calls through a toolset, and hand the sessions on; now and then one is
killed with SIGKILL and replaced. A worker reports each acknowledged call before it makes the next. At the end, every
session is opened and compared with the acknowledged calls and with a model: see `model.py`, and `shared.py` for
`--shared`, where all workers change one session.

`--kills 3000 --calls-per-kill 2 --sessions 1000 --seconds 3600` kills thousands of workers, each at
any moment of a call. Servers are started for the run, unless `--url` names one. The exit code is 1 if anything was lost
or half done.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from random import Random
from time import monotonic

from attrs import asdict

from benchmarks.scale import sessions, shared
from benchmarks.scale.engines import ENGINES, Engine, opened
from benchmarks.scale.ledger import Ledger
from benchmarks.scale.model import Model
from benchmarks.scale.report import CALLS, OPENS, Report, show
from benchmarks.scale.schedule import Schedule, run_once
from weakfs import Session, Toolset
from weakfs.storage import MemoryStorage, open_event_store

# The session with which the cost of a call is measured.
ALONE = "alone"
# After this many calls, each kind of call has been made.
WARM = 50


def main() -> int:
    asked = arguments()
    with opened(asked.engine, asked.url) as engine:
        report = measure(engine, asked)
    if asked.json:
        print(json.dumps(asdict(report)))
    else:
        show(report)
    return 1 if report.found else 0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description="Measure sessions on a storage.")
    parser.add_argument("--engine", choices=list(ENGINES), default="postgresql")
    parser.add_argument("--url", help="a location of storage, instead of a new one; its usage is not measured")
    parser.add_argument("--sessions", type=int, default=200)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=20.0, help="how long to let the workers run")
    parser.add_argument("--calls", type=int, default=0, help="end after this many calls, and measure no costs")
    parser.add_argument(
        "--kills", type=int, default=0, help="end after this many workers were killed, and measure no costs"
    )
    parser.add_argument(
        "--calls-per-kill",
        type=int,
        default=100,
        help="average number of calls between two kills; 0 to kill no workers",
    )
    parser.add_argument("--shared", action="store_true", help="all workers change one session, and merge")
    parser.add_argument("--awaited", action="store_true", help="with --shared: on event loops that await their calls")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true", help="print the results as JSON")
    return parser.parse_args()


def measure(engine: Engine, asked: argparse.Namespace) -> Report:
    """Let workers work, then check everything that they did."""
    warm_up()
    costs = {} if asked.url or asked.calls or asked.kills else costs_of_one(engine)
    ledger = Ledger()
    prefix = "worker" if asked.shared else "session"
    names = [f"{prefix}-{number}" for number in range(asked.workers if asked.shared else asked.sessions)]
    kind = shared if asked.shared else sessions
    if asked.shared:
        run_once(shared.preparer(engine.location), [" ".join(names)], ledger)
    before = engine.usage()
    begin = monotonic()

    def is_over() -> bool:
        is_enough: bool = 0 < asked.calls <= len(ledger.calls) or 0 < asked.kills <= ledger.kills
        return is_enough or bool(monotonic() - begin > asked.seconds)

    schedule = Schedule(ledger, list(names), Random(asked.seed), is_over)
    work = shared.worker(engine.location, awaits=asked.awaited) if asked.shared else sessions.worker(engine.location)
    schedule.run(work, asked.workers, calls_per_kill=asked.calls_per_kill)
    took = monotonic() - begin
    usage = engine.usage()
    usage.subtract(before)
    calls, opens = ledger.calls, ledger.opens
    ledger.calls, ledger.opens = [], []
    begin = monotonic()
    run_once(kind.checker(engine.location), names, ledger, workers=1 if asked.shared else 2)
    return Report.of(asked, ledger, calls, opens, took, usage, costs, ledger.kills, monotonic() - begin)


def warm_up() -> None:
    """Import what opening and calling need, so that no measured call includes this one-time work of a process."""
    store = open_event_store(MemoryStorage())
    model = Model("warm")
    with Session.open(store, "warm") as session:
        for _ in range(WARM):
            tool, given = model.next_call()
            Toolset(session).call(tool, given)
            model.apply(tool, given)
    Session.open(store, "warm").close()


def costs_of_one(engine: Engine) -> dict[str, Counter[str]]:
    """Measure the requests and bytes of a call and of an open, with one session that has no other writers.

    Each step runs in a new process. The cost of an operation is the difference between two processes that perform it a
    different number of times.
    """
    ledger = Ledger()
    steps: dict[str, list[object]] = {
        "first": [1],
        "call": [1],
        "calls": [CALLS + 1],
        "open": ["open"],
        "opens": ["open"] * (OPENS + 1),
        "checkpoint": ["checkpoint"],
        "reopen": ["open"],
        "reopens": ["open"] * (OPENS + 1),
    }
    usage: dict[str, Counter[str]] = {}
    for name, turns in steps.items():
        before = engine.usage()
        run_once(sessions.worker(engine.location), [f"{ALONE} {calls}" for calls in turns], ledger)
        usage[name] = engine.usage() - before
    return {
        "call": usage["calls"] - usage["call"],
        "open": usage["opens"] - usage["open"],
        "checkpoint": usage["checkpoint"] - usage["open"],
        "reopen": usage["reopens"] - usage["reopen"],
    }


if __name__ == "__main__":
    sys.exit(main())
