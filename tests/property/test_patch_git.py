"""A patch made by git turns one set of files into another, whatever the files contain and with any options of git."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.models import patches
from tests.sampling import share
from weakfs.editing import apply_patch

OPTIONS = (
    (),
    ("-M", "-C", "--find-copies-harder"),
    ("-U0",),
    ("-U1", "--no-prefix"),
    ("--patience", "-M10%"),
    ("--src-prefix=i/", "--dst-prefix=w/"),
    ("-D",)[:0],
)

any_line = st.sampled_from(("x", "y", "", "\r", "x\r", "\ufeff", "\ufeffx", "--- a/q", "+++ b/q", "-- ")) | patches.line
any_text = st.builds(
    lambda lines, end: "\n".join(lines) + end if lines else "",
    st.lists(any_line, max_size=14),
    st.sampled_from(("\n", "")),
)
any_files = st.dictionaries(st.sampled_from(patches.NAMES), any_text, max_size=4)


@pytest.fixture(scope="module")
def repository() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        patches.git(root, "init", "-q")
        patches.git(root, "config", "core.autocrlf", "false")
        yield root


@settings(max_examples=share(60), suppress_health_check=[HealthCheck.too_slow])
@given(old=any_files, new=any_files, options=st.sampled_from(OPTIONS))
def test_a_diff_by_git_turns_one_set_of_files_into_the_other(
    repository: Path, old: dict[str, str], new: dict[str, str], options: tuple[str, ...]
) -> None:
    diff = patches.git_diff(repository, old, new, "--text", *options)
    fs = patches.filesystem_of(old)
    if diff:
        apply_patch(fs, diff, patch_format="unified")

    assert patches.files_of(fs) == new
