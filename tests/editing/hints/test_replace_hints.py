"""What a refusal says about a text that does not occur: where it nearly does, and what to do."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weakfs.editing import EditError, TargetNotFound, replace

SHOP = """import os


class Shop:
    def __init__(self, name):
        self.name = name
        self.icon = "\ue0b0 go"
        self.path = "C:\\\\temp"

    def total(self, items):
        total = 0
        for item in items:
            total += item.price * item.count
        return total

| name | price |
|------|-------|
| a    | 1     |
"""

# The reason, the old text, the hint, the lines, and what the message says.
NEAR = [
    ("tabs", "     6\tself.name = name", "line_numbers", (6, 6), "the text without them is on line 6"),
    (
        "arrows",
        "12→        for item in items:\n13→            total += item.price",
        "line_numbers",
        (12, 13),
        "lines 12-13",
    ),
    ("colons", "12: for item in items:\n13: total += item.price", "line_numbers", (12, 13), "without the numbers"),
    ("bars", "12|         for item in items:", "line_numbers", (12, 12), "line 12"),
    ("spaced bars", "  12 | for item in items:", "line_numbers", (12, 12), "line 12"),
    ("numbered and wrong", "13\ttotal += item.price\n14\treturn sum", "line_numbers", (13, 14), "without the numbers"),
    (
        "line breaks written out",
        "total = 0\\n        for item in items:",
        "escapes",
        (11, 12),
        "the characters themselves",
    ),
    ("quotes with backslashes", 'self.path = \\"C:', "escapes", (8, 8), "the characters themselves"),
    ("backslashes left out", 'self.path = "C:\\temp"', "escapes", (8, 8), "leaves out"),
    ("elision", "def total(self, items):\n    ...\n    return total", "elision", (10, 14), "leaves lines out"),
    (
        "elision in words",
        "def total(self, items):\n    # ... existing code ...\n",
        "elision",
        (10, 10),
        "leaves lines out",
    ),
    ("case", "def Total(self, items):", "similar", (10, 10), "Line 10 differs only in the case of letters"),
    ("private use", 'self.icon = " go"', "similar", (7, 7), "U+E0B0"),
    ("zero width", "self.name\u200b = name", "similar", (6, 6), "U+200B"),
    ("no gap", "self.name=name", "similar", (6, 6), "differs only in white space, which only one of the two has there"),
    ("a rule", "|------|------|", "similar", (17, 17), "only in the length of a row of the same character"),
    ("another word", "        for item in stock:\n            total += item.cost", "similar", (12, 13), "lines 12-13"),
    (
        "one wrong line",
        "total = 0\nfor item in stock:\n    total += item.price * item.count",
        "similar",
        (11, 13),
        "Line 12",
    ),
    ("letters swapped", "self.nmae = nmae", "similar", (6, 6), "Line 6 differs: the file has 'self.name = name'"),
]


@pytest.mark.parametrize(("old", "hint", "lines", "said"), [case[1:] for case in NEAR], ids=[case[0] for case in NEAR])
def test_a_near_miss_is_reported_with_its_place_and_its_cause(
    old: str, hint: str, lines: tuple[int, int], said: str
) -> None:
    with pytest.raises(TargetNotFound) as caught:
        replace(SHOP, old, "something new that is not there")

    assert (caught.value.hint, caught.value.lines, caught.value.matches) == (hint, lines, 0)
    assert said in str(caught.value)


@pytest.mark.parametrize("number", ["{}. ", "{}) ", "Line {}: ", "{}> ", "#{} ", "shop/a.py:{}:", "{}-"])
def test_pasted_line_numbers_of_any_style_are_recognized(number: str) -> None:
    old = f"{number.format(12)}        for item in items:\n{number.format(13)}            total += item.price"
    with pytest.raises(TargetNotFound) as caught:
        replace(SHOP, old, "x")
    assert (caught.value.hint, caught.value.lines) == ("line_numbers", (12, 13))

    with pytest.raises(TargetNotFound) as caught:
        replace(SHOP, old.replace("price", "cost"), "x")
    assert caught.value.hint == "similar"


@pytest.mark.parametrize("old", ["caf\\u00e9 = 1", "caf\\u00e9 = 1 # \\ud83d\\ude00"])
def test_numeric_character_escapes_are_reported(old: str) -> None:
    with pytest.raises(TargetNotFound) as caught:
        replace("caf\u00e9 = 1 # \U0001f600\n", old, "x")
    assert (caught.value.hint, caught.value.lines) == ("escapes", (1, 1))


@pytest.mark.parametrize(
    "old",
    [
        "def total(self, items):\n    total = 0 ... return total",
        "def total(self, items):\n    # rest of code\n    return total",
        "def total(self, items):\n    # the remaining lines\n    return total",
    ],
)
def test_an_elision_is_reported_if_both_ends_occur(old: str) -> None:
    with pytest.raises(TargetNotFound, match="leaves lines out") as caught:
        replace(SHOP, old, "x")
    assert (caught.value.hint, caught.value.lines) == ("elision", (10, 14))

    with pytest.raises(TargetNotFound) as caught:
        replace(SHOP, old.replace("return total", "return nothing"), "x")
    assert caught.value.hint == "similar"


def test_the_first_line_that_differs_is_quoted() -> None:
    with pytest.raises(TargetNotFound) as caught:
        replace("def area(w, h):\n    return w * h\n", "def area(w, h):\n    return w + h", "x")

    assert str(caught.value) == (
        "cannot replace: the text to replace is not in it; did you mean lines 1-2? Line 2 differs: the file has "
        "'return w * h', the text to replace has 'return w + h'.\n"
        "Copy the text exactly, without the line numbers:\n1 | def area(w, h):\n2 |     return w * h"
    )


@pytest.mark.parametrize(
    ("old", "lines", "differs"),
    [
        ("quite another\nbbbb = 2\ncccc = 3\ndddd = 4", (1, 4), 1),
        ("aaaa = 1\nbbbb = 2\ncccc = 3\nquite another", (1, 4), 4),
        ("bbbb = 2\nquite another", (2, 3), 3),
        ("quite another\ndddd = 4", (3, 4), 3),
        ("aaaa = 1\nquite another\ncccc = 3", (1, 3), 2),
    ],
)
def test_the_lines_that_are_named_include_the_one_that_differs(old: str, lines: tuple[int, int], differs: int) -> None:
    with pytest.raises(
        TargetNotFound, match=f"did you mean lines {lines[0]}-{lines[1]}.*Line {differs} differs"
    ) as caught:
        replace("aaaa = 1\nbbbb = 2\ncccc = 3\ndddd = 4\neeee = 5\n", old, "x")
    assert caught.value.lines == lines
    assert [line for line in str(caught.value).split("\n") if line.startswith(f"{differs} | ")]


@pytest.mark.parametrize(
    ("text", "old", "line"),
    [
        ("port = 80  # default\nhost = a\n", "port = 80\nhost = a", 1),
        ("port = 80  # default\nhost = a\n", "port = 80\nHOST = a", 1),
        ("a\nport = 80  # default\nhost = a\n", "a\nport = 80\nhost = a", 2),
        ("def run(a, b):\n    return a\n", "run(a, b)\n    return a", 1),
        ("return total\nend\n", "return tot\nend", 1),
        ("begin\nlet total = 1\n", "begin\ntotal = 1", 2),
        ("begin\nfirst, second\nthird\nend\n", "begin\nsecond\nend", 2),
    ],
)
def test_text_that_the_quote_leaves_out_is_no_difference_in_white_space(text: str, old: str, line: int) -> None:
    with pytest.raises(TargetNotFound, match=f"Line {line} differs: the file has") as caught:
        replace(text, old, "x")
    assert caught.value.hint == "similar"


@pytest.mark.parametrize(
    ("text", "old"),
    [
        ('x\n@router.route("/")\ndef run():\n', "    5\t@route"),
        ("steps:\n  - uses: actions/checkout@v4\n", "  7\tsteps:\n  8\t  - uses: ac"),
        ("steps:\n  - uses: actions/checkout@v4\n", "  steps:\n - uses: ac"),
        ("steps:\n  - uses: checkout\n", "eps:\n- uses: check"),
    ],
)
def test_a_quote_that_ends_inside_a_word_is_reported_as_such(text: str, old: str) -> None:
    with pytest.raises(TargetNotFound, match="Its lines are there, but it begins or ends inside a word"):
        replace(text, old, "x")


@pytest.mark.parametrize(
    ("text", "old", "why"),
    [
        ("begin run( a)\nend\n", "run(a)\nend", "white space, which only one of the two has there"),
        ("begin\nrun( a) end\n", "begin\nrun(a)", "white space, which only one of the two has there"),
        ("let a\u200bb = 1;\n", "ab = 1", "invisible characters"),
        ("begin\nlet a\nend\n", "begin\nLET a\nend", "the case of letters"),
    ],
)
def test_a_quote_may_begin_and_end_inside_a_line(text: str, old: str, why: str) -> None:
    with pytest.raises(TargetNotFound, match=f"differs only in {why}"):
        replace(text, old, "x")


@pytest.mark.parametrize(
    ("old", "new", "lines"),
    [
        ("for item in stock:", "for item in items:", (12, 12)),
        ("total = 1\nfor x in y:", "total = 0\nfor item in items:", (11, 12)),
        ("price + count", "total += item.price * item.count", (13, 13)),
    ],
)
def test_an_edit_that_was_already_made_is_reported_as_such(old: str, new: str, lines: tuple[int, int]) -> None:
    with pytest.raises(TargetNotFound, match="already there") as caught:
        replace(SHOP, old, new)

    assert (caught.value.hint, caught.value.lines) == ("already_applied", lines)


@pytest.mark.parametrize(
    ("text", "old"),
    [
        ("1. Install it\n2. Run the app\n", "2. Run app"),
        ("1: alpha\n2: beta\n", "1: alpha\n2: gamma"),
        ("1: alpha\n2: beta\n", "3: beta"),
        ("10  ten\n20  twenty\n", "10 ten\n20 twnty"),
    ],
)
def test_numbers_in_the_file_itself_are_not_mistaken_for_line_numbers(text: str, old: str) -> None:
    with pytest.raises(TargetNotFound) as caught:
        replace(text, old, "new text")

    assert caught.value.hint == "similar"
    assert "line numbers, which" not in str(caught.value)


@pytest.mark.parametrize("new", ["", "x", "self", "}", "name = na"])
def test_a_short_new_text_that_occurs_by_chance_is_not_mistaken_for_the_edit(new: str) -> None:
    with pytest.raises(TargetNotFound) as caught:
        replace(SHOP, "self.nmae = nmae", new)

    assert caught.value.hint == "similar"


@pytest.mark.parametrize("old", ["zzzz", "print(quux)", "%%"])
def test_text_unlike_anything_in_the_file_gets_no_lines(old: str) -> None:
    with pytest.raises(TargetNotFound, match="nothing in the file is similar") as caught:
        replace(SHOP, old, "y")

    assert (caught.value.hint, caught.value.lines) == (None, ())


@pytest.mark.parametrize("text", ["", "\ufeff"])
def test_an_empty_file_is_reported_as_empty(text: str) -> None:
    with pytest.raises(TargetNotFound, match="the file is empty; write the text that it should have"):
        replace(text, "port = 80", "port = 81")


@pytest.mark.parametrize(
    ("line", "old"),
    [("x = 'a'", 'x = "a"'), ('x = "a"', "x = 'a'"), ("f('a', \"b\")", "f(\"a\", 'b')"), ("f('a')", "f('a\")")],
)
def test_a_hint_names_the_other_kind_of_quotes(line: str, old: str) -> None:
    with pytest.raises(TargetNotFound, match="the text with the other quotes is on line 2") as caught:
        replace(f"first\n{line}\n", old, "x")
    assert (caught.value.hint, caught.value.lines) == ("quotes", (2, 2))


@pytest.mark.parametrize(("line", "old"), [("x = 2", "x = 1"), ("b: 8", "b: 9"), ("a.b", "a.c")])
def test_a_short_line_that_shares_half_of_its_characters_is_similar(line: str, old: str) -> None:
    with pytest.raises(TargetNotFound, match="did you mean line 2") as caught:
        replace(f"first\n{line}\nlast\n", old, "x")
    assert caught.value.hint == "similar"


def test_white_space_alone_is_never_guessed() -> None:
    with pytest.raises(TargetNotFound, match="only white space"):
        replace("a b\tc\n", "    ", "_", replace_all=True)


def test_long_lines_are_quoted_around_what_differs() -> None:
    text = "x = [" + "1, " * 5000 + "2, " * 5000 + "]\n"
    with pytest.raises(TargetNotFound) as caught:
        replace(text, text.replace("1, 2,", "1, 3,"), "y")

    assert caught.value.lines == (1, 1)
    assert len(str(caught.value)) < 1500


@pytest.mark.parametrize(
    ("text", "old"),
    [
        ("}\n" * 200_000, "}\n" * 1000 + "x"),
        ("a" * 500_000, "a" * 100_000 + "b"),
        ("ab\n" * 100_000, "ab\n...\nba\n" * 1000),
        ("word other\n" * 50_000, "\n".join(f"word{n} other" for n in range(5000))),
        ("".join(map(chr, range(0xE000, 0xF8FF))) * 20, "a" + chr(0xE001) * 1000),
        ("1\n" * 100_000, "1: 2\n" * 20_000),
        ("\\n" * 100_000, "\\\n" * 50_000),
        ("e\u0301\u0327" * 100_000, "e\u0327" * 100_000),
    ],
)
def test_hostile_texts_get_a_short_answer(text: str, old: str) -> None:
    """Quadratic work here would take hours."""
    with pytest.raises(EditError) as caught:
        replace(text, old, "new")
    assert len(str(caught.value)) < 1500


@given(st.text(max_size=60), st.text(max_size=40))
def test_named_lines_are_lines_of_the_text(text: str, old: str) -> None:
    try:
        replace(text, old, "\ue000")
    except EditError as error:
        lines = error.lines
    else:
        return
    assert all(1 <= line <= text.count("\n") + 1 for line in lines)
    assert list(lines) == sorted(lines)


@pytest.mark.parametrize("old", ["&#" + "1" * 5000 + ";", "&#x" + "f" * 5000 + ";", "a &amp; &#" + "9" * 20])
def test_invalid_character_references_are_harmless(old: str) -> None:
    with pytest.raises(TargetNotFound):
        replace("a & b\n", old, "x")


@pytest.mark.parametrize(
    ("old", "hint", "said"),
    [
        (
            "-        total = 0\n+        total = 1",
            "diff_marks",
            "these are the marks of a diff; the text without them is on line 11",
        ),
        ("         total = 0\n-        for item in items:", "diff_marks", "on lines 11-12"),
        ("+        return total", "diff_marks", "on line 14"),
        (
            "<<<<<<< SEARCH\n        return total\n=======",
            "search_replace_markers",
            "the text without them is on line 14: give only the lines to find",
        ),
    ],
)
def test_text_pasted_around_a_quote_is_reported(old: str, hint: str, said: str) -> None:
    with pytest.raises(TargetNotFound) as caught:
        replace(SHOP, old, "x")

    assert caught.value.hint == hint
    assert said in str(caught.value)


def test_markers_in_the_file_itself_are_not_reported_as_pasted() -> None:
    with pytest.raises(TargetNotFound) as caught:
        replace("<<<<<<< SEARCH\nalpha = 1\n", "<<<<<<< SEARCH\nalpha = 2", "x")

    assert caught.value.hint == "similar"
