"""How the new text is fitted if a match is not exact: the file's indentation, line endings and untouched lines."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.models.cost import lines_of
from weakfs.editing import (
    AmbiguousTarget,
    EditError,
    NoChange,
    TargetNotFound,
    indentation,
    layout,
    reindentation,
    replace,
)

# The reason, the file, the old text, the new text, and what the file contains afterwards.
FITTED = [
    ("outer indentation stays", "\tfoo  = 1\n\tbar\n", "    foo = 1\n", "    foo = 2\n", "\tfoo = 2\n\tbar\n"),
    ("the next line keeps its indentation", "if a:\n\tb()\n\tc()\n", "  b()\n", "  d()\n", "if a:\n\td()\n\tc()\n"),
    ("a line end is not swallowed", "x  = 1\ny = 2\n", "x = 1\n", "x = 2", "x = 2\ny = 2\n"),
    ("nor are several", "x  = 1\n\n\ny = 2\n", "x = 1\n\n", "x = 2", "x = 2\n\n\ny = 2\n"),
    ("nor is indentation", "\tx  = 1\n", "    x = 1", "x = 2", "\tx = 2\n"),
    ("lines that are deleted go as a whole", "a\n\tx  = 1\nb\n", "    x = 1\n", "", "a\nb\n"),
    ("anything around what is deleted stays", "a\n\tx  = 1\nb\n", "    x = 1", "", "a\n\t\nb\n"),
    ("a line end is added", "x  = 1\ny = 2\n", "x = 1", "x = 2\n", "x = 2\n\ny = 2\n"),
    ("one that is there is not", "x  = 1\n", "x = 1\n", "x = 2\n", "x = 2\n"),
    ("none at the file's end", "x  = 1", "x = 1\n", "x = 2\n", "x = 2"),
    ("further lines above", "a\n\tx  = 1\n", "    x = 1", "\n    x = 2", "a\n\n\tx = 2\n"),
    ("further lines below", "\tx  = 1\nb\n", "    x = 1\n", "    x = 2\n\n", "\tx = 2\n\nb\n"),
    ("no indentation at the file's start", "x  = 1\n", "    x = 1\n", "    x = 2\n", "x = 2\n"),
    (
        "tabs for spaces",
        "\tif x:\n\t\ta\n",
        "    if x:\n        a",
        "    if x:\n        b\n        c",
        "\tif x:\n\t\tb\n\t\tc\n",
    ),
    (
        "spaces for tabs",
        "  if x:\n    a\n",
        "\tif x:\n\t\ta",
        "\tif x:\n\t\tif y:\n\t\t\ta",
        "  if x:\n    if y:\n      a\n",
    ),
    ("one tab tells", "\tx  = 1\n", "    x = 1", "    if y:\n        x = 2", "\tif y:\n\t\tx = 2\n"),
    (
        "a block that was moved out",
        "class A:\n    def f():\n        a\n",
        "def f():\n    a",
        "def f():\n    if b:\n        a",
        "class A:\n    def f():\n        if b:\n            a\n",
    ),
    (
        "moved out, with tabs",
        "\tdef f():\n\t\ta\n",
        "def f():\n    a",
        "def f():\n    if b:\n        a",
        "\tdef f():\n\t\tif b:\n\t\t\ta\n",
    ),
    (
        "a first line behind its indentation",
        "\tdef f():\n\t\ta\n",
        "def f():\n        a",
        "def f():\n        if b:\n            a",
        "\tdef f():\n\t\tif b:\n\t\t\ta\n",
    ),
    (
        "one step off",
        "class A:\n    def f():\n        x\n        y\n",
        "    x\n    y",
        "    if z:\n        x\n    y",
        "class A:\n    def f():\n        if z:\n            x\n        y\n",
    ),
    (
        "steps of two for steps of four",
        "def f():\n    if a:\n        b\n",
        "  if a:\n    b",
        "  if a:\n    if c:\n      b",
        "def f():\n    if a:\n        if c:\n            b\n",
    ),
    (
        "the same, from one line",
        "def f():\n    a()\n    c()\n",
        "  a()\n  c()",
        "  if b:\n    a()\n  c()",
        "def f():\n    if b:\n        a()\n    c()\n",
    ),
    (
        "the edit moves a block out",
        "\t\ta()\n\t\tb()\n",
        "        a()\n        b()",
        "    a()\n    b()",
        "\ta()\n\tb()\n",
    ),
    (
        "the edit moves lines in",
        "\ta()\n\tb()\n",
        "    a()\n    b()",
        "    if c:\n        a()\n        b()",
        "\tif c:\n\t\ta()\n\t\tb()\n",
    ),
    (
        "a new text without indentation",
        "class A:\n\tdef f():\n\t\ta\n",
        "    def f():\n        a",
        "def f():\n    b",
        "class A:\n\tdef f():\n\t\tb\n",
    ),
    (
        "a new text without that of its first line",
        "\tif a:\n\t\tb\n",
        "    if a:\n        b",
        "if a:\n        c",
        "\tif a:\n\t\tc\n",
    ),
    (
        "no-break spaces in the file",
        "\u00a0 x = 1\n\u00a0 y\n",
        "  x = 1\n  y",
        "  x = 2\n  y",
        "\u00a0 x = 2\n\u00a0 y\n",
    ),
    (
        "no-break spaces in the edit",
        "  x\n  y\n",
        "\u00a0\u00a0x\n\u00a0\u00a0y",
        "\u00a0\u00a0x\n\u00a0\u00a0\u00a0\u00a0z",
        "  x\n    z\n",
    ),
    ("a block behind one line", "    x  = 1\n", "x = 1", "if y:\n    x = 2", "    if y:\n        x = 2\n"),
    ("lines with all of their indentation", "    x  = 1\n", "x = 1", "x = 2\n    y = 3", "    x = 2\n    y = 3\n"),
    ("line ends", "a\r\nb\r\nc\r\n", "a\nb", "a\nB\nB2", "a\r\nB\r\nB2\r\nc\r\n"),
    ("line ends of old computers", "a\rb\rc\r", "a\nb", "a\nB", "a\rB\rc\r"),
    ("line ends that only the edit has", "a\nb\n", "a\r\nb", "a\r\nB", "a\nB\n"),
    ("mixed line ends of lines that stay", "a\r\nb\nc\n", "a\nb\nc", "a\nb\nC", "a\r\nb\nC\n"),
    ("what trails a line that stays", "a  \nb\t\nc\n", "a\nb\nc", "a\nb\nC", "a  \nb\t\nC\n"),
    ("blank lines between lines that stay", "a\n \n\nb\nc\n", "a\nb\nc", "a\nb\nC", "a\n \n\nb\nC\n"),
    ("lines that stay after one is taken out", "x = “a”\ny\nz\n", 'x = "a"\ny\nz', 'x = "a"\nz', "x = “a”\nz\n"),
    ("lines that stay after one is added", "x = “a”\nz\n", 'x = "a"\nz', 'x = "a"\ny\nz', "x = “a”\ny\nz\n"),
    ("trailing blanks that the edit puts in", "a  b\nc\n", "a b\nc", "a  \nd", "a  \nd\n"),
    ("a byte order mark", "\ufeff\timport  a\n", "    import a", "    import b", "\ufeff\timport b\n"),
    ("one that the edit has too", "\ufeffimport  a\n", "\ufeffimport a", "import b", "\ufeffimport b\n"),
]


# Levels of indentation must be preserved, in the file's own tabs or spaces.
STEPPED = [
    (
        "a body that is shifted by a tab",
        "def f(s):\n\treturn 1\n",
        "def f(s):\n\t\treturn 1",
        "def f(s):\n\t\tfor x in y:\n\t\t\tif x:\n\t\t\t\tlog(x)\n\t\treturn 1",
        "def f(s):\n\tfor x in y:\n\t\tif x:\n\t\t\tlog(x)\n\treturn 1\n",
    ),
    (
        "by two steps of two",
        "def f(s):\n  return 1\n",
        "def f(s):\n      return 1",
        "def f(s):\n      for x in y:\n        if x:\n          log(x)\n      return 1",
        "def f(s):\n  for x in y:\n    if x:\n      log(x)\n  return 1\n",
    ),
    (
        "by a step of four",
        "def f(s):\n    return 1\n",
        "def f(s):\n        return 1",
        "def f(s):\n        for x in y:\n            if x:\n                log(x)\n        return 1",
        "def f(s):\n    for x in y:\n        if x:\n            log(x)\n    return 1\n",
    ),
    (
        "behind a first line without its indentation",
        "class A:\n\tclass B:\n\t\tdef f(s):\n\t\t\treturn 1\n",
        "def f(s):\n\t\treturn 1",
        "def f(s):\n\t\tfor x in y:\n\t\t\tif x:\n\t\t\t\tlog(x)\n\t\treturn 1",
        "class A:\n\tclass B:\n\t\tdef f(s):\n\t\t\tfor x in y:\n\t\t\t\tif x:\n\t\t\t\t\tlog(x)\n\t\t\treturn 1\n",
    ),
    (
        "two given steps are one tab",
        "func f() {\n\tx()\n\ty()\n}\n",
        "        x()\n        y()",
        "        x()\n        if q {\n            y()\n        }",
        "func f() {\n\tx()\n\tif q {\n\t\ty()\n\t}\n}\n",
    ),
    (
        "a first line that is new",
        "def f():\n\ta = 1\n\tb = 2\n",
        "        a = 1\n        b = 2",
        "        if p:\n            if q:\n                a = 1\n        b = 2",
        "def f():\n\tif p:\n\t\tif q:\n\t\t\ta = 1\n\tb = 2\n",
    ),
    (
        "one given step is two tabs",
        "{\n\t{\n\t\tx\n\t\ty\n",
        "    x\n    y",
        "    x\n    if z:\n        y",
        "{\n\t{\n\t\tx\n\t\tif z:\n\t\t\ty\n",
    ),
    (
        "one given tab is two steps",
        "class A:\n    def f():\n        x = 1\n        y = 2\n",
        "\tx = 1\n\ty = 2",
        "\tx = 1\n\tif z:\n\t\ty = 2",
        "class A:\n    def f():\n        x = 1\n        if z:\n            y = 2\n",
    ),
    (
        "a tab in a file of spaces",
        "def f():\n    a  = 1\n    b = 2\n",
        "a = 1\nb = 2",
        "if q:\n\ta = 1\nb = 2",
        "def f():\n    if q:\n        a  = 1\n    b = 2\n",
    ),
    (
        "one given tab is nothing",
        "x = 1\ny = 2\nif a:\n    b\n",
        "\tx = 1\n\ty = 2",
        "\tx = 1\n\tif z:\n\t\ty = 2",
        "x = 1\nif z:\n    y = 2\nif a:\n    b\n",
    ),
]


@pytest.mark.parametrize(("text", "old", "new", "expected"), [c[1:] for c in STEPPED], ids=[c[0] for c in STEPPED])
def test_steps_of_indentation_stay_steps(text: str, old: str, new: str, expected: str) -> None:
    assert replace(text, old, new).text == expected


@pytest.mark.parametrize(("text", "old", "new", "expected"), [case[1:] for case in FITTED], ids=[c[0] for c in FITTED])
def test_the_file_keeps_its_conventions(text: str, old: str, new: str, expected: str) -> None:
    done = replace(text, old, new)

    assert done.text == expected
    assert (done.how, done.count) == ("fuzzy", 1)
    assert done.overlooked


@pytest.mark.parametrize(
    ("text", "old"),
    [
        ("returned\n", "return "),
        ("max_timeout  = 300\n", "timeout = 300"),
        ("timeout  = 300\n", "timeout = 30"),
        ("ratio  = 3.5\n", "ratio = 3"),
        ("background-color:  red\n", "color: red"),
        ("x =  y == z\n", "x = y ="),
        ("# note\nrun()\n", "# note run()"),
        ("# note run()\n", "# note\nrun()"),
        ("x = 1\ny = 2\n", "x = 1 y = 2"),
        ("foo(a,  # why\n    b)\n", "foo(a, # why b)"),
        ("# foo(a,\n#  b)\nfoo(a, b)\n", "foo(a,\n  c)"),
        ("{ return\n x }\n", "{ return x }"),
        ('say("(:")\nrun()\n', 'say("(:") run()'),
        ("a)\nb\n", "a) b"),
        ("call( x )\n", "call(x)"),
        ("f(){}\n", "\n}"),
        ("a b\n", "ab"),
        ("cafe\u0301 x\n", "cafe  x"),
        ("x  cafe\u0301\n", "x cafe"),
        ("\uac01\n", "\uac00"),
        ("x  \u1100\u1161\u11a8\n", "x \uac00"),
        ("A  B\n", "a b"),
        ("a \u2014 b\n", "a -- b"),
        ("'x  y'\n", '"x y"'),
        ("a\u200b b\n", "a  b"),
        ("\u00a0 \n", "\n "),
        ("", "a"),
    ],
)
def test_text_that_is_not_equivalent_is_not_found(text: str, old: str) -> None:
    with pytest.raises(TargetNotFound):
        replace(text, old, "new", replace_all=True)


@pytest.mark.parametrize(
    ("text", "old"),
    [
        ("x\u00a0=\u20031\n", "x = 1"),
        ("foo(a,\n    b)\n", "foo(a, b)"),
        ("foo(a, b)\n", "foo(a,\n    b)"),
        ("{'a': 1,\n 'b': [2,\n 3]}\n", "{'a': 1, 'b': [2, 3]}"),
        ("f(x) {\n    a; }\n", "f(x) { a; }"),
        ("\u5b57  \u662f\n", "\u5b57 \u662f"),
        ("a\u2028b\n", "a b"),
        ("a\x0b\x0cb\n", "a b"),
        ("\u201ca\u201d \u2018b\u2019 \u02bc \u201ec\u201f \u201ad\u201b\n", "\"a\" 'b' ' \"c\" 'd'"),
        ("\u2010\u2011\u2012\u2013\u2014\u2015\u2212\n", "-------"),
        ('"a"\n', "“a”"),
        ("\u212bx \n", "\u00c5x"),
        ("\u1100\u1161\u11a8 a\n", "\uac01  a"),
        ("q\u0327\u0301\n", "q\u0301\u0327"),
    ],
)
def test_equivalent_text_is_found(text: str, old: str) -> None:
    done = replace(text, old, "new")

    assert done.how == "fuzzy"
    assert done.text.strip() == "new"


def test_words_in_a_script_without_spaces_have_no_boundaries() -> None:
    assert replace("\u6570\u5b57  \u662f\u4e00\n", "\u5b57 \u662f", "x").text == "\u6570x\u4e00\n"


def test_two_matches_may_share_the_gap_between_them() -> None:
    done = replace("\ta  b\ta\u00a0b ", " a b ", "c", replace_all=True)

    assert done.count == 2
    assert done.text == "\tc\tc "


def test_overlapping_matches_are_taken_from_the_left() -> None:
    done = replace("a\ta\ta\ta\ta", "a a", "b", replace_all=True)

    assert done.spans == ((0, 3), (4, 7))
    assert done.text == "b\tb\ta"


def test_overlapping_matches_are_ambiguous() -> None:
    with pytest.raises(AmbiguousTarget) as caught:
        replace("b\nb\n\nb\n", "b \nb", "c")

    assert (caught.value.matches, caught.value.lines) == (2, (1, 2))


def test_each_match_is_fitted_separately() -> None:
    text = "\tif a:\n\t\tb\n    if a:\n        b\n"

    done = replace(text, "if a:\n  b", "if a:\n  c\n  d", replace_all=True)

    assert done.text == "\tif a:\n\t\tc\n\t\td\n    if a:\n        c\n        d\n"


def test_a_match_that_equals_the_new_text_is_not_a_change() -> None:
    with pytest.raises(NoChange, match="already has the text to insert"):
        replace("x  = 1\n", "x = 1", "x  = 1")
    with pytest.raises(NoChange, match="line ends"):
        replace("a\r\nb\r\n", "a\r\nb", "a\nb")


def test_unchangeable_surrounding_white_space_is_reported_as_such() -> None:
    with pytest.raises(NoChange, match=r"only white space around .* exactly, with the line ends of the file"):
        replace("a\n\nb  c\n", "\n\nb c", "\nb c")
    assert replace("a\r\n\r\nb\r\n", "\r\n\r\nb", "\r\nb").text == "a\r\nb\r\n"


def test_text_that_differs_only_in_line_endings_is_replaced_exactly() -> None:
    content = "if p:\r\n    a()\r\n    q()\r\n"
    assert replace(content, "    q()\n", "else:\n    q()\n").text == content.replace("    q()", "else:\r\n    q()")
    assert replace("a\r\n\r\nb\r\n", "\n\nb", "\nb").text == "a\r\nb\r\n"
    assert replace("import os\r\nimport re\r\n", "import os\n", "").text == "import re\r\n"
    done = replace("x = a\r\na2 = 1\r\n", "\na", "\nb")
    assert (done.text, done.how, done.overlooked) == ("x = a\r\nb2 = 1\r\n", "fuzzy", "line ends")


def test_differences_are_reported() -> None:
    assert replace("a\r\nb\r\n", "a\nb", "c").overlooked == "line ends"
    assert replace("a\tb\n", "a b", "c").overlooked == "white space"
    assert replace("a\n", "  a\n", "  c\n").overlooked == "white space around it"
    assert replace("\u2018a\u2019\n", "'a'", "c").overlooked == "quotes or dashes"
    assert replace("e\u0301\n", "\u00e9", "c").overlooked == "Unicode forms"
    assert replace("a b\n", "a b", "c").overlooked == ""


def test_an_exact_edit_uses_the_line_endings_of_the_file() -> None:
    assert replace("a\r\nb\r\n", "a", "c\nd\n").text == "c\r\nd\r\n\r\nb\r\n"
    assert replace("a\nb\n", "a", "c\r\nd").text == "c\nd\nb\n"
    assert replace("a\r\nb\n", "a", "c\nd").text == "c\nd\r\nb\n"
    assert replace("ab", "a", "c\r\n").text == "c\r\nb"


rows = st.lists(st.sampled_from(("a", "  b", "\tc", "", " ", "d  ", "  e f", "g h", "    i")), min_size=3, max_size=8)
lines = rows.map("\n".join)


@given(rows, lines, st.data())
def test_files_with_other_line_endings_are_edited_in_the_same_way(
    given: list[str], new: str, data: st.DataObject
) -> None:
    """White space around the old text is kept in one case and removed in the other, so there is none here."""
    text = "\n".join(given)
    first = data.draw(st.integers(0, len(given)))
    stop = data.draw(st.integers(first, len(given)))
    old = "\n".join(given[first:stop]).strip()
    # A line that stays keeps the white space at its end, unless the whole is replaced exactly.
    if "\n" not in old or not given[stop - 1].endswith(old[-1]):
        return
    try:
        expected = replace(text, old, new).text
        done = replace(text.replace("\n", "\r\n"), old, new)
    except EditError:
        return
    assert done.how == "fuzzy"
    assert done.text == expected.replace("\n", "\r\n")


@given(lines, lines, lines)
def test_lines_around_a_match_stay_as_they_are(text: str, old: str, new: str) -> None:
    try:
        done = replace(f"<{text}>", old, new)
    except EditError:
        return
    ((start, stop),) = done.spans
    assert done.text.startswith(f"<{text}>"[:start])
    assert done.text.endswith(f"<{text}>"[stop:])


units = st.sampled_from(("\t", "  ", "    "))
bases = st.integers(0, 3)


@given(units, units, bases, bases, st.booleans(), st.integers(1, 4))
def test_more_deeply_indented_lines_stay_so_with_the_indentation_step_of_the_file(
    unit: str, other: str, base: int, given_base: int, is_first_line_bare: bool, depth: int
) -> None:
    """The file has only tabs or only spaces, and so does the new text."""
    body = [(0, "if a:"), (1, "b  = 1"), (1, "c = 1")]
    nested = [(0, "if a:"), (1, "b = 1"), *((1 + deep, f"if d{deep}:") for deep in range(depth)), (1 + depth, "c = 1")]

    def shown(rows: list[tuple[int, str]], unit: str, base: int) -> str:
        return "\n".join(unit * (base + deep) + row for deep, row in rows)

    above = "def head():\n" + unit + "if e:\n" + unit * 2 + "f\n"
    text = above + shown(body, unit, base) + "\n"
    old, new = shown(body, other, given_base).replace("b  =", "b ="), shown(nested, other, given_base)
    if is_first_line_bare:
        old, new = old.lstrip(), new.lstrip()

    done = replace(text, old, new)

    indents = [row[: len(row) - len(row.lstrip())] for row in done.text.splitlines()[3:]]
    assert set("".join(indents)) <= set(unit)
    assert all(len(one) < len(next_one) for one, next_one in pairwise(indents) if one != next_one)
    assert len(set(indents)) == depth + 2
    # If the first line has no indentation in the given text, the width of the steps there is not certain.
    if given_base and not is_first_line_bare:
        assert done.text == above + shown(nested, unit, base).replace("b =", "b  =") + "\n"


def test_indenting_many_lines_takes_linear_time() -> None:
    def indent(count: int) -> None:
        old = "".join(f"def f{number}():\n    return {number}\n" for number in range(count))
        text = "".join(f"    {line}\n" for line in old.splitlines())
        new = old.replace("return", "if x:\n        x = 1\n    return")
        assert replace(text, old, new).count == 1

    modules = reindentation, indentation, layout
    assert lines_of(lambda: indent(120), *modules) < 2.5 * lines_of(lambda: indent(60), *modules)
