"""What tools say about a missing path: the missing directory, and the path that was probably intended."""

from __future__ import annotations

import pytest

from weakfs import Capability, Policy, PolicyRule, Session, Toolset
from weakfs.backends import InMemoryFilesystem
from weakfs.filesystem import missing_path as absence
from weakfs.filesystem.missing_path import similar_path
from weakfs.tools.permissions import CONTENTS

FILES = ("/src/app/f.py", "/src/app/main.py", "/src/lib/util.py", "/tests/util.py", "/.git/old.py", "/README.md")


@pytest.fixture
def session() -> Session:
    return Session(session_id="s")


@pytest.fixture
def files(session: Session) -> InMemoryFilesystem:
    files = InMemoryFilesystem(session)
    for path in FILES:
        files.write(path, "x\n")
    return files


@pytest.fixture
def tools(session: Session, files: InMemoryFilesystem) -> Toolset:
    return Toolset(session, files)


CALLS: dict[str, tuple[str, dict[str, object]]] = {
    "read_file": ("read", {}),
    "edit_file": ("edit", {"old_string": "a", "new_string": "b"}),
    "write_file": ("write", {"content": "a", "create_parents": False}),
    "stat": ("stat", {}),
    "rm": ("delete", {}),
    "ls": ("list", {}),
}


@pytest.mark.parametrize("tool", CALLS)
def test_a_missing_directory_is_named_with_its_nearest_existing_parent(tools: Toolset, tool: str) -> None:
    verb, arguments = CALLS[tool]
    result = tools.call(tool, {"path": "/src/ap/deep/nowhere.py", **arguments})
    assert result.error_code == "not_found"
    assert result.message.startswith(
        f"cannot {verb} '/src/ap/deep/nowhere.py': there is no directory '/src/ap' in '/src'; "
    )
    assert "/src" in result.message.rpartition("; ")[2]


@pytest.mark.parametrize("tool", CALLS)
def test_a_file_of_that_name_nearby_is_proposed(tools: Toolset, tool: str) -> None:
    verb, arguments = CALLS[tool]
    message = tools.call(tool, {"path": "/src/ap/f.py", **arguments}).message
    assert message == (
        f"cannot {verb} '/src/ap/f.py': there is no directory '/src/ap' in '/src'; did you mean '/src/app/f.py'?"
    )


def test_a_patch_proposes_the_same(tools: Toolset) -> None:
    patch = "*** Begin Patch\n*** Update File: {}\n@@\n-x\n+y\n*** End Patch"
    message = tools.call("apply_patch", {"patch": patch.format("/src/ap/f.py")}).message
    assert "there is no directory '/src/ap' in '/src'; did you mean '/src/app/f.py'?" in message
    message = tools.call("apply_patch", {"patch": patch.format("/readme.md")}).message
    assert "there is no such file; did you mean '/README.md'?" in message


@pytest.mark.parametrize(
    ("path", "meant"),
    [
        ("/readme.md", "/README.md"),
        ("/SRC/App/F.py", "/src/app/f.py"),
        ("/src/app/man.py", "/src/app/main.py"),
        # Of several, the one whose path is most similar.
        ("/src/util.py", "/src/lib/util.py"),
        ("/test/util.py", "/tests/util.py"),
        ("/src/app/lib/f.py", "/src/app/f.py"),
        ("/old.py", None),
        ("/src/lib/something", None),
    ],
)
def test_the_intended_path_is_proposed(files: InMemoryFilesystem, path: str, meant: str | None) -> None:
    assert similar_path(files, path) == meant


def test_a_name_that_differs_in_case_comes_first(files: InMemoryFilesystem) -> None:
    files.write("/src/app/F1.py", "")
    files.write("/src/app/f11.py", "")
    assert similar_path(files, "/src/app/f1.py") == "/src/app/F1.py"


@pytest.mark.parametrize(
    "rule",
    [
        PolicyRule(effect="deny", operations=CONTENTS, paths="/src/app", reason="secret"),
        PolicyRule(effect="deny", operations=["list"], paths="/src/app", reason="secret"),
        PolicyRule(effect="blob", operations=["read"], paths="/src/app", reason="secret"),
        PolicyRule(effect="only", operations=["read"], paths=["/src/lib", "/src/ap", "/src/APP"], reason="secret"),
    ],
    ids=["denied", "not listed", "not shown", "only elsewhere"],
)
@pytest.mark.parametrize("path", ["/src/ap/f.py", "/src/APP/f.py"])
@pytest.mark.parametrize("tool", ["read_file", "stat", "apply_patch"])
def test_hidden_paths_are_not_proposed(
    session: Session, files: InMemoryFilesystem, rule: PolicyRule, path: str, tool: str
) -> None:
    tools = Toolset(session, files, policy=Policy([rule]))
    patch = f"*** Begin Patch\n*** Update File: {path}\n@@\n-x\n+y\n*** End Patch"
    message = tools.call(tool, {"patch": patch} if tool == "apply_patch" else {"path": path}).message
    assert "no directory" in message
    assert "app/f.py" not in message


@pytest.mark.parametrize("capability", [Capability(fs_roots="/src/lib"), Capability(allowed_fs_ops=["read"])])
def test_nothing_beyond_the_capability_is_proposed(
    session: Session, files: InMemoryFilesystem, capability: Capability
) -> None:
    tools = Toolset(session, files, capability=capability)
    message = tools.call("read_file", {"path": "/src/lib/f.py"}).message
    assert message == "cannot read '/src/lib/f.py': there is no such entry; list '/src/lib' to see what is there"


def test_the_search_for_the_intended_path_is_bounded(
    files: InMemoryFilesystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(30):
        files.write(f"/many/{number}/file.py", "")
    files.write("/zoo/rare.py", "")
    assert similar_path(files, "/none/rare.py") == "/zoo/rare.py"
    monkeypatch.setattr(absence, "MAX_ENTRIES", 20)
    assert similar_path(files, "/none/rare.py") is None
    monkeypatch.setattr(absence, "MAX_ENTRIES", 1000)
    monkeypatch.setattr(absence, "MAX_DIRECTORIES", 5)
    assert similar_path(files, "/none/rare.py") is None
