"""The tables of the benchmarks page have the titles and the labels that the benchmarks print."""

from __future__ import annotations

import re

from benchmarks.goals import verdicts
from benchmarks.report import SECTIONS
from benchmarks.results import Results
from tests.docs.test_pages import DOCS

PAGE = (DOCS / "benchmarks.md").read_text(encoding="utf-8")


def labels(title: str) -> list[str]:
    """Return the first cell of each row of the first table below a heading."""
    table = re.search(rf"^#+ {re.escape(title)}\n(?:(?!#|\|).*\n)*\|.*\n\|.*\n((?:\|.*\n)+)", PAGE, re.M)
    assert table is not None, f"the page has no table below a heading {title!r}"
    return [row.split(" | ")[0].removeprefix("| ") for row in table[1].splitlines()]


def test_each_table_has_the_rows_that_the_benchmarks_print() -> None:
    printed = {title: list(rows.values()) for title, rows in SECTIONS.items()}
    assert {title: list(dict.fromkeys(labels(title))) for title in SECTIONS} == printed


def test_the_goals_are_those_that_the_benchmarks_check() -> None:
    assert labels("Goals") == [verdict.what for verdict in verdicts(Results([]))]
