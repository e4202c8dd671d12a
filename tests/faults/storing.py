"""Use a store from a separate process: `python -m tests.faults.storing WHAT STORE ROOT [NUMBER]`.

    scan     scan ROOT as a user without rights, and print the error
    snapshot   take NUMBER snapshots, and print the id of each once it is taken
    churn      take snapshots, drop some and compact, until killed; print each id taken or dropped

Run by tests, which must not fork a process with threads.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from random import Random

from tests.faults.saving import give_up_rights
from tests.snapshots.hosts import look, snapshot
from weakfs.snapshots import HashOnlySink, Scan, Store, scan


def scan_as_nobody(root: Path) -> None:
    """Print the error of a scan."""
    look(root, sink=HashOnlySink())
    # The directories above it may be accessible to their owner only.
    descriptor = os.open(root, os.O_RDONLY)
    give_up_rights()
    try:
        scan(descriptor, HashOnlySink())
    except OSError as error:
        print(f"{type(error).__name__}: {error}")


def take(store: Store, root: Path, number: int) -> None:
    """Take snapshots one after the other."""
    known: Scan | None = None
    for count in range(number):
        entry, known = snapshot(store, root, f"{os.getpid()}-{count}", known)
        print(f"took {entry.snapshot_id} {known.tree.fingerprint}", flush=True)


def churn(store: Store, root: Path, seed: int) -> None:
    """Change files of ROOT, take snapshots, drop and compact endlessly."""
    random = Random(seed)
    known: Scan | None = None
    count = 0
    while True:
        for _ in range(3):
            (root / f"d{random.randrange(4)}" / f"f{random.randrange(8)}").write_bytes(random.randbytes(2000))
        entry, known = snapshot(store, root, f"{os.getpid()}-{count}", known)
        print(f"took {entry.snapshot_id} {known.tree.fingerprint}", flush=True)
        count += 1
        entries = store.list()
        if len(entries) > 4:
            dropped = random.choice(entries).snapshot_id
            print(f"dropping {dropped}", flush=True)
            store.drop(dropped)
        if random.random() < 0.4:
            store.compact()


if __name__ == "__main__":
    what, store_path, root_path, *rest = sys.argv[1:]
    if what == "scan":
        scan_as_nobody(Path(root_path))
    elif what == "snapshot":
        take(Store(store_path), Path(root_path), int(rest[0]))
    else:
        churn(Store(store_path), Path(root_path), int(rest[0]))
