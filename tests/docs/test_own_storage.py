"""The engine in the guide about storage passes the conformance suite."""

from __future__ import annotations

from typing import Any

from tests.docs.page import blocks
from tests.docs.test_pages import DOCS

GUIDE = DOCS / "howto" / "storage.md"


def suite() -> Any:
    """Return the test class that the guide defines."""
    names: dict[str, Any] = {}
    found = {block.title: block.text for block in blocks(GUIDE.read_text(encoding="utf-8"))}
    exec(compile(found["test_mine.py"], str(GUIDE), "exec"), names)
    return names["TestMine"]


# Collected and run like the tests of a class that is written here.
TestMine = suite()
