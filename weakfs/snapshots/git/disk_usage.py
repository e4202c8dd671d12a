"""Disk usage of snapshots in the repository: the size of the contents that only one of them needs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs

from weakfs.snapshots.git.repository import GitRepository
from weakfs.snapshots.store.compaction import SHARED, SnapshotAccount, add_owner


def freed_in_git(
    accounts: Sequence[SnapshotAccount], read_manifest: Callable[[bytes], bytes], repository: GitRepository
) -> tuple[SnapshotAccount, ...]:
    """Return the accounts, including the space that dropping each snapshot would free in the repository.

    Reads every manifest at most twice.
    """
    if not repository.is_there:
        return tuple(accounts)
    owners: dict[bytes, int] = {}
    directories: set[bytes] = set()

    def contents_of(digest: bytes) -> bytes:
        directories.add(digest)
        return read_manifest(digest)

    for number, account in enumerate(accounts):
        if account.snapshot.kind == "git":
            wanted = [(True, bytes.fromhex(account.snapshot.ref))]
            add_owner(owners, number, wanted, contents_of, with_contents=True)
    owned = [digest for digest in owners if owners[digest] != SHARED and digest not in directories]
    frees = [account.frees for account in accounts]
    for digest, size in repository.sizes(owned).items() if owned else ():
        frees[owners[digest]] += size
    return tuple(attrs.evolve(account, frees=freed) for account, freed in zip(accounts, frees, strict=True))
