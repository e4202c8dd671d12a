"""The generated parts of the reference are complete, and match the code."""

from __future__ import annotations

import re
from importlib import import_module

import pytest

import weakfs
from docs.generate import api, error_codes, renamed, tools, top_level
from tests.docs.test_pages import DOCS
from weakfs import DEFAULT_TOOLS
from weakfs._name_hints import RENAMED
from weakfs.tools.errors import BY_CLASS, BY_ERRNO

PACKAGE = DOCS.parent / "weakfs"
PACKAGES = re.findall(
    r"^\.\. automodule:: (\S+)$", "\n".join(path.read_text() for path in (DOCS / "reference").glob("*.md")), re.M
)


def test_code_in_docstrings_is_on_one_line() -> None:
    broken = [
        f"{path.relative_to(PACKAGE)}: {code[0]}"
        for path in PACKAGE.rglob("*.py")
        for docstring in re.findall(r'"""(.*?)"""', path.read_text(), re.S)
        for paragraph in re.split(r"\n\s*\n", docstring)
        for code in re.finditer(r"(?<!`)`[^`]+`(?!`)", paragraph)
        if "\n" in code[0]
    ]
    assert broken == []


def test_every_exported_name_is_documented_where_the_table_says() -> None:
    rows = re.findall(r"^\| `(\w+)` \| \[`([\w.]+)`\]", top_level.page(), re.M)
    assert len(rows) == len(weakfs.__all__) - 1  # `WeakfsError`, which is documented with the error codes.
    assert [f"{package}.{name}" for name, package in rows if name not in import_module(package).__all__] == []


def test_every_default_tool_has_one_example() -> None:
    assert [example.tool for example in tools.EXAMPLES] == [tool.name for tool in DEFAULT_TOOLS]


@pytest.mark.parametrize("example", tools.EXAMPLES, ids=lambda example: example.tool)
def test_the_example_of_a_tool_succeeds(example: tools.Example) -> None:
    assert tools.answer(example.tool, example.call).success


@pytest.mark.parametrize("example", tools.EXAMPLES, ids=lambda example: example.tool)
def test_each_failure_of_a_tool_has_a_documented_code(example: tools.Example) -> None:
    codes = [tools.answer(example.tool, arguments).error_code for arguments in example.failures]
    assert codes
    assert None not in codes
    assert len(set(codes)) == len(codes)
    assert set(codes) <= {row[0] for row in error_codes.rows()}


def test_the_tool_reference_is_the_same_each_time() -> None:
    assert tools.page() == tools.page()


def test_every_error_code_is_documented_with_a_meaning() -> None:
    rows = error_codes.rows()
    assert {code for _, code in (*BY_CLASS.values(), *BY_ERRNO.values())} <= {row[0] for row in rows}
    assert [row for row in rows if not row[3]] == []


def test_every_renamed_name_is_in_the_table() -> None:
    assert all(f"| `{name}` |" in renamed.page() for name in RENAMED)


def test_every_package_with_public_names_has_a_page() -> None:
    from tests.test_public_names import publishing

    nested = {"weakfs.cli", "weakfs.errors"}
    private = {name for name in publishing() if name.rpartition(".")[0] in publishing()}
    assert sorted(set(publishing()) - private - nested - set(PACKAGES)) == []


@pytest.mark.parametrize("package", PACKAGES)
def test_the_plain_copy_of_a_package_names_everything_that_it_exports(package: str) -> None:
    from importlib import import_module

    text = api.page(package)
    assert [name for name in import_module(package).__all__ if f"`{package}.{name}" not in text] == []
