"""Many sessions: each is handed from worker to worker, a few calls at a time."""

from __future__ import annotations

from collections.abc import Iterator
from time import perf_counter_ns

from benchmarks.scale.model import Model
from benchmarks.scale.processes import Report, Work
from weakfs import InMemoryFilesystem, Session, Toolset
from weakfs.storage import open_event_store
from weakfs.tools import ToolCall


def worker(location: str) -> Work:
    """Return the work on sessions at a location.

    A job is the name of a session and how many calls to make, or "open" or "checkpoint" to do only that.
    """

    def work(jobs: Iterator[str], report: Report) -> None:
        store = open_event_store(location)
        models: dict[str, Model] = {}
        for job in jobs:
            name, calls = job.split(" ")
            begin = perf_counter_ns()
            session = Session.open(store, name)
            tools = Toolset(session)
            took = perf_counter_ns() - begin
            if not calls.isdecimal():
                if calls == "checkpoint":
                    session.checkpoint()
                session.close()
                report("finished")
                continue
            number, is_recorded = position(session)
            report("opened", number, took, int(not is_recorded))
            model = models.get(name)
            if model is None or model.number > number:
                model = models[name] = Model(name)
            model.forward(number)
            for _ in range(int(calls)):
                tool, arguments = model.next_call()
                begin = perf_counter_ns()
                result = tools.call(tool, arguments, call_id=str(model.number + 1))
                took = perf_counter_ns() - begin
                if not result.success:
                    raise RuntimeError(f"{name}, call {model.number + 1}: {result.message}")
                model.apply(tool, arguments)
                report("called", model.number, took, 0)
            session.close()
            report("finished")
        store.close()

    return work


def checker(location: str) -> Work:
    """Return the check: it opens each session and compares all of it with the model."""

    def work(jobs: Iterator[str], report: Report) -> None:
        store = open_event_store(location)
        for name in jobs:
            session = Session.open(store, name)
            number, is_recorded = position(session)
            report("opened", number, 0, int(not is_recorded))
            fs = InMemoryFilesystem(session)
            files = {entry.path: fs.read(entry.path).content for entry in fs.walk() if entry.is_file}
            if files != Model(name).forward(number).files:
                report("wrong", f"the files are not those after call {number}")
            recorded = [int(call.call_id) for call in session[ToolCall].all()]
            # The record of a call whose worker was killed may be missing; see `Ledger.unrecorded`.
            if recorded != sorted(set(recorded)) or not set(recorded) <= set(range(1, number + 1)):
                report("wrong", f"the recorded calls are {recorded}")
            report("recorded", number - len(recorded))
            session.close()
            report("finished")
        store.close()

    return work


def position(session: Session) -> tuple[int, bool]:
    """Return how many calls a session has, and whether the last one is recorded as a call."""
    last = session[ToolCall].latest()
    number = int(last.call_id) if last is not None else 0
    newest = max((int(record.cause or 0) for record in session.records.since(session.seq - 1)), default=0)
    return max(number, newest), newest <= number
