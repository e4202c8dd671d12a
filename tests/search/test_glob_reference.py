"""Compare the automaton with a matcher that is slow, and too simple to be wrong in the same way."""

from __future__ import annotations

from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.sampling import share
from weakfs.search import GlobPattern, compile_glob


def expand(text: str) -> list[str]:
    """Expand braces: expand the first group, and continue with each result."""
    at = 0
    while at < len(text) and text[at] != "{":
        at = class_end(text, at) if text[at] == "[" else at + 1
    if at == len(text):
        return [text]
    start, depth, parts, begin = at, 0, list[str](), at + 1
    while True:
        character = text[at]
        if character == "[":
            at = class_end(text, at)
            continue
        depth += (character == "{") - (character == "}")
        if (character == "," and depth == 1) or depth == 0:
            parts.append(text[begin:at])
            begin = at + 1
        at += 1
        if depth == 0:
            break
    return [whole for part in parts for whole in expand(text[:start] + part + text[at:])]


def class_end(text: str, at: int) -> int:
    at += 1
    at += text[at : at + 1] in ("!", "^")
    return text.index("]", at + 1) + 1


def is_simple(texts: list[str]) -> bool:
    return any(texts) and len(texts) <= 1_000 and not any(".." in text for text in texts)


def name_matches(segment: str, name: str) -> bool:
    if not segment:
        return not name
    if segment[0] == "*":
        return name_matches(segment[1:], name) or (bool(name) and name_matches(segment, name[1:]))
    if not name:
        return False
    if segment[0] == "[":
        end = class_end(segment, 0)
        members = segment[1 : end - 1].replace("a-b", "ab")
        negated = members[0] in "!^"
        return (name[0] in members[negated:]) != negated and name_matches(segment[end:], name[1:])
    return segment[0] in ("?", name[0]) and name_matches(segment[1:], name[1:])


def path_matches(segments: list[str], names: list[str], hidden: bool) -> bool:
    if not segments:
        return not names
    first, rest = segments[0], segments[1:]
    if first == "**":
        if path_matches(rest, names, hidden):
            return True
        return bool(names) and (hidden or names[0][0] != ".") and path_matches(segments, names[1:], hidden)
    if not names or (names[0][0] == "." and first[0] != "." and not hidden):
        return False
    return name_matches(first, names[0]) and path_matches(rest, names[1:], hidden)


def reference(pattern: str, path: str, is_directory: bool, hidden: bool) -> bool:
    names = path.strip("/").split("/")
    for text in expand(pattern):
        if not text or is_directory != text.endswith("/"):
            continue
        segments = [segment for segment in text.split("/") if segment not in ("", ".")]
        if "/" not in text and text != ".":
            segments.insert(0, "**")
        if segments[-1:] == ["**"] and not is_directory:
            segments.append("*")
        if segments and path_matches(segments, names, hidden):
            return True
    return False


NAMES = st.sampled_from(["a", "b", "ab", "ba", "aab", ".a", ".ab", "a.b", "-", "]", "a\nb", "é", "[", ","])
PATHS = st.lists(NAMES, min_size=1, max_size=4).map(lambda names: "/" + "/".join(names))
TEXTS = ["a", "b", ".", "é", "-", ",", "]"]
STARS = ["*", "**", "?", "/", "/**/", "**/"]
CLASSES = ["[ab]", "[!a]", "[^b.]", "[]a]", "[[]", "[!]]", "[.]", "[a-b]", "[-a]", "[,{]", "[é!]", "[a]"]
PIECES = st.sampled_from([*TEXTS, *STARS, *CLASSES])
BRACES = st.recursive(
    PIECES,
    lambda inner: st.lists(st.lists(inner | st.just(""), max_size=3).map("".join), min_size=1, max_size=3).map(
        lambda parts: "{" + ",".join(parts) + "}"
    ),
    max_leaves=5,
)
PATTERNS = (
    st.lists(PIECES | BRACES, min_size=1, max_size=6).map("".join).filter(lambda pattern: is_simple(expand(pattern)))
)


@settings(max_examples=share(500))
@given(PATTERNS, PATHS, st.booleans(), st.booleans())
@example("**/", "/a", True, False)
@example("a/**/", "/a", True, False)
@example("a/**", "/a", False, False)
@example("{,a}/b", "/b", False, False)
@example("**/a/**/a/**", "/a/b/a/ab", False, False)
@example("*a*b", "/aab", False, False)
@example("[.]a", "/.a", False, False)
@example("{a/b,[a]/ab}", "/a/b", False, False)
@example("{[a]/ab,a/b}", "/a/ab", False, False)
def test_the_automaton_agrees_with_the_reference(pattern: str, path: str, is_directory: bool, hidden: bool) -> None:
    answer = compile_glob(pattern, hidden=hidden).matches_path(path, is_directory)

    assert answer == reference(pattern, path, is_directory, hidden)


@given(PATTERNS, PATHS, st.booleans())
def test_a_state_with_literal_entries_matches_and_enters_nothing_else(pattern: str, path: str, hidden: bool) -> None:
    state = compile_glob(pattern, hidden=hidden).start()
    *folders, last = path.strip("/").split("/")

    for name in [*folders, last]:
        literals = state.literals()
        if literals is not None and name not in literals:
            assert not state.matches(name, False)
            assert not state.matches(name, True)
            assert state.enter(name) is None
        below = state.enter(name)
        if below is None:
            break
        state = below


@given(PATTERNS, PATHS, st.booleans())
@example("{,a}/", "/b", True)
@example("a/", "/a/b", False)
@example("a/*", "/a", False)
@example(".*", "/a/.b/c", False)
def test_a_pattern_covers_its_matches_and_everything_below_them(pattern: str, path: str, hidden: bool) -> None:
    compiled = compile_glob(pattern, hidden=hidden)
    names = path.strip("/").split("/")
    above = ["/" + "/".join(names[:depth]) for depth in range(len(names) + 1)]

    assert compiled.covers(path) == any(compiled.matches_path(one, kind) for one in above for kind in (False, True))


@given(st.lists(PATTERNS, max_size=3), st.lists(PATHS, max_size=4), st.booleans())
def test_several_patterns_cover_what_any_of_them_covers(patterns: list[str], paths: list[str], hidden: bool) -> None:
    together = GlobPattern(*patterns, hidden=hidden)
    for path in ("/", *paths, *reversed(paths)):
        assert together.covers(path) == any(GlobPattern(one, hidden=hidden).covers(path) for one in patterns)


@given(PATTERNS, PATHS, PATHS, st.booleans())
def test_a_relative_pattern_matches_below_a_base_as_it_does_from_the_root(
    pattern: str, base: str, path: str, hidden: bool
) -> None:
    relative = pattern.lstrip("/")
    if not relative or not is_simple(expand(relative)) or any(text[:1] == "/" for text in expand(relative)):
        return
    compiled = compile_glob(relative, hidden=hidden)

    assert compiled.matches_path(base + path, base=base) == compiled.matches_path(path)
