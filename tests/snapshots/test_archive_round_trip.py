"""Trees as tar archives and back, and archives exchanged with the tar command."""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from random import Random

import pytest

from tests.models.trees import ODD_NAMES, Plain, flatten, grow, random_tree, write_out
from weakfs.backends import HostMount, InMemoryFilesystem
from weakfs.filesystem import Limits
from weakfs.reducers import FileTree
from weakfs.reducers.tree import leaf
from weakfs.reducers.tree.node import EMPTY_TREE, Node, put, tree_of
from weakfs.snapshots.archive.tar import from_tar, to_tar

ROOT = Path(__file__).parents[2]
D = ("d", 0o755)
NONE = Limits(max_file_size=None, max_path_depth=None, max_segment_length=None)

needs_tar = pytest.mark.skipif(shutil.which("tar") is None, reason="there is no tar command on this machine")


def f(content: bytes = b"x\n", mode: int = 0o644) -> tuple[str, bytes, int]:
    return ("f", content, mode)


def times(tree: FileTree) -> dict[str, int]:
    found = {"/": tree.modified_at}
    todo: list[tuple[str, FileTree]] = [("", tree)]
    while todo:
        prefix, here = todo.pop()
        for name, node in here.children.items():
            found[f"{prefix}/{name}"] = node.modified_at if isinstance(node, FileTree) else node[leaf.MODIFIED_AT]
            if isinstance(node, FileTree):
                todo.append((f"{prefix}/{name}", node))
    return found


@pytest.mark.parametrize("seed", range(40))
def test_a_tree_is_restored_from_its_archive_with_modes_links_and_times(seed: int) -> None:
    tree = random_tree(Random(seed), names=ODD_NAMES, width=10)
    again = from_tar(to_tar(tree), limits=NONE, at=0)
    assert flatten(again) == flatten(tree)
    assert again.fingerprint == tree.fingerprint
    assert times(again) == times(tree)
    assert to_tar(again) == to_tar(tree)


def test_equal_trees_give_equal_archives_however_they_were_built() -> None:
    names = [f"n{number}" for number in range(200)]
    one = two = EMPTY_TREE
    for name in names:
        one = put(one, ("d", name), leaf.file(name.encode(), at=3), 7)
    for name in reversed(names):
        two = put(two, ("d", name), leaf.file(name.encode(), at=3), 7)
    assert to_tar(one) == to_tar(two)


MAKE_ARCHIVE = """
import hashlib
from random import Random
from tests.models.trees import ODD_NAMES, random_tree
from weakfs.snapshots.archive.tar import to_tar
print(hashlib.sha256(to_tar(random_tree(Random(1), names=ODD_NAMES, width=40))).hexdigest())
"""


@pytest.mark.sampled(by_rule=True)
@pytest.mark.parametrize("seed", ["0", "1", "77"])
def test_an_archive_does_not_depend_on_the_process_or_hash_seed(seed: str) -> None:
    environment = {"PYTHONHASHSEED": seed, "TZ": "Asia/Kolkata", "LC_ALL": "C"}
    done = subprocess.run(
        [sys.executable, "-c", MAKE_ARCHIVE], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    tree = random_tree(Random(1), names=ODD_NAMES, width=40)
    assert done.stdout.strip() == hashlib.sha256(to_tar(tree)).hexdigest()


TIMES = [0, 1, 999_999_999, 1_000_000_000, -1, -1_000_000_000, -1_500_000_001, 1 << 60, 8_589_934_592 * 10**9 + 5]


@pytest.mark.parametrize("at", TIMES)
def test_times_are_restored_to_the_nanosecond(at: int) -> None:
    nodes: dict[str, Node] = {"f": leaf.file(b"", at=at), "l": leaf.link("f", at=at), "d": tree_of({}, modified_at=at)}
    tree = tree_of(nodes, modified_at=at)
    assert set(times(from_tar(to_tar(tree), limits=NONE, at=5)).values()) == {at}


def test_a_deep_wide_and_large_tree_is_restored_from_its_archive() -> None:
    deep: Plain = {"/" + "/".join(["d" * 100] * n): D for n in range(1, 30)}
    wide: Plain = {f"/w{n}": f(b"%d" % n) for n in range(2000)}
    tree = grow({"/": D, **deep, **wide, "/large": f(b"0123456789" * 500_000)})
    assert from_tar(to_tar(tree), limits=NONE, at=0).fingerprint == tree.fingerprint


def test_an_import_replaces_everything_but_keeps_attributes_that_archives_lack() -> None:
    fs = InMemoryFilesystem()
    fs.write("/old", "x")
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        info = tarfile.TarInfo("a/b/c")
        info.size, info.mtime, info.mode = 3, 1000, 0o600
        archive.addfile(info, io.BytesIO(b"new"))
    fs.import_bytes(buffer.getvalue())
    assert flatten(fs.tree()) == {"/": D, "/a": D, "/a/b": D, "/a/b/c": ("f", b"new", 0o600)}
    assert fs.stat("/a/b/c").modified_ns == 1000 * 10**9


@needs_tar
@pytest.mark.parametrize("seed", range(8))
def test_the_tar_command_extracts_exported_archives(seed: int, tmp_path: Path) -> None:
    tree = random_tree(Random(seed), names=ODD_NAMES, width=10)
    file = tmp_path / "archive.tar"
    file.write_bytes(to_tar(tree))
    target = tmp_path / "out"
    target.mkdir()
    subprocess.run(["tar", "-xpf", str(file), "-C", str(target), "--no-same-owner"], check=True)
    fs = InMemoryFilesystem(mounts=[HostMount(str(target))])
    assert flatten(fs.tree()) == flatten(tree)
    assert {path: at for path, at in times(fs.tree()).items() if path != "/"} == {
        path: at for path, at in times(tree).items() if path != "/"
    }


@needs_tar
@pytest.mark.parametrize("kind", ["gnu", "posix", "ustar", "oldgnu"])
def test_archives_of_the_tar_command_are_imported(kind: str, tmp_path: Path) -> None:
    long = "long" * 12
    tree = grow(
        {
            "/": D,
            "/d": ("d", 0o750),
            "/d/x": f(b"data", 0o755),
            "/d/l": ("l", "../e"),
            "/e": D,
            f"/{long}": D,
            f"/{long}/{long}": D,
            f"/{long}/{long}/{long}": f(b"deep"),
            f"/{long}/l": ("l", "t" * 90),
        }
    )
    write_out(tree, tmp_path)
    command = ["tar", "-C", str(tmp_path), f"--format={kind}", "--sort=name", "-cf", "-", "."]
    data = subprocess.run(command, capture_output=True, check=True).stdout
    assert flatten(from_tar(data, limits=Limits(), at=0)) == flatten(tree)


@needs_tar
def test_long_and_odd_names_of_gnu_archives_are_imported(tmp_path: Path) -> None:
    tree = random_tree(Random(5), names=ODD_NAMES, width=40, depth=1)
    write_out(tree, tmp_path)
    for kind in ("gnu", "posix"):
        command = ["tar", "-C", str(tmp_path), f"--format={kind}", "-cf", "-", "."]
        data = subprocess.run(command, capture_output=True, check=True, env={**os.environ, "LC_ALL": "C"}).stdout
        assert flatten(from_tar(data, limits=Limits(), at=0)) == flatten(tree)


@needs_tar
@pytest.mark.parametrize("options", [["--format=gnu"], ["--format=posix"], ["--format=posix", "--sparse-version=0.0"]])
def test_hard_links_and_sparse_files_of_the_tar_command_are_imported(options: list[str], tmp_path: Path) -> None:
    with open(tmp_path / "sparse", "wb") as stream:
        stream.truncate(3_000_000)
        stream.seek(1_000_000)
        stream.write(b"in the middle")
    (tmp_path / "sparse").chmod(0o644)
    (tmp_path / "a").write_text("linked")
    os.link(tmp_path / "a", tmp_path / "b")
    (tmp_path / "z").write_text("after")
    command = ["tar", "-C", str(tmp_path), *options, "--sparse", "--sort=name", "-cf", "-", "."]
    data = subprocess.run(command, capture_output=True, check=True).stdout
    flat = flatten(from_tar(data, limits=Limits(), at=0))
    assert flat["/sparse"] == ("f", (tmp_path / "sparse").read_bytes(), 0o644)
    assert flat["/a"][1] == flat["/b"][1] == b"linked"
    assert flat["/z"][1] == b"after"


@needs_tar
def test_an_archive_that_was_appended_to_yields_the_later_version(tmp_path: Path) -> None:
    file = tmp_path / "archive.tar"
    (tmp_path / "a").write_text("one")
    subprocess.run(["tar", "-C", str(tmp_path), "-cf", str(file), "a"], check=True)
    (tmp_path / "a").write_text("second")
    subprocess.run(["tar", "-C", str(tmp_path), "-rf", str(file), "a"], check=True)
    assert flatten(from_tar(file.read_bytes(), limits=Limits(max_total_size=6), at=0))["/a"][1] == b"second"
