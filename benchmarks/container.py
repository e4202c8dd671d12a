"""Calls, snapshots and rollbacks in a container of an image with 20,000 files, in which a command changes 10.

Run as root with Podman, crun and busybox-static: `python -m benchmarks.container`.
"""

from __future__ import annotations

import shutil
import statistics
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

from tests.containers import IMAGE, image_archive, opened, problem
from weakfs import Session
from weakfs.backends.container import ContainerFilesystem
from weakfs.snapshots import HashOnlySink, scan
from weakfs.snapshots.directory.held_directory import HeldDirectory

FILES, CHANGED, REPEATS = 20_000, 10, 15

SCAN = "bare scan of the layer, without results of an earlier scan"

CHANGE = f"for i in $(seq {CHANGED}); do echo $RANDOM $i > /usr/lib/files/$i/$i; done"


def median_of(
    step: Callable[[], object], *, before: Callable[[], object] = lambda: None, repeats: int = REPEATS
) -> float:
    """Return the median time of a step in milliseconds; `before` is not counted."""
    times: list[float] = []
    for _ in range(repeats):
        before()
        began = perf_counter()
        step()
        times.append((perf_counter() - began) * 1000)
    return statistics.median(times)


def main() -> int:
    why = problem()
    if why is not None:
        print(f"cannot measure: {why}", file=sys.stderr)
        return 1
    folder = Path(tempfile.mkdtemp(prefix="wb"))
    podman = opened(folder)
    podman.run("import", "--quiet", "-", IMAGE, input=image_archive(files=FILES))
    session = Session()
    began = perf_counter()
    files = ContainerFilesystem(session, image=IMAGE, store=folder / "store", runtime=podman)
    first = (perf_counter() - began) * 1000
    container = files.container
    try:
        files.exec("true")
        rows = {
            "make a container and start it": first,
            "`exec` of `true`, with the scans before and after it": median_of(lambda: files.exec("true")),
        }
        rows[f"`exec` of the command that changes {CHANGED} files"] = median_of(lambda: files.exec(CHANGE))
        rows["`podman exec` of `true`"] = median_of(
            lambda: podman.run("exec", container.container_id, "true"), repeats=5
        )
        snapshot = files.snapshot()
        rows["snapshot after that command"] = median_of(files.snapshot, before=lambda: files.exec(CHANGE))
        rows["rollback of that command"] = median_of(lambda: files.restore(snapshot), before=lambda: files.exec(CHANGE))
        layer = HeldDirectory("layer", container.open_layer())
        rows[SCAN] = median_of(lambda: scan(layer.descriptor, HashOnlySink()))
        commit = ("commit", "--quiet", "--pause=false", container.container_id, "localhost/benchmark")
        rows["`podman commit`"] = median_of(lambda: podman.run(*commit), repeats=5)
        rows["tar of all files"] = median_of(
            lambda: podman.run("export", "--output", str(folder / "all.tar"), container.container_id), repeats=5
        )
    finally:
        container.remove()
        podman.run("rmi", "--all", "--force")
        shutil.rmtree(folder, ignore_errors=True)
    for name, time in rows.items():
        print(f"| {name} | {time:.1f} ms | {time / rows[SCAN]:.1f} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
