"""Calls of a toolset in a mount: what its programs change belongs to the call, and is undone with it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from weakfs import InMemoryFilesystem, Policy, PolicyRule, Toolset
from weakfs.integrations.mount import mount
from weakfs.reducers import FileWritten
from weakfs.tools import CONTENTS, ExternalCallFailed
from weakfs.tools.permissions.operations import Operation
from weakfs.tools.permissions.rules import Effect

HIDDEN: list[tuple[Effect, tuple[Operation, ...]]] = [("deny", CONTENTS), ("blob", ("read",))]


def test_changes_by_a_program_belong_to_the_call(files: InMemoryFilesystem, place: Path) -> None:
    session = files.session
    assert session is not None
    with mount(files, place) as mounted:
        tools = Toolset(session, mounted.files)
        with tools.external_call("build", {}, call_id="c1") as call:
            subprocess.run("echo 1 > made; echo 2 > other", shell=True, cwd=call.directory, check=True)
        assert call.result is not None
        assert call.result.success
        assert call.result.value is not None
        assert call.result.value.changed_paths == ("/made", "/other")
        assert {record.cause for record in session.records if isinstance(record.event, FileWritten)} == {"c1"}
        session.revert("c1")
        assert list(place.iterdir()) == []


def test_a_failed_call_is_undone_with_its_unstored_writes(files: InMemoryFilesystem, place: Path) -> None:
    session = files.session
    assert session is not None
    files.write("/a", "kept")
    with mount(files, place) as mounted:
        tools = Toolset(session, mounted.files)
        with (
            (place / "a").open("ab", buffering=0) as opened,
            pytest.raises(RuntimeError, match="half-way"),
            tools.external_call("build", {}, call_id="c1") as call,
        ):
            subprocess.run("rm -rf *; echo 2 > other", shell=True, cwd=call.directory, check=True)
            opened.write(b"lost")
            raise RuntimeError("half-way")
        assert (place / "a").read_text() == "kept"
        assert os.listdir(place) == ["a"]


@pytest.mark.parametrize(("effect", "operations"), HIDDEN)
def test_no_program_of_a_toolset_sees_files_in_a_mount_that_its_policy_hides(
    effect: Effect, operations: tuple[Operation, ...], files: InMemoryFilesystem, place: Path
) -> None:
    session = files.session
    assert session is not None
    files.write("/prod.key", "wombat\n")
    with mount(files, place) as mounted:
        rule = PolicyRule(effect=effect, operations=operations, paths=("*.key",), reason="a secret")
        tools = Toolset(session, mounted.files, policy=Policy([rule]))
        assert "wombat" not in tools.call("read_file", {"path": "/prod.key"}).message
        assert tools.call("shell", {"command": "cat *.key"}).error_code == "path_forbidden"
        with pytest.raises(ExternalCallFailed, match="cannot run a program"):
            tools.external_call("build", {}).begin()


def test_only_one_call_works_in_a_mount(files: InMemoryFilesystem, place: Path) -> None:
    session = files.session
    assert session is not None
    with mount(files, place) as mounted:
        tools = Toolset(session, mounted.files)
        with tools.external_call("one", {}) as first:
            second = tools.external_call("two", {})
            with pytest.raises(RuntimeError, match="another call is using it"):
                second.begin()
            (place / "a").write_text("1")
        assert first.result is not None
        assert first.result.success
        assert files.read("/a").content == "1"


def test_a_checkout_is_undone_as_one_operation(files: InMemoryFilesystem, place: Path) -> None:
    files.write("/a", "1")
    with mount(files, place) as mounted, mounted.files.checkout() as work:  # type: ignore[attr-defined]
        subprocess.run("echo 2 > a; mkdir d; echo 2 > d/b", shell=True, cwd=work.directory, check=True)
    assert files.session is not None
    files.session.undo()
    assert [entry.path for entry in files.walk()] == ["/a"]
    assert files.read("/a").content == "1"


def test_set_id_bits_do_not_survive_a_call(files: InMemoryFilesystem, place: Path) -> None:
    with mount(files, place) as mounted, mounted.files.checkout() as work:  # type: ignore[attr-defined]
        subprocess.run("echo > tool; chmod 4755 tool", shell=True, cwd=work.directory, check=True)
    assert work.set_id_removed == ("/tool",)
    assert files.stat("/tool").mode == 0o755
