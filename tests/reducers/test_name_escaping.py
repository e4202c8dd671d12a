"""Names that are not text: every host name has one form, and every form leads back to one host name."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.sampling import share
from weakfs.reducers.tree.name_escaping import from_bytes, to_bytes

# The bytes of U+F700 to U+F7FF, of a backslash, and of broken and overlong forms occur more often than by chance.
PARTS = st.sampled_from(
    b"\\ \xff \xc3 \xa9 \xc3\xa9 a . \n \xef \xef\x9c\x80 \xef\x9f\xbf \xef\x9d\x9c".split(b" ")
    + b"\xed\xa0\x80 \xc0\xaf \xf4\x90\x80\x80 \xee\x80\x80".split(b" ")
)
RAW = st.lists(PARTS | st.binary(max_size=4), max_size=12).map(b"".join)


@pytest.mark.parametrize(
    ("raw", "name"),
    [
        (b"", ""),
        (b"plain.txt", "plain.txt"),
        ("\u00e9\u3042\U0001f600".encode(), "\u00e9\u3042\U0001f600"),
        (b"\xff", "\uf7ff"),
        (b"a\\b", "a\uf75cb"),
        (b"caf\xe9", "caf\uf7e9"),
        ("\uf700".encode(), "\uf7ef\uf79c\uf780"),
        ("\uf7ff".encode(), "\uf7ef\uf79f\uf7bf"),
        ("\uf6ff\uf800".encode(), "\uf6ff\uf800"),
        (b"\xed\xa0\x80", "\uf7ed\uf7a0\uf780"),
        (b"\n\t\x01\x7f", "\n\t\x01\x7f"),
    ],
)
def test_a_name_has_the_form_in_the_table_and_is_decoded_back(raw: bytes, name: str) -> None:
    assert from_bytes(raw) == name
    assert to_bytes(name) == raw


@settings(deadline=None, derandomize=True, max_examples=share(600))
@given(RAW)
def test_any_bytes_are_decoded_back_and_their_form_is_canonical(raw: bytes) -> None:
    name = from_bytes(raw)
    assert to_bytes(name) == raw
    assert "\\" not in name
    name.encode()  # no lone surrogate
    if b"/" not in raw:
        assert "/" not in name


@settings(deadline=None, derandomize=True, max_examples=share(600))
@given(RAW, RAW)
def test_two_host_names_never_have_one_form(one: bytes, other: bytes) -> None:
    assert (from_bytes(one) == from_bytes(other)) == (one == other)


@settings(deadline=None, derandomize=True, max_examples=share(600))
@given(st.text(st.sampled_from("a.\u00e9\uf700\uf72e\uf72f\uf741\uf75c\uf7c3\uf7a9\uf7ef\uf79d\uf781"), max_size=8))
def test_any_name_has_bytes_whose_form_is_stable(name: str) -> None:
    raw = to_bytes(name)
    assert to_bytes(from_bytes(raw)) == raw
    assert from_bytes(to_bytes(from_bytes(raw))) == from_bytes(raw)


def test_an_escape_never_makes_a_slash_a_nul_or_a_dot_name() -> None:
    for name in ("\uf72f", "\uf700", "\uf72e", "\uf72e\uf72e", "a\uf72fb"):
        assert to_bytes(name) == name.encode()
