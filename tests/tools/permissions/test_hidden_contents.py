"""Hidden contents are not quoted in answers, and not moved to where they can be read."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from attrs import frozen

from tests.tools.conftest import Files, OpenFiles
from tests.tools.permissions.hidden_files import (
    DENIED,
    RULES,
    SECRET,
    UPDATE,
    WITHHELD,
    WORDS,
    patch,
    quotes,
    rule,
    told,
    toolset,
    unified,
)
from weakfs import (
    Capability,
    HostFilesystem,
    InMemoryFilesystem,
    MountedFilesystem,
    Session,
    Tool,
    ToolContext,
    ToolResult,
    Toolset,
)

NO_READ = Capability(allowed_fs_ops=["write", "edit", "patch", "search", "list", "stat"])


def edit(old: str, new: str = "x") -> tuple[str, dict[str, object]]:
    return "edit_file", {"path": "/secrets/token.py", "old_string": old, "new_string": new}


BLOCK = "secrets/token.py\n<<<<<<< SEARCH\n{old}\n=======\nx\n>>>>>>> REPLACE\n"

# Calls that are refused, and quote the most similar lines if that is allowed.
REFUSED: dict[str, tuple[str, dict[str, object]]] = {
    "edit": edit("    alpha = 'womba'\n    beta = 'quokk'\n"),
    "edit of escapes": edit("alpha = 'w'\\n    beta = 'quo'"),
    "edit in doubt": edit("def unlock(door):\n  alpha = 'wombat'\n      beta = 'quokka'", "def f():\n   x\n  y"),
    "patch": patch(UPDATE, "@@ def unlock(door):", "     alpha = 'womba'", "-    beta = 'quokk'", "+    y"),
    "patch with a wrong context": patch(UPDATE, "@@", " def unlock(door):", "-    nothing", "+    y"),
    "unified": unified(
        "--- a/secrets/token.py", "+++ b/secrets/token.py", "@@ -1,2 +1,1 @@", " def unlock(door):", "-    nothing"
    ),
    "unified delete": unified(
        "--- a/secrets/token.py", "+++ /dev/null", "@@ -1,2 +0,0 @@", "-def unlock(door):", "-    nothing"
    ),
    "blocks": (
        "apply_patch",
        {"patch": BLOCK.format(old="    alpha = 'womba'\n    beta = 'quokk'"), "patch_format": "search_replace"},
    ),
}


@pytest.mark.parametrize("name", ["edit", "patch", "blocks"])
def test_a_refusal_quotes_a_file_that_may_be_read(session_files: Files, name: str) -> None:
    tool, arguments = REFUSED[name]
    result = toolset(session_files).call(tool, arguments)
    assert not result.success
    assert "wombat" in result.message


@pytest.mark.parametrize("name", REFUSED)
def test_a_change_of_a_file_that_may_not_be_read_is_refused_like_a_read(session_files: Files, name: str) -> None:
    tool, arguments = REFUSED[name]
    result = toolset(session_files, DENIED).call(tool, arguments)
    assert (result.status, result.error_code) == ("forbidden", "policy_denied"), result.message
    assert result.value.reason == "credentials"  # type: ignore[attr-defined]  # every receipt has one
    assert not quotes(result)


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("bounds", ["blob", "blob on edits", "capability"])
def test_a_refusal_does_not_quote_withheld_contents(session_files: Files, name: str, bounds: str) -> None:
    tool, arguments = REFUSED[name]
    policy = {"blob": WITHHELD, "blob on edits": rule("blob", ["edit", "patch"])}.get(bounds)
    tools = toolset(session_files, policy, NO_READ if bounds == "capability" else None)
    result = tools.call(tool, arguments)
    assert not result.success
    assert result.error_code not in ("policy_denied", "operation_forbidden"), result.message
    asked = str(arguments)
    assert [word for word in quotes(result) if word not in asked] == []
    assert session_files.read("/secrets/token.py").content == SECRET


def test_a_withheld_file_can_be_changed(session_files: Files) -> None:
    for policy, capability in ((WITHHELD, None), (None, NO_READ)):
        tools = toolset(session_files, policy, capability)
        done = tools.call(*edit("return alpha", "return beta"))
        assert done.success, done.message
        back = tools.call(*patch(UPDATE, "@@ def unlock(do", "-return beta", "+return alpha"))
        assert back.success, back.message
        assert not quotes(done) + quotes(back)
        assert session_files.read("/secrets/token.py").content == SECRET


def test_a_completed_anchor_from_a_withheld_file_is_not_quoted(session_files: Files) -> None:
    session_files.write("/secrets/token.py", "class Wombat(quokka):\n    x = 1\n")
    result = toolset(session_files, WITHHELD).call(*patch(UPDATE, "@@ class Wombat", "-    x = 1", "+    x = 2"))
    assert result.success, result.message
    assert not quotes(result)


@pytest.mark.parametrize("bounds", ["denied", "blob", "capability"])
def test_a_search_shows_no_line_of_a_file_that_may_not_be_read(session_files: Files, bounds: str) -> None:
    policy = {"denied": DENIED, "blob": WITHHELD}.get(bounds)
    tools = toolset(session_files, policy, NO_READ if bounds == "capability" else None)
    found = tools.call("grep", {"pattern": "alpha|open"})
    assert found.success
    assert not quotes(found)
    assert ("/pub/open.py" in found.message) is (bounds != "capability")
    alone = tools.call("grep", {"pattern": "alpha", "path": "/secrets/token.py"})
    assert alone.status == "forbidden"
    assert not quotes(alone)
    assert "/secrets/token.py" in tools.call("glob", {"pattern": "*.py"}).message


@pytest.mark.parametrize("bounds", ["denied", "blob", "capability"])
def test_a_stale_write_shows_no_difference_of_a_file_that_may_not_be_read(session_files: Files, bounds: str) -> None:
    policy = {"denied": DENIED, "blob": WITHHELD}.get(bounds)
    tools = toolset(session_files, policy, NO_READ if bounds == "capability" else None)
    both = {"path": "/secrets/token.py", "mode": "append"}
    assert tools.call("write_file", {**both, "content": "a\n"}, caller="ann").success
    assert tools.call("write_file", {**both, "content": "b\n"}, caller="bob").success
    result = tools.call("write_file", {**both, "content": "c\n"}, caller="ann")
    assert result.error_code == "changed_by_another"
    assert not quotes(result)
    assert "+b" not in result.message


def test_no_hint_proposes_a_path_that_may_not_be_found_or_shown(session_files: Files) -> None:
    for policy in (DENIED, WITHHELD, rule("deny", ["search"]), rule("deny", ["stat"]), rule("blob", ["list"])):
        tools = toolset(session_files, policy)
        for name, arguments in (
            ("read_file", {"path": "/pub/token.py"}),
            ("edit_file", {"path": "/token.py", "old_string": "a", "new_string": "b"}),
            patch("*** Update File: /token.py", "@@", "-a", "+b"),
        ):
            assert "secrets" not in tools.call(name, arguments).message, (policy, name)


# Links


@pytest.mark.parametrize("bounds", [*(name for name in RULES if name != "blob on search"), "capability"])
def test_the_target_of_a_link_is_shown_only_if_it_may_be_read(open_files: OpenFiles, bounds: str) -> None:
    files = open_files(Session(), follow_symlinks="within_root_only")
    files.write("/pub/wombat/file", "open\n")
    files.symlink("../pub/wombat", "/secrets/way")
    policy = RULES.get(bounds)
    tools = toolset(files, policy, NO_READ if bounds == "capability" else None)
    for name, arguments in (
        ("stat", {"path": "/secrets/way"}),
        ("stat", {"path": "/secrets/way/file"}),
        ("exists", {"path": "/secrets/way/file"}),
        ("exists", {"path": "/secrets/way"}),
        ("ls", {"path": "/secrets/way"}),
        ("ls", {"path": "/secrets"}),
        ("glob", {"pattern": "file", "path": "/secrets/way"}),
        ("read_file", {"path": "/secrets/way/file"}),
        ("mkdir", {"path": "/secrets/way/made"}),
        ("write_file", {"path": "/secrets/way/made/file", "content": "x"}),
        ("cp", {"source": "/secrets/way/file", "destination": "/secrets/copy"}),
        ("mv", {"source": "/secrets/way/file", "destination": "/pub/file"}),
        patch("*** Add File: /secrets/way/new", "+x"),
        patch("*** Update File: /secrets/way/file", "*** Move to: /pub/new"),
        ("rm", {"path": "/secrets/way/file"}),
    ):
        result = tools.call(name, arguments)
        assert "wombat" not in told(result), (name, result.message)
    assert [entry.path for entry in files.walk("/pub")] == ["/pub/wombat", "/pub/wombat/file"]


@pytest.mark.parametrize("effect", ["deny", "blob"])
def test_no_message_shows_the_target_of_an_unreadable_link(effect: str) -> None:
    files = InMemoryFilesystem(Session())
    files.symlink("../pub/wombat", "/secrets/way")
    for name, arguments in (
        ("write_file", {"path": "/secrets/way", "content": "x"}),
        ("write_file", {"path": "/secrets/way/file", "content": "x"}),
        ("read_file", {"path": "/secrets/way"}),
        ("grep", {"pattern": "x", "path": "/secrets/way"}),
    ):
        result = toolset(files, rule(effect, ["read"])).call(name, arguments)
        assert result.status == "forbidden"
        assert not quotes(result), result.message


@frozen
class Look:
    """Parameters of a tool that looks at a link."""


@pytest.mark.parametrize("effect", ["deny", "blob"])
def test_a_custom_tool_does_not_see_the_target_of_an_unreadable_link(effect: str) -> None:
    session = Session()
    files = InMemoryFilesystem(session)
    files.symlink("../pub/wombat", "/secrets/way")
    files.symlink("../pub/wombat", "/pub/way")

    def look(params: Look, *, context: ToolContext) -> ToolResult[object]:
        fs = context.filesystem
        assert fs is not None
        found = fs.stat("/secrets/way")
        assert (found.is_symlink, found.target) == (True, "")
        assert (fs.stat("/pub/way").target, fs.readlink("/pub/way")) == ("../pub/wombat", "../pub/wombat")
        fs.readlink("/secrets/way")
        return ToolResult("never", None)

    tools = Toolset(session, files, tools=[Tool("look", "Look.", Look, look)], policy=rule(effect, ["read"]))
    result = tools.call("look", {})
    assert result.error_code == "policy_denied"
    assert not quotes(result)


# Commands


@pytest.mark.parametrize("operation", ["read", "search", "list", "stat", "shell"])
@pytest.mark.parametrize("effect", ["deny", "blob", "only"])
def test_no_command_runs_where_a_rule_hides_a_part_of_the_files(
    session_files: Files, effect: str, operation: str
) -> None:
    result = toolset(session_files, rule(effect, [operation])).call("shell", {"command": "cat secrets/token.py"})
    assert result.status == "forbidden"
    assert not quotes(result)


@pytest.mark.parametrize("missing", ["write", "read"])
def test_no_command_runs_for_a_capability_that_lacks_writing_or_reading(session_files: Files, missing: str) -> None:
    allowed = {"read", "write", "shell", "list", "stat"} - {missing}
    before = session_files.tree().fingerprint
    result = toolset(session_files, capability=Capability(allowed_fs_ops=allowed)).call("shell", {"command": "echo >a"})
    assert (result.status, result.error_code) == ("forbidden", "operation_forbidden")
    assert f"{missing!r} is not among the allowed operations" in result.message
    assert session_files.tree().fingerprint == before


def test_a_command_runs_for_a_capability_that_reads_and_writes(session_files: Files) -> None:
    capability = Capability(allowed_fs_ops=["read", "write", "shell"])
    result = toolset(session_files, capability=capability).call("shell", {"command": "cat pub/open.py"})
    assert result.success, result.message


# Links


def test_a_capability_with_roots_that_follows_links_anywhere_is_refused() -> None:
    with pytest.raises(ValueError, match="cannot combine fs_roots with follow_symlinks='allow'"):
        Capability(fs_roots=["/src"], follow_symlinks="allow")


@pytest.mark.parametrize("root", ["/", "/pub"])
def test_a_capability_with_roots_follows_no_link_out_of_the_filesystem(tmp_path: Path, root: str) -> None:
    (tmp_path / "root" / "pub").mkdir(parents=True)
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "file").write_text(SECRET)
    (tmp_path / "root" / "pub" / "way").symlink_to(tmp_path / "outside")
    files = HostFilesystem(tmp_path / "root", session=Session(), store=tmp_path / "store", follow_symlinks="allow")
    tools = toolset(files, capability=Capability(fs_roots=[root]))
    for name, arguments in (
        ("read_file", {"path": "/pub/way/file"}),
        ("write_file", {"path": "/pub/way/file", "content": ""}),
        ("ls", {"path": "/pub/way"}),
        ("grep", {"pattern": "alpha", "path": "/pub/way"}),
        patch("*** Update File: /pub/way/file", "@@", "-    return alpha", "+    return beta"),
        ("cp", {"source": "/pub/way/file", "destination": "/pub/copy"}),
    ):
        result = tools.call(name, arguments)
        assert (result.status, result.error_code) == ("forbidden", "path_forbidden"), (name, result.message)
        assert not quotes(result)
    assert (tmp_path / "outside" / "file").read_text() == SECRET


@pytest.mark.parametrize("effect", ["deny", "blob"])
def test_no_link_leads_out_of_the_filesystem_where_a_rule_hides_contents(tmp_path: Path, effect: str) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "outside").write_text(SECRET)
    (tmp_path / "root" / "way").symlink_to(tmp_path / "outside")
    files = HostFilesystem(tmp_path / "root", session=Session(), store=tmp_path / "store", follow_symlinks="allow")
    assert quotes(toolset(files).call("read_file", {"path": "/way"}))
    tools = toolset(files, rule(effect, ["read"]))
    for name, arguments in (
        ("read_file", {"path": "/way"}),
        ("grep", {"pattern": "alpha", "path": "/way"}),
        ("edit_file", {"path": "/way", "old_string": "alpha = 'wombats", "new_string": ""}),
    ):
        result = tools.call(name, arguments)
        assert result.status == "forbidden", (name, result.message)
        assert not [word for word in quotes(result) if word not in str(arguments)]


@frozen
class Race:
    """Parameters of a tool that changes files while others do."""


@pytest.mark.parametrize("mounted_at", ["", "/workspace"])
def test_a_conflict_quotes_only_what_may_be_shown(mounted_at: str) -> None:
    session = Session()
    files = InMemoryFilesystem(session)
    served = MountedFilesystem(files, mounted_at) if mounted_at else files
    files.write("/secrets/token.py", SECRET)
    files.write("/pub/open.py", "open = 1\n")

    def race(params: Race, *, context: ToolContext) -> ToolResult[object]:
        assert context.filesystem is not None
        context.filesystem.write(f"{mounted_at}/pub/open.py", "open = 2\n")
        context.filesystem.write(f"{mounted_at}/secrets/token.py", SECRET.replace("door", "gate"))
        thread = threading.Thread(target=others)
        thread.start()
        thread.join()
        return ToolResult("done", None)

    def others() -> None:
        files.write("/pub/open.py", "open = 3\n")
        files.write("/secrets/token.py", SECRET.replace("door", "wombat"))

    tool = Tool("probe", "Race.", Race, race)
    policy = rule("deny", ["read"], f"{mounted_at}/secrets")
    result = Toolset(session, served, tools=[tool], policy=policy).call("probe", {})

    assert result.error_code == "merge_conflict"
    assert "open = 3" in result.message
    assert f"{mounted_at}/pub/open.py" in result.message
    assert f"{mounted_at}/secrets/token.py" in result.message
    assert not any(word in result.message for word in (*WORDS, "unlock"))
