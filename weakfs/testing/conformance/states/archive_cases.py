"""The whole tree as one tar archive: export, import, and refusal of hostile archives."""

from __future__ import annotations

import io
import tarfile
from contextlib import suppress
from datetime import timedelta

import pytest

from weakfs.filesystem import Filesystem
from weakfs.testing.conformance.harness import FilesystemCases, refused
from weakfs.testing.conformance.states.snapshot_cases import workspace


def member(name: str, kind: bytes = tarfile.REGTYPE, target: str = "", **headers: str) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.pax_headers = headers
    info.type = kind
    info.linkname = target
    return info


def archive(*members: tarfile.TarInfo) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for info in members:
            content = b"text" if info.isreg() else b""
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


HOSTILE = {
    "climbing": archive(member("../out.txt")),
    "climbing_inside": archive(member("ok.txt"), member("d/../../out.txt")),
    "absolute": archive(member("/etc/out.txt")),
    "character_device": archive(member("ok.txt"), member("device", tarfile.CHRTYPE)),
    "block_device": archive(member("device", tarfile.BLKTYPE)),
    "through_a_link": archive(member("link", tarfile.SYMTYPE, "/tmp"), member("link/out.txt")),
    "through_a_link_inside": archive(
        member("d", tarfile.DIRTYPE), member("link", tarfile.SYMTYPE, "d"), member("link/out.txt")
    ),
    "link_to_nothing": archive(member("link", tarfile.SYMTYPE, "")),
    "hard_link_to_nothing": archive(member("b.txt", tarfile.LNKTYPE, "a.txt")),
    "hard_link_outside": archive(member("b.txt", tarfile.LNKTYPE, "../../a.txt")),
    "file_over_a_directory": archive(member("a/b"), member("a")),
    "file_over_the_root": archive(member("./")),
    "name_in_a_header": archive(member("a.txt", path="../../out.txt")),
    "time_without_end": archive(member("a.txt", mtime="inf")),
    "time_that_is_no_number": archive(member("a.txt", mtime="nan")),
    "below_a_file": archive(member("a"), member("a/b")),
}


class ArchiveCases(FilesystemCases):
    def test_an_import_gives_the_tree_that_was_exported(self, fs: Filesystem) -> None:
        workspace(fs)
        other = self.make_fs()
        other.import_bytes(fs.export_bytes())
        assert other.tree().fingerprint == fs.tree().fingerprint
        assert other.read_bytes("/src/logo.png").content == b"\x89PNG\r\n\0\xff"
        assert other.readlink("/link") == "src/app.py"
        assert other.is_directory("/empty/inner")

    def test_an_import_replaces_what_was_there(self, fs: Filesystem) -> None:
        workspace(fs)
        other = self.make_fs()
        other.write("/gone.txt", "gone")
        other.write("/src", "a file where a directory comes")
        other.import_bytes(fs.export_bytes())
        assert other.tree().fingerprint == fs.tree().fingerprint

    def test_an_empty_filesystem_is_exported_and_imported(self, fs: Filesystem) -> None:
        other = self.make_fs()
        other.write("/gone.txt", "gone")
        other.import_bytes(fs.export_bytes())
        assert other.list("/") == ()

    def test_importing_its_own_export_changes_nothing(self, fs: Filesystem) -> None:
        workspace(fs)
        before = fs.tree().fingerprint
        fs.import_bytes(fs.export_bytes())
        assert fs.tree().fingerprint == before

    def test_the_same_tree_gives_the_same_bytes(self, fs: Filesystem) -> None:
        workspace(fs)
        assert fs.export_bytes() == fs.export_bytes()

    def test_an_export_changes_nothing(self, fs: Filesystem) -> None:
        workspace(fs)
        before = fs.tree().fingerprint
        fs.export_bytes()
        assert fs.tree().fingerprint == before

    def test_an_export_is_a_tar_that_others_can_read(self, fs: Filesystem) -> None:
        workspace(fs)
        with tarfile.open(fileobj=io.BytesIO(fs.export_bytes())) as tar:
            infos = {info.name.removeprefix("./").strip("/"): info for info in tar.getmembers()}
            content = tar.extractfile(infos["src/app.py"])
            assert content is not None
            assert content.read() == b"print('hello')\n"
        assert infos["src/lib/util.py"].mode & 0o777 == 0o755
        assert infos["empty/inner"].isdir()
        assert (infos["link"].issym(), infos["link"].linkname) == (True, "src/app.py")
        assert not [name for name in infos if name.startswith("/") or ".." in name.split("/")]

    def test_a_tar_that_others_made_is_imported(self, fs: Filesystem) -> None:
        fs.import_bytes(
            archive(
                member("./d/a.txt"),
                member("b.txt"),
                member("empty/", tarfile.DIRTYPE),
                member("link", tarfile.SYMTYPE, "../../outside"),
            )
        )
        assert [entry.path for entry in fs.list("/")] == ["/b.txt", "/d", "/empty", "/link"]
        assert fs.read("/d/a.txt").content == "text"
        assert fs.readlink("/link") == "../../outside"

    def test_an_import_is_undone_by_a_restore(self, fs: Filesystem) -> None:
        workspace(fs)
        before = fs.tree().fingerprint
        snapshot = fs.snapshot()
        fs.import_bytes(archive(member("only.txt")))
        assert [entry.path for entry in fs.list("/")] == ["/only.txt"]
        fs.restore(snapshot)
        assert fs.tree().fingerprint == before

    @pytest.mark.parametrize("name", HOSTILE)
    def test_a_hostile_archive_is_refused_whole(self, fs: Filesystem, name: str) -> None:
        fs.write("/kept.txt", "kept")
        with refused(fs, (OSError, ValueError)):
            fs.import_bytes(HOSTILE[name])

    @pytest.mark.parametrize(
        "data", [b"", b"not a tar", b"\0" * 100, b"\xff" * 2_000], ids=["empty", "text", "nul", "noise"]
    )
    def test_bytes_that_are_not_an_archive_are_refused(self, fs: Filesystem, data: bytes) -> None:
        fs.write("/kept.txt", "kept")
        with refused(fs, ValueError):
            fs.import_bytes(data)

    @pytest.mark.parametrize("time", ["1e18", "999999999999999999", "-999999999999999999", "253402300800"])
    def test_a_time_out_of_range_does_no_harm(self, fs: Filesystem, time: str) -> None:
        with suppress(ValueError):
            fs.import_bytes(archive(member("a.txt", mtime=time)))
        for entry in fs.walk():
            assert fs.stat(entry.path).modified_at.utcoffset() == timedelta(0)
        fs.export_bytes()

    @pytest.mark.parametrize("end", [100, 512, 700, 1_024, 1_300])
    def test_a_truncated_archive_is_refused(self, fs: Filesystem, end: int) -> None:
        # Two members of two blocks of 512 bytes each, truncated inside and between them.
        data = archive(member("a.txt"), member("b.txt"))
        fs.write("/kept.txt", "kept")
        with refused(fs, ValueError):
            fs.import_bytes(data[:end])
