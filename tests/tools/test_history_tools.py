"""`undo`, `redo`, `revert` and `restore` called by a model: their answers, and their restrictions."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest

from weakfs import HostFilesystem, InMemoryFilesystem, Session, Toolset
from weakfs.session import MergedPath
from weakfs.tools import DEFAULT_TOOLS, HISTORY_TOOLS, Capability, Policy, PolicyRule
from weakfs.tools.history import ReversionReceipt

TEXT = "one\ntwo\nthree\n"


def desk(path: Path | None = None, capability: Capability | None = None, policy: Policy | None = None) -> Toolset:
    session = Session(session_id="s", clock=lambda: 0)
    files = InMemoryFilesystem(session)
    if path is not None:
        (path / "root").mkdir()
        files = HostFilesystem(path / "root", session=session, store=path / "store")  # type: ignore[assignment]
    return Toolset(session, files, tools=[*DEFAULT_TOOLS, *HISTORY_TOOLS], capability=capability, policy=policy)


@pytest.fixture(params=["memory", "host"])
def tools(request: pytest.FixtureRequest, tmp_path: Path) -> Toolset:
    return desk(tmp_path if request.param == "host" else None)


def write(tools: Toolset, path: str, content: str, call_id: str) -> None:
    assert tools.call("write_file", {"path": path, "content": content}, call_id=call_id, caller="ann").success


def text(tools: Toolset, path: str) -> str | None:
    files = tools.filesystem
    return files.read(path).content if files.exists(path) else None


def test_a_model_undoes_and_redoes_its_last_call(tools: Toolset) -> None:
    write(tools, "/a", TEXT, "c1")
    write(tools, "/a", TEXT.replace("two", "2"), "c2")
    preview = tools.call("undo", {"preview": True}, call_id="u0", caller="ann")
    assert text(tools, "/a") == TEXT.replace("two", "2")
    done = tools.call("undo", {}, call_id="u1", caller="ann")
    assert text(tools, "/a") == TEXT
    assert done.message.splitlines()[0] == preview.message.splitlines()[0] == "changed /a +1 -1"
    assert done.summary_text == "undo: 1 path changed, +1 -1 lines, +4 -2 bytes; read them again"
    assert preview.summary_text.endswith("a preview: nothing was changed")
    assert done.value_as(ReversionReceipt).changes == preview.value_as(ReversionReceipt).changes
    assert tools.call("redo", {}, caller="ann").success
    assert text(tools, "/a") == TEXT.replace("two", "2")
    assert tools.call("undo", {"count": 2}, caller="ann").success
    assert text(tools, "/a") is None


def test_a_call_is_reverted_and_the_error_for_an_unknown_one_lists_the_calls(tools: Toolset) -> None:
    write(tools, "/a", TEXT, "c1")
    write(tools, "/a", TEXT.replace("one", "1"), "c2")
    write(tools, "/a", TEXT.replace("one", "1").replace("three", "3"), "c3")
    assert tools.call("revert", {"call_id": "c2"}).success
    assert text(tools, "/a") == TEXT.replace("three", "3")
    failed = tools.call("revert", {"call_id": "c9"})
    assert (failed.error_code, "c3 (write_file), c2 (write_file)" in failed.message) == ("invalid_arguments", True)


def test_a_conflict_is_an_answer_and_changes_nothing(tools: Toolset) -> None:
    for number, word in enumerate(("two", "2", "zwei"), 1):
        write(tools, "/a", TEXT.replace("two", word), f"c{number}")
    preview = tools.call("revert", {"call_id": "c2", "preview": True})
    assert preview.value_as(ReversionReceipt).conflicts == ("/a",)
    failed = tools.call("revert", {"call_id": "c2"})
    assert (failed.status, text(tools, "/a")) == ("conflict", TEXT.replace("two", "zwei"))
    assert tools.call("revert", {"call_id": "c2", "on_conflict": "theirs"}).success
    assert text(tools, "/a") == TEXT


def test_the_files_of_a_snapshot_are_restored(tools: Toolset) -> None:
    write(tools, "/a", TEXT, "c1")
    tools.session.snapshot("early")
    write(tools, "/a", "x\n", "c2")
    write(tools, "/b", "y\n", "c3")
    assert tools.call("restore", {"moment": "early", "paths": ["/a"]}).success
    assert (text(tools, "/a"), text(tools, "/b")) == (TEXT, "y\n")
    assert tools.call("restore", {"moment": "1", "paths": ["/b"]}).success
    assert text(tools, "/b") is None
    assert tools.call("restore", {"moment": "late"}).error_code == "invalid_arguments"


def test_undone_files_are_stale_even_for_the_caller_of_undo(tools: Toolset) -> None:
    write(tools, "/a", TEXT, "c1")
    write(tools, "/a", "x\n", "c2")
    tools.call("undo", {}, caller="ann")
    failed = tools.call("write_file", {"path": "/a", "content": "y\n"}, caller="ann")
    assert (failed.status, text(tools, "/a")) == ("conflict", TEXT)
    tools.call("read_file", {"path": "/a"}, caller="ann")
    assert tools.call("write_file", {"path": "/a", "content": "y\n"}, caller="ann").success


def test_having_nothing_to_undo_is_an_answer(tools: Toolset) -> None:
    before = tools.session.seq
    failed = tools.call("undo", {})
    assert (failed.error_code, "nothing to undo" in failed.message) == ("invalid_arguments", True)
    assert tools.call("undo", {"count": 0}).error_code == "invalid_arguments"
    assert not [record for record in tools.session.records.since(before) if record.cause is None]


@pytest.mark.parametrize("on_host", [False, True])
@pytest.mark.parametrize(
    ("capability", "policy"),
    [
        (Capability(fs_roots=("/src",)), None),
        (Capability(allowed_fs_ops=("read",)), None),
        (Capability(max_write_bytes=3), None),
        (None, Policy(rules=(PolicyRule(effect="deny", operations=("write",), paths="/private", reason="not yours"),))),
    ],
)
def test_a_model_cannot_undo_changes_to_files_that_it_may_not_write(
    capability: Capability | None, policy: Policy | None, on_host: bool, tmp_path: Path
) -> None:
    free = desk(tmp_path if on_host else None)
    write(free, "/private/a", TEXT, "c1")
    write(free, "/private/a", "x\n", "c2")
    bound = Toolset(free.session, free.filesystem, tools=HISTORY_TOOLS, capability=capability, policy=policy)
    for arguments in ({}, {"preview": True}):
        failed = bound.call("undo", arguments)
        assert (failed.success, text(free, "/private/a")) == (False, "x\n")
        assert "two" not in failed.message
        # A file that is too large may be named: it may be written.
        assert "/private" not in failed.message or (capability and capability.max_write_bytes)
    free.call("undo", {})
    assert text(free, "/private/a") == TEXT


def test_a_read_only_filesystem_is_left_alone() -> None:
    session = Session()
    InMemoryFilesystem(session).write("/a", TEXT)
    tools = Toolset(session, InMemoryFilesystem(session, read_only=True), tools=HISTORY_TOOLS)
    assert (tools.call("undo", {}).success, text(tools, "/a")) == (False, TEXT)


@pytest.mark.parametrize("provider", ["openai", "anthropic", "gemini", "mcp"])
def test_each_provider_has_definitions(provider: str) -> None:
    definitions = Toolset(Session(), tools=HISTORY_TOOLS).definitions(provider)  # type: ignore[arg-type]
    assert all(name in str(definitions) for name in ("undo", "redo", "revert", "restore"))


def test_a_conflict_in_forbidden_files_names_none_of_them() -> None:
    tools = desk(capability=Capability(fs_roots=("/src",)))
    with tools.session.transaction(cause="first"):
        InMemoryFilesystem(tools.session).write("/private/key", "one\n")
    InMemoryFilesystem(tools.session).write("/private/other", "")
    InMemoryFilesystem(tools.session).write("/private/key", "two\n")

    result = tools.call("revert", {"call_id": "first", "on_conflict": "raise"})

    assert result.error_code == "path_forbidden"
    assert "two" not in result.message
    assert "one" not in result.message


def test_the_error_for_an_unknown_call_lists_no_calls_if_files_are_hidden() -> None:
    free = desk()
    free.call("write_file", {"path": "/private/a", "content": "x"}, call_id="hidden", caller="ann")
    free.call("write_file", {"path": "/src/b", "content": "x"}, call_id="own", caller="bob")
    bound = Toolset(free.session, free.filesystem, tools=HISTORY_TOOLS, capability=Capability(fs_roots=("/src",)))
    failed = bound.call("revert", {"call_id": "none"}, caller="bob")
    assert "own (write_file)" in failed.message
    assert "hidden" not in failed.message
    assert "hidden" not in bound.call("revert", {"call_id": "none"}).message


def test_an_id_with_control_characters_is_found_as_it_was_given() -> None:
    tools = desk()
    write(tools, "/a", TEXT, "odd\nid")
    assert tools.call("revert", {"call_id": "odd\nid"}).success


def test_a_moment_that_is_not_a_record_number_is_refused() -> None:
    tools = desk()
    failed = tools.call("restore", {"moment": "9" * 5000})
    assert failed.error_code == "invalid_arguments"
    assert "snapshot" in failed.message


def hiding(effect: Literal["deny", "blob"]) -> Policy:
    return Policy([PolicyRule(effect=effect, operations=["read"], paths="/private", reason="credentials")])


@pytest.mark.parametrize("on_conflict", ["raise", "markers", "ours", "theirs"])
@pytest.mark.parametrize("preview", [False, True])
@pytest.mark.parametrize("secret", [TEXT, "none\nguess\nthree\n", "one\nguess\nnone\n"])
def test_a_file_that_may_not_be_read_is_not_merged(secret: str, preview: bool, on_conflict: str) -> None:
    tools = desk(policy=hiding("deny"))
    InMemoryFilesystem(tools.session).write("/private/key", secret)
    write(tools, "/private/key", "one\nguess\nthree\n", "first")
    write(tools, "/private/key", "one\nguess\nother\n", "second")

    result = tools.call("revert", {"call_id": "first", "preview": preview, "on_conflict": on_conflict})

    assert (result.error_code, "/private" in result.message) == ("policy_denied", False)
    assert "+1" not in result.message
    assert text(tools, "/private/key") == "one\nguess\nother\n"


@pytest.mark.parametrize("guess", ["one\ntwo\nnone\n", "none\nnone\nnone\n", "one\n"])
@pytest.mark.parametrize("preview", [False, True])
def test_lines_of_withheld_contents_are_not_counted(preview: bool, guess: str) -> None:
    tools = desk(policy=hiding("blob"))
    InMemoryFilesystem(tools.session).write("/private/key", TEXT)
    write(tools, "/private/key", guess, "guess")

    result = tools.call("undo", {"preview": preview})

    assert (result.success, text(tools, "/private/key")) == (True, guess if preview else TEXT)
    assert isinstance(result.value, ReversionReceipt)
    assert result.value.changes == (MergedPath("/private/key", "changed"),)
    assert "changed /private/key +0 -0\n" in result.message
    assert "+0 -0 lines, +0 -0 bytes" in result.message


@pytest.mark.parametrize("size", [1, 10_000])
@pytest.mark.parametrize("preview", [False, True])
def test_a_write_limit_does_not_reveal_sizes_of_withheld_contents(preview: bool, size: int) -> None:
    tools = desk(policy=hiding("blob"), capability=Capability(max_write_bytes=100))
    InMemoryFilesystem(tools.session).write("/private/key", "x" * size)
    write(tools, "/private/key", "guess\n", "guess")
    write(tools, "/private/new", "new\n", "new")

    created = tools.call("undo", {"preview": preview})
    result = tools.call("revert", {"call_id": "guess", "preview": preview})

    assert created.success
    assert result.error_code == "limit_exceeded"
    assert result.message == (
        "cannot write '/private/key': the size of a write is limited, and the contents that would be restored are "
        "kept out of answers; leave it unchanged"
    )
    assert text(tools, "/private/key") == "guess\n"


def unlisted(effect: Literal["deny", "blob"]) -> Policy:
    return Policy([PolicyRule(effect=effect, operations=["list", "search"], paths="/private/*", reason="names")])


@pytest.mark.parametrize("effect", ["deny", "blob"])
@pytest.mark.parametrize("preview", [True, False])
def test_no_name_that_may_not_be_listed_is_shown_by_undoing(
    tools: Toolset, effect: Literal["deny", "blob"], preview: bool
) -> None:
    patch = "*** Begin Patch\n*** Add File: /private/tax\n+x\n*** Add File: /src/b\n+x\n*** End Patch\n"
    assert tools.call("apply_patch", {"patch": patch}, call_id="both").success
    bound = Toolset(tools.session, tools.filesystem, tools=HISTORY_TOOLS, policy=unlisted(effect))

    undone = bound.call("undo", {"preview": preview})

    assert isinstance(undone.value, ReversionReceipt)
    assert {one.path for one in undone.value.changes or ()} == {"/private", "/src", "/src/b"}
    assert "tax" not in f"{undone.message} {undone.value}"
    assert "1 more path that may not be listed here" in undone.message
    assert (text(tools, "/private/tax") is None) is not preview


def test_a_conflict_names_no_file_that_may_not_be_listed(tools: Toolset) -> None:
    write(tools, "/private/other", TEXT, "before")
    write(tools, "/private/tax", TEXT, "first")
    write(tools, "/private/tax", "other\n", "second")
    bound = Toolset(tools.session, tools.filesystem, tools=HISTORY_TOOLS, policy=unlisted("deny"))

    refused = bound.call("revert", {"call_id": "first"})
    preview = bound.call("revert", {"call_id": "first", "preview": True})

    assert (refused.error_code, "tax" in refused.message) == ("path_forbidden", False)
    assert "tax" not in f"{preview.message} {preview.value}"
    assert "conflict" in preview.message
    assert text(tools, "/private/tax") == "other\n"


def test_a_hidden_file_that_another_program_changed_is_not_named(tmp_path: Path) -> None:
    tools = desk(tmp_path)
    write(tools, "/private/tax", TEXT, "first")
    write(tools, "/src", TEXT, "second")
    (tmp_path / "root/private/tax").write_text("changed\n")
    bound = Toolset(tools.session, tools.filesystem, tools=HISTORY_TOOLS, policy=unlisted("deny"))
    assert "by another program /private/tax" in tools.call("undo", {"preview": True}).message

    undone = bound.call("undo", {})

    assert isinstance(undone.value, ReversionReceipt)
    assert (undone.value.foreign, "tax" in undone.message, text(tools, "/src")) == ((), False, None)


@pytest.mark.parametrize("preview", [True, False])
@pytest.mark.parametrize("place", ["other", "memory"])
@pytest.mark.parametrize("name", ["undo", "revert", "restore"])
def test_a_restricted_call_undoes_nothing_in_other_filesystems(
    tmp_path: Path, place: str, name: str, preview: bool
) -> None:
    tools = desk(tmp_path)
    write(tools, "/own", TEXT, "own")
    (tmp_path / "other").mkdir()
    other = HostFilesystem(tmp_path / "other", session=tools.session, store=tmp_path / "store")
    files = other if place == "other" else InMemoryFilesystem(tools.session)
    before = tools.session.seq
    with tools.session.transaction(cause="call"):
        files.write("/src/a", "secret\n")
    bound = Toolset(
        tools.session, tools.filesystem, tools=HISTORY_TOOLS, capability=Capability(fs_roots=("/src", "/own"))
    )
    arguments = {"undo": {}, "revert": {"call_id": "call"}, "restore": {"moment": str(before)}}[name]

    refused = bound.call(name, {**arguments, "preview": preview})

    assert (refused.error_code, "/src/a" in refused.message) == ("path_forbidden", False)
    assert files.read("/src/a").content == "secret\n"
    files.write("/src/a", "later\n")
    assert bound.call("revert", {"call_id": "call"}).error_code == "path_forbidden"
    assert bound.call("revert", {"call_id": "own", "preview": preview}).success
