"""`apply_patch` as a tool: its answers, its refusals, and its receipt."""

from __future__ import annotations

from typing import Any

import pytest

from weakfs import DEFAULT_TOOLS, Capability, Policy, PolicyRule, Session, ToolResult, Toolset
from weakfs.editing import PatchOps
from weakfs.filesystem import Limits


@pytest.fixture
def toolset() -> Toolset:
    toolset = Toolset(Session(session_id="s"))
    toolset.filesystem.write("/src/app.py", "port = 80\nhost = 'a'\n")
    toolset.filesystem.write("/old.txt", "old\n")
    return toolset


def patch_of(*lines: str) -> dict[str, object]:
    return {"patch": "\n".join(("*** Begin Patch", *lines, "*** End Patch"))}


def value(result: ToolResult[object]) -> Any:
    return result.value


def text(toolset: Toolset, path: str) -> str:
    return toolset.filesystem.read(path, limit=-1).content


def test_a_patch_changes_several_files_in_one_call(toolset: Toolset) -> None:
    result = toolset.call(
        "apply_patch",
        patch_of(
            *("*** Update File: src/app.py", "@@", "-port = 80", "+port = 8080"),
            *("*** Add File: new.txt", "+new"),
            "*** Delete File: old.txt",
        ),
    )

    assert result.success
    assert result.message == (
        "Applied patch: 3 files changed (1 added, 1 updated, 1 deleted): /src/app.py, /new.txt, /old.txt"
    )
    receipt = value(result)
    assert (receipt.status, receipt.error_code, receipt.errors) == ("ok", None, ())
    assert receipt.files_changed == 3
    assert receipt.changed_paths == ("/src/app.py", "/new.txt", "/old.txt")
    assert receipt.ops == PatchOps(add=1, update=1, delete=1)
    assert text(toolset, "/src/app.py") == "port = 8080\nhost = 'a'\n"
    assert text(toolset, "/new.txt") == "new\n"
    assert not toolset.filesystem.exists("/old.txt")


def test_the_error_of_a_failed_patch_names_every_file_and_nothing_changes(toolset: Toolset) -> None:
    before = toolset.filesystem.tree().fingerprint
    result = toolset.call(
        "apply_patch",
        patch_of(
            *("*** Add File: new.txt", "+new"),
            *("*** Update File: src/app.py", "@@", "-port = 81", "+port = 8080"),
            "*** Delete File: older.txt",
        ),
    )

    assert (result.success, result.status, result.error_code) == (False, "reject", "hunk_rejected")
    assert len(value(result).errors) == 2
    assert "did you mean '/old.txt'?" in result.message
    assert result.message.endswith("Nothing was changed.")
    assert toolset.filesystem.tree().fingerprint == before


@pytest.mark.parametrize(
    ("arguments", "status", "code"),
    [
        ({"patch": ""}, "parse_error", "patch_parse_error"),
        ({"patch": "*** Begin Patch\n*** Add File: a\n+b\n"}, "parse_error", "patch_parse_error"),
        (patch_of("*** Update File: no", "@@", "-a"), "not_found", "update_target_not_found"),
        (patch_of("*** Delete File: no"), "not_found", "delete_target_not_found"),
        (patch_of("*** Add File: ../no", "+a"), "forbidden", "path_forbidden"),
        (patch_of("*** Update File: bin", "@@", "-a"), "error", "update_target_non_utf8"),
        ({"patch": "x", "patch_format": "tar"}, "error", "invalid_arguments"),
    ],
)
def test_every_error_has_a_status_and_a_code(
    toolset: Toolset, arguments: dict[str, object], status: str, code: str
) -> None:
    toolset.filesystem.write_bytes("/bin", b"\xff\n")

    result = toolset.call("apply_patch", arguments)

    assert (result.status, result.error_code) == (status, code)


def test_a_dry_run_answers_the_same_and_writes_nothing(toolset: Toolset) -> None:
    before, arguments = toolset.filesystem.tree().fingerprint, patch_of("*** Add File: new.txt", "+new")

    planned = toolset.call("apply_patch", {**arguments, "dry_run": True})
    assert toolset.filesystem.tree().fingerprint == before
    done = toolset.call("apply_patch", arguments)

    assert planned.message == "Would change: 1 file changed (1 added): /new.txt"
    assert value(planned).changed_paths == value(done).changed_paths == ("/new.txt",)
    assert (value(planned).dry_run, value(done).dry_run) == (True, False)


def test_a_replaced_file_and_an_inexact_hunk_are_reported(toolset: Toolset) -> None:
    result = toolset.call(
        "apply_patch",
        patch_of("*** Add File: old.txt", "+new", "*** Update File: src/app.py", "@@", "-  port = 80", "+port = 1"),
    )

    assert value(result).replaced == ("/old.txt",)
    assert "Replaced existing files: /old.txt" in result.message
    assert "/src/app.py: hunk 1: fits apart from indentation" in result.message


def test_a_patch_without_effect_says_so(toolset: Toolset) -> None:
    result = toolset.call(
        "apply_patch", patch_of("*** Update File: src/app.py", "@@", " port = 80", "*** Add File: old.txt", "+old")
    )

    assert result.message == "The patch changes nothing"
    assert (value(result).files_changed, value(result).changed_paths, value(result).replaced) == (0, (), ())


def test_a_unified_diff_is_a_patch_too(toolset: Toolset) -> None:
    diff = "--- a/src/app.py\n+++ b/src/app.py\n@@ -1,2 +1,2 @@\n-port = 80\n+port = 81\n host = 'a'\n"
    assert toolset.call("apply_patch", {"patch": diff, "patch_format": "unified"}).success
    assert text(toolset, "/src/app.py") == "port = 81\nhost = 'a'\n"


BLOCKS = """\
The port changes:

`src/app.py`
```python
<<<<<<< SEARCH
port  = 80
=======
port = 81
>>>>>>> REPLACE
```

**new.txt**
<<<<<<< SEARCH
=======
new
>>>>>>> REPLACE
"""


def test_search_replace_blocks_are_a_patch_too(toolset: Toolset) -> None:
    arguments = {"patch": BLOCKS, "patch_format": "search_replace"}
    planned = toolset.call("apply_patch", {**arguments, "dry_run": True})
    assert not toolset.filesystem.exists("/new.txt")
    done = toolset.call("apply_patch", arguments)

    assert planned.message.startswith("Would change: 2 files changed (1 added, 1 updated): /src/app.py, /new.txt")
    assert done.message.startswith("Applied patch: 2 files changed (1 added, 1 updated): /src/app.py, /new.txt")
    assert "/src/app.py: hunk 1: fits apart from white space" in done.message
    assert text(toolset, "/src/app.py") == "port = 81\nhost = 'a'\n"
    assert text(toolset, "/new.txt") == "new\n"


@pytest.mark.parametrize(
    ("old", "new", "status", "code"),
    [
        ("port  = 80", "port = 90", "reject", "hunk_rejected"),
        ("**new.txt**", "**old.txt**", "reject", "hunk_rejected"),
        ("src/app.py", "src/no.py", "not_found", "update_target_not_found"),
        ("**new.txt**", "../new.txt", "forbidden", "path_forbidden"),
        (">>>>>>> REPLACE\n```", "```", "parse_error", "patch_parse_error"),
        ("`src/app.py`", "", "parse_error", "patch_parse_error"),
    ],
)
def test_blocks_that_cannot_be_applied_change_nothing(
    toolset: Toolset, old: str, new: str, status: str, code: str
) -> None:
    before = toolset.filesystem.tree().fingerprint
    patch = BLOCKS.replace(old, new)
    result = toolset.call("apply_patch", {"patch": patch, "patch_format": "search_replace"})

    assert (result.status, result.error_code) == (status, code)
    assert result.message.endswith("Nothing was changed.")
    assert toolset.filesystem.tree().fingerprint == before


def test_a_dry_run_reports_a_file_that_would_be_too_large() -> None:
    toolset = Toolset(Session(session_id="s"), limits=Limits(max_file_size=4))
    arguments = patch_of("*** Add File: a", "+12345")

    planned = toolset.call("apply_patch", {**arguments, "dry_run": True})
    done = toolset.call("apply_patch", arguments)

    assert planned.error_code == done.error_code == "file_too_large"
    assert planned.message == done.message


def test_the_example_in_the_description_is_a_patch_that_applies(toolset: Toolset) -> None:
    description = next(tool.description for tool in DEFAULT_TOOLS if tool.name == "apply_patch")
    example = description[description.rindex("*** Begin Patch") :]
    fs = toolset.filesystem
    fs.write(
        "/src/app.py",
        "class Server:\n    def start(self):\n        self.open()\n        self.port = 80\n        return self\n",
    )
    fs.write("/docs/old.md", "")

    assert toolset.call("apply_patch", {"patch": example}).success
    assert "self.port = 8080\n" in text(toolset, "/src/app.py")


def guarded(**capability: Any) -> Toolset:
    toolset = Toolset(Session(session_id="s"), capability=Capability(**capability))
    files = Toolset(toolset.session).filesystem
    files.write("/src/app.py", "port = 80\n")
    files.write("/other.txt", "1\n")
    return toolset


@pytest.mark.parametrize(
    "lines",
    [
        ("*** Add File: other/new.txt", "+1"),
        ("*** Add File: src/../new.txt", "+1"),
        ("*** Update File: other.txt", "@@", "-1", "+2"),
        ("*** Delete File: other.txt",),
        ("*** Update File: src/app.py", "*** Move to: app.py"),
    ],
)
@pytest.mark.parametrize("dry_run", [False, True])
def test_a_patch_stays_inside_the_roots_of_the_capability(lines: tuple[str, ...], dry_run: bool) -> None:
    toolset = guarded(fs_roots=("/src",))
    result = toolset.call("apply_patch", {**patch_of(*lines), "dry_run": dry_run})
    assert (result.status, result.error_code) == ("forbidden", "path_forbidden")


def test_a_patch_below_the_roots_does_not_access_their_parents() -> None:
    toolset = guarded(fs_roots=("/src/deep/er",))
    assert toolset.call("apply_patch", patch_of("*** Add File: src/deep/er/new/x", "+1")).success


@pytest.mark.parametrize(
    "capability", [{"max_changed_files": 1}, {"max_write_bytes": 3}, {"allowed_fs_ops": ("read", "edit")}]
)
def test_a_dry_run_is_refused_like_the_real_call(capability: dict[str, object]) -> None:
    arguments = patch_of("*** Add File: a", "+12345", "*** Add File: b", "+1")
    planned = guarded(**capability).call("apply_patch", {**arguments, "dry_run": True})
    done = guarded(**capability).call("apply_patch", arguments)

    assert not done.success
    assert (planned.status, planned.error_code, planned.message) == (done.status, done.error_code, done.message)


def test_blocks_stay_inside_the_roots_and_the_formats_of_the_capability() -> None:
    patch = "other.txt\n<<<<<<< SEARCH\n1\n=======\n2\n>>>>>>> REPLACE\n"
    arguments = {"patch": patch, "patch_format": "search_replace"}

    assert guarded(allowed_patch_formats=("search_replace",)).call("apply_patch", arguments).success
    assert guarded(fs_roots=("/src",)).call("apply_patch", arguments).error_code == "path_forbidden"
    assert guarded(allowed_patch_formats=("v4a",)).call("apply_patch", arguments).error_code == "operation_forbidden"


def test_a_policy_refuses_a_patch_with_its_own_reason() -> None:
    session = Session(session_id="s")
    policy = Policy((PolicyRule(effect="deny", paths=("/locked",), operations=("patch",), reason="it is generated"),))
    toolset = Toolset(session, policy=policy)
    result = toolset.call("apply_patch", patch_of("*** Add File: locked/x", "+1"))
    assert result.status == "forbidden"
    assert "it is generated" in result.message


def test_a_patch_may_be_called_input() -> None:
    toolset = Toolset(Session())

    result = toolset.call("apply_patch", {"input": "*** Begin Patch\n*** Add File: a\n+x\n*** End Patch"})

    assert result.success, result.message
    assert toolset.filesystem.read("/a").content == "x\n"
