"""Glob patterns that start with the path of the root on the host, like the paths that a host filesystem accepts."""

from __future__ import annotations

from pathlib import Path

import pytest

from weakfs import (
    Capability,
    Filesystem,
    HostFilesystem,
    OverlayFilesystem,
    Policy,
    PolicyRule,
    Session,
    Toolset,
)


@pytest.fixture(params=["host", "overlay"])
def fs(request: pytest.FixtureRequest, tmp_path: Path) -> Filesystem:
    root = tmp_path / "[root]"
    root.mkdir()
    host = HostFilesystem(root)
    host.write("/src/a.py", "found\n")
    host.write("/src/deep/b.py", "found\n")
    host.write("/c.txt", "found\n")
    return host if request.param == "host" else OverlayFilesystem(host, Session())


@pytest.mark.parametrize(
    ("pattern", "paths"),
    [
        ("/src/*.py", ["/src/a.py"]),
        ("/**/*.py", ["/src/a.py", "/src/deep/b.py"]),
        ("/*", ["/c.txt"]),
        ("/src/", ["/src"]),
        ("", []),
        ("/nothing/*", []),
    ],
)
def test_a_pattern_may_start_with_the_path_of_the_root(fs: Filesystem, pattern: str, paths: list[str]) -> None:
    assert [match.path for match in fs.glob(f"{fs.root}{pattern}", sort="path")] == paths
    assert [match.path for match in fs.glob(f"{fs.root}{pattern}", path="/src", sort="path")] == [
        path for path in paths if path.startswith("/src/")
    ]


def test_a_search_takes_such_a_pattern_for_its_files(fs: Filesystem) -> None:
    found = fs.grep("found", glob=f"{fs.root}/src/**")
    assert [match.path for match in found] == ["/src/a.py", "/src/deep/b.py"]


def test_a_pattern_for_another_place_of_the_host_matches_nothing(fs: Filesystem) -> None:
    assert not fs.glob(f"{fs.root}2/src/*.py")
    assert not fs.glob("/etc/*")


def test_rules_hold_for_such_a_pattern(fs: Filesystem) -> None:
    session = fs.session  # type: ignore[attr-defined]  # of a filesystem in a session
    rule = PolicyRule(effect="deny", operations=["search"], paths="/src/deep", reason="private")
    tools = Toolset(session, fs, policy=Policy([rule]), capability=Capability(max_glob_results=5))
    assert tools.call("glob", {"pattern": f"{fs.root}/**/*.py"}).message == "/src/a.py"
    assert tools.call("grep", {"pattern": "found", "glob": f"{fs.root}/src/**"}).message == "/src/a.py:1:found"
