"""Globbing: which names match, in which order, and how many are returned."""

from __future__ import annotations

from typing import Any, cast

import pytest

from weakfs.filesystem import Filesystem
from weakfs.testing.conformance.harness import FilesystemCases, refused
from weakfs.testing.conformance.search.glob_table import GLOB_FILES, GLOB_TABLE

# Files, a pattern, and its matches: one rule each, in addition to the shared table.
RULES: dict[str, tuple[tuple[str, ...], str, tuple[str, ...]]] = {
    "star_stays_inside_a_segment": (("/a/b.txt", "/a/c/b.txt"), "a/*.txt", ("/a/b.txt",)),
    "question_mark_is_one_character": (("/d/ab", "/d/a", "/d/é🎉"), "d/??", ("/d/ab", "/d/é🎉")),
    "question_mark_is_no_slash": (("/a/b", "/axb"), "/a?b", ("/axb",)),
    "two_stars_match_no_segment": (("/a/z", "/a/b/z", "/a/b/c/z"), "a/**/z", ("/a/b/c/z", "/a/b/z", "/a/z")),
    "two_stars_at_the_end_match_all_below": (("/a/x", "/a/b/y", "/c"), "a/**", ("/a/b/y", "/a/x")),
    "two_stars_twice": (("/a/m/b/n/c", "/a/b/c", "/a/c"), "a/**/b/**/c", ("/a/b/c", "/a/m/b/n/c")),
    "class": (("/d/a1", "/d/b1", "/d/c1"), "d/[ab]1", ("/d/a1", "/d/b1")),
    "class_of_a_range": (("/d/a", "/d/m", "/d/z", "/d/M"), "d/[a-m]", ("/d/a", "/d/m")),
    "class_negated": (("/d/a", "/d/b", "/d/c"), "d/[!ab]", ("/d/c",)),
    "class_of_a_star": (("/d/*", "/d/a"), "d/[*]", ("/d/*",)),
    "class_of_a_question_mark": (("/d/?", "/d/a"), "d/[?]", ("/d/?",)),
    "class_of_a_brace": (("/d/{a}", "/d/a"), "d/[{]a}", ("/d/{a}",)),
    "class_of_a_dash": (("/d/a-b", "/d/a+b"), "d/a[-]b", ("/d/a-b",)),
    "class_is_no_slash": (("/a/b", "/a-b"), "/a[!x]b", ("/a-b",)),
    "braces": (("/d/a.ts", "/d/a.js", "/d/a.py"), "d/*.{ts,js}", ("/d/a.js", "/d/a.ts")),
    "braces_with_nothing_inside": (("/d/a", "/d/ab", "/d/ac"), "d/a{,b}", ("/d/a", "/d/ab")),
    "braces_in_braces": (("/d/a", "/d/bc", "/d/bd", "/d/b"), "d/{a,b{c,d}}", ("/d/a", "/d/bc", "/d/bd")),
    "braces_across_segments": (("/a/b/x", "/c/x", "/d/x"), "{a/b,c}/x", ("/a/b/x", "/c/x")),
    "braces_around_stars": (("/a/x.py", "/b/c/x.py"), "{a/*,b/**}", ("/a/x.py", "/b/c/x.py")),
    "case_counts": (("/d/a.TXT", "/d/b.txt"), "*.txt", ("/d/b.txt",)),
    "a_plain_name_at_any_depth": (("/a", "/d/a", "/d/e/a", "/d/ab"), "a", ("/a", "/d/a", "/d/e/a")),
    "a_leading_slash_ties_to_the_start": (("/a", "/d/a"), "/a", ("/a",)),
    "a_slash_inside_ties_to_the_start": (("/d/a", "/e/d/a"), "d/a", ("/d/a",)),
    "characters_of_regular_expressions": (("/d/a+b(c).$^|", "/d/aab"), "d/a+b(c).$^|", ("/d/a+b(c).$^|",)),
    "a_dot_is_a_dot": (("/d/a.py", "/d/axpy"), "d/a.py", ("/d/a.py",)),
    "a_newline_is_a_character": (("/d/a\nb.txt", "/d/a.txt"), "*b.txt", ("/d/a\nb.txt",)),
    "star_skips_hidden_names": (("/.a.txt", "/d/.b.txt", "/d/c.txt"), "*.txt", ("/d/c.txt",)),
    "question_mark_skips_hidden_names": (("/d/.a", "/d/xa"), "d/?a", ("/d/xa",)),
    "class_skips_hidden_names": (("/d/.a", "/d/xa"), "d/[!y]a", ("/d/xa",)),
    "two_stars_skip_hidden_directories": (("/.git/a.py", "/d/.x/b.py", "/d/c.py"), "**/*.py", ("/d/c.py",)),
    "a_leading_dot_matches_hidden_names": (("/d/.env", "/d/env"), "d/.*", ("/d/.env",)),
    "a_dot_opens_its_own_segment_only": (("/.a/.b", "/.a/c"), ".a/*", ("/.a/c",)),
    "a_trailing_slash_matches_directories": (("/a/x", "/b/c/x", "/d"), "**/", ("/a", "/b", "/b/c")),
    "a_trailing_slash_ties_to_the_start": (("/a/src/x", "/src/y"), "src/", ("/src",)),
    "a_trailing_slash_at_any_depth": (("/a/src/x", "/src/y", "/b/src"), "**/src/", ("/a/src", "/src")),
}


class GlobCases(FilesystemCases):
    @pytest.mark.parametrize(("pattern", "hidden", "expected"), GLOB_TABLE)
    def test_a_pattern_matches_what_the_table_says(
        self, fs: Filesystem, pattern: str, hidden: bool, expected: tuple[str, ...]
    ) -> None:
        for path in GLOB_FILES:
            fs.write(path, "")
        result = fs.glob(pattern, hidden=hidden, sort="path")
        assert tuple(match.path for match in result) == expected
        assert not result.truncated

    @pytest.mark.parametrize(("files", "pattern", "expected"), list(RULES.values()), ids=list(RULES))
    def test_a_pattern_follows_the_rule(
        self, fs: Filesystem, files: tuple[str, ...], pattern: str, expected: tuple[str, ...]
    ) -> None:
        for path in files:
            fs.write(path, "")
        assert tuple(match.path for match in fs.glob(pattern, sort="path")) == expected

    def test_a_pattern_starts_at_the_given_directory(self, fs: Filesystem) -> None:
        for path in ("/src/a.py", "/src/lib/b.py", "/lib/c.py"):
            fs.write(path, "")
        found = [match.path for match in fs.glob("*.py", path="/src", sort="path")]
        assert found == ["/src/a.py", "/src/lib/b.py"]
        assert [match.path for match in fs.glob("lib/*.py", path="/src")] == ["/src/lib/b.py"]

    def test_a_hidden_directory_may_be_the_start(self, fs: Filesystem) -> None:
        fs.write("/.github/ci.yml", "")
        assert [match.path for match in fs.glob("*.yml", path="/.github")] == ["/.github/ci.yml"]

    def test_files_and_links_match_and_directories_need_a_slash(self, fs: Filesystem) -> None:
        fs.write("/d/a", "")
        fs.mkdir("/d/b")
        fs.symlink("a", "/d/c")
        fs.symlink("b", "/d/d")
        assert [match.path for match in fs.glob("d/*", sort="path")] == ["/d/a", "/d/c", "/d/d"]
        (directory,) = fs.glob("d/*/")
        assert (directory.path, directory.is_file) == ("/d/b", False)
        assert fs.glob("d/a")[0].is_file

    def test_nothing_matches_in_an_empty_filesystem(self, fs: Filesystem) -> None:
        for pattern in ("*", "**", "**/", "a"):
            result = fs.glob(pattern)
            assert (len(result), list(result), result.truncated) == (0, [], False)

    def test_the_newest_comes_first(self, fs: Filesystem) -> None:
        self.write_in_turn(fs, "/b.txt", "/d/a.txt", "/c.txt")
        assert [match.path for match in fs.glob("*.txt")] == ["/c.txt", "/d/a.txt", "/b.txt"]
        self.write_in_turn(fs, "/b.txt")
        assert [match.path for match in fs.glob("*.txt")] == ["/b.txt", "/c.txt", "/d/a.txt"]
        fs.append("/d/a.txt", "more")
        assert fs.glob("*.txt")[0].path == "/d/a.txt"

    def test_matches_can_be_sorted_by_path(self, fs: Filesystem) -> None:
        self.write_in_turn(fs, "/b.txt", "/d/a.txt", "/a.txt", "/c.txt", "/é.txt", "/Z.txt")
        found = [match.path for match in fs.glob("*.txt", sort="path")]
        assert found == ["/Z.txt", "/a.txt", "/b.txt", "/c.txt", "/d/a.txt", "/é.txt"]

    def test_paths_are_compared_by_their_characters(self, fs: Filesystem) -> None:
        paths = ["/a b/x", "/a!/x", "/a-b", "/a.b", "/a/x", "/a0", "/ab"]
        for path in reversed(paths):
            fs.write(path, "needle")
        assert [match.path for match in fs.glob("**", sort="path")] == sorted(paths)
        assert [match.path for match in fs.grep("needle")] == sorted(paths)

    def test_an_unknown_order_is_refused(self, fs: Filesystem) -> None:
        with refused(fs, ValueError):
            fs.glob("*", sort=cast(Any, "size"))

    def test_matches_are_sorted_before_they_are_truncated(self, fs: Filesystem) -> None:
        self.write_in_turn(fs, "/a.txt", "/b.txt", "/c.txt", "/d.txt")
        result = fs.glob("*.txt", max_results=2)
        assert [match.path for match in result] == ["/d.txt", "/c.txt"]
        assert result.truncated
        result = fs.glob("*.txt", max_results=3, sort="path")
        assert [match.path for match in result] == ["/a.txt", "/b.txt", "/c.txt"]
        assert result.truncated

    def test_as_many_matches_as_the_limit_are_not_truncated(self, fs: Filesystem) -> None:
        self.write_in_turn(fs, "/a.txt", "/b.txt")
        result = fs.glob("*.txt", max_results=2)
        assert (len(result), result.truncated) == (2, False)

    def test_a_thousand_matches_are_returned_by_default(self, fs: Filesystem) -> None:
        for number in range(1_001):
            fs.write(f"/d/{number:04}", "")
        result = fs.glob("d/*", sort="path")
        assert (len(result), result[999].path, result.truncated) == (1_000, "/d/0999", True)
        result = fs.glob("d/*", max_results=2_000)
        assert (len(result), result.truncated) == (1_001, False)

    def test_the_limit_may_be_unlimited_or_zero(self, fs: Filesystem) -> None:
        fs.write("/a.txt", "")
        assert (len(fs.glob("*", max_results=-1)), fs.glob("*", max_results=-1).truncated) == (1, False)
        assert (len(fs.glob("*", max_results=0)), fs.glob("*", max_results=0).truncated) == (0, True)
        with refused(fs, ValueError):
            fs.glob("*", max_results=-2)

    def test_the_matches_of_a_glob_are_a_sequence(self, fs: Filesystem) -> None:
        for name in "abc":
            fs.write(f"/{name}", "")
        result = fs.glob("*", sort="path")
        assert len(result) == 3
        assert [result[index].path for index in (0, 1, -1)] == ["/a", "/b", "/c"]
        assert [match.path for match in reversed(result)] == ["/c", "/b", "/a"]
        assert result[0] in result
        with pytest.raises(IndexError):
            result[3]

    @pytest.mark.parametrize("pattern", ["[abc", "a/[!b", "{a,b", "a/{b,{c,d}", "*.[ch"])
    def test_a_pattern_that_is_not_closed_is_refused(self, fs: Filesystem, pattern: str) -> None:
        fs.write("/a/b", "")
        with refused(fs, ValueError):
            fs.glob(pattern)

    def test_a_thousand_alternatives_are_allowed_and_no_more(self, fs: Filesystem) -> None:
        fs.write("/d/123", "")
        digits = "{0,1,2,3,4,5,6,7,8,9}"
        assert [match.path for match in fs.glob(f"d/{digits * 3}")] == ["/d/123"]
        with refused(fs, ValueError):
            fs.glob(f"d/{digits * 3}{{,x}}")
        with refused(fs, ValueError):
            fs.glob("{a,b}" * 60)

    @pytest.mark.parametrize("pattern", ["*a" * 40 + "b", "?*" * 40 + "b", "[ab]*" * 40 + "c"])
    def test_no_pattern_takes_forever_in_a_name(self, fs: Filesystem, pattern: str) -> None:
        fs.write("/d/" + "a" * 200, "")
        assert list(fs.glob(pattern)) == []

    def test_no_pattern_takes_forever_in_a_deep_tree(self, fs: Filesystem) -> None:
        fs.write("/a" * 50 + "/x", "")
        assert list(fs.glob("**/a/" * 25 + "y")) == []
        assert len(fs.glob("**/a/" * 25 + "x")) == 1

    def test_a_glob_does_not_start_at_a_file(self, fs: Filesystem) -> None:
        fs.write("/a.txt", "")
        with refused(fs, NotADirectoryError):
            fs.glob("*", path="/a.txt")
