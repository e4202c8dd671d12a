"""The shared cases: one tree, and what each pattern matches in it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TypedDict

import pytest

from weakfs.search import GlobState, compile_glob


class Case(TypedDict):
    pattern: str
    hidden: bool
    matches: list[str]


class Cases(TypedDict):
    files: list[str]
    cases: list[Case]


class Tree(dict[str, "Tree | None"]):
    """A directory; a file is None."""


def load() -> Cases:
    root = Path(__file__).parents[2]
    shared = root.parent / "shared" / "cases" / "glob.json"
    path = shared if shared.is_file() else root / "fixtures" / "cases" / "glob.json"
    cases: Cases = json.loads(path.read_text())
    return cases


CASES = load()


def tree_of(files: list[str]) -> Tree:
    root = Tree()
    for file in files:
        *folders, name = file.strip("/").split("/")
        directory = root
        for folder in folders:
            child = directory.setdefault(folder, Tree())
            assert child is not None
            directory = child
        directory[name] = None
    return root


def walk(directory: Tree, state: GlobState, prefix: str = "") -> list[str]:
    found: list[str] = []
    for name, child in directory.items():
        path = f"{prefix}/{name}"
        if state.matches(name, child is not None):
            found.append(path)
        if child is not None and (below := state.enter(name)) is not None:
            found.extend(walk(child, below, path))
    return found


@pytest.mark.parametrize("case", CASES["cases"], ids=lambda case: f"{case['pattern']}-{case['hidden']}")
def test_a_pruned_walk_finds_what_the_case_lists(case: Case) -> None:
    state = compile_glob(case["pattern"], hidden=case["hidden"]).start()

    assert sorted(walk(tree_of(CASES["files"]), state)) == case["matches"]


@pytest.mark.parametrize("case", CASES["cases"], ids=lambda case: f"{case['pattern']}-{case['hidden']}")
def test_a_single_path_is_matched_as_in_a_walk(case: Case) -> None:
    pattern = compile_glob(case["pattern"], hidden=case["hidden"])
    directories = {str(parent) for file in CASES["files"] for parent in Path(file).parents} - {"/"}

    found = [path for path in CASES["files"] if pattern.matches_path(path)]
    found += [path for path in directories if pattern.matches_path(path, True)]

    assert sorted(found) == case["matches"]
