"""How Claude Code's edits differ from ours; and the result of an edit, from the recording.

Its rules: the text is edited with `\\n` as its only line ending and written back with the file's own; an edit with an
empty `old_string` sets the whole text, one with an empty `new_string` also deletes the line break after the match;
curly quotes in the file match straight ones, and the inserted text gets curly quotes there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from weakfs.class_decorators import frozen
from weakfs.transcripts.reconstruction.file_text import UNKNOWN, Text, with_plain_line_ends
from weakfs.transcripts.reconstruction.recorded_hunks import Hunk, apply_hunks

_STRAIGHT = str.maketrans({"\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"'})
# The characters after which a quote is an opening one.
_OPENING = frozenset(" \t\n\r([{\u2014\u2013")
# How much of a file is examined to find its line endings.
_LOOKED_AT = 4096
# Replacing each letter of a text with a page of text might not fit in memory; no recorded file is that large.
MOST_CHARACTERS = 1 << 28
_LEADING_TABS = re.compile(r"^\t+", re.MULTILINE)


@frozen
class Edit:
    """One replacement, as requested."""

    old: str
    new: str
    replace_all: bool = False


def old_text_of(text: str, edit: Edit) -> str:
    """Return the text that an edit removes: a line that becomes empty is removed with its line ending."""
    if not edit.new and edit.old and not edit.old.endswith("\n") and edit.old + "\n" in text:
        return edit.old + "\n"
    return edit.old


def find_actual(text: str, edit: Edit) -> Edit:
    """Return an edit with the quotes of the text if only those differ; otherwise return the edit unchanged."""
    if not edit.old or edit.old in text:
        return edit
    at = text.translate(_STRAIGHT).find(edit.old.translate(_STRAIGHT))
    if at < 0:
        return edit
    actual = text[at : at + len(edit.old)]
    return Edit(actual, with_quotes_of(actual, edit.new), edit.replace_all)


def with_quotes_of(actual: str, new: str) -> str:
    """Return `new` with curly quotes of the kinds that `actual` has."""
    if "\u201c" in actual or "\u201d" in actual:
        new = "".join(_curled(new, '"', "\u201c", "\u201d"))
    if "\u2018" in actual or "\u2019" in actual:
        new = "".join(_curled(new, "'", "\u2018", "\u2019"))
    return new


def _curled(text: str, straight: str, opening: str, closing: str) -> Iterator[str]:
    for at, character in enumerate(text):
        if character != straight:
            yield character
            continue
        before, after = text[at - 1 : at] if at else "", text[at + 1 : at + 2]
        is_apostrophe = straight == "'" and before.isalpha() and after.isalpha()
        yield opening if not is_apostrophe and (not before or before in _OPENING) else closing


def apply_edits(text: str, edits: Sequence[Edit]) -> str | None:
    """Return the text after all edits; `None` if one of them has nothing to replace."""
    for edit in edits:
        old = old_text_of(text, edit)
        if not old:
            text = edit.new
        elif old in text and is_bounded(text, old, edit):
            text = text.replace(old, edit.new, -1 if edit.replace_all else 1)
        else:
            return None
    return text


def is_bounded(text: str, old: str, edit: Edit) -> bool:
    """Return whether the text after an edit is small enough to be built."""
    times = text.count(old) if edit.replace_all else 1
    return len(text) + times * len(edit.new) <= MOST_CHARACTERS


def recorded_outcome(
    before: Text, edits: Sequence[Edit], hunks: Sequence[Hunk] | None
) -> tuple[Text, tuple[Edit, ...]]:
    """Return the text after the edits, and the edits that produce it; `UNKNOWN` if the recording does not show it.

    The hunks take precedence if the edits produce another text: the strings are recorded as sent, the hunks as
    written, in some versions with spaces for leading tabs.
    """
    if before is None:
        before = ""
    if not isinstance(before, str):
        return UNKNOWN, tuple(edits)
    text, is_plain = worked_on(before, edits)
    made, variant = _outcome(text, edits, hunks)
    if isinstance(made, str) and is_plain and mostly_carriage_returns(before):
        made = made.replace("\n", "\r\n")
    return made, variant


def worked_on(text: str, edits: Sequence[Edit]) -> tuple[str, bool]:
    """Return the text to edit, and whether its line endings were normalized: some versions do not do that."""
    if any("\r\n" in edit.old and edit.old in text for edit in edits):
        return text, False
    return with_plain_line_ends(text), True


def mostly_carriage_returns(text: str) -> bool:
    """Return whether Claude Code treats `\\r\\n` as the line ending of a file."""
    head = text[:_LOOKED_AT]
    both = head.count("\r\n")
    return both > head.count("\n") - both


def _outcome(base: str, edits: Sequence[Edit], hunks: Sequence[Hunk] | None) -> tuple[Text, tuple[Edit, ...]]:
    candidates: list[tuple[str, tuple[Edit, ...]]] = []
    for variant in _variants(base, edits):
        made = apply_edits(base, variant)
        if made is not None:
            candidates.append((made, variant))
    if hunks is None:
        return candidates[0] if candidates else (UNKNOWN, tuple(edits))
    written = apply_hunks(base, hunks)
    if written is None:
        shown = apply_hunks(_with_spaces(base), hunks)
        if shown is None:
            return candidates[0] if candidates else (UNKNOWN, tuple(edits))
        return _agreeing(candidates, shown) or (UNKNOWN, tuple(edits))
    return _agreeing(candidates, written) or (written, tuple(edits))


def _agreeing(candidates: list[tuple[str, tuple[Edit, ...]]], written: str) -> tuple[str, tuple[Edit, ...]] | None:
    """Return the candidate that equals the written text, or differs only in tabs and a newline at the end."""
    for candidate in candidates:
        if candidate[0] == written:
            return candidate
    shown = _with_spaces(written).rstrip("\n")
    return next((one for one in candidates if _with_spaces(one[0]).rstrip("\n") == shown), None)


def _variants(text: str, edits: Sequence[Edit]) -> Iterator[tuple[Edit, ...]]:
    """Yield the edits as recorded, and as they may have been carried out if there are curly quotes."""
    yield tuple(edits)
    curled = tuple(Edit(edit.old, with_quotes_of(edit.old, edit.new), edit.replace_all) for edit in edits)
    if curled != tuple(edits):
        yield curled
    found = _found_in(text, edits)
    if found != tuple(edits):
        yield found
        yield tuple(Edit(one.old, edit.new, edit.replace_all) for one, edit in zip(found, edits, strict=True))


def _found_in(text: str, edits: Sequence[Edit]) -> tuple[Edit, ...]:
    """Return the edits with the quotes of the text, each as found in the text that the previous ones left."""
    found: list[Edit] = []
    for edit in edits:
        found.append(find_actual(text, edit))
        made = apply_edits(text, found[-1:])
        text = text if made is None else made
    return tuple(found)


def _with_spaces(text: str) -> str:
    return _LEADING_TABS.sub(lambda tabs: "  " * len(tabs[0]), text) if "\t" in text else text
