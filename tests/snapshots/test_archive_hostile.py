"""Hostile archives: each is refused with a `ValueError` or `OSError`, and nothing changes."""

from __future__ import annotations

import gzip
import tarfile
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from tests.models.trees import ODD_NAMES, flatten, random_tree
from weakfs import Session
from weakfs.backends import InMemoryFilesystem
from weakfs.filesystem import Limits
from weakfs.snapshots.archive.tar import from_tar, to_tar

END = bytes(1024)


def member(name: str, kind: bytes = tarfile.REGTYPE, data: bytes = b"", target: str = "", **pax: str) -> bytes:
    """Return one entry of an archive as bytes, without the end mark."""
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.size, info.pax_headers = kind, target, len(data), pax
    head = info.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape")
    return head + data + bytes(-len(data) % 512)


def pax_member(records: dict[str, str], data: bytes = b"") -> bytes:
    """Return the entry of a file with pax records."""
    return member("a", tarfile.REGTYPE, data, "", **records)


def number(value: int, length: int) -> bytes:
    """Return a number as headers store it: in octal digits or, if it is too large for these, in base 256."""
    if 0 <= value < 8 ** (length - 1):
        return b"%0*o\0" % (length - 1, value)
    unsigned: int = value % 256 ** (length - 1)
    return (b"\x80" if value >= 0 else b"\xff") + unsigned.to_bytes(length - 1, "big")


def raw(name: bytes, kind: bytes, size: int, *, mtime: int = 0, mode: int = 0o644) -> bytes:
    """Return a crafted header with any numbers."""
    header = bytearray(512)
    header[: len(name)] = name
    header[100:108] = number(mode, 8)
    header[124:136] = number(size, 12)
    header[136:148] = number(mtime, 12)
    header[148:156] = b" " * 8
    header[156:157] = kind
    header[257:265] = b"ustar  \0"
    header[148:156] = b"%06o\0 " % sum(header)
    return bytes(header)


FILE, DIRECTORY, LINK = tarfile.REGTYPE, tarfile.DIRTYPE, tarfile.SYMTYPE

# The pax records of the GNU sparse format 1.0, which keeps the map of a member's holes in front of its content.
SPARSE = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.realsize": "10"}

REFUSED: dict[str, bytes] = {
    "nothing": b"",
    "text": b"this is no archive\n" * 100,
    "an absolute name": member("/etc/passwd", data=b"x") + END,
    "a name that leads upwards": member("../x") + END,
    "a name that leads upwards from inside": member("a/../../x") + END,
    "a directory that leads upwards": member("a/..", DIRECTORY) + END,
    "a name with NUL": member("a", path="a\0b") + END,
    "a character device": member("a", tarfile.CHRTYPE) + END,
    "a block device": member("a", tarfile.BLKTYPE) + END,
    "a hard link to nothing": member("a", tarfile.LNKTYPE, target="gone") + END,
    "a hard link that leads upwards": member("a", tarfile.LNKTYPE, target="../../etc/passwd") + END,
    "an absolute hard link": member("a", tarfile.LNKTYPE, target="/etc/passwd") + END,
    "a hard link to itself": member("a", tarfile.LNKTYPE, target="a") + END,
    "a hard link to a directory": member("d", DIRECTORY) + member("a", tarfile.LNKTYPE, target="d") + END,
    "a file through a link": member("l", LINK, target="/etc") + member("l/x", data=b"x") + END,
    "a directory through a link": member("l", LINK, target="..") + member("l/d", DIRECTORY) + END,
    "a link in place of a directory with files": member("l/x", data=b"x") + member("l", LINK, target="/") + END,
    "a directory in place of a link": member("l", LINK, target="/") + member("l", DIRECTORY) + END,
    "a file below a file": member("a", data=b"x") + member("a/b", data=b"x") + END,
    "a file in place of the root": member("./", data=b"x") + END,
    "a file without a name": member("", data=b"x") + END,
    "a link to nothing": member("a", LINK) + END,
    "a link to NUL": member("a", LINK, target="x", linkpath="x\0y") + END,
    "a negative size": raw(b"a", FILE, -512) + END * 9,
    "a negative size that goes back to the header": member("a", data=b"x") + raw(b"b", FILE, -1024) + END * 9,
    "a size beyond any file": raw(b"a", FILE, 1 << 70) + END,
    "a size beyond the archive": raw(b"a", FILE, 100_000) + END,
    "a long name beyond any memory": raw(b"a", b"L", 1 << 70) + END,
    "a long name of negative size": raw(b"a", b"L", -512) + END,
    "an extended header beyond any memory": raw(b"a", b"x", 1 << 70) + END,
    "an extended header of negative size": raw(b"a", b"x", -512) + END,
    "thousands of extended headers in a row": (raw(b"a", b"L", 512) + b"n" * 512) * 3000 + raw(b"a", FILE, 0) + END,
    "an endless time": member("a", mtime="inf") + END,
    "a time that is not a number": member("a", mtime="nan") + END,
    "a time with far too many digits": member("a", mtime="9" * 5000) + END,
    "a header without its checksum": raw(b"a", FILE, 0).replace(b"ustar", b"xstar") + END,
    "compressed": gzip.compress(member("a", data=b"x") + END),
    "a sparse size that is not a number": pax_member({"GNU.sparse.size": "x"}) + END,
    "a sparse size that is not a number, later": member("a") + pax_member({"GNU.sparse.realsize": ""}) + END,
    "a sparse map that is not numbers": pax_member({"GNU.sparse.map": "0,x", "GNU.sparse.size": "1"}) + END,
    "a sparse map without numbers": pax_member(SPARSE, b"a" * 512) + END,
    "half a sparse map": pax_member(SPARSE, b"1\n".ljust(512, b"\0")) + END,
    "a long name that leads upwards": member("../" + "n" * 100_000) + END,
    "a long hard link to nothing": member("a", tarfile.LNKTYPE, target="n" * 100_000) + END,
    "an extended header of more than a megabyte": member("a", comment="x" * (1 << 20)) + END,
}


@pytest.fixture
def fs() -> InMemoryFilesystem:
    made = InMemoryFilesystem()
    made.write("/kept", "x")
    return made


@pytest.mark.parametrize("data", REFUSED.values(), ids=REFUSED)
@pytest.mark.parametrize("limits", [Limits(), Limits(max_file_size=None, max_path_depth=None)], ids=["", "no limits"])
def test_a_hostile_archive_is_refused_and_nothing_changes(data: bytes, limits: Limits) -> None:
    session = Session()
    fs = InMemoryFilesystem(session, limits=limits)
    fs.write("/kept", "x")
    before = fs.tree()
    with pytest.raises((ValueError, OSError)) as caught:
        fs.import_bytes(data)
    assert str(caught.value).startswith("cannot ")
    assert len(str(caught.value)) < 500
    assert fs.tree() is before
    assert session.seq == 1


ODD_AND_FINE: dict[str, bytes] = {
    "a link that leads out": member("a", LINK, target="../../etc/passwd") + END,
    "a link to itself": member("a", LINK, target="a") + END,
    "a negative time": raw(b"a", FILE, 0, mtime=-5) + END,
    "a negative mode": raw(b"a", FILE, 0, mode=-1) + END,
    "a time of the year 5000": member("a", mtime="95617584000.5") + END,
    "a time of the year 9999": raw(b"a", FILE, 0, mtime=253402300799) + END,
    "a time before the year 1000": member("a", mtime="-60000000000") + END,
    "the same name twice": member("a", data=b"1") + member("a", data=b"2") + END,
    "different names of one entry": member("a//b", data=b"1") + member("./a/./b", data=b"2") + END,
    "a name with a backslash": member("a\\b", data=b"1") + END,
    "a name in the private use area": member("\uf741", data=b"1") + END,
    "an extended header that says nothing": raw(b"a", b"x", 512)
    + b"99999999 =".ljust(512, b"9")
    + raw(b"a", FILE, 0)
    + END,
    "a directory with a size": raw(b"d/", DIRECTORY, 99) + member("x") + END,
    "garbage after the end": member("a") + END + b"rubbish" * 100,
}


@pytest.mark.parametrize("data", ODD_AND_FINE.values(), ids=ODD_AND_FINE)
def test_imported_trees_can_be_saved_and_loaded(data: bytes, tmp_path: Path) -> None:
    fs = InMemoryFilesystem(Session(session_id="s"))
    try:
        fs.import_bytes(data)
    except (ValueError, OSError):
        return
    fs.stat(fs.list()[0].path).modified_at.isoformat()
    session = Session()
    InMemoryFilesystem(session).import_bytes(data)
    session.save(tmp_path / "session.json")
    loaded = InMemoryFilesystem(Session.load(tmp_path / "session.json"))
    assert loaded.tree().fingerprint == fs.tree().fingerprint
    again = InMemoryFilesystem()
    again.import_bytes(loaded.export_bytes())
    assert flatten(again.tree()) == flatten(fs.tree())


def test_a_link_is_imported_as_a_link_and_never_followed(fs: InMemoryFilesystem) -> None:
    fs.import_bytes(member("l", LINK, target="/etc/passwd") + END)
    assert fs.readlink("/l") == "/etc/passwd"
    with pytest.raises(PermissionError):
        fs.read("/l")


def test_a_hard_link_to_its_own_name_keeps_the_file() -> None:
    # GNU tar writes one for a file with several names that is given to it twice, and unpacks it as here.
    data = member("a", data=b"x") + member("a", tarfile.LNKTYPE, target="a") + END

    assert flatten(from_tar(data, limits=Limits(max_node_count=1, max_total_size=1), at=0))["/a"] == ("f", b"x", 0o644)


def test_a_hard_link_to_a_later_member_is_refused_with_the_cause() -> None:
    data = member("a", tarfile.LNKTYPE, target="b") + member("b", data=b"x") + END

    with pytest.raises(ValueError, match="'a' is a hard link to 'b', and no file of that name comes before it"):
        from_tar(data, limits=Limits(), at=0)


@pytest.mark.parametrize("kind", ["x", "g"])
def test_a_header_with_very_many_digits_is_refused_before_it_is_searched(kind: str) -> None:
    # tarfile searches it in quadratic time: with a megabyte of digits, for more than an hour.
    header = raw(b"a", kind.encode(), 40_000) + b"9" * 40_000 + bytes(-40_000 % 512)

    for data in (header + member("a") + END, member("a") + header + member("b") + END):
        with pytest.raises(ValueError, match="more than 300 digits in a row"):
            from_tar(data, limits=Limits(), at=0)


def test_a_name_of_very_many_digits_is_imported() -> None:
    name = "/".join(["9" * 255] * 3)

    tree = from_tar(member(name) + END, limits=Limits(), at=0)
    assert f"/{name}" in flatten(tree)
    assert to_tar(from_tar(to_tar(tree), limits=Limits(), at=0)) == to_tar(tree)


BOMBS: list[tuple[Callable[[], bytes], Limits, str]] = [
    (lambda: member("a", data=bytes(11)) + END, Limits(max_file_size=10), "the limit for a file is 10"),
    (lambda: raw(b"a", FILE, 1 << 40) + END, Limits(), "the limit for a file is"),
    (lambda: b"".join(member(f"f{n}", data=bytes(10)) for n in range(4)) + END, Limits(max_total_size=39), "39 are"),
    (
        lambda: (
            member("a", data=bytes(1000))
            + b"".join(member(f"l{n}", tarfile.LNKTYPE, target="a") for n in range(99))
            + END
        ),
        Limits(max_total_size=50_000),
        "50000 are",
    ),
    (lambda: b"".join(member(f"f{n}") for n in range(11)) + END, Limits(max_node_count=10), "10 are"),
    (lambda: b"".join(member(f"d{n}", DIRECTORY) for n in range(11)) + END, Limits(max_node_count=10), "10 are"),
    (lambda: member("/".join("abcdefghijk")) + END, Limits(max_node_count=10), "10 are"),
    (lambda: member("d/" * 64 + "f") + END, Limits(), "64 are"),
    (lambda: member("n" * 256) + END, Limits(), "255 are"),
    (lambda: member("/".join(["d"] * 20_000)) + END, Limits(), "64 are"),
]


@pytest.mark.parametrize(("data", "limits", "message"), BOMBS)
def test_an_archive_beyond_the_limits_is_refused(data: Callable[[], bytes], limits: Limits, message: str) -> None:
    with pytest.raises(OSError, match=message):
        from_tar(data(), limits=limits, at=0)


def whole() -> bytes:
    return to_tar(random_tree(Random(2), names=ODD_NAMES, contents=(b"", b"a" * 600, b"b" * 1024), width=8, depth=2))


def test_an_archive_truncated_anywhere_is_refused() -> None:
    data = whole()
    end = len(data.rstrip(b"\0"))
    end += -end % 512
    random = Random(1)
    for cut in (*range(0, end + 1024, 512), *(random.randrange(end + 1024) for _ in range(200))):
        with pytest.raises(ValueError, match="cannot import the archive"):
            from_tar(data[:cut], limits=Limits(), at=0)


def test_an_archive_damaged_anywhere_yields_a_tree_or_is_refused(fs: InMemoryFilesystem) -> None:
    data = whole()
    random = Random(3)
    before = fs.tree()
    refused = 0
    for _ in range(1500):
        broken = bytearray(data)
        for _ in range(random.choice((1, 1, 2, 5, 30))):
            at = random.randrange(len(broken))
            broken[at : at + random.choice((1, 1, 1, 8, 512))] = random.choice(
                (bytes([random.randrange(256)]), random.randbytes(8), b"", b"9", b"\x80", bytes(512), broken[:512])
            )
        try:
            from_tar(bytes(broken), limits=Limits(), at=0)
        except (ValueError, OSError):
            refused += 1
    assert 100 < refused < 1500
    assert fs.tree() is before


def test_damaged_headers_with_a_correct_checksum_yield_a_tree_or_are_refused() -> None:
    data = whole()
    starts = [at for at in range(0, len(data), 512) if data[at + 257 : at + 262] == b"ustar"]
    random = Random(4)
    refused = 0
    for _ in range(1500):
        broken = bytearray(data)
        at = random.choice(starts)
        field, length = random.choice(((0, 100), (100, 8), (124, 12), (136, 12), (156, 1), (157, 100), (345, 155)))
        value = random.choice(
            (random.randbytes(length), b"\xff" * length, b"\x80" + bytes(length), b"7" * length, b"LKxgSD5")
        )
        broken[at + field : at + field + length] = value[:length].ljust(length, b"\0")
        broken[at + 148 : at + 156] = b" " * 8
        broken[at + 148 : at + 156] = b"%06o\0 " % sum(broken[at : at + 512])
        try:
            from_tar(bytes(broken), limits=Limits(max_file_size=None), at=0)
        except (ValueError, OSError) as error:
            assert str(error).startswith("cannot ")  # noqa: PT017 - some are fine
            refused += 1
    assert 100 < refused < 1500


def hole(name: str, size: int) -> bytes:
    """Return a sparse file that consists of one hole."""
    told = {
        "GNU.sparse.major": "0",
        "GNU.sparse.minor": "1",
        "GNU.sparse.size": str(size),
        "GNU.sparse.map": f"{size},0",
    }
    return member(name, FILE, b"", "", **told)


def test_a_sparse_file_is_imported_with_its_hole() -> None:
    flat = flatten(from_tar(hole("a", 5000) + END, limits=Limits(), at=0))
    assert flat["/a"] == ("f", bytes(5000), 0o644)


def test_holes_do_not_make_an_archive_unpack_to_many_times_its_size() -> None:
    data = b"".join(hole(f"f{number}", 10_000_000) for number in range(20)) + END
    with pytest.raises((OSError, ValueError)):
        from_tar(data, limits=Limits(), at=0)


def test_too_many_implied_directories_are_refused() -> None:
    names = [f"{number}/" + "a/" * 60 + "f" for number in range(1500)]
    archive = b"".join(member(name) for name in names) + END
    assert len(archive) < 4 << 20

    with pytest.raises(ValueError, match="would take more than 20 times its size; include directories in the archive"):
        from_tar(archive, limits=Limits(), at=0)


def test_one_name_with_very_many_directories_is_refused_before_they_are_created() -> None:
    archive = member("a/" * 400_000 + "f") + END

    with pytest.raises(ValueError, match="include directories in the archive") as caught:
        from_tar(archive, limits=Limits(max_path_depth=None), at=0)
    assert "a/a..." in str(caught.value)
    assert len(str(caught.value)) < 500


def test_files_without_members_for_their_directories_are_unpacked() -> None:
    names = [f"src/main/java/com/example/part{number}/impl/File{number}.java" for number in range(300)]
    tree = from_tar(b"".join(member(name, data=b"x") for name in names) + END, limits=Limits(), at=0)

    assert tree.file_count == 300
