"""Run the benchmarks: `python -m benchmarks`, after `python -m benchmarks.prepare`."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator

from benchmarks.prepare import HARNESS, ROOT, Environment, recorded
from benchmarks.report import markdown, show
from benchmarks.results import Result, Results
from benchmarks.rows import GROUPS
from benchmarks.subject import OURS

STOPPED = "worker"
"""The row of a process that ended early; a run with such a row fails."""

QUICK_SIZES = 10_000
"""The largest size of a quick run."""


def main() -> int:
    asked = arguments()
    environments = recorded()
    if not environments:
        print("cannot run: there is no prepared environment; run `python -m benchmarks.prepare`", file=sys.stderr)
        return 1
    results = Results(measure(environments, asked.rows, asked.peers, quick=asked.quick))
    if asked.json:
        print(json.dumps([result.as_json() for result in results], indent=1))
    elif asked.markdown:
        print(markdown(results, environments), end="")
    else:
        show(results, environments)
    return 1 if results.where(STOPPED) else 0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure weakfs and its peers.")
    parser.add_argument("--rows", nargs="+", choices=list(GROUPS), default=list(GROUPS), help="only these")
    parser.add_argument("--peers", nargs="*", default=None, help="only these peers; without a name: weakfs alone")
    parser.add_argument("--quick", action="store_true", help="fewer repeats, at most 10,000 files")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print every result as JSON")
    form.add_argument("--markdown", action="store_true", help="print the tables as Markdown")
    return parser.parse_args()


def measure(
    environments: list[Environment], groups: list[str], peers: list[str] | None, *, quick: bool
) -> Iterator[Result]:
    """Run each pair at each size in a process of its own, in the pair's environment."""
    for environment in environments:
        alone = environment.name == HARNESS
        if environment.python is None or (not alone and peers is not None and environment.name not in peers):
            continue
        subject = OURS if alone else environment.name
        chosen = [name for name in groups if (GROUPS[name].alone if alone else GROUPS[name].beside_peers)]
        for size in sorted({size for name in chosen for size in GROUPS[name].sizes}):
            at_size = [name for name in chosen if size in GROUPS[name].sizes]
            if (quick and size > QUICK_SIZES) or (not alone and size > 100_000):
                continue
            print(f"{subject}, {size:,} files: {', '.join(at_size)}", file=sys.stderr, flush=True)
            yield from worker(environment.python, subject, size, at_size, quick=quick)


def worker(python: str, subject: str, size: int, groups: list[str], *, quick: bool) -> Iterator[Result]:
    command = [python, "-m", "benchmarks.worker", subject, str(size), *groups]
    command += ["--quick"] if quick else []
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    for line in done.stdout.splitlines():
        yield Result.from_json(json.loads(line))
    if done.returncode:
        yield Result(STOPPED, size, subject, None, note=f"stopped with exit code {done.returncode}")


if __name__ == "__main__":
    sys.exit(main())
