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


NESTED = "def f():\n    if a:\n        b()\n    c()\n    d()\n"


@pytest.mark.parametrize("unit", ["  ", "\t", "        "])
def test_a_block_put_around_lines_that_begin_inside_another_one_is_as_deep_as_its_shallowest_line(unit: str) -> None:
    old = f"{unit}b()\nc()\nd()"
    new = f"if w:\n{unit * 2}b()\n{unit}c()\n{unit}d()"

    changed = replace(NESTED, old, new).text

    assert changed == "def f():\n    if a:\n    if w:\n            b()\n        c()\n        d()\n"


def test_a_first_line_that_may_have_lost_its_indentation_is_refused() -> None:
    with pytest.raises(EditError) as caught:
        replace(NESTED, "\tb()\nc()", "e()\nc()")

    assert caught.value.error_code == "ambiguous_indentation"
    assert "the new text begins without indentation, as 'c()' does in the old text" in str(caught.value)


def test_lines_below_a_first_one_that_lost_its_indentation_keep_theirs() -> None:
    text = "class A:\n    def f():\n        b()\n    x = 1\n"

    assert replace(text, "    b()\nx  = 1", "    b()\ny = 2").text == "class A:\n    def f():\n        b()\n    y = 2\n"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("if a:\n  b()\nc()", "if a:\n    e()\nc()"),
        ("if a:\n  b()\nc()", "if a:\n    if e:\n        b()\nc()"),
        ("if a:\n        b()\nc()", "if w:\n    if a:\n        b()\n    c()"),
        ("c()\nif a:\n  b()\n  e()", "c()\nif a:\n    b()\nif w:\n    e()"),
    ],
)
def test_a_new_text_with_the_steps_of_the_file_alone_is_refused(old: str, new: str) -> None:
    text = "c()\nif a:\n    b()\n    e()\nif a:\n    b()\nc()\nf()\n"

    with pytest.raises(EditError) as caught:
        replace(text, old, new)

    assert caught.value.error_code == "ambiguous_indentation"


def test_steps_that_the_quoted_lines_do_not_show_become_those_of_the_file() -> None:
    text = "def f():\n    a()\n    b()\n"

    changed = replace(text, "      a()\n      b()", "      if c:\n        a()\n      b()").text

    assert changed == "def f():\n    if c:\n        a()\n    b()\n"
