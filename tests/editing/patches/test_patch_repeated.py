"""A hunk of very many lines that repeat is refused with little work, and the refusal names the line that differs."""

from __future__ import annotations

import pytest

from weakfs import InMemoryFilesystem
from weakfs.editing import HunkRejected, apply_patch
from weakfs.editing.hints import diagnosis
from weakfs.editing.hints.alignment import Aligner
from weakfs.editing.patches.matching import outline
from weakfs.editing.patches.matching.outline import Outline
from weakfs.filesystem import Limits

MANY = 30_000
LINE = "same line\n"


def v4a(*lines: str) -> str:
    return "*** Begin Patch\n*** Update File: /f\n@@\n" + "".join(lines) + "*** End Patch\n"


CASES: dict[str, tuple[str, str]] = {
    "one more line than the file has": ("v4a", v4a(f" {LINE}" * (MANY + 1), "-other\n", "+new\n")),
    "another line at the end": ("v4a", v4a(f" {LINE}" * MANY, "-other\n", "+new\n")),
    "another line in the middle": ("v4a", v4a(f" {LINE}" * (MANY // 2), "-other\n", f" {LINE}" * (MANY // 2))),
    "another line at the beginning": ("v4a", v4a("-other\n", f" {LINE}" * MANY)),
    "a unified diff": (
        "unified",
        f"--- a/f\n+++ b/f\n@@ -1,{MANY + 1} +1,{MANY} @@\n" + f" {LINE}" * MANY + "-other\n",
    ),
    "a block": ("search_replace", f"f\n<<<<<<< SEARCH\n{LINE * MANY}other\n=======\nnew\n>>>>>>> REPLACE\n"),
}


@pytest.mark.sampled(by_rule=True)
@pytest.mark.parametrize("case", CASES)
def test_a_hunk_of_many_equal_lines_is_refused_with_few_searches(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    searches = 0

    class Counted(Aligner):
        def nearest(self, *arguments: object) -> object:  # type: ignore[override]  # handed on
            nonlocal searches
            searches += 1
            return super().nearest(*arguments)  # type: ignore[arg-type]  # handed on

    monkeypatch.setattr(diagnosis, "Aligner", Counted)
    fs = InMemoryFilesystem(limits=Limits(max_file_size=None))
    fs.write("/f", LINE * MANY)
    patch_format, patch = CASES[case]

    with pytest.raises(HunkRejected, match=r"did you mean line.*'other'") as refusal:
        apply_patch(fs, patch, patch_format=patch_format)  # type: ignore[arg-type]  # one of three

    assert searches <= 2 * diagnosis.MOST_ROUNDS
    assert len(str(refusal.value)) < 3000
    assert fs.read("/f").content == LINE * MANY


def test_the_line_that_differs_is_named_after_a_long_equal_beginning() -> None:
    lines = [f"line {number}\n" for number in range(5000)]
    fs = InMemoryFilesystem()
    fs.write("/f", "".join(lines))
    quoted = [*lines[:4321], "line that differs\n", *lines[4322:]]

    with pytest.raises(HunkRejected, match=r"Line 4322 differs: the file has 'line 4321', the hunk has"):
        apply_patch(fs, v4a(*(f" {line}" for line in quoted), "+new\n"))


REPEATED = {
    "nested anchors on every line": ("x = 1\n" * 20_000, "@@ x = 1\n@@ x = 1\n-x = 2\n+y\n"),
    "an anchor below all blocks": ("x = 1\n" * 20_000 + "\ny\n", "@@ x = 1\n@@ y\n-x = 2\n+y\n"),
    "blocks that end in blank lines": ("x = 1\n" * 1000 + "\n" * 19_000 + "y\n", "@@ x = 1\n@@ y\n-x = 2\n+y\n"),
    "a thousand nested anchors": ("x = 1\n" * 20_000, "@@ x = 1\n" * 1000 + "-x = 2\n+y\n"),
    "comments one after another": ("def f():\n    x\n" + "# c\n" * 20_000 + "    z\n", "@@ def f():\n-y\n+x\n"),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", REPEATED)
def test_the_blocks_of_anchors_are_found_with_bounded_work(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    examined = 0
    original = Outline._text

    def counted(self: Outline, at: int) -> str:
        nonlocal examined
        examined += 1
        return original(self, at)

    monkeypatch.setattr(Outline, "_text", counted)
    monkeypatch.setattr(outline, "MOST_READ", 100_000)
    text, hunk = REPEATED[case]
    fs = InMemoryFilesystem()
    fs.write("/f", text)

    with pytest.raises(HunkRejected):
        apply_patch(fs, f"*** Begin Patch\n*** Update File: /f\n{hunk}*** End Patch\n")

    # Each line that may be read is examined a few times, and so are the lines of one more block.
    assert examined < 5 * (100_000 + 20_000)
    assert fs.read("/f").content == text


def test_a_block_below_many_comments_is_found_to_its_end() -> None:
    fs = InMemoryFilesystem()
    fs.write("/f", "def f():\n    x\n# c\n# d\n    y\n# e\ndef g():\n    y\n")

    apply_patch(fs, "*** Begin Patch\n*** Update File: /f\n@@ def f():\n-    y\n+    z\n*** End Patch\n")

    assert fs.read("/f").content == "def f():\n    x\n# c\n# d\n    z\n# e\ndef g():\n    y\n"
