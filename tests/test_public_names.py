"""The names at the top level: which they are, and that they work without any optional dependency."""

from __future__ import annotations

import pickle
import subprocess
import sys

import pytest

import weakfs
from weakfs import Capability, HostMount, Limits, MergeConflict, PolicyRule, Session, Toolset
from weakfs._renamed import hint
from weakfs.session import ConflictEntry

NAMES = [
    "Session",
    "Registry",
    "Snapshot",
    "Record",
    "event",
    "reducer",
    "Filesystem",
    "InMemoryFilesystem",
    "HostFilesystem",
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


def test_a_star_import_gives_all_names_without_any_extra() -> None:
    printed = run_without_extras("from weakfs import *; print(*(name for name in dir() if name[0] != '_'))").split()
    assert set(NAMES) <= set(printed)


def test_help_and_dir_work_without_any_extra() -> None:
    printed = run_without_extras(
        "import pydoc, weakfs; print(pydoc.plain(pydoc.render_doc(weakfs))); print(dir(weakfs))"
    )
    assert "class InMemoryFilesystem" in printed
    assert "'Toolset'" in printed


def test_without_its_extra_the_conformance_suite_names_it() -> None:
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
def test_a_name_of_other_documents_leads_to_the_one_that_is_used_here(name: str) -> None:
    with pytest.raises(AttributeError, match=rf"no attribute '{name}'; .*weakfs\."):
        getattr(weakfs, name)


def test_a_name_that_nobody_knows_is_an_attribute_error_without_a_hint() -> None:
    with pytest.raises(AttributeError, match=r"has no attribute 'nonsense'$"):
        weakfs.nonsense  # noqa: B018  # asked for on purpose


def test_a_module_is_not_searched_for_in_every_package() -> None:
    # `from weakfs import session` asks for the attribute before it imports the module.
    assert hint("session") == "; it is a module: import weakfs.session"
    assert hint("composition") == "; it is a module: import weakfs.composition"


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
