"""Contents that may not be read are not moved, copied or written to where they could be."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tools.conftest import Files
from tests.tools.permissions.hidden_files import (
    DENIED,
    RULES,
    SECRET,
    UPDATE,
    WITHHELD,
    patch,
    quotes,
    rule,
    toolset,
    unified,
)
from weakfs import (
    InMemoryFilesystem,
    Session,
    ToolResult,
    Toolset,
)
from weakfs.session.blobs.blob import digest_of
from weakfs.tools.slices import KeptBlob

TRANSFERS: dict[str, tuple[str, dict[str, object]]] = {
    "mv": ("mv", {"source": "/secrets/token.py", "destination": "/pub/token.py"}),
    "cp": ("cp", {"source": "/secrets/token.py", "destination": "/pub/token.py"}),
    "mv of the directory": ("mv", {"source": "/secrets", "destination": "/pub/secrets"}),
    "cp of the directory": ("cp", {"source": "/secrets", "destination": "/pub/secrets"}),
    "patch": patch(UPDATE, "*** Move to: /pub/token.py"),
    "patch with a change": patch(UPDATE, "*** Move to: /pub/token.py", "@@", "-    return alpha", "+    return beta"),
    "patch that shows what it moved": patch(
        UPDATE, "*** Move to: /pub/token.py", "*** Update File: /pub/token.py", "@@", "-    alpha = 'w'", "+x"
    ),
    "unified rename": unified(
        "diff --git a/secrets/token.py b/pub/token.py",
        "similarity index 100%",
        "rename from secrets/token.py",
        "rename to pub/token.py",
    ),
    "unified copy": unified(
        "diff --git a/secrets/token.py b/pub/token.py",
        "similarity index 100%",
        "copy from secrets/token.py",
        "copy to pub/token.py",
    ),
}


@pytest.mark.parametrize("bounds", RULES)
@pytest.mark.parametrize("name", TRANSFERS)
def test_contents_are_not_moved_to_where_their_rule_does_not_apply(
    session_files: Files, name: str, bounds: str
) -> None:
    before = session_files.tree().fingerprint
    for dry in (False, True):
        tool, arguments = TRANSFERS[name]
        if dry and tool != "apply_patch":
            continue
        result = toolset(session_files, RULES[bounds]).call(tool, {**arguments, **({"dry_run": True} if dry else {})})
        assert (result.status, result.error_code) == ("forbidden", "policy_denied"), result.message
        assert "credentials" in result.message
        assert not quotes(result)
        assert session_files.tree().fingerprint == before


@pytest.mark.parametrize("bounds", ["deny read", "blob", "blob on search"])
def test_contents_can_be_moved_and_copied_where_their_rule_applies(session_files: Files, bounds: str) -> None:
    tools = toolset(session_files, RULES[bounds])
    inside = {"source": "/secrets/token.py", "destination": "/secrets/copy.py"}
    for name, arguments in (
        ("cp", inside),
        ("mv", {"source": "/secrets/copy.py", "destination": "/secrets/old/copy.py"}),
        patch("*** Update File: /secrets/old/copy.py", "*** Move to: /secrets/again.py"),
    ):
        result = tools.call(name, arguments)
        assert result.success, result.message
    assert session_files.read("/secrets/again.py").content == SECRET


def test_files_that_may_not_be_read_can_still_be_removed_and_replaced(session_files: Files) -> None:
    tools = toolset(session_files, DENIED)
    for step in (
        patch("*** Add File: /secrets/token.py", "+new"),
        patch("*** Delete File: /secrets/token.py"),
        ("write_file", {"path": "/secrets/token.py", "content": "again\n"}),
        ("rm", {"path": "/secrets", "recursive": True}),
    ):
        result = tools.call(*step)
        assert result.success, result.message


def blob_of(result: ToolResult[object], field: str) -> dict[str, object]:
    return {"blob_ref": getattr(result.value, field).blob_ref}


@pytest.mark.parametrize(("operations", "call", "field"), [
    (["read"], ("read_file", {"path": "/secrets/token.py"}), "content"),
    (["search"], ("grep", {"pattern": "alpha"}), "matches"),
    (["search"], ("glob", {"pattern": "token*"}), "paths"),
    (["list"], ("ls", {"path": "/secrets"}), "entries"),
])  # fmt: skip
def test_a_hidden_blob_is_written_only_where_its_rule_applies(
    session_files: Files, operations: list[str], call: tuple[str, dict[str, object]], field: str
) -> None:
    tools = toolset(session_files, rule("blob", operations))
    blob = blob_of(tools.call(*call), field)
    for path in ("/pub/copy", "/pub/open.py"):
        for mode in ("overwrite", "append"):
            result = tools.call("write_file", {"path": path, "content": blob, "mode": mode})
            assert (result.status, result.error_code) == ("forbidden", "policy_denied"), result.message
    inside = tools.call("write_file", {"path": "/secrets/copy", "content": blob})
    assert inside.success, inside.message


def test_a_reference_does_not_confirm_a_guess_of_hidden_contents(session_files: Files) -> None:
    session_files.write("/secrets/guess", SECRET)
    tools = toolset(session_files, WITHHELD)
    read = ("read_file", {"path": "/secrets/token.py"})
    references = [
        blob_of(tools.call(*call), "content")["blob_ref"]
        for call in (read, ("read_file", {"path": "/secrets/guess"}), read)
    ]
    assert len({*references, digest_of(SECRET.encode()).hex()}) == 4
    again = tools.call("write_file", {"path": "/secrets/again", "content": {"blob_ref": references[0]}})
    assert again.success, again.message
    assert session_files.read("/secrets/again").content == SECRET


@pytest.mark.parametrize("part", [{"offset": 2}, {"limit": 1}, {"offset_bytes": 3}, {"max_bytes": 1}])
def test_a_part_of_a_hidden_file_cannot_be_referenced(session_files: Files, part: dict[str, int]) -> None:
    session_files.write("/secrets/other", "\n" * len(SECRET))
    tools = toolset(session_files, WITHHELD)
    for path in ("/secrets/token.py", "/secrets/other"):
        result = tools.call("read_file", {"path": path, **part})
        assert result.error_code == "invalid_arguments"
        assert "only" in result.message
    assert not tools.session[KeptBlob].all()


def test_a_hidden_blob_is_not_applied_as_a_patch(session_files: Files) -> None:
    tools = toolset(session_files, WITHHELD)
    blob = blob_of(tools.call("read_file", {"path": "/secrets/token.py"}), "content")
    for patch_format in ("v4a", "unified", "search_replace"):
        result = tools.call("apply_patch", {"patch": blob, "patch_format": patch_format})
        assert result.status == "forbidden"
        assert not quotes(result)


def test_a_blob_keeps_its_hidden_origins_when_saved_and_loaded(tmp_path: Path) -> None:
    session = Session()
    files = InMemoryFilesystem(session)
    files.write("/secrets/a", "same\n")
    files.write("/secrets/b", "same\n")
    tools = Toolset(session, files, policy=WITHHELD)
    for path in ("/secrets/a", "/secrets/b"):
        blob = blob_of(tools.call("read_file", {"path": path}), "content")
    assert [kept.origins for kept in session[KeptBlob].all()] == [("/secrets/a",), ("/secrets/b",)]
    session.save(tmp_path / "saved.json")
    loaded = Session.load(tmp_path / "saved.json")
    result = Toolset(loaded, policy=WITHHELD).call("write_file", {"path": "/copy", "content": blob})
    assert result.error_code == "policy_denied"


def test_a_blob_of_a_large_open_file_is_written_anywhere(session_files: Files) -> None:
    session_files.write("/pub/large", "open\n" * 100_000)
    tools = toolset(session_files, WITHHELD)
    blob = blob_of(tools.call("read_file", {"path": "/pub/large", "limit": 100_000}), "content")
    assert tools.call("write_file", {"path": "/copy", "content": blob}).success


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("rm", {"path": "/src", "recursive": True}),
        ("mv", {"source": "/src", "destination": "/moved"}),
        ("cp", {"source": "/src", "destination": "/copied"}),
    ],
)
def test_a_refusal_because_of_hidden_entries_below_does_not_name_them(
    session_files: Files, tool: str, arguments: dict[str, object]
) -> None:
    session_files.write("/src/app.py", "1\n")
    session_files.write("/src/prod-wombat.key", "1\n")
    policy = rule("deny", ["read", "write", "edit", "patch", "search", "list", "stat"], "*.key")
    before = session_files.tree().fingerprint

    result = toolset(session_files, policy).call(tool, arguments)

    assert (result.status, result.error_code) == ("forbidden", "policy_denied"), result.message
    assert "as a whole" in result.message
    assert not quotes(result)
    assert session_files.tree().fingerprint == before
    named = toolset(session_files, rule("deny", ["read", "write"], "*.key")).call(tool, arguments)
    assert "prod-wombat.key" in named.message
