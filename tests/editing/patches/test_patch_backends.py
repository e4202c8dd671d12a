"""The same patches on every backend: the same reports, refusals and results, and nothing is left of one that fails."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from random import Random

import pytest

from tests.editing.patches.test_patch_atomic import PATCH, REFUSED, STEPS, failing_at, filled, outcome
from weakfs import HostFilesystem, InMemoryFilesystem, OverlayFilesystem, Session, StorageFilesystem
from weakfs.backends import MountedFilesystem
from weakfs.backends.container import Container, ContainerFilesystem
from weakfs.editing import PatchError, PatchFormat, apply_patch
from weakfs.filesystem import Filesystem

NUMBERS = count()

MOUNTED_AT = "/workspace"


def on_the_host(place: Path) -> HostFilesystem:
    number = next(NUMBERS)
    (place / f"root{number}").mkdir(mode=0o755)
    return HostFilesystem(place / f"root{number}", store=place / f"store{number}")


def overlay(place: Path) -> OverlayFilesystem:
    return OverlayFilesystem(filled(on_the_host(place)))


def mounted(place: Path) -> MountedFilesystem:
    return MountedFilesystem(InMemoryFilesystem(), MOUNTED_AT)


def mounted_host(place: Path) -> MountedFilesystem:
    return MountedFilesystem(on_the_host(place), MOUNTED_AT)


def stored(place: Path) -> StorageFilesystem:
    return StorageFilesystem(f"sqlite:///{place}/{next(NUMBERS)}.sqlite", "s")


def in_container(container: Container, place: Path) -> ContainerFilesystem:
    number = next(NUMBERS)
    root = f"/places/patches{number}"
    (Path(container.path_of_files()) / root[1:]).mkdir(mode=0o755)
    return ContainerFilesystem(Session(), container=container, root=root, store=place / f"store{number}")


KINDS: dict[str, Callable[[Path], Filesystem]] = {
    "overlay": overlay,
    "mounted": mounted,
    "mounted host": mounted_host,
    "stored": stored,
}

Open = Callable[[], Filesystem]


@pytest.fixture(
    params=[
        *KINDS,
        pytest.param("container", marks=pytest.mark.slow),
        pytest.param("mounted container", marks=pytest.mark.slow),
    ]
)
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Open]:
    """Open filesystems of one kind, with the files of `filled`."""
    made: list[Filesystem] = []

    def make() -> Filesystem:
        kind: str = request.param
        if kind in KINDS:
            made.append(KINDS[kind](tmp_path))
        else:
            files = in_container(request.getfixturevalue("shared_container"), tmp_path)
            made.append(files if kind == "container" else MountedFilesystem(files, files.root))
        return made[-1] if kind == "overlay" else filled(made[-1])

    yield make
    for fs in made:
        if isinstance(fs, StorageFilesystem) and fs.session is not None:
            fs.session.close()


def test_a_failure_at_any_point_changes_nothing(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    fs = opened()
    before = fs.tree().fingerprint
    for step in range(1, STEPS + 1):
        with failing_at(monkeypatch, fs, step):
            assert str(outcome(fs, PATCH)) == "the disk is on fire"
        assert fs.tree().fingerprint == before, f"after a failure at change {step}"
    assert outcome(fs, PATCH) is None
    model = filled(InMemoryFilesystem())
    apply_patch(model, PATCH)
    assert fs.tree().fingerprint == model.tree().fingerprint


@pytest.mark.parametrize("case", REFUSED)
def test_a_refused_operation_among_others_changes_nothing(case: str, opened: Open) -> None:
    fs = opened()
    fs.write_bytes("bytes", b"\xff\n1\n")
    before = fs.tree().fingerprint
    first, rest = PATCH.split("*** Update File: a\n")
    with pytest.raises(PatchError):
        apply_patch(fs, f"{first}{REFUSED[case]}\n*** Update File: a\n{rest}")
    assert fs.tree().fingerprint == before


LINES = {
    "a": ["a"],
    "text": ["keep", "old"],
    "text2": ["2"],
    "d/x": ["1"],
    "moved": ["1"],
    "gone": ["1"],
    "link": ["a"],
}
PLACES = (*LINES, "new", "d/new", "d", "d/empty", "a/x", "dangling", "deep/er/file", "./b", "x y", "d/../text")


def hunk(random: Random, path: str) -> list[str]:
    lines = LINES.get(path, ["nothing"])
    at = random.randrange(len(lines))
    mark = random.choice((" ", "-"))
    return [*(f" {line}" for line in lines[:at]), mark + lines[at], random.choice(("+a", "+1", "+keep", "+new"))]


def v4a(random: Random) -> str:
    made = ["*** Begin Patch"]
    for _ in range(random.randint(1, 3)):
        path, kind = random.choice((*LINES, random.choice(PLACES))), random.random()
        if kind < 0.2:
            made += [f"*** Add File: {random.choice(PLACES)}", "+1"]
        elif kind < 0.35:
            made += [f"*** Delete File: {path}"]
        elif kind < 0.6:
            made += [f"*** Update File: {path}", f"*** Move to: {random.choice(PLACES)}"]
        else:
            made += [f"*** Update File: {path}", "@@", *hunk(random, path)]
    return "\n".join([*made, "*** End Patch"])


def unified(random: Random) -> str:
    made: list[str] = []
    for _ in range(random.randint(1, 3)):
        path, other, kind = random.choice(tuple(LINES)), random.choice(PLACES), random.random()
        names = [f"--- a/{path}", f"+++ b/{path}"]
        if kind < 0.3:
            verb = random.choice(("rename", "copy"))
            made += [f"diff --git a/{path} b/{other}", f"{verb} from {path}", f"{verb} to {other}"]
        elif kind < 0.45:
            made += [f"diff --git a/{path} b/{path}", "old mode 100644", "new mode 100755"]
        elif kind < 0.6:
            link = ["new file mode 120000", "--- /dev/null", f"+++ b/{other}", "@@ -0,0 +1 @@", "+text"]
            made += [f"diff --git a/{other} b/{other}", *link, "\\ No newline at end of file"]
        elif kind < 0.75:
            removed = [f"-{line}" for line in LINES[path]]
            made += [names[0], "+++ /dev/null", f"@@ -1,{len(removed)} +0,0 @@", *removed]
        else:
            made += [*names, "@@", *hunk(random, path)]
    return "\n".join([*made, ""])


def told(fs: Filesystem, patch: str, patch_format: PatchFormat) -> str:
    """Apply a patch and return the report or the refusal, with paths as seen from the mount point."""
    try:
        said = repr(apply_patch(fs, patch, patch_format=patch_format))
    except PatchError as error:
        said = f"{type(error).__name__}: {error}"
    return re.sub(rf"{fs.mounted_at}/?", "/", said) if isinstance(fs, MountedFilesystem) else said


@pytest.mark.parametrize("seed", range(30))
def test_a_series_of_patches_has_the_same_results_as_in_memory(opened: Open, seed: int) -> None:
    random = Random(seed)
    fs, model = opened(), filled(InMemoryFilesystem())
    for one in (fs, model):
        one.symlink("a", "link")
        one.symlink("missing", "dangling")
        one.write("x y", "1\n")
    applied = 0
    for _ in range(12):
        made, patch_format = random.choice(((v4a, "v4a"), (unified, "unified")))
        patch, before = made(random), model.tree().fingerprint
        said = told(model, patch, patch_format)  # type: ignore[arg-type]  # a format
        assert told(fs, patch, patch_format) == said, patch  # type: ignore[arg-type]  # a format
        assert fs.tree().fingerprint == model.tree().fingerprint, patch
        applied += model.tree().fingerprint != before
    assert applied
