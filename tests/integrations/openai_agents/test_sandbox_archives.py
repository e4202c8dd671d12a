"""Workspaces as archives: exact there and back, and hostile ones change nothing."""

from __future__ import annotations

import asyncio
import bz2
import gzip
import io
import lzma
import tarfile
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from weakfs import HostFilesystem
from weakfs.processes import Bubblewrap
from weakfs.tools.handlers import ShellOptions

if TYPE_CHECKING:
    from agents.sandbox.session import SandboxSession

pytestmark = pytest.mark.usefixtures("never_hung")


def archive(*members: tuple[str, Mapping[str, object]]) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as tar:
        for name, attributes in members:
            header = tarfile.TarInfo(name)
            for key, value in attributes.items():
                setattr(header, key, value)
            tar.addfile(header, io.BytesIO(bytes(header.size)))
    return stream.getvalue()


def in_sandbox(work: Callable[[SandboxSession, Any], Awaitable[None]], **options: Any) -> None:
    from weakfs.integrations.openai_agents import WeakfsSandboxClient

    async def run() -> None:
        async with await WeakfsSandboxClient(**options).create() as sandbox:
            inner: Any = sandbox._inner
            await sandbox.write(Path("kept"), io.BytesIO(b"kept"))
            await work(sandbox, inner.files)

    asyncio.run(run())


HOSTILE: Mapping[str, tuple[tuple[str, Mapping[str, object]], ...]] = {
    "parent": (("../x", {"size": 1}),),
    "parent below": (("a/../../x", {"size": 1}),),
    "absolute": (("/etc/x", {"size": 1}),),
    "device": (("d", {"type": tarfile.CHRTYPE, "devmajor": 1, "devminor": 3}),),
    "fifo": (("f", {"type": tarfile.FIFOTYPE}),),
    "absolute link": (("l", {"type": tarfile.SYMTYPE, "linkname": "/etc/passwd"}),),
    "link with a name like the root": (("l", {"type": tarfile.SYMTYPE, "linkname": "/workspace2/x"}),),
    "link to above the root": (("l", {"type": tarfile.SYMTYPE, "linkname": "/workspace/../etc"}),),
    "link out": (("a/l", {"type": tarfile.SYMTYPE, "linkname": "../../x"}),),
    "through a link": (("l", {"type": tarfile.SYMTYPE, "linkname": "."}), ("l/x", {"size": 1})),
    "link at the root": ((".", {"type": tarfile.SYMTYPE, "linkname": "x"}),),
    "a file that is too large": (("first", {"size": 1}), ("large", {"size": 33 << 20})),
    "a name that is too long": (("first", {"size": 1}), ("n" * 300, {"size": 1})),
    "too deep": (("first", {"size": 1}), ("a/" * 90 + "x", {"size": 1})),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_archive_changes_nothing(name: str) -> None:
    async def work(sandbox: SandboxSession, files: Any) -> None:
        from agents.sandbox.errors import WorkspaceArchiveWriteError

        files.mkdir("/workspace/directory")
        files.symlink("directory", "/workspace/there")
        before = files.tree().fingerprint
        with pytest.raises(WorkspaceArchiveWriteError):
            await sandbox.hydrate_workspace(io.BytesIO(archive(*HOSTILE[name])))
        assert files.tree().fingerprint == before

    in_sandbox(work)


@pytest.mark.parametrize(
    "data",
    [
        gzip.compress(archive(("a", {"size": 3 << 20}))),
        bz2.compress(archive(("a", {"size": 3 << 20}))),
        lzma.compress(archive(("a", {"size": 3 << 20}))),
        gzip.compress(archive(("a", {"size": 100})))[:-9],
        bz2.compress(archive(("a", {"size": 100})))[:-9],
        lzma.compress(archive(("a", {"size": 100})))[:-9],
        gzip.compress(archive(("../x", {"size": 1}))),
        archive(*((f"{number}", {}) for number in range(30))),
        b"no archive",
        archive(("a", {"size": 100}))[:530],
    ],
    ids=[
        "gz expands",
        "bz2 expands",
        "xz expands",
        "gz cut",
        "bz2 cut",
        "xz cut",
        "gz out",
        "many",
        "no archive",
        "cut",
    ],
)
def test_an_archive_that_is_too_large_or_broken_changes_nothing(data: bytes) -> None:
    async def work(sandbox: SandboxSession, files: Any) -> None:
        from agents.sandbox.errors import WorkspaceArchiveWriteError

        before = files.tree().fingerprint
        with pytest.raises(WorkspaceArchiveWriteError):
            await sandbox.hydrate_workspace(io.BytesIO(data))
        assert files.tree().fingerprint == before

    in_sandbox(work, shell=ShellOptions(max_new_entries=20, max_changed_bytes=2 << 20))


@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, lzma.compress], ids=["gz", "bz2", "xz"])
def test_a_compressed_archive_is_unpacked(compress: Callable[[bytes], bytes]) -> None:
    async def work(sandbox: SandboxSession, files: Any) -> None:
        packed = archive(("a/b", {"size": 100_000}))
        # Compressed in two streams, as parallel compressors do.
        await sandbox.hydrate_workspace(io.BytesIO(compress(packed[:700]) + compress(packed[700:])))
        assert files.read_bytes("/workspace/a/b").content == bytes(100_000)
        assert files.read("/workspace/kept").content == "kept"

    in_sandbox(work)


def test_an_archive_of_several_compressed_streams_with_padding_is_unpacked() -> None:
    async def work(sandbox: SandboxSession, files: Any) -> None:
        many = (lzma.compress(b"") + bytes(12)) * 2000
        await sandbox.hydrate_workspace(io.BytesIO(many + lzma.compress(archive(("a", {"size": 3}))) + bytes(9000)))
        assert files.read_bytes("/workspace/a").content == bytes(3)

    in_sandbox(work)


def test_a_file_name_may_begin_like_a_compressed_stream() -> None:
    async def work(sandbox: SandboxSession, files: Any) -> None:
        await sandbox.hydrate_workspace(io.BytesIO(archive(("BZh91AY&SY", {"size": 3}))))
        assert files.exists("/workspace/BZh91AY&SY")

    in_sandbox(work)


def test_a_workspace_is_the_same_in_another_sandbox() -> None:
    async def work(sandbox: SandboxSession, files: Any) -> None:
        files.write_bytes("/workspace/a/b.bin", bytes(range(256)))
        files.chmod("/workspace/a/b.bin", 0o640)
        files.chmod("/workspace/a", 0o711)
        files.mkdir("/workspace/empty")
        files.write("/workspace/ü" + "n" * 150, "")
        files.symlink("b.bin", "/workspace/a/link")
        files.symlink("/workspace/a", "/workspace/absolute")
        files.symlink("nowhere", "/workspace/broken")
        from weakfs.integrations.openai_agents import WeakfsSandboxClient

        async with await WeakfsSandboxClient().create() as again:
            with await sandbox.persist_workspace() as persisted:
                await again.hydrate_workspace(persisted)
            inner: Any = again._inner
            assert inner.files.tree().fingerprint == files.tree().fingerprint

    in_sandbox(work)


def test_set_user_id_bits_are_not_unpacked() -> None:
    async def work(sandbox: SandboxSession, files: Any) -> None:
        await sandbox.hydrate_workspace(io.BytesIO(archive(("x", {"mode": 0o6755}))))
        assert files.stat("/workspace/x").mode == 0o755

    in_sandbox(work)


async def test_a_snapshot_with_links_made_by_commands_is_restored_exactly_or_not_at_all(tmp_path: Path) -> None:
    from agents.sandbox.errors import SandboxError
    from agents.sandbox.snapshot import LocalSnapshotSpec

    from weakfs.integrations.openai_agents import WeakfsSandboxClient

    client = WeakfsSandboxClient()
    sandbox = await client.create(snapshot=LocalSnapshotSpec(base_path=tmp_path))
    await sandbox.start()
    inner: Any = sandbox._inner
    inner.files.symlink("/usr/bin/python3", "/workspace/python")
    await sandbox.stop()
    kept = inner.files.tree().fingerprint
    await sandbox.write(Path("later"), io.BytesIO(b"1"))
    again = await client.resume(sandbox.state)
    await again.start()
    restored: Any = again._inner
    assert restored.files.tree().fingerprint == kept

    await again.write(Path("later"), io.BytesIO(b"2"))
    left = restored.files.tree().fingerprint
    (saved,) = tmp_path.iterdir()
    saved.write_bytes(b"broken")
    with pytest.raises(SandboxError):
        await (await client.resume(sandbox.state)).start()
    assert restored.files.tree().fingerprint == left


def test_a_stream_is_read_only_up_to_the_maximum_file_size() -> None:
    class Endless(io.RawIOBase):
        def readable(self) -> bool:
            return True

        def read(self, size: int = -1, /) -> bytes:
            assert size > 0
            return bytes(size)

    async def work(sandbox: SandboxSession, files: Any) -> None:
        from agents.sandbox.errors import WorkspaceArchiveWriteError

        before = files.tree().fingerprint
        for writing in (sandbox.write(Path("x"), Endless()), sandbox.hydrate_workspace(Endless())):
            with pytest.raises(WorkspaceArchiveWriteError, match="more than"):
                await writing
        assert files.tree().fingerprint == before

    in_sandbox(work, shell=ShellOptions(max_changed_bytes=2 << 20))


@pytest.mark.parametrize("name", ["mkdir", "ls", "rm", "read"])
def test_a_link_that_leads_out_is_a_path_error(name: str) -> None:
    async def work(sandbox: SandboxSession, files: Any) -> None:
        from agents.sandbox.errors import InvalidManifestPathError

        files.symlink("/etc", "/workspace/out")
        with pytest.raises(InvalidManifestPathError, match="must not escape root"):
            await getattr(sandbox, name)(Path("out/below"))

    in_sandbox(work)


@pytest.mark.skipif(Bubblewrap().problem() is not None, reason="there is no sandbox")
async def test_concurrent_commands_wait_for_each_other(tmp_path: Path) -> None:
    from agents.sandbox import Manifest

    from weakfs.integrations.openai_agents import WeakfsSandboxClient

    client = WeakfsSandboxClient(files=lambda session: HostFilesystem(tmp_path, session=session))
    async with await client.create(manifest=Manifest(root=str(tmp_path))) as sandbox:
        commands = (sandbox.exec(f"echo {name} > {name}") for name in "abc")
        writes = (sandbox.write(Path(name), io.BytesIO(b"1")) for name in "def")
        await asyncio.gather(*commands, *writes)
        assert sorted(path.name for path in tmp_path.iterdir()) == list("abcdef")
