"""The names that storage accepts: keys of a `Storage`, and the streams of an `EventStore`.

Every engine checks them in the same way, so that anything that one engine stores can be stored by all others. Object
stores are the strictest: their keys have at most 1,024 bytes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from weakfs.messages import a_type

KEY_BYTES = 900
STREAM_BYTES = 255

# Sorts after every key: no key contains it.
LAST = "\U0010ffff"

# Object stores list keys in XML, which cannot hold these.
_INVALID = re.compile("[\x00-\x1f\x7f\ufffe\uffff\U0010ffff]")
# The characters that are escaped in a stream's name within a key: the separator, the escape character, a leading dot.
_ESCAPED = re.compile(r"^\.|[/%]")
_DIGEST = re.compile("[0-9a-f]{1,128}")
_ESCAPE = re.compile("%([0-9A-F]{2})")


def check_key(key: str) -> str:
    """Return a key if it is valid. Raises `ValueError` otherwise."""
    if not 0 < _encoded_size(key, "key") <= KEY_BYTES:
        raise ValueError(f"invalid key {key[:80]!r}: a key has 1 to {KEY_BYTES} bytes of UTF-8; shorten it")
    if _INVALID.search(key):
        raise ValueError(f"invalid key {key!r}: it has control characters or noncharacters; leave them out")
    if any(segment in ("", ".", "..") for segment in key.split("/")):
        raise ValueError(f"invalid key {key!r}: a segment is empty, '.' or '..'; write it in the form 'a/b/c'")
    return key


def check_item(key: str, value: bytes) -> str:
    """Return a key if it is valid, and its value is bytes. Raises `ValueError` or `TypeError` otherwise."""
    if not isinstance(value, bytes | bytearray | memoryview):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"cannot store the value of {key!r}: it is {a_type(value)}; pass bytes")
    return check_key(key)


def check_frames(frames: Sequence[bytes]) -> None:
    """Raise `TypeError` if one of the frames is not bytes."""
    for frame in frames:
        if not isinstance(frame, bytes | bytearray | memoryview):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"cannot append a frame: it is {a_type(frame)}; pass a list of bytes")


def check_stream(name: str) -> str:
    """Return the name of a stream if it is valid. Raises `ValueError` otherwise."""
    if not 0 < _encoded_size(name, "stream") <= STREAM_BYTES:
        raise ValueError(f"invalid stream {name[:80]!r}: a name has 1 to {STREAM_BYTES} bytes of UTF-8; choose another")
    if _INVALID.search(name):
        raise ValueError(f"invalid stream {name!r}: it has control characters or noncharacters; choose another name")
    return name


def check_digest(digest: str) -> str:
    """Return a digest if it is valid. Raises `ValueError` otherwise."""
    if not _DIGEST.fullmatch(digest):
        raise ValueError(f"invalid digest {digest[:80]!r}: it is not 1 to 128 lower-case hexadecimal digits")
    return digest


def escape_stream(name: str) -> str:
    """Return the name of a stream, or the beginning of one, as a segment of a key."""
    return _ESCAPED.sub(lambda found: f"%{ord(found[0]):02X}", name)


def unescape_stream(segment: str) -> str:
    """Return the name of the stream that a `segment` of a key encodes."""
    return _ESCAPE.sub(lambda found: chr(int(found[1], 16)), segment)


def _encoded_size(text: str, kind: str) -> int:
    try:
        return len(text.encode())
    except UnicodeEncodeError as error:
        raise ValueError(f"invalid {kind} {text!r}: it is not valid Unicode; remove the lone surrogates") from error
