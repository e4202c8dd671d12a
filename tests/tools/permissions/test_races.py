"""Links that are swapped in during a check: what counts is where a path leads when it is used."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from attrs import frozen

from weakfs import DEFAULT_TOOLS, Capability, HostFilesystem, Session, Tool, ToolContext, ToolResult, Toolset
from weakfs.filesystem import SymlinkPolicy
from weakfs.reducers.events import Event
from weakfs.tools import require_filesystem

# The filesystem's policy on links, and what the capability narrows it to.
POLICIES: list[tuple[SymlinkPolicy, SymlinkPolicy | None]] = [
    ("within_root_only", None),
    ("within_root_only", "deny"),
    ("allow", None),
    ("allow", "deny"),
    ("allow", "within_root_only"),
]

SWAPPING = """
import os, sys
os.chdir(sys.argv[1])
while True:
    os.link("f", "t"); os.replace("t", "a")
    os.symlink(sys.argv[2], "t"); os.replace("t", "a")
"""


@frozen
class Nothing:
    pass


def write_below(params: Nothing, *, context: ToolContext) -> ToolResult[None]:
    require_filesystem(context).write("/pub/real/new", "x")
    return ToolResult("done", None)


class Swapped(HostFilesystem):
    """A directory in which something happens between the check of a change and the change."""

    __slots__ = ("meanwhile",)
    meanwhile: Callable[[], None]

    def apply(self, event: Event) -> None:
        self.meanwhile()
        super().apply(event)


def make(tmp_path: Path, policy: SymlinkPolicy, kind: type[HostFilesystem] = HostFilesystem) -> HostFilesystem:
    root = tmp_path / "root"
    (root / "pub" / "real").mkdir(parents=True)
    (root / "sec").mkdir()
    (root / "sec" / "k").write_text("secret\n")
    (root / "pub" / "f").write_text("public\n")
    (root / "pub" / "a").write_text("public\n")
    return kind(root, session=Session(), store=tmp_path / "store", follow_symlinks=policy)


@pytest.mark.parametrize(("policy", "narrowed"), POLICIES)
def test_a_directory_replaced_by_a_link_before_a_write_is_not_followed(
    tmp_path: Path, policy: SymlinkPolicy, narrowed: SymlinkPolicy | None
) -> None:
    files = make(tmp_path, policy, Swapped)
    assert isinstance(files, Swapped)
    public = tmp_path / "root" / "pub"

    def swap() -> None:
        (public / "real").rename(public / "old")
        (public / "real").symlink_to("../sec")

    files.meanwhile = swap
    own = Tool("own", "For tests.", Nothing, write_below)
    bounds = Capability(fs_roots="/pub", follow_symlinks=narrowed)
    result = Toolset(files.session, files, capability=bounds, tools=[own]).call("own", {})

    assert result.status == "forbidden"
    assert os.listdir(tmp_path / "root" / "sec") == ["k"]


@contextmanager
def swapping(directory: Path, target: str) -> Iterator[None]:
    process = subprocess.Popen([sys.executable, "-c", SWAPPING, str(directory), target])
    try:
        yield
    finally:
        process.kill()
        process.wait()


@pytest.mark.sampled(by_rule=True)
@pytest.mark.parametrize(("policy", "narrowed"), POLICIES)
def test_a_file_repeatedly_replaced_by_a_link_is_never_read_through_it(
    tmp_path: Path, policy: SymlinkPolicy, narrowed: SymlinkPolicy | None
) -> None:
    files = make(tmp_path, policy)
    tools = Toolset(
        files.session,
        files,
        tools=DEFAULT_TOOLS,
        capability=Capability(fs_roots="/pub", follow_symlinks=narrowed),
        refuse_stale_writes=False,
    )
    with swapping(tmp_path / "root" / "pub", "../sec/k"):
        seen = {tools.call("read_file", {"path": "/pub/a", **more}).message for more in ({}, {"max_bytes": 100}) * 400}
    assert "public\n" in seen
    assert "" not in seen
    assert not any("is empty" in message for message in seen)
    assert not any("secret" in message for message in seen)
