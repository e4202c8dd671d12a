"""What single patterns mean, and how those that mean nothing are refused."""

from __future__ import annotations

import pytest

from weakfs.search import compile_glob


def matches(pattern: str, path: str, *, directory: bool = False, hidden: bool = False) -> bool:
    return compile_glob(pattern, hidden=hidden).matches_path(path, directory)


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("[]a]x", "/]x"),
        ("[!]a]x", "/bx"),
        ("[^a]x", "/bx"),
        ("[a-]x", "/-x"),
        ("[-a]x", "/-x"),
        ("[a-cx-z]x", "/yx"),
        ("[*?{},]", "/{"),
        ("[{]a", "/{a"),
        ("a]b}c,d", "/a]b}c,d"),
        ("é?", "/é漢"),
        ("a**b", "/aXb"),
        ("***", "/deep/name"),
    ],
)
def test_a_pattern_matches_the_name_that_it_describes(pattern: str, path: str) -> None:
    assert matches(pattern, path)


@pytest.mark.parametrize("pattern", ["[!a]x", "[^a]x"])
def test_a_negated_class_leaves_out_its_members(pattern: str) -> None:
    assert not matches(pattern, "/ax")


@pytest.mark.parametrize("pattern", ["*", "?", "a*c", "a?c", "a[!b]c", "**"])
def test_newlines_in_names_are_characters_like_any_other(pattern: str) -> None:
    assert matches(pattern, "/a\nc" if pattern != "?" else "/\n")


def test_a_name_with_a_final_newline_is_not_the_name_without_it() -> None:
    assert not matches("a?c", "/abc\n")
    assert not matches("*.py", "/a.py\n")


def test_case_counts() -> None:
    assert not matches("*.md", "/Guide.MD")


@pytest.mark.parametrize("pattern", ["?a", "*a", "[.]a", "[!x]a", "**/*a"])
def test_a_dotfile_needs_a_literal_dot(pattern: str) -> None:
    assert not matches(pattern, "/.a")
    assert matches(pattern, "/.a", hidden=True)


@pytest.mark.parametrize("pattern", [".a", ".*", ".?", "{.,x}a", "**/.a", ".[a]"])
def test_a_segment_that_starts_with_a_dot_matches_dotfiles(pattern: str) -> None:
    assert matches(pattern, "/.a")


def test_two_stars_enter_a_dot_directory_only_if_hidden() -> None:
    assert not matches("**/*.py", "/src/.cache/d.py")
    assert matches("**/*.py", "/src/.cache/d.py", hidden=True)
    assert matches("src/.cache/**", "/src/.cache/x/d.py")


def test_two_stars_also_match_zero_directories() -> None:
    assert matches("src/**/app.py", "/src/app.py")
    assert matches("**/src/**/**/app.py", "/src/app.py")


def test_two_stars_at_the_end_match_the_contents_but_not_the_folder_itself() -> None:
    assert matches("src/**", "/src/a/b")
    assert not matches("src/**", "/src")


def test_two_stars_before_a_final_slash_match_the_folder_and_all_below() -> None:
    assert matches("src/**/", "/src", directory=True)
    assert matches("src/**/", "/src/lib/deep", directory=True)
    assert not matches("src/**/", "/tests", directory=True)


def test_a_final_slash_matches_directories_only() -> None:
    assert matches("src/", "/src", directory=True)
    assert not matches("src/", "/src")
    assert not matches("src", "/src", directory=True)


def test_a_final_slash_anchors_the_pattern() -> None:
    assert not matches("lib/", "/src/lib", directory=True)
    assert matches("**/lib/", "/src/lib", directory=True)


def test_a_pattern_without_a_slash_matches_at_any_depth() -> None:
    assert matches("app.py", "/src/deep/app.py")
    assert not matches("/app.py", "/src/app.py")
    assert not matches("./app.py", "/src/app.py")


def test_each_alternative_is_read_on_its_own() -> None:
    pattern = "{src/*.ts,*.md,docs/}"

    assert matches(pattern, "/src/app.ts")
    assert not matches(pattern, "/lib/src/app.ts")
    assert matches(pattern, "/any/where/x.md")
    assert matches(pattern, "/docs", directory=True)


def test_braces_nest_and_may_be_empty() -> None:
    pattern = "a{,.{b,c{1,2}}}"

    found = [name for name in ("a", "a.b", "a.c1", "a.c2", "a.", "a.c") if matches(pattern, "/" + name)]

    assert found == ["a", "a.b", "a.c1", "a.c2"]


def test_a_class_in_braces_keeps_its_comma_and_brace() -> None:
    assert matches("{[,}]a,b}", "/,a")
    assert matches("{[,}]a,b}", "/}a")
    assert matches("{[,}]a,b}", "/b")


@pytest.mark.parametrize("pattern", ["src\\*.py", "\\src\\*.py", "src//*.py", "./src/./*.py", "a/../src/*.py"])
def test_a_pattern_is_normalized_like_a_path(pattern: str) -> None:
    assert matches(pattern, "/src/app.py")


@pytest.mark.parametrize("pattern", ["../x", "a/../../x", "..", "{a,../x}"])
def test_climbing_above_the_start_is_refused_as_in_a_path(pattern: str) -> None:
    with pytest.raises(PermissionError, match="climbs above"):
        compile_glob(pattern)


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("", "empty glob pattern.*write"),
        ("{}", r"braces are empty.*write '\[\{\]"),
        ("{,}", "braces are empty"),
        ("a[bc", r"unclosed '\[' at position 1; add its '\]'"),
        ("[]", r"unclosed '\[' at position 0"),
        ("[!]", r"unclosed '\[' at position 0"),
        ("x/[a/b]", r"unclosed '\[' at position 2.*before the next slash"),
        ("{a,[b}", r"unclosed '\[' at position 3"),
        ("src/{a,b", r"unclosed '\{' at position 4; add its '\}', or write '\[\{\]'"),
        ("{a,{b}", r"unclosed '\{' at position 0"),
        ("[z-a]", "range z-a in the class at position 0 runs backwards; write a-z"),
        ("[[:alpha:]]", "POSIX name; write its ranges"),
        ("**/../x", r"'\.\.' after '\*\*'"),
        ("a\0b", "NUL at position 1"),
        ("a\ud800", "lone surrogate at position 1"),
        ("a" * 65_537, "longer than 65,536 characters"),
    ],
)
def test_a_pattern_that_cannot_be_read_is_refused_with_the_remedy(pattern: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        compile_glob(pattern)


def test_a_thousand_alternatives_are_accepted_and_one_more_is_refused() -> None:
    numbers = [str(number) for number in range(1_001)]

    assert matches("{" + ",".join(numbers[:1_000]) + "}", "/999")
    with pytest.raises(ValueError, match=r"more than 1,000 alternatives"):
        compile_glob("{" + ",".join(numbers) + "}")


@pytest.mark.parametrize(
    "pattern",
    ["{a,b}" * 40, "{a,b}" * 10, "{{a,b}{c,d},{e,f}}" * 8, "{" * 20_000 + "a,b" + "}" * 20_000 + "{,}" * 20],
    ids=["2**40", "2**10", "nested", "deep"],
)
def test_exploding_braces_are_refused_without_being_expanded(pattern: str) -> None:
    with pytest.raises(ValueError, match=r"more than 1,000 alternatives"):
        compile_glob(pattern)


def test_alternatives_with_a_large_total_length_are_refused() -> None:
    with pytest.raises(ValueError, match=r"exceed 262,144 characters"):
        compile_glob("{" + ",".join(map(str, range(900))) + "}" + "x" * 1_000)


@pytest.mark.parametrize("pattern", ["*a*a*a*a*b", "*?a?*?a?*?a?*b", "*[ab]*[ab]*[ab]*c", "*" + "a*" * 500 + "b"])
def test_many_stars_on_a_long_name_finish(pattern: str) -> None:
    assert not matches(pattern, "/" + "a" * 200_000)
    assert matches(pattern, "/" + "a" * 200_000 + "xabac" + pattern[-1])


@pytest.mark.parametrize("pattern", ["**/**/**/**/x", "**/a/**/a/**/x", "**/a/a/a/x", "**/" + "a/**/" * 30 + "x"])
def test_many_double_stars_on_a_deep_path_finish(pattern: str) -> None:
    deep = "/a" * 5_000

    assert not matches(pattern, deep + "/y")
    assert matches(pattern, deep + "/x")


def test_a_walk_does_not_enter_what_cannot_match() -> None:
    start = compile_glob("src/*/test_*.py").start()

    inside = start.enter("src")

    assert start.enter("docs") is None
    assert inside is not None
    below = inside.enter("lib")
    assert below is not None
    assert below.enter("deeper") is None


def test_literal_segments_name_the_entries_to_look_up() -> None:
    start = compile_glob("{src,tests}/{a,b}.py").start()
    inside = start.enter("src")

    assert start.literals() == frozenset({"src", "tests"})
    assert inside is not None
    assert inside.literals() == frozenset({"a.py", "b.py"})
    assert compile_glob("*.py").start().literals() is None


def test_states_are_shared_and_hashable() -> None:
    pattern = compile_glob("**/a/*.py")
    start = pattern.start()

    assert pattern is compile_glob("**/a/*.py")
    assert start.enter("x") is start
    assert start.enter("a") is start.enter("a")
    assert len({start, pattern.start()}) == 1


def test_a_relative_pattern_starts_at_the_base_and_an_absolute_one_at_the_root() -> None:
    assert compile_glob("*.py").matches_path("/src/a.py", base="/src")
    assert compile_glob("lib/*.py").matches_path("/src/lib/a.py", base="/src")
    assert compile_glob("/src/lib/*.py").matches_path("/src/lib/a.py", base="/src")
    assert not compile_glob("/lib/*.py").matches_path("/src/lib/a.py", base="/src")
    assert not compile_glob("**").matches_path("/tests/a.py", base="/src")


def test_a_hidden_base_is_searched_if_it_is_named() -> None:
    assert compile_glob("**/*.yml").matches_path("/.github/workflows/ci.yml", base="/.github")


def test_the_root_is_matched_only_by_a_pattern_for_the_root() -> None:
    assert matches("/", "/", directory=True)
    assert matches("**/", "/", directory=True)
    assert not matches("*", "/", directory=True)
