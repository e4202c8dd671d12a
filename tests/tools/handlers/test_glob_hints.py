"""What `glob` and `grep` say if a pattern matched no file."""

from __future__ import annotations

import pytest

from weakfs import Capability, Policy, PolicyRule, Session, Toolset
from weakfs.backends import InMemoryFilesystem
from weakfs.tools.handlers import glob_hints as no_match
from weakfs.tools.permissions import CONTENTS

FILES = (
    "/.env",
    "/.github/ci.yml",
    "/.github/cd.yml",
    "/app/[slug]/page.tsx",
    "/app/[...all]/page.tsx",
    "/docs/{draft}.md",
    "/docs/[1]{2}.md",
    "/src/lib/a.py",
)


@pytest.fixture
def session() -> Session:
    return Session(session_id="s")


@pytest.fixture
def files(session: Session) -> InMemoryFilesystem:
    files = InMemoryFilesystem(session)
    for path in FILES:
        files.write(path, "needle\n")
    return files


@pytest.fixture
def tools(session: Session, files: InMemoryFilesystem) -> Toolset:
    return Toolset(session, files)


def test_hidden_files_match_on_request(tools: Toolset) -> None:
    assert tools.call("glob", {"pattern": "**/*.yml", "hidden": True}).message.splitlines() == [
        "/.github/cd.yml",
        "/.github/ci.yml",
    ]
    found = tools.call("grep", {"pattern": "needle", "glob": "*.yml"})
    assert found.message == "/.github/cd.yml:1:needle\n/.github/ci.yml:1:needle"


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({"pattern": "*.yml"}, "2 hidden files match; set hidden to include them"),
        ({"pattern": "*env"}, "1 hidden file matches; set hidden to include it"),
        ({"pattern": "*hub/"}, "1 hidden directory matches; set hidden to include it"),
        (
            {"pattern": "app/[slug]/page.tsx"},
            "[] have a special meaning in a pattern; for names that contain them, write 'app/[[]slug]/page.tsx'",
        ),
        (
            {"pattern": "app/[...all]/*"},
            "[] have a special meaning in a pattern; for names that contain them, write 'app/[[]...all]/*'",
        ),
        (
            {"pattern": "{draft}.md"},
            "{} have a special meaning in a pattern; for names that contain them, write '[{]draft}.md'",
        ),
        (
            {"pattern": "[1]{2}.md"},
            "[] and {} have a special meaning in a pattern; for names that contain them, write '[[]1][{]2}.md'",
        ),
        (
            {"pattern": "src/lib/*.py", "path": "/src"},
            "the search already starts in '/src', which the pattern repeats; write 'lib/*.py'",
        ),
        (
            {"pattern": "./src/lib/*.py", "path": "src/lib"},
            "the search already starts in '/src/lib', which the pattern repeats; write '*.py'",
        ),
    ],
    ids=lambda value: str(value.get("pattern")) if isinstance(value, dict) else "",
)
def test_glob_says_why_it_found_nothing(tools: Toolset, arguments: dict[str, object], why: str) -> None:
    result = tools.call("glob", arguments)
    assert result.success
    assert result.message == f"No files matched: {why}"
    # Whoever follows the hint finds something.
    remedy = why.partition("write '")[2][:-1]
    again = {**arguments, "pattern": remedy} if remedy else {**arguments, "hidden": True}
    assert tools.call("glob", again).message.startswith("/")


@pytest.mark.parametrize(
    "arguments", [{"pattern": "*.rs"}, {"pattern": "src/*.rs", "path": "/src"}, {"pattern": "[x]"}]
)
def test_glob_gives_no_reason_if_none_is_known(tools: Toolset, arguments: dict[str, object]) -> None:
    assert tools.call("glob", arguments).message == "No files matched"
    assert tools.call("glob", {**arguments, "hidden": True}).message == "No files matched"


def test_grep_says_why_its_glob_matched_no_file(tools: Toolset) -> None:
    def message(**arguments: object) -> str:
        return tools.call("grep", {"pattern": "needle", **arguments}).message

    head = "No matches found: no file matches the glob"
    assert message(glob="*.yml", hidden=False) == f"{head} '*.yml'; 2 hidden files match; set hidden to include them"
    assert message(glob="app/[slug]/*").endswith("write 'app/[[]slug]/*'")
    assert message(glob="src/**", path="/src").endswith("write '**'")
    assert message(glob="*.rs") == f"{head} '*.rs'; check it with glob, or leave it out"
    assert message(glob="*.rs", path="/src/lib/a.py").endswith("does not match '/src/lib/a.py'; leave it out")
    assert tools.call("grep", {"pattern": "nothing", "glob": "*.py"}).message == "No matches found"


@pytest.mark.parametrize("effect", ["deny", "blob"])
def test_hidden_files_are_neither_counted_nor_named(session: Session, files: InMemoryFilesystem, effect: str) -> None:
    rule = PolicyRule(
        effect=effect,  # type: ignore[arg-type]  # one of two that there are
        operations=CONTENTS,
        paths=["/.github/cd.yml", "/.env", "/app/[[]slug]", "/src"],
        reason="secret",
    )
    tools = Toolset(session, files, policy=Policy([rule]))
    assert "1 hidden file matches" in tools.call("glob", {"pattern": "*.yml"}).message
    for pattern in ("*env", "app/[slug]/page.tsx"):
        assert tools.call("glob", {"pattern": pattern}).message == "No files matched"
        found = tools.call("grep", {"pattern": "needle", "glob": pattern, "hidden": False})
        assert found.message.endswith("leave it out")


def test_nothing_outside_the_roots_is_counted(session: Session, files: InMemoryFilesystem) -> None:
    tools = Toolset(session, files, capability=Capability(fs_roots="/src"))
    assert tools.call("glob", {"pattern": "*.yml", "path": "/src"}).message == "No files matched"
    assert tools.call("glob", {"pattern": "*.yml"}).error_code == "path_forbidden"


def test_a_hint_looks_at_a_bounded_number_of_entries(
    session: Session, files: InMemoryFilesystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(50):
        files.write(f"/.many/{number}.rs", "x")
    tools = Toolset(session, files)
    monkeypatch.setattr(no_match, "MAX_ENTRIES", 20)
    assert "at least " in tools.call("glob", {"pattern": "*.rs"}).message
    bounded = Toolset(session, files, capability=Capability(max_scan_files=0))
    assert bounded.call("glob", {"pattern": "*.rs"}).message.startswith("No files matched")
    assert "hidden" not in bounded.call("glob", {"pattern": "*.rs"}).message


@pytest.mark.parametrize("bound", [Capability(max_scan_files=1), Capability(max_glob_results=0)])
def test_a_glob_that_a_limit_ended_does_not_claim_more_paths(
    session: Session, files: InMemoryFilesystem, bound: Capability
) -> None:
    bounded = Toolset(session, files, capability=bound)
    result = bounded.call("glob", {"pattern": "*.py"})
    assert result.message == "No files matched before a limit ended the search; search in a smaller directory"
