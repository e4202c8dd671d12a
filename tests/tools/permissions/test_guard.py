"""What a capability and a policy allow: on every backend, and below tools that users write."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from tests.tools.permissions.guarded_files import SECRETS, SOURCES, handled, toolset
from weakfs import (
    DEFAULT_TOOLS,
    Capability,
    Filesystem,
    HostFilesystem,
    InMemoryFilesystem,
    Policy,
    PolicyRule,
    Session,
    Toolset,
)
from weakfs.backends import MockFilesystem
from weakfs.filesystem import BaseFilesystem, SupportsCheckout

# The calls of every operation, all inside /src.
CALLS: dict[str, tuple[str, dict[str, object]]] = {
    "read": ("read_file", {"path": "/src/app.py"}),
    "write": ("write_file", {"path": "/src/new.py", "content": ""}),
    "edit": ("edit_file", {"path": "/src/app.py", "old_string": "80", "new_string": "81"}),
    "search": ("grep", {"pattern": "port", "path": "/src"}),
    "list": ("ls", {"path": "/src"}),
    "stat": ("stat", {"path": "/src/app.py"}),
}


@pytest.mark.parametrize("allowed", CALLS)
def test_only_the_allowed_operations_can_be_done(files: Filesystem, allowed: str) -> None:
    tools = toolset(files, Capability(allowed_fs_ops=[allowed]))
    for operation, (name, arguments) in CALLS.items():
        before = files.tree().fingerprint
        result = tools.call(name, arguments)
        if operation == allowed:
            assert result.success, result.message
        else:
            assert (result.status, result.error_code) == ("forbidden", "operation_forbidden"), operation
            assert allowed in result.message
            assert files.tree().fingerprint == before


OUTSIDE: list[tuple[str, dict[str, object]]] = [
    ("read_file", {"path": "/docs/guide.md"}),
    ("read_file", {"path": "/src/../docs/guide.md"}),
    ("read_file", {"path": "/src/link.md"}),
    ("read_file", {"path": "/srcs"}),
    ("write_file", {"path": "/docs/new.md", "content": ""}),
    ("write_file", {"path": "/src/link.md", "content": ""}),
    ("edit_file", {"path": "/docs/guide.md", "old_string": "the", "new_string": "a"}),
    ("grep", {"pattern": "port"}),
    ("grep", {"pattern": "port", "path": "/docs"}),
    ("glob", {"pattern": "**/*"}),
    ("ls", {}),
    ("ls", {"path": "/docs"}),
    ("stat", {"path": "/docs"}),
    ("exists", {"path": "/nothing"}),
    ("rm", {"path": "/docs", "recursive": True}),
    ("mkdir", {"path": "/other"}),
    ("mv", {"source": "/src/app.py", "destination": "/docs/app.py"}),
    ("mv", {"source": "/docs/guide.md", "destination": "/src/guide.md"}),
    ("cp", {"source": "/docs", "destination": "/src/docs"}),
    ("shell", {"command": "true"}),
]


@pytest.mark.parametrize(("name", "arguments"), OUTSIDE)
def test_nothing_outside_the_roots_is_reached(files: Filesystem, name: str, arguments: dict[str, object]) -> None:
    before = files.tree().fingerprint
    result = toolset(files, Capability(fs_roots=["src"])).call(name, arguments)
    assert (result.status, result.error_code) == ("forbidden", "path_forbidden"), result.message
    assert files.tree().fingerprint == before


def test_without_any_root_no_directory_is_allowed(files: Filesystem) -> None:
    result = toolset(files, Capability(fs_roots=[])).call("read_file", {"path": "/src/app.py"})
    assert result.error_code == "path_forbidden"
    assert result.message == "cannot read '/src/app.py': no directory is allowed; use another tool"


def test_inside_the_roots_everything_works(files: Filesystem) -> None:
    tools = toolset(files, Capability(fs_roots=["/src"]))
    more: dict[str, object] = {"path": "/src/lib", "recursive": True}
    for name, arguments in [*CALLS.values(), ("rm", more)]:
        result = tools.call(name, arguments)
        assert result.success, result.message


def test_a_policy_can_allow_grep_everywhere_and_writes_only_below_src(files: Filesystem) -> None:
    tools = toolset(files, policy=SOURCES)
    assert tools.call("grep", {"pattern": "port"}).success
    assert tools.call("write_file", {"path": "/src/new.py", "content": ""}).success
    before = files.tree().fingerprint
    for name, arguments in (
        ("write_file", {"path": "/docs/new.md", "content": ""}),
        ("edit_file", {"path": "/docs/guide.md", "old_string": "the", "new_string": "a"}),
        ("rm", {"path": "/docs/guide.md"}),
        ("mv", {"source": "/docs/guide.md", "destination": "/src/guide.md"}),
        ("cp", {"source": "/src/app.py", "destination": "/app.py"}),
        ("mkdir", {"path": "/other"}),
    ):
        result = tools.call(name, arguments)
        assert (result.status, result.error_code) == ("forbidden", "policy_denied"), name
        assert "only sources change" in result.message
        assert result.value.reason == "only sources change"  # type: ignore[attr-defined]  # every receipt has one
    assert files.tree().fingerprint == before


def test_no_tool_reveals_what_a_policy_hides(files: Filesystem) -> None:
    tools = toolset(files, policy=SECRETS)
    found = tools.call("grep", {"pattern": "port"})
    assert "knocking" not in found.message
    assert "server.key" not in found.message
    assert "token" not in tools.call("glob", {"pattern": "**/*"}).message
    for name, arguments in (
        ("read_file", {"path": "/secrets/token"}),
        ("read_file", {"path": "/server.key"}),
        ("edit_file", {"path": "/secrets/token", "old_string": "no such", "new_string": ""}),
        ("grep", {"pattern": "port", "path": "/secrets"}),
        ("cp", {"source": "/server.key", "destination": "/src/copy.txt"}),
        ("mv", {"source": "/secrets/token", "destination": "/src/token"}),
        ("mv", {"source": "/secrets", "destination": "/src/public"}),
        ("cp", {"source": "/secrets", "destination": "/src/public"}),
        ("shell", {"command": "cat secrets/token"}),
    ):
        result = tools.call(name, arguments)
        assert result.status == "forbidden", (name, arguments)
        assert "knocking" not in result.message
    assert files.read("/secrets/token").content == "port knocking\n"


@pytest.mark.parametrize("pattern", ["/secrets/*", "*.key", "**", ".s*", "/secrets/**/*"])
def test_a_rule_covers_hidden_files_too(pattern: str) -> None:
    rule = PolicyRule(effect="deny", operations=["read"], paths=pattern, reason="hidden")
    assert rule.covers("/secrets/.s.key")
    assert rule.covers("/secrets/.s.key/below")


@pytest.mark.parametrize("effect", ["deny", "only"])
def test_a_listing_shows_no_sizes_of_what_may_not_be_examined(files: Filesystem, effect: str) -> None:
    rule = PolicyRule(
        effect=effect,  # type: ignore[arg-type]  # one of the literals
        operations=["stat"],
        paths="/secrets" if effect == "deny" else "/src",
        reason="hidden",
    )
    told = toolset(files, policy=Policy([rule])).call("ls", {"depth": 3, "sizes": True})
    assert told.success
    assert "  token\n" in told.message + "\n"
    assert "app.py 10" in told.message


def test_a_directory_is_removed_only_if_everything_in_it_may_be_removed(files: Filesystem) -> None:
    kept = Policy([PolicyRule(effect="deny", operations=["write"], paths="util.py", reason="vendored")])
    tools = toolset(files, policy=kept)
    before = files.tree().fingerprint
    for name, arguments in (
        ("rm", {"path": "/src", "recursive": True}),
        ("mv", {"source": "/src", "destination": "/lib"}),
        ("cp", {"source": "/src", "destination": "/lib"}),
    ):
        result = tools.call(name, arguments)
        assert result.error_code == "policy_denied", name
        assert "vendored" in result.message
    assert files.tree().fingerprint == before


def read_through_a_link(fs: Filesystem) -> object:
    fs.symlink("/secrets/token", "/src/way")
    return fs.read("/src/way")


def read_a_copy(fs: Filesystem) -> object:
    fs.copy("/secrets/token", "/t")
    return fs.read("/t")


def read_after_a_move(fs: Filesystem) -> object:
    fs.move("/secrets", "/t")
    return fs.read("/t/token")


EVASIONS: dict[str, Callable[[Filesystem], object]] = {
    "read": lambda fs: fs.read("/secrets/token"),
    "read_bytes": lambda fs: fs.read_bytes("/secrets/token"),
    "read_lines": lambda fs: fs.read_lines("/secrets/token"),
    "open": lambda fs: fs.open("/secrets/token").read(),
    "tree": lambda fs: fs.tree(),
    "export": lambda fs: fs.export_bytes(),
    "snapshot": lambda fs: fs.snapshot(),
    "bind": lambda fs: fs.bind(Session()).read("/secrets/token"),
    "grep": lambda fs: fs.grep("knocking", path="/secrets/token"),
    "link": read_through_a_link,
    "copy": read_a_copy,
    "move": read_after_a_move,
}


@pytest.mark.parametrize("evasion", EVASIONS)
def test_a_custom_tool_cannot_bypass_the_policy(files: Filesystem, evasion: str) -> None:
    before = files.tree().fingerprint
    result = handled(files, EVASIONS[evasion], policy=SECRETS)
    assert result.status == "forbidden", result
    assert files.tree().fingerprint == before


def test_a_custom_tool_searches_without_hidden_files(files: Filesystem) -> None:
    assert handled(files, lambda fs: [match.path for match in fs.grep("port")], policy=SECRETS).value == [
        "/docs/guide.md",
        "/src/app.py",
        "/src/lib/util.py",
    ]


def test_only_links_that_filesystem_and_capability_both_allow_are_followed(files: Filesystem) -> None:
    link = {"path": "/src/link.md"}
    assert toolset(files, Capability()).call("read_file", link).success
    assert toolset(files, Capability(follow_symlinks="allow")).call("read_file", link).success
    assert toolset(files, Capability(follow_symlinks="deny")).call("read_file", link).status == "forbidden"
    strict = InMemoryFilesystem(Session())
    strict.write("/a", "")
    strict.symlink("a", "/b")
    assert toolset(strict, Capability(follow_symlinks="allow")).call("read_file", {"path": "/b"}).status == "forbidden"


def test_links_out_of_the_filesystem_are_outside_every_root(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "outside").write_text("secret\n")
    (tmp_path / "root" / "way").symlink_to("../outside")
    session = Session()
    files = HostFilesystem(tmp_path / "root", session=session, store=tmp_path / "store", follow_symlinks="allow")
    assert Toolset(session, files).call("read_file", {"path": "/way"}).success
    for capability in (
        Capability(follow_symlinks="within_root_only"),
        Capability(follow_symlinks="deny"),
        Capability(fs_roots=["/src"]),
    ):
        result = Toolset(session, files, capability=capability).call("read_file", {"path": "/way"})
        assert result.error_code == "path_forbidden"
        assert "secret" not in result.message


def test_a_policy_keeps_contents_out_of_answers(files: Filesystem) -> None:
    policy = Policy(
        [PolicyRule(effect="blob", operations=["read", "search"], paths="/secrets", reason="not for models")]
    )
    tools = toolset(files, policy=policy)
    for arguments in ({"path": "/secrets/token"}, {"path": "/secrets/token", "encoding": "bytes"}):
        result = tools.call("read_file", arguments)
        assert result.success
        assert "knocking" not in result.message
        inline = tools.call("read_file", {**arguments, "output_mode": "require_inline"})
        assert inline.error_code == "inline_required_too_large"
    for mode in ("auto", "require_inline"):
        found = tools.call("grep", {"pattern": "knocking", "output_mode": mode})
        assert found.success
        assert "No matches found; 1 file not searched" in found.message
    assert "port" in tools.call("grep", {"pattern": "port", "path": "/src"}).message


def test_changes_by_a_command_are_checked_when_it_ends(files: Filesystem) -> None:
    tools = toolset(files, policy=SOURCES)
    assert tools.call("shell", {"command": "echo 1 > src/made"}).success
    before = files.tree().fingerprint
    result = tools.call("shell", {"command": "echo 1 > src/other; echo 2 > outside"})
    assert (result.status, result.error_code) == ("forbidden", "policy_denied")
    assert files.tree().fingerprint == before


def test_without_bounds_a_handler_gets_the_filesystem_itself(files: Filesystem) -> None:
    assert handled(files, lambda fs: fs).value is files


def test_a_filesystem_that_cannot_be_guarded_is_refused_at_once() -> None:
    assert not isinstance(MockFilesystem(), BaseFilesystem)
    with pytest.raises(TypeError, match=r"extend weakfs\.filesystem\.BaseFilesystem"):
        Toolset(Session(), MockFilesystem(), capability=Capability())


@pytest.mark.parametrize(
    "bad",
    [
        {"allowed_fs_ops": ["reed"]},
        {"max_read_bytes": -1},
        {"max_scan_files": 1.5},
        {"allowed_patch_formats": ["v5"]},
        {"follow_symlinks": "sometimes"},
    ],
)
def test_an_invalid_capability_is_refused(bad: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"there (is|are)|whole number|use 'deny', "):
        Capability(**bad)  # type: ignore[arg-type]  # that is the point


def test_an_empty_list_of_operations_allows_none(files: Filesystem) -> None:
    for name, arguments in CALLS.values():
        assert toolset(files, Capability(allowed_fs_ops=[])).call(name, arguments).error_code == "operation_forbidden"
    assert len(DEFAULT_TOOLS) > len(CALLS)


def test_forbidden_changes_by_a_program_in_a_checkout_are_undone(files: Filesystem) -> None:
    def evade(fs: Filesystem) -> object:
        assert isinstance(fs, SupportsCheckout)
        with suppress(PermissionError), fs.checkout() as work:
            (Path(work.directory) / "docs" / "made").write_text("1\n")
        return None

    before = files.tree().fingerprint
    assert handled(files, evade, policy=SOURCES).success
    assert files.tree().fingerprint == before
    assert handled(files, evade, capability=Capability(max_changed_files=0)).success
    assert files.tree().fingerprint == before


def test_a_policy_with_host_paths_is_refused(tmp_path: Path) -> None:
    session = Session()
    files = HostFilesystem(tmp_path, session=session, store=tmp_path.parent / "store")
    rule = PolicyRule(effect="deny", operations=["read"], paths=f"{tmp_path}/secrets", reason="hidden")
    with pytest.raises(ValueError, match="is a host path"):
        Toolset(session, files, policy=Policy([rule]))


def test_a_search_reaches_allowed_directories_below_forbidden_ones() -> None:
    rule = PolicyRule(effect="only", operations=["search", "list", "read"], paths="/src", reason="sources only")
    session = Session(session_id="s")
    files = InMemoryFilesystem(session)
    for path in ("/src/a.py", "/docs/a.py"):
        files.write(path, "needle\n")
    tools = Toolset(session, files, policy=Policy([rule]))
    for name, arguments in (("grep", {"pattern": "needle"}), ("glob", {"pattern": "**/*.py"})):
        result = tools.call(name, arguments)
        assert result.success, result.message
        assert "/src/a.py" in result.message
        assert "/docs/a.py" not in result.message
