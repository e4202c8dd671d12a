"""Disk usage of snapshots in the repository: what each one alone takes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs

from weakfs.snapshots.git.repository import GitRepository
from weakfs.snapshots.store import manifests
from weakfs.snapshots.store.compaction import SnapshotAccount


def freed_in_git(
    accounts: Sequence[SnapshotAccount], read_manifest: Callable[[bytes], bytes], repository: GitRepository
) -> tuple[SnapshotAccount, ...]:
    """Return the accounts, including what dropping each snapshot would free in the repository.

    Reads every manifest at most twice.
    """
    if not repository.is_there:
        return tuple(accounts)
    owners: dict[bytes, int] = {}
    contents: set[bytes] = set()
    shared = -1
    for number, account in enumerate(accounts):
        waiting = [(True, bytes.fromhex(account.snapshot.ref))] if account.snapshot.kind == "git" else []
        while waiting:
            is_directory, digest = waiting.pop()
            owner = owners.get(digest)
            if owner in (number, shared):
                continue
            owners[digest] = number if owner is None else shared
            if is_directory:
                waiting += manifests.children(read_manifest(digest))
            else:
                contents.add(digest)
    owned = [digest for digest in contents if owners[digest] != shared]
    frees = [account.frees for account in accounts]
    for digest, size in repository.sizes(owned).items() if owned else ():
        frees[owners[digest]] += size
    return tuple(attrs.evolve(account, frees=freed) for account, freed in zip(accounts, frees, strict=True))
