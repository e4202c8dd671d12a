"""The tests that `docs/security.md` names exist."""

from __future__ import annotations

import re
from pathlib import Path

import weakfs

ROOT = Path(weakfs.__file__).parent.parent
DOCUMENT = ROOT / "docs" / "security.md"


def test_every_test_that_the_document_names_exists() -> None:
    named = set(re.findall(r"`(test_\w+)`", DOCUMENT.read_text(encoding="utf-8")))
    defined: set[str] = set()
    for directory in (ROOT / "tests", ROOT / "weakfs" / "testing"):
        for path in directory.rglob("*.py"):
            defined.update(re.findall(r"def (test_\w+)", path.read_text(encoding="utf-8")))
    assert len(named) > 30
    assert sorted(named - defined) == []


def test_every_guarantee_names_a_test() -> None:
    rows = [line for line in DOCUMENT.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    columns = [row.strip("| ").split(" | ") for row in rows]
    guarantees = [column for column in columns if len(column) == 2 and column != ["guarantee", "test"]]
    assert guarantees
    assert [one[0] for one in guarantees if one[0].strip("- ") and "`test_" not in one[1]] == []
