"""Parameters of the public calls: programs pass them by name, in this order, with these defaults."""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, signature

import pytest

from weakfs import Filesystem, HostFilesystem, InMemoryFilesystem, Session, StorageFilesystem, Toolset, storage
from weakfs.backends import ContainerFilesystem, OverlayFilesystem
from weakfs.editing import apply_patch, replace

Calls = dict[Callable[..., object], str]

SESSION: Calls = {
    Session: "*session_id registry clock new_id bus",
    Session.load: "path *registry clock new_id bus",
    Session.save: "path *embed",
    Session.dispatch: "event *cause",
    Session.at: "seq",
    Session.replay: "records",
    Session.compact: "*keep",
    Session.snapshot: "tag",
    Session.rollback: "target",
    Session.drop_snapshot: "target",
    Session.transaction: "*cause",
    Session.fork: "name",
    Session.merge: "fork",
    Session.attach: "filesystem",
    Session.open: "where session_id *durability on_conflict registry clock",
    Session.aopen: "where session_id *durability on_conflict registry clock",
    Session.from_bytes: "data",
    Session.undo: "n",
    Session.redo: "n",
    Session.revert: "target *paths preview on_conflict",
    Session.restore: "moment *paths preview",
    Session.blame: "path *at filesystem",
    storage.open: "url",
    storage.aopen: "url",
}
BACKENDS: Calls = {
    InMemoryFilesystem: "session *mounts limits read_only follow_symlinks",
    HostFilesystem: "root *session limits read_only follow_symlinks snapshots store",
    OverlayFilesystem: "lower session *limits",
    ContainerFilesystem: "session *image container workdir mounts network limits runtime",
    StorageFilesystem: "storage session_id *limits",
}
METHODS = {
    "read": "path *offset limit encoding",
    "read_bytes": "path *offset limit",
    "read_lines": "path",
    "open": "path mode *encoding",
    "exists": "path",
    "is_file": "path",
    "is_directory": "path",
    "stat": "path",
    "list": "path",
    "walk": "path",
    "glob": "pattern *path hidden sort max_results",
    "grep": "pattern *path glob case_insensitive max_matches",
    "write": "path content *mode create_parents",
    "write_bytes": "path content *mode create_parents",
    "append": "path content",
    "write_lines": "path lines",
    "mkdir": "path *parents exist_ok",
    "delete": "path *recursive",
    "move": "src dst",
    "copy": "src dst",
    "chmod": "path mode",
    "symlink": "target path",
    "readlink": "path",
    "snapshot": "tag",
    "restore": "snapshot *dry_run foreign",
    "statistics": "",
    "tree": "",
    "export_bytes": "",
    "import_bytes": "data",
    "bind": "session",
}
TOOLS: Calls = {
    Toolset: "session filesystem *tools capability policy limits",
    Toolset.call: "name arguments *call_id caller",
    Toolset.acall: "name arguments *call_id caller",
    replace: "text old new *replace_all",
    apply_patch: "fs patch *patch_format dry_run on_existing on_ambiguous final_newline added_file_newline",
}
CALLS: Calls = {**SESSION, **BACKENDS, **TOOLS}


def check(function: Callable[..., object], wanted: str) -> None:
    given = {name: found for name, found in signature(function).parameters.items() if name != "self"}
    positional, _, by_name = wanted.partition("*")
    assert [name for name, found in given.items() if found.kind is not Parameter.KEYWORD_ONLY] == positional.split()
    assert set(by_name.split()) <= {name for name, found in given.items() if found.kind is Parameter.KEYWORD_ONLY}


@pytest.mark.parametrize("function", CALLS, ids=lambda function: function.__qualname__)
def test_parameters_have_their_names(function: Callable[..., object]) -> None:
    check(function, CALLS[function])


@pytest.mark.parametrize("backend", [Filesystem, *BACKENDS])
@pytest.mark.parametrize("method", METHODS)
def test_the_methods_of_each_filesystem_have_the_same_parameters(backend: object, method: str) -> None:
    check(getattr(backend, method), METHODS[method])
    given, base = (signature(getattr(of, method)).parameters for of in (backend, InMemoryFilesystem))
    assert {name: one.default for name, one in given.items()} == {name: one.default for name, one in base.items()}


def test_parameters_have_their_defaults() -> None:
    read, glob, grep = (signature(getattr(Filesystem, name)).parameters for name in ("read", "glob", "grep"))
    assert (read["offset"].default, read["limit"].default, read["encoding"].default) == (0, None, "utf-8")
    assert (glob["path"].default, glob["hidden"].default, glob["sort"].default) == ("/", False, "mtime")
    assert (glob["max_results"].default, grep["max_matches"].default) == (1000, None)
    mkdir, write = signature(Filesystem.mkdir).parameters, signature(Filesystem.write).parameters
    assert (mkdir["parents"].default, mkdir["exist_ok"].default) == (True, True)
    assert (write["mode"].default, write["create_parents"].default) == ("overwrite", True)
    patch = signature(apply_patch).parameters
    assert [patch[name].default for name in TOOLS[apply_patch].split("*")[1].split()] == [
        "v4a",
        False,
        "replace",
        "reject",
        "keep",
        True,
    ]
