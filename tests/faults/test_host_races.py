"""A process swaps directories and files for links to the outside during the work: no operation follows them.

`WEAKFS_TEST_RACES` is the number of operations; a million takes some minutes.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random

import pytest

from tests.models.house import SECRET, ContainerHouse, House
from tests.sampling import share
from weakfs import RollbackIncomplete
from weakfs.backends import HostFilesystem
from weakfs.filesystem import FilesystemSnapshot, SymlinkPolicy

OPERATIONS = share(6000)
LOOK_EVERY = 500

# Names below a place that is swapped: each exists inside and outside.
PLACES = ("/d/secret", "/d/sub/secret", "/d/new", "/f", "/p/d/secret", "/p/d/sub/secret", "/d", "/p/d", "/d/sub")

Attempt = Callable[[HostFilesystem, str, str], object]

# Each takes one path that may be swapped meanwhile, and another.
ATTEMPTS: tuple[Attempt, ...] = (
    *[lambda fs, path, _: fs.read(path).content] * 4,
    *[lambda fs, path, _: fs.read_bytes(path).content] * 2,
    lambda fs, path, _: fs.open(path, "r").read(),
    *[lambda fs, path, _: [entry.name for entry in fs.list(path)]] * 2,
    lambda fs, path, _: [entry.path for entry in fs.walk(path)],
    lambda fs, path, _: [match.path for match in fs.glob("**", path=path)],
    lambda fs, path, _: [match.path for match in fs.glob("**/only outside")],
    lambda fs, path, _: [str(match) for match in fs.grep("the secret of", path=path)],
    lambda fs, path, _: [str(match) for match in fs.grep("the secret of")],
    *[lambda fs, path, _: fs.stat(path)] * 2,
    *[lambda fs, path, _: fs.write(path, "spoiled")] * 3,
    lambda fs, path, _: fs.write_bytes(path, b"spoiled", mode="create"),
    lambda fs, path, _: fs.append(path, "spoiled"),
    lambda fs, path, _: fs.mkdir(f"{path}/made"),
    lambda fs, path, _: fs.chmod(path, 0o700),
    lambda fs, path, _: fs.delete(path, recursive=True),
    lambda fs, path, _: fs.delete(f"{path}/secret"),
    lambda fs, path, other: fs.move(path, other),
    lambda fs, path, other: fs.copy(path, other),
    lambda fs, path, _: fs.symlink("x", f"{path}/link"),
    lambda fs, _, __: fs.statistics(),
)


@pytest.fixture(params=["host", "container"])
def any_house(tmp_path: Path, request: pytest.FixtureRequest) -> House:
    """A `House` on the host, or in a container."""
    if request.param == "container":
        return ContainerHouse(request.getfixturevalue("shared_container"), tmp_path / "store")
    (tmp_path / "house").mkdir()
    return House(tmp_path / "house")


def furnish(house: House) -> None:
    """Put entries into the root that have the names of those outside."""
    (house.beside / "only outside").write_text(SECRET)
    house.before = house.outside()
    for place in ("d", "p/d"):
        (house.root / place / "sub").mkdir(parents=True)
        (house.root / place / "secret").write_text("inside")
        (house.root / place / "sub" / "secret").write_text("inside")
        (house.root / f"{place}.link").symlink_to(house.beside)
    (house.root / "f").write_text("inside")
    (house.root / "f.link").symlink_to("../beside/secret")
    (house.root / "p.other" / "d").mkdir(parents=True)
    (house.root / "p.other" / "d" / "secret").symlink_to("../../../secret")


@contextmanager
def swapping(*paths: Path) -> Generator[None, None, None]:
    """Start a process that swaps pairs of paths."""
    command = [sys.executable, "-m", "tests.faults.swapping", *map(str, paths)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            yield
        finally:
            process.kill()


def put_back(house: House, fs: HostFilesystem, snapshot: FilesystemSnapshot, before: str) -> None:
    """Put back everything that was swapped, and undo what could not be undone before."""
    try:
        fs.session.repair()
    except RollbackIncomplete:
        for path in list(house.root.rglob("*")):
            if path.is_symlink() or not path.is_dir():
                path.unlink()
        fs.session.repair()
    fs.restore(snapshot)
    assert fs.tree().fingerprint == before
    assert house.outside() == house.before


@pytest.mark.slow
@pytest.mark.sampled(by_rule=True)
@pytest.mark.parametrize("policy", ["deny", "within_root_only"])
def test_links_that_are_swapped_in_by_others_are_never_followed(any_house: House, policy: SymlinkPolicy) -> None:
    house = any_house
    furnish(house)
    fs = house.open(policy)
    snapshot, before = fs.snapshot(), fs.tree().fingerprint
    random = Random(policy)
    answer: object
    root = house.root
    pairs = [root / name for name in ("d", "d.link", "f", "f.link", "p", "p.other", "p/d", "p/d.link")]
    came_through = refused = incomplete = 0

    while came_through + refused + incomplete < OPERATIONS:
        with swapping(*pairs):
            for _ in range(LOOK_EVERY):
                attempt = random.choice(ATTEMPTS)
                try:
                    answer = attempt(fs, random.choice(PLACES), random.choice(PLACES))
                except RollbackIncomplete:
                    # What was swapped in could not even be removed again: this is reported, and nothing else is done
                    # until it is put back. The remaining operations follow in more rounds.
                    with pytest.raises(RollbackIncomplete):
                        fs.write("/refused", "refused")
                    incomplete += 1
                    break
                except (OSError, ValueError) as error:
                    refused, answer = refused + 1, error
                else:
                    came_through += 1
                assert SECRET not in str(answer)
                assert "only outside" not in str(answer)
        put_back(house, fs, snapshot, before)
    assert incomplete <= OPERATIONS // 100
    assert came_through > OPERATIONS // 20
    assert refused > OPERATIONS // 20


@pytest.mark.slow
def test_snapshots_and_restores_follow_no_link_that_is_swapped_in(any_house: House) -> None:
    house = any_house
    furnish(house)
    fs = house.open()
    first, before = fs.snapshot(), fs.tree().fingerprint
    random = Random(7)
    root = house.root
    pairs = [root / name for name in ("d", "d.link", "f", "f.link", "p", "p.other", "p/d", "p/d.link")]
    taken: list[FilesystemSnapshot] = []

    for _ in range(max(2, OPERATIONS // 1500)):
        with swapping(*pairs):
            for _ in range(8):
                with suppress(OSError, RollbackIncomplete):
                    taken.append(fs.snapshot())
                with suppress(OSError, RollbackIncomplete):
                    fs.restore(random.choice([first, *taken]))
        put_back(house, fs, first, before)
    for snapshot in taken:
        fs.restore(snapshot)
        assert SECRET not in str(fs.export_bytes())
        assert "only outside" not in str([entry.path for entry in fs.walk("/")])
    put_back(house, fs, first, before)
