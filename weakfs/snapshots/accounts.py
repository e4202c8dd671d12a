"""Accounts: the size of each snapshot of a store, and the bytes that dropping it would free."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from attrs import evolve

from weakfs.class_decorators import frozen
from weakfs.snapshots.git.repository import GitRepository
from weakfs.snapshots.scan import manifests
from weakfs.snapshots.store.catalogue import StoredSnapshot
from weakfs.snapshots.store.compaction import ReadManifest

# The owner of contents that several snapshots need.
SHARED = -1


@frozen
class SnapshotAccount:
    """A snapshot, the total size of its files, and the bytes that dropping it would free in the store."""

    snapshot: StoredSnapshot
    total_size: int
    frees: int


def _add_owner(
    owners: dict[bytes, int],
    number: int,
    wanted: list[tuple[bool, bytes]],
    read_manifest: ReadManifest,
    *,
    with_contents: bool,
) -> None:
    """Enter a snapshot in `owners` for each digest that it needs: its number, or `SHARED` if others need it as well.

    `wanted` lists digests, each with whether it is that of a directory; it is emptied.
    """
    while wanted:
        is_directory, digest = wanted.pop()
        owner = owners.get(digest)
        if owner in (number, SHARED):
            continue
        owners[digest] = number if owner is None else SHARED
        if is_directory:
            wanted += [below for below in manifests.children(read_manifest(digest)) if below[0] or with_contents]


def accounts(
    snapshots: Sequence[StoredSnapshot], read_manifest: ReadManifest, size_of: Callable[[bytes], int]
) -> tuple[SnapshotAccount, ...]:
    """Return the size of each snapshot and the space that dropping it would free. Read every manifest at most twice."""
    owners: dict[bytes, int] = {}
    # Snapshots that need contents come first, so that a manifest shared by two of them is not read a third time.
    numbered = sorted(enumerate(snapshots), key=lambda entry: entry[1].kind != "tree")
    for number, snapshot in numbered:
        wanted = [(True, bytes.fromhex(snapshot.ref))]
        wanted += [(False, bytes.fromhex(digest)) for digest in snapshot.contents]
        _add_owner(owners, number, wanted, read_manifest, with_contents=snapshot.kind == "tree")
    frees = [0] * len(snapshots)
    for digest, owner in owners.items():
        if owner != SHARED:
            frees[owner] += size_of(digest)
    return tuple(
        SnapshotAccount(snapshot, snapshot.total_size, freed) for snapshot, freed in zip(snapshots, frees, strict=True)
    )


def freed_in_git(
    accounts: Sequence[SnapshotAccount], read_manifest: ReadManifest, repository: GitRepository
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
            _add_owner(owners, number, wanted, contents_of, with_contents=True)
    owned = [digest for digest in owners if owners[digest] != SHARED and digest not in directories]
    frees = [account.frees for account in accounts]
    for digest, size in repository.sizes(owned).items() if owned else ():
        frees[owners[digest]] += size
    return tuple(evolve(account, frees=freed) for account, freed in zip(accounts, frees, strict=True))
