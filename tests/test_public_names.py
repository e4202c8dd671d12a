"""Public names: those at the top level, which work without any optional dependency, and the home of each name."""

from __future__ import annotations

import inspect
import pickle
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from itertools import chain
from types import FunctionType
from typing import get_args, get_origin, get_type_hints

import pytest

import weakfs
from tests.test_layers import ROOT, module_name
from weakfs import Capability, HostMount, Limits, MergeConflict, PolicyRule, Session, Toolset
from weakfs._name_hints import hint
from weakfs.session import ConflictEntry

NAMES = [
    "Session",
    "Registry",
    "SessionSnapshot",
    "Record",
    "event",
    "reducer",
    "Filesystem",
    "InMemoryFilesystem",
    "HostFilesystem",
    "ContainerFilesystem",
    "MountedFilesystem",
    "OverlayFilesystem",
    "StorageFilesystem",
    "HostMount",
    "Limits",
    "Toolset",
    "Tool",
    "ToolContext",
    "ToolResult",
    "param",
    "Capability",
    "Policy",
    "PolicyRule",
    "DEFAULT_TOOLS",
    "WeakfsError",
    "SessionError",
    "SessionClosed",
    "SessionFileError",
    "MissingBlob",
    "MergeConflict",
    "RollbackIncomplete",
]

WITHOUT_EXTRAS = """
import importlib.abc, sys

class Missing(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("pytest", "hypothesis", "click", "rich"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
"""


def run_without_extras(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", WITHOUT_EXTRAS + code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_top_level_exports_these_names_and_no_others() -> None:
    assert sorted(weakfs.__all__) == sorted(NAMES)


def test_a_star_import_imports_all_names_without_any_extra() -> None:
    printed = run_without_extras("from weakfs import *; print(*(name for name in dir() if name[0] != '_'))").split()
    assert set(NAMES) <= set(printed)


def test_help_and_dir_work_without_any_extra() -> None:
    printed = run_without_extras(
        "import pydoc, weakfs; print(pydoc.plain(pydoc.render_doc(weakfs))); print(dir(weakfs))"
    )
    assert "class InMemoryFilesystem" in printed
    assert "'Toolset'" in printed


def test_without_its_extra_importing_the_conformance_suite_names_the_extra() -> None:
    printed = run_without_extras(
        """
from weakfs.testing import make_stub_context
try:
    from weakfs.testing import FilesystemConformance
except ModuleNotFoundError as error:
    print(error)
"""
    )
    assert printed.strip().endswith("the package pytest is not installed; run: pip install 'weakfs[testing]'")


@pytest.mark.parametrize(
    "name", ["InMemoryBackend", "HostBackend", "VfsToolsSection", "FileContent", "GrepMatch", "about"]
)
def test_the_error_for_a_name_from_other_documents_names_its_equivalent(name: str) -> None:
    with pytest.raises(AttributeError, match=rf"no attribute '{name}'; .*weakfs\."):
        getattr(weakfs, name)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("ToolCalls", "it is defined in weakfs.tools: from weakfs.tools import ToolCalls"),
        ("InMemoryBackend", "use weakfs.InMemoryFilesystem"),
        ("BlameLine", "it is defined in weakfs.history: from weakfs.history import BlameLine"),
        ("make_stub_context", "it is defined in weakfs.testing: from weakfs.testing import make_stub_context"),
        ("Deadline", "use the argument deadline of weakfs.tools.build_tool_context, a reading of the session's clock"),
    ],
)
def test_an_import_of_such_a_name_says_it_too(name: str, hint: str) -> None:
    with pytest.raises(ImportError, match=f"^cannot import name '{name}' from 'weakfs'; {hint}$"):
        exec(f"from weakfs import {name}", {})


def test_an_import_of_an_unknown_name_has_no_hint() -> None:
    with pytest.raises(ImportError, match=r"^cannot import name 'nonsense' from 'weakfs' \("):
        exec("from weakfs import nonsense", {})


def test_the_modules_of_weakfs_can_be_imported_from_it() -> None:
    exec("from weakfs import history, messages", {})


def test_an_unknown_name_raises_attribute_error_without_a_hint() -> None:
    with pytest.raises(AttributeError, match=r"has no attribute 'nonsense'$"):
        weakfs.nonsense  # noqa: B018  # asked for on purpose


def test_a_module_is_not_searched_for_in_every_package() -> None:
    # `from weakfs import session` asks for the attribute before it imports the module.
    assert hint("session") == "; it is a module: import weakfs.session"
    assert hint("composition_root") == "; it is a module: import weakfs.composition_root"


def test_public_values_can_be_pickled() -> None:
    session = Session(session_id="s")
    toolset = Toolset(session)
    toolset.call("write_file", {"path": "/a", "content": "text"})
    fs = toolset.filesystem
    values = [
        Limits.tools(),
        Capability(),
        PolicyRule(effect="deny", operations=("read",), paths=("/a",), reason="secret"),
        HostMount("."),
        session.snapshot("one"),
        session.records[0],
        fs.stat("/a"),
        fs.read("/a"),
        fs.list("/"),
        fs.glob("*"),
        fs.grep("text"),
        fs.statistics(),
    ]
    for value in values:
        assert pickle.loads(pickle.dumps(value)) == value
    made = MergeConflict((ConflictEntry("/a", "content", "fs/tree"), ConflictEntry("/b", "content", "fs/tree")))
    conflict = pickle.loads(pickle.dumps(made))
    assert (conflict.paths, str(conflict)) == (("/a", "/b"), str(made))


@cache
def publishing() -> dict[str, list[str]]:
    """List the packages and modules below `weakfs` that publish names, with these names."""
    paths = [path for path in sorted(ROOT.rglob("*.py")) if path.parent != ROOT or path.stem == "errors"]
    return {
        module: list(import_module(module).__all__)
        for path in paths
        if "conformance" not in (module := module_name(path)) and b"\n__all__ = " in path.read_bytes()
    }


@cache
def publishers() -> dict[str, list[str]]:
    """List the packages that publish each name."""
    found: dict[str, list[str]] = {}
    for package, names in publishing().items():
        for name in dict.fromkeys(names):
            found.setdefault(name, []).append(package)
    return found


def homes_of(name: str) -> list[str]:
    """List the packages that publish a name, without those whose parent publishes it for them."""
    found = publishers()[name]
    return [package for package in found if package.rpartition(".")[0] not in found]


def test_every_package_lists_its_public_names_once() -> None:
    assert [package for package, names in publishing().items() if len(set(names)) < len(names)] == []


def test_a_public_name_has_one_home() -> None:
    assert {name: homes for name in publishers() if len(homes := homes_of(name)) != 1} == {}


def test_top_level_exports_are_the_objects_of_their_packages() -> None:
    for name in weakfs.__all__:
        own, (home,) = getattr(weakfs, name), homes_of(name)
        found = getattr(import_module(home), name)
        if name in ("Session", "Registry", "StorageFilesystem"):
            assert issubclass(own, found), name
            assert own is not found, name
        else:
            assert own is found, name


# Made by weakfs itself, so that nobody needs the types of their arguments.
NOT_CONSTRUCTED = {
    "Importer",
    "LinePattern",
    "MultilinePattern",
    "Records",
    "Scan",
    "SessionView",
    "Slice",
    "SliceView",
    "StoreWriter",
}


def classes_in(hint: object) -> Iterator[type]:
    """Go through the classes of weakfs that a type hint names."""
    waiting, seen = [hint], set[int]()
    while waiting:
        one = waiting.pop()
        if id(one) not in seen:
            seen.add(id(one))
            waiting += [get_origin(one), *get_args(one)]
            if isinstance(one, list | tuple):
                waiting += one
            elif isinstance(one, type) and one.__module__.startswith("weakfs"):
                yield one


def signatures_of(package: str) -> Iterator[tuple[str, FunctionType]]:
    """Go through the functions and public methods that a package publishes, with their names."""
    for name in publishing()[package]:
        value = getattr(import_module(package), name)
        if isinstance(value, FunctionType):
            yield f"{package}.{name}", value
        elif isinstance(value, type):
            for own in dir(value):
                found = inspect.getattr_static(value, own)
                function = getattr(found, "__func__", getattr(found, "fget", found))
                is_shown = own == "__init__" if own.startswith("_") else True
                if is_shown and isinstance(function, FunctionType) and (own, name) not in CONSTRUCTORS:
                    yield f"{package}.{name}.{own}", function


CONSTRUCTORS = {("__init__", name) for name in NOT_CONSTRUCTED}


def test_a_public_signature_names_public_types_only() -> None:
    public = {id(getattr(import_module(package), name)) for package, names in publishing().items() for name in names}
    private: list[str] = []
    for where, function in chain.from_iterable(map(signatures_of, publishing())):
        try:
            hints = get_type_hints(function)
        except NameError:
            # It names modules that are imported for type checkers only.
            continue
        private += [
            f"{where}: {found.__module__}.{found.__qualname__}"
            for name, hint in hints.items()
            if not name.startswith("_")
            for found in classes_in(hint)
            if id(found) not in public and not found.__name__.startswith("_") and found is not weakfs.Session
        ]
    assert private == []
