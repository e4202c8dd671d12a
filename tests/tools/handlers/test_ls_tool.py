"""`ls`: directories in several levels, with sizes, and no more of them than is asked for."""

from __future__ import annotations

import pytest

from weakfs import Capability, InMemoryFilesystem, Policy, PolicyRule, Session, ToolResult, Toolset
from weakfs.tools.blobs import BlobReference
from weakfs.tools.handlers import LsReceipt


@pytest.fixture
def fs() -> InMemoryFilesystem:
    made = InMemoryFilesystem(Session())
    made.write("/README.md", "hello\n")
    made.write("/src/app/main.py", "pass\n")
    made.write("/src/lib.py", "")
    made.symlink("src", "/link")
    made.mkdir("/empty")
    return made


def ls(
    fs: InMemoryFilesystem, *, policy: Policy | None = None, capability: Capability | None = None, **arguments: object
) -> ToolResult[object]:
    assert isinstance(fs.session, Session)
    return Toolset(fs.session, fs, policy=policy, capability=capability).call("ls", arguments)


def receipt(result: ToolResult[object]) -> LsReceipt:
    return result.value_as(LsReceipt)


def test_one_level_is_listed_by_default(fs: InMemoryFilesystem) -> None:
    assert ls(fs).message == "README.md\nempty/\nlink@\nsrc/"
    assert ls(fs).summary_text == "/ has 4 entries"


def test_levels_are_indented_below_their_directories(fs: InMemoryFilesystem) -> None:
    two = ls(fs, depth=2)

    assert two.message == "README.md\nempty/\nlink@\nsrc/\n  app/\n  lib.py"
    assert two.summary_text == "/ has 6 entries in 2 levels"
    assert ls(fs, depth=9).message == "README.md\nempty/\nlink@\nsrc/\n  app/\n    main.py\n  lib.py"
    assert ls(fs, path="/src", depth=2).message == "app/\n  main.py\nlib.py"
    entries = receipt(two).entries
    assert isinstance(entries, tuple)
    assert [entry.path for entry in entries][-2:] == ["/src/app", "/src/lib.py"]


def test_sizes_of_files_are_shown(fs: InMemoryFilesystem) -> None:
    result = ls(fs, sizes=True)

    assert result.message == "README.md 6\nempty/\nlink@\nsrc/"
    assert receipt(result).sizes == (6, None, None, None)
    assert ls(fs, path="/src", sizes=True, depth=2).message == "app/\n  main.py 5\nlib.py 0"


def test_a_long_tree_is_cut_without_counting_the_rest(fs: InMemoryFilesystem) -> None:
    result = ls(fs, depth=3, max_results=5, sizes=True)

    assert result.message == (
        "README.md 6\nempty/\nlink@\nsrc/\n  app/\n"
        "[/ has at least 5 entries in 3 levels, of which 5 are shown; set max_results to see more]"
    )
    assert (receipt(result).count, receipt(result).truncated) == (None, True)
    assert receipt(ls(fs, depth=3, max_results=7)).truncated is False


def test_a_single_level_that_is_cut_is_still_counted(fs: InMemoryFilesystem) -> None:
    result = ls(fs, max_results=2)

    assert result.message == "README.md\nempty/\n[/ has 4 entries, of which 2 are shown; set max_results to see more]"
    assert receipt(result).count == 4


def test_an_empty_directory_has_no_levels(fs: InMemoryFilesystem) -> None:
    assert ls(fs, path="/empty", depth=3).message == "/empty has 0 entries in 3 levels"


def test_entries_that_may_not_be_listed_are_omitted_on_every_level(fs: InMemoryFilesystem) -> None:
    policy = Policy([PolicyRule(effect="deny", operations=["list"], paths="/src/app", reason="private")])

    result = ls(fs, policy=policy, depth=3, sizes=True)

    assert result.message == "README.md 6\nempty/\nlink@\nsrc/\n  lib.py 0"


def test_a_size_is_not_shown_without_permission(fs: InMemoryFilesystem) -> None:
    policy = Policy([PolicyRule(effect="deny", operations=["stat", "list"], paths="/README.md", reason="private")])

    assert "README" not in ls(fs, policy=policy, sizes=True).message


def test_withheld_names_are_kept_as_a_blob_on_every_level(fs: InMemoryFilesystem) -> None:
    policy = Policy([PolicyRule(effect="blob", operations=["list"], paths="/src/app/main.py", reason="private")])

    result = ls(fs, policy=policy, depth=3)

    assert isinstance(receipt(result).entries, BlobReference)
    assert "main.py" not in f"{result.message}{result.value}"
