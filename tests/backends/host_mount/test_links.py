"""Links of a mounted host tree: which ones are followed, and how far."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.models.trees import Plain, flatten
from weakfs.backends import HostMount, InMemoryFilesystem
from weakfs.filesystem import SymlinkPolicy


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    directory = tmp_path / "outside"
    (directory / "sub").mkdir(parents=True)
    (directory / "secret").write_text("secret")
    (directory / "sub" / "deeper").write_text("deeper")
    return directory


@pytest.fixture
def root(tmp_path: Path, outside: Path) -> Path:
    directory = tmp_path / "root"
    (directory / "real" / "sub").mkdir(parents=True)
    (directory / "real" / "file").write_text("inside")
    (directory / "real" / "file").chmod(0o640)
    (directory / "real" / "sub" / "x").write_text("x")
    return directory


def mounted(root: Path, follow: SymlinkPolicy) -> InMemoryFilesystem:
    return InMemoryFilesystem(mounts=[HostMount(str(root), follow_symlinks=follow)])


def reasons(fs: InMemoryFilesystem) -> dict[str, str]:
    return dict(fs.mounts[0].skipped)


def below(fs: InMemoryFilesystem, path: str) -> Plain:
    return {key: value for key, value in flatten(fs.tree()).items() if key == path or key.startswith(path + "/")}


INSIDE = {
    "relative": "real/file",
    "over": "real/../real/./file",
    "twice": "relative",
}


@pytest.mark.parametrize("follow", ["within_root_only", "allow"])
def test_links_to_files_inside_are_copied_as_their_targets(root: Path, follow: SymlinkPolicy) -> None:
    for name, target in INSIDE.items():
        (root / name).symlink_to(target)
    (root / "absolute").symlink_to(root / "real" / "file")
    fs = mounted(root, follow)
    for name in (*INSIDE, "absolute"):
        assert flatten(fs.tree())[f"/{name}"] == ("f", b"inside", 0o640)
    assert reasons(fs) == {}


@pytest.mark.parametrize("follow", ["within_root_only", "allow"])
def test_a_link_to_a_directory_inside_is_copied_with_its_contents(root: Path, follow: SymlinkPolicy) -> None:
    (root / "again").symlink_to("real")
    fs = mounted(root, follow)
    wanted = {key.replace("/real", "/again"): value for key, value in below(fs, "/real").items()}
    assert below(fs, "/again") == wanted
    assert len(wanted) == 4


OUTSIDE = [
    "../outside/secret",
    "../outside",
    "../outside/sub/../secret",
    "..",
    "../..",
    "/",
    "/etc/passwd",
    "real/../..",
]


@pytest.mark.parametrize("target", OUTSIDE)
def test_with_within_root_only_no_link_leads_out(root: Path, target: str) -> None:
    (root / "link").symlink_to(target)
    fs = mounted(root, "within_root_only")
    assert reasons(fs) == {"/link": "is a link to a path outside the directory"}
    assert not fs.exists("/link")


def test_a_link_through_another_one_that_leaves_the_root_and_comes_back_stays_inside(root: Path) -> None:
    (root / "link").symlink_to(f"../{root.name}/real/file")
    assert mounted(root, "within_root_only").read("/link").content == "inside"


def test_a_sibling_whose_name_starts_with_the_roots_name_is_outside(root: Path) -> None:
    neighbour = root.with_name(root.name + "2")
    neighbour.mkdir()
    (neighbour / "f").write_text("secret")
    (root / "link").symlink_to(f"../{neighbour.name}/f")
    assert reasons(mounted(root, "within_root_only")) == {"/link": "is a link to a path outside the directory"}


def test_if_all_links_are_followed_they_may_lead_out(root: Path, outside: Path) -> None:
    (root / "file").symlink_to(outside / "secret")
    (root / "directory").symlink_to("../outside")
    fs = mounted(root, "allow")
    assert fs.read("/file").content == "secret"
    assert fs.read("/directory/sub/deeper").content == "deeper"


@pytest.mark.parametrize("follow", ["within_root_only", "allow"])
def test_loops_end_and_are_reported(root: Path, follow: SymlinkPolicy) -> None:
    (root / "self").symlink_to("self")
    (root / "one").symlink_to("two")
    (root / "two").symlink_to("one")
    (root / "real" / "up").symlink_to("..")
    (root / "real" / "here").symlink_to(".")
    (root / "a").mkdir()
    (root / "b").mkdir()
    (root / "a" / "to_b").symlink_to("../b")
    (root / "b" / "to_a").symlink_to("../a")
    fs = mounted(root, follow)
    told = reasons(fs)
    assert told["/real/up"] == told["/real/here"] == "is a link to one of its own parent directories"
    assert told["/a/to_b/to_a"] == told["/b/to_a/to_b"] == "is a link to one of its own parent directories"
    assert {"/self", "/one", "/two"} <= told.keys()
    assert fs.is_directory("/a/to_b")


@pytest.mark.parametrize("follow", ["within_root_only", "allow"])
def test_a_dangling_link_or_one_through_a_file_is_reported(root: Path, follow: SymlinkPolicy) -> None:
    (root / "gone").symlink_to("real/gone")
    (root / "through").symlink_to("real/file/x")
    fs = mounted(root, follow)
    assert reasons(fs).keys() == {"/gone", "/through"}
    assert [entry.name for entry in fs.list()] == ["real"]


@pytest.mark.parametrize("follow", ["within_root_only", "allow"])
def test_a_link_to_a_special_file_is_reported_and_does_not_hang(root: Path, follow: SymlinkPolicy) -> None:
    os.mkfifo(root / "fifo")
    (root / "link").symlink_to("fifo")
    assert reasons(mounted(root, follow)) == {"/fifo": "is a FIFO", "/link": "is a link to a FIFO"}


def test_links_with_names_that_are_not_text_are_followed(root: Path) -> None:
    raw = os.fsencode(root) + b"/\xff\\"
    with open(raw, "wb") as stream:
        stream.write(b"odd")
    (root / "link").symlink_to(os.fsdecode(b"\xff\\"))
    assert mounted(root, "within_root_only").read("/link").content == "odd"


MOUNT = """
import resource, sys
from weakfs.backends import HostMount, InMemoryFilesystem
from importlib import import_module

resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
module = import_module("weakfs.snapshots.scan.host_import")
assert module.MAX_FOLLOWED <= 100_000
module.MAX_FOLLOWED = 5_000
fs = InMemoryFilesystem(mounts=[HostMount(sys.argv[1], follow_symlinks="within_root_only")])
print(len(fs.mounts[0].skipped), fs.statistics().node_count)
"""


@pytest.mark.slow
def test_directories_that_link_to_each_other_do_not_multiply_endlessly(root: Path) -> None:
    for level in range(40):
        (root / f"level{level}").mkdir()
        for name in ("a", "b"):
            (root / f"level{level}" / name).symlink_to(f"../level{level + 1}")
    (root / "level40").mkdir()
    (root / "level40" / "f").write_text("x")
    # In a separate process, because a failure here never ends.
    done = subprocess.run(
        [sys.executable, "-c", MOUNT, str(root)], capture_output=True, text=True, timeout=300, check=True
    )
    skipped, nodes = map(int, done.stdout.split())
    assert skipped
    assert nodes <= 6_000
