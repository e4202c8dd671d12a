"""A new text with the file's indentation for an old text that has another one: its depth is ambiguous."""

from __future__ import annotations

import pytest

from weakfs.editing import EditError, replace

FUNCTION = "def f():\n    x = 1\n    y = 2\n    return x\n"


@pytest.mark.parametrize(
    ("old", "new", "given"),
    [
        ("x = 1\ny = 2", "    x = 1\n    z = 3\n    y = 2", "0 spaces"),
        ("x = 1\ny = 2", "    p = 1\n    if p:\n        q = 2", "0 spaces"),
        ("        x = 1\n        y = 2", "    x = 1\n    z = 3\n    y = 2", "8 spaces"),
        ("  x = 1\n  y = 2", "    x = 1\n    z = 3\n    y = 2", "2 spaces"),
        ("def g():\n    x = 1\n    return x", "    x = 1\n    return x", "0 spaces"),
    ],
)
def test_a_new_text_with_the_indentation_of_the_file_alone_is_refused(old: str, new: str, given: str) -> None:
    text = FUNCTION + "class A:\n    def g():\n        x = 1\n        return x\n"

    with pytest.raises(EditError) as caught:
        replace(text, old, new)

    assert caught.value.error_code == "ambiguous_indentation"
    assert f"is indented by {given} in the old text and by 4 spaces on line" in str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (
            "x = 1\ny = 2",
            "if a:\n    x = 1\n    y = 2",
            "def f():\n    if a:\n        x = 1\n        y = 2\n    return x\n",
        ),
        (
            "\tx = 1\n\ty = 2",
            "    x = 1\n    z = 3\n    y = 2",
            "def f():\n    x = 1\n    z = 3\n    y = 2\n    return x\n",
        ),
        ("    x  = 1\n    y = 2", "        x = 1", "def f():\n        x = 1\n    return x\n"),
    ],
)
def test_a_new_text_is_not_refused_if_both_readings_agree_or_the_old_one_has_the_same(
    old: str, new: str, expected: str
) -> None:
    assert replace(FUNCTION, old, new).text == expected


def test_kept_lines_with_the_indentation_of_the_file_in_the_new_text_alone_are_refused() -> None:
    text = "if a:\n    b()\n    c()\n    d()\nend()\n"

    with pytest.raises(EditError) as caught:
        replace(text, "if a:\n  b()\n  c()\n", "if a:\n    b()\n    if x:\n        y()\n    c()\n")

    assert caught.value.error_code == "ambiguous_indentation"
    assert "'b()' is indented by 2 spaces in the old text and by 4 spaces on line 2 of the file" in str(caught.value)


def test_a_block_put_around_kept_lines_is_not_mistaken_for_them() -> None:
    text = "if a:\n    b()\n    c()\nend()\n"

    changed = replace(text, "if a:\n  b()\n  c()\n", "if a:\n  if x:\n    b()\n    c()\n").text

    assert changed == "if a:\n    if x:\n        b()\n        c()\nend()\n"
