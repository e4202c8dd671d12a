"""SEARCH/REPLACE patches for tests: making them, applying them, and looking at what they refuse."""

from __future__ import annotations

import pytest

from weakfs.backends import InMemoryFilesystem
from weakfs.editing import PatchError, PatchReport, apply_patch


def block(search: str, replacement: str, signs: int = 7) -> str:
    return f"{'<' * signs} SEARCH\n{search}{'=' * signs}\n{replacement}{'>' * signs} REPLACE\n"


PATCH = "a.txt\n" + block("b\n", "B\n")


def filesystem(**contents: str) -> InMemoryFilesystem:
    fs = InMemoryFilesystem()
    for name, content in contents.items():
        fs.write_bytes(f"/{name}.txt", content.encode())
    return fs


def text(fs: InMemoryFilesystem, path: str = "/a.txt") -> str:
    return fs.read_bytes(path).content.decode()


def applied(fs: InMemoryFilesystem, patch: str, *, dry_run: bool = False) -> PatchReport:
    return apply_patch(fs, patch, patch_format="search_replace", dry_run=dry_run)


def refused(fs: InMemoryFilesystem, patch: str) -> PatchError:
    before = fs.tree().fingerprint
    with pytest.raises(PatchError) as caught:
        applied(fs, patch)
    assert fs.tree().fingerprint == before
    return caught.value
