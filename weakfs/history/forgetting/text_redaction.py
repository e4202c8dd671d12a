"""Redaction: replacing a text with a placeholder of the same length, in every form in which it can be stored.

The length stays the same, so that sizes, splices and the spans in receipts remain valid. A placeholder begins and ends
with a character that the text does not contain, so that it can never be a part of a new occurrence.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterable, Iterator, Mapping

from attrs import define, field

from weakfs.session.blobs.blob import digest_of

WORD = b"[forgotten]"
# A shorter text, and its placeholder, may occur by chance.
LEAST = 4
# Inner parts of a base64 form that are shorter than this are not searched for, because they may occur by chance.
LEAST_ENCODED = 8
_DIGEST = re.compile(rb"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")
# The characters for the ends of a placeholder: none of them is escaped in JSON or special in a path.
_EDGES = b"[*#~_=+-!%&,:;<>?@^`{|}()$0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
# The characters for encoded forms, so that the text around the placeholder can still be decoded.
_ENCODED_EDGES = b"A09BCDEFabcdef12345678GHIJKLMNOPQRSTUVWXYZghijklmnopqrstuvwxyz"


def forms_of(text: str | bytes) -> dict[bytes, bytes]:
    """Return the forms in which a text can be stored, longest first, each with its placeholder.

    These are the literal text, the text escaped in JSON up to three times, in base64 and in hexadecimal. Raises
    `ValueError` if there is no character for the ends of a placeholder.
    """
    raw = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
    found = {raw: placeholder(raw)}
    try:
        escaped = [raw.decode("utf-8", "surrogatepass")]
    except UnicodeDecodeError:
        escaped = []
    for _ in range(3):
        # JSON inside JSON inside JSON, as in the receipt of a call that read a session file.
        escaped = list(dict.fromkeys(json.dumps(one, ensure_ascii=a)[1:-1] for one in escaped for a in (False, True)))
        for one in escaped:
            form = one.encode("utf-8", "surrogatepass")
            found.setdefault(form, placeholder(form))
    for form in _encoded_forms(raw):
        found.setdefault(form, placeholder(form, is_encoded=True))
    return dict(sorted(found.items(), key=lambda item: (-len(item[0]), item[0])))


def _encoded_forms(raw: bytes) -> Iterator[bytes]:
    yield raw.hex().encode()
    yield raw.hex().upper().encode()
    for before in range(3):
        # Only the characters that do not depend on the text around it.
        whole = (len(raw) + before) // 3 * 4
        first = 4 if before else 0
        for encode in (b64encode, urlsafe_b64encode):
            form = encode(b"\0" * before + raw + b"\0\0")[first:whole]
            if len(form) >= LEAST_ENCODED:
                yield form


def placeholder(form: bytes, *, is_encoded: bool = False) -> bytes:
    """Return a placeholder as long as a form; raises `ValueError` if there is no character for its ends."""
    choices = _ENCODED_EDGES if is_encoded else _EDGES
    edge = next((choices[at : at + 1] for at in range(len(choices)) if choices[at] not in form), None)
    if edge is None:
        raise ValueError("cannot forget a text that contains every letter, digit and sign; forget its parts one by one")
    if is_encoded or len(form) < 2:
        return edge * len(form)
    close = b"]" if edge == b"[" and b"]" not in form else edge
    body = WORD[1:-1][: len(form) - 2]
    return edge + body.ljust(len(form) - 2, b".") + close


@define(eq=False)
class Redaction:
    """Replaces a text, and the digests of contents that contained it.

    `digests` fills as contents are changed: a second pass over the same values also replaces references to them.
    """

    # Each form of the text with its placeholder, longest first.
    forms: Mapping[bytes, bytes]
    # Contents that are replaced as a whole.
    whole: frozenset[bytes] = frozenset()
    digests: dict[bytes, bytes] = field(factory=dict[bytes, bytes])
    # The number of replaced bytes, for the report.
    replaced: int = 0
    _pattern: re.Pattern[bytes] | None = field(init=False)

    @classmethod
    def of_text(cls, text: str) -> Redaction:
        """Return the redaction of a text. Raises `ValueError` if it is too short."""
        if len(text.encode("utf-8", "surrogatepass")) < LEAST:
            raise ValueError(
                f"cannot forget a text of fewer than {LEAST} bytes: it may occur by chance; give a longer text"
            )
        return cls(forms_of(text))

    def __attrs_post_init__(self) -> None:
        self._pattern = re.compile(b"|".join(map(re.escape, self.forms))) if self.forms else None

    def content(self, content: bytes) -> bytes:
        """Return a blob without the text; the same object if it does not contain it."""
        changed = filler(len(content)) if content in self.whole else self.data(content)
        if changed is not content:
            old = digest_of(content).hex().encode()
            if old not in self.digests:
                self.digests[old] = digest_of(changed).hex().encode()
                self.replaced += len(content)
        return changed

    def data(self, data: bytes) -> bytes:
        """Return bytes without the text; the same object if they do not contain it."""
        changed = data
        while self._pattern is not None and self._pattern.search(changed):
            # Repeated, because the text around a placeholder may form another occurrence.
            changed = self._pattern.sub(lambda found: self.forms[found[0]], changed)
        if self.digests and len(changed) >= 64:
            changed = _DIGEST.sub(lambda found: self.digests.get(found[0], found[0]), changed)
        return data if changed == data else changed

    def text(self, text: str) -> str:
        """Return a string without the text; the same object if it does not contain it."""
        data = text.encode("utf-8", "surrogatepass")
        changed = self.data(data)
        return text if changed is data else changed.decode("utf-8", "surrogatepass")


def filler(length: int) -> bytes:
    """Return the placeholder for contents that are replaced as a whole; a longer one begins with each shorter one."""
    line = WORD + b"\n"
    return (line * (length // len(line) + 1))[:length]


def found_in(data: bytes, forms: Iterable[bytes]) -> bool:
    """Return whether bytes contain any of the forms."""
    return any(form in data for form in forms)
