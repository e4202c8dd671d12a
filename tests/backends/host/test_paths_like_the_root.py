"""Files whose path in the root starts like the root's own path, such as /app/app/main.py below the root /app."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from weakfs import Capability, HostFilesystem, InMemoryFilesystem, OverlayFilesystem, Session, Toolset
from weakfs.editing import apply_patch
from weakfs.filesystem import Filesystem
from weakfs.tools import Policy, PolicyRule
from weakfs.tools.permissions.guard import guarded


def patched(fs: Filesystem, path: str) -> None:
    update = f"*** Update File: {path}/file\n-inner\n+patched\n"
    others = f"*** Add File: {path}/new\n+new\n*** Delete File: {path}/other\n"
    apply_patch(fs, f"*** Begin Patch\n{update}{others}*** End Patch\n")


def rewritten(fs: Filesystem, path: str) -> None:
    with fs.open(f"{path}/file", "w") as stream:
        stream.write("new")


CHANGES: dict[str, Callable[[Filesystem, str], object]] = {
    "write": lambda fs, path: fs.write(f"{path}/file", "new"),
    "create": lambda fs, path: fs.write(f"{path}/below/new", "new"),
    "append": lambda fs, path: fs.append(f"{path}/file", "more"),
    "splice": lambda fs, path: fs.splice(f"{path}/file", [(0, 1, b"I")]),
    "mkdir": lambda fs, path: fs.mkdir(f"{path}/a/b"),
    "delete": lambda fs, path: fs.delete(f"{path}/file"),
    "delete a directory": lambda fs, path: fs.delete(f"{path}/directory", recursive=True),
    "move": lambda fs, path: fs.move(f"{path}/file", f"{path}/moved"),
    "copy": lambda fs, path: fs.copy(f"{path}/directory", f"{path}/copied"),
    "chmod": lambda fs, path: fs.chmod(f"{path}/file", 0o600),
    "symlink": lambda fs, path: fs.symlink("file", f"{path}/link"),
    "stream": rewritten,
    "patch": patched,
}
CALLS: dict[str, Callable[[str], dict[str, object]]] = {
    "write_file": lambda path: {"path": f"{path}/new", "content": "new"},
    "edit_file": lambda path: {"path": f"{path}/file", "old_string": "inner", "new_string": "edited"},
    "rm": lambda path: {"path": f"{path}/file"},
    "mv": lambda path: {"source": f"{path}/file", "destination": f"{path}/moved"},
    "cp": lambda path: {"source": f"{path}/file", "destination": f"{path}/copied"},
    "mkdir": lambda path: {"path": f"{path}/made"},
}


class Files:
    """A host directory that contains a directory with its own path, and the same files in memory."""

    def __init__(self, root: Path) -> None:
        root.mkdir()
        self.inside = str(root)
        self.model_session = Session()
        self.model = InMemoryFilesystem(self.model_session)
        for directory, text in (("", "outer\n"), (self.inside, "inner\n")):
            for name in ("file", "other", "directory/file"):
                self.model.write(f"{directory}/{name}", text)
        self.session = Session()
        self.host = HostFilesystem(root, session=self.session)
        self.host.import_bytes(self.model.export_bytes())

    def spelled(self, as_host_path: bool) -> str:
        return self.host.root + self.inside if as_host_path else self.inside[1:]

    def check(self) -> None:
        assert sorted(entry.path for entry in self.host.walk()) == sorted(entry.path for entry in self.model.walk())
        assert self.host.tree().fingerprint == self.model.tree().fingerprint


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path / "root")


@pytest.mark.parametrize("as_host_path", [False, True])
@pytest.mark.parametrize("kind", ["host", "overlay", "guarded"])
@pytest.mark.parametrize("change", CHANGES)
def test_a_change_is_made_to_the_named_file(files: Files, kind: str, change: str, as_host_path: bool) -> None:
    fs: Filesystem = files.host
    if kind == "overlay":
        fs = OverlayFilesystem(files.host, Session())
    elif kind == "guarded":
        fs = guarded(files.host, Capability(), None, "write")
    CHANGES[change](fs, files.spelled(as_host_path))
    if isinstance(fs, OverlayFilesystem):
        fs.commit()
    CHANGES[change](files.model, files.inside)
    files.check()


@pytest.mark.parametrize("restricted", [False, True])
@pytest.mark.parametrize("tool", CALLS)
def test_a_call_changes_the_named_file(files: Files, tool: str, restricted: bool) -> None:
    capability = Capability() if restricted else None
    made = Toolset(files.session, files.host, capability=capability).call(tool, CALLS[tool](files.inside[1:]))
    wanted = Toolset(files.model_session, files.model).call(tool, CALLS[tool](files.inside))
    assert made.success, made.message
    assert made.message == wanted.message
    files.check()


def test_an_overlay_remembers_what_was_read_of_the_named_file(files: Files) -> None:
    overlay = OverlayFilesystem(files.host, Session())
    assert overlay.read(f"{files.inside[1:]}/file").content == "inner\n"
    overlay.write("/other", "new")
    overlay.commit()
    files.model.write("/other", "new")
    files.check()


def test_a_rule_holds_for_what_is_below_the_named_directory(files: Files) -> None:
    files.host.write(f"{files.inside[1:]}/secrets/file", "secret")
    files.model.write(f"{files.inside}/secrets/file", "secret")
    rule = PolicyRule(effect="deny", operations=["write"], paths="**/secrets/*", reason="kept")
    fs = guarded(files.host, None, Policy([rule]), "write")
    for as_host_path in (False, True):
        with pytest.raises(PermissionError, match="kept"):
            fs.delete(f"{files.spelled(as_host_path)}/secrets", recursive=True)
    files.check()
