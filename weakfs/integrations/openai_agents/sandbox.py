"""A sandbox of the OpenAI Agents SDK that uses the files of a session."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Callable
from contextlib import nullcontext, suppress
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TypeVar, cast

from agents.sandbox.errors import (
    ExecNonZeroError,
    ExecTimeoutError,
    ExecTransportError,
    InvalidManifestPathError,
    WorkspaceArchiveReadError,
    WorkspaceArchiveWriteError,
    WorkspaceReadNotFoundError,
)
from agents.sandbox.files import FileEntry
from agents.sandbox.session import SandboxSessionState
from agents.sandbox.session.workspace_payloads import coerce_write_payload
from agents.sandbox.types import ExecResult, ExposedPortEndpoint, User
from attrs import evolve

from weakfs import HostFilesystem, Session
from weakfs.filesystem import Filesystem
from weakfs.integrations.command_files import TIMEOUTS, mounted_files
from weakfs.integrations.openai_agents.archives import check_archive, decompressed, overlaid, read_all, without_set_id
from weakfs.integrations.openai_agents.terminals import Terminals, TerminalSession, shell_line, terminal_tools
from weakfs.integrations.openai_agents.workspace import (
    READING,
    TOOLS,
    Exchange,
    Executed,
    content_of,
    entries_of,
    target_of,
)
from weakfs.reducers.apply import segments_of
from weakfs.reducers.tree.node import find, remove
from weakfs.snapshots import from_tar, to_tar
from weakfs.tools import Capability, Policy, ToolResult, Toolset
from weakfs.tools.handlers import ProcessOptions, ShellOptions

T = TypeVar("T")

FINGERPRINT_VERSION = "weakfs_archive_v1"


class WeakfsSandboxSession(TerminalSession):
    """A sandbox whose files are those of a weakfs session, below the root of the manifest. The client creates it.

    Every change and every read is a recorded call. A command's changes are kept if it ends, whatever its exit code,
    and undone if it times out or cannot run. Commands run in the sandbox of the tool `shell`, as one user, see only
    the workspace and have no network. With `processes` they may keep running, with or without a terminal; their
    changes are then not part of a call.
    """

    def __init__(
        self,
        state: SandboxSessionState,
        session: Session,
        files: Filesystem,
        *,
        shell: ShellOptions,
        capability: Capability | None = None,
        policy: Policy | None = None,
        processes: ProcessOptions | None = None,
        caller: str | None = None,
        on_shutdown: Callable[[], object] = lambda: None,
    ) -> None:
        self.state = state
        self._given = files
        self._session = session
        self._shell = shell
        self._caller = caller
        self._on_shutdown = on_shutdown
        self._is_running = True
        # Whether a path may be forbidden for a reason other than leading out of the workspace.
        self._is_bounded = capability is not None or policy is not None
        self._turn = asyncio.Lock()
        mounted = mounted_files(files, state.manifest.root)
        tools = TOOLS if processes is None else (*TOOLS, *terminal_tools(processes))
        self._toolset = Toolset(session, mounted, tools=tools, capability=capability, policy=policy)
        self._processes = processes
        self._terminals = None if processes is None else Terminals(self._toolset, processes, caller)

    def __repr__(self) -> str:
        return f"<WeakfsSandboxSession of {self._session!r} at {self.state.manifest.root}>"

    @property
    def session(self) -> Session:
        """The session that records the calls."""
        return self._session

    @property
    def files(self) -> Filesystem:
        """The files, with the paths that the agent uses."""
        return self._toolset.filesystem

    # Commands

    def _prepare_exec_command(
        self, *command: str | Path, shell: bool | list[str], user: str | User | None
    ) -> list[str]:
        self._refuse_user(user)
        return super()._prepare_exec_command(*command, shell=["sh", "-c"] if shell is True else shell, user=None)

    async def _exec_internal(self, *command: str | Path, timeout: float | None = None) -> ExecResult:
        environment = await self.state.manifest.environment.resolve()
        exchange = Exchange(evolve(self._shell, environment={**self._shell.environment, **environment}))
        arguments = {"command": shell_line(command), "timeout": timeout}
        async with self._turn:
            if self._terminals is not None and self._terminals.is_running:
                limit = self._shell.max_timeout if timeout is None else min(timeout, self._shell.max_timeout)
                return await self._exec_concurrently(command, environment, limit)
            done = await self._toolset.acall("execute", arguments, caller=self._caller, adapter=exchange)
        executed = cast("Executed | None", exchange.result)
        if (executed is not None and executed.timed_out) or done.error_code in TIMEOUTS:
            raise ExecTimeoutError(command=command, timeout_s=timeout, context={"message": done.summary_text})
        if not done.success or executed is None or executed.exit_code is None:
            raise ExecTransportError(
                command=command, message=done.message, context={"error_code": done.error_code}, retryable=False
            )
        return ExecResult(stdout=executed.stdout, stderr=executed.stderr, exit_code=executed.exit_code)

    async def _exec_checked_nonzero(self, *command: str | Path) -> ExecResult:
        # The SDK sets the permission bits of each manifest entry with such a command.
        if len(command) != 3 or command[0] != "chmod":
            return await super()._exec_checked_nonzero(*command)
        mode, place = int(str(command[1]), 8), self._place(command[2], for_write=True)
        await self._change("change_mode", place, lambda files: files.chmod(place, mode), path=Path(command[2]))
        return ExecResult(stdout=b"", stderr=b"", exit_code=0)

    async def _resolve_exposed_port(self, port: int) -> ExposedPortEndpoint:
        # A sandboxed command has its own network, which cannot be reached from outside.
        if not isinstance(self._given, HostFilesystem) or self._processes is None or self._processes.sandbox != "off":
            return await super()._resolve_exposed_port(port)
        return ExposedPortEndpoint(host="127.0.0.1", port=port, tls=False)

    # Files

    async def read(self, path: Path, *, user: str | User | None = None) -> io.IOBase:
        """Return the content of a file."""
        return io.BytesIO(await self._read(path, user=user))

    async def _read_bounded(self, path: Path, *, max_bytes: int) -> bytes:
        return await self._read(path, limit=max_bytes)

    async def _read(self, path: Path, *, limit: int | None = None, user: str | User | None = None) -> bytes:
        self._refuse_user(user)
        place = self._place(path)
        done, content = await self._use("read_file", place, partial(content_of, place, limit))
        self._check_within(done, path)
        if done.error_code == "not_found":
            raise WorkspaceReadNotFoundError(path=path, context={"message": done.message})
        if not done.success:
            raise WorkspaceArchiveReadError(path=path, context={"message": done.message})
        return cast(bytes, content)

    async def write(self, path: Path, data: io.IOBase, *, user: str | User | None = None) -> None:
        """Write a whole file; missing parent directories are created."""
        self._refuse_user(user)
        place, most = self._place(path, for_write=True), self._given.limits.max_file_size
        content = await asyncio.to_thread(read_all, coerce_write_payload(path=path, data=data).stream, most)
        if content is None:
            raise WorkspaceArchiveWriteError(
                path=path, message=f"cannot write more than {most} bytes to {place!r}; raise max_file_size"
            )
        await self._change(
            "write_file", place, lambda files: files.write_bytes(place, content), path=path, size=len(content)
        )

    async def ls(self, path: Path | str, *, user: str | User | None = None) -> list[FileEntry]:
        """List a directory."""
        self._refuse_user(user)
        place = self._place(path)
        done, entries = await self._use("list_directory", place, partial(entries_of, place))
        self._check_within(done, path)
        if not done.success:
            raise _non_zero(done.message, "ls", "-la", "--", place)
        return cast("list[FileEntry]", entries)

    async def mkdir(self, path: Path | str, *, parents: bool = False, user: str | User | None = None) -> None:
        """Create a directory; with `parents` it may already exist."""
        self._refuse_user(user)
        place = self._place(path, for_write=True)
        await self._change(
            "make_directory",
            place,
            lambda files: files.mkdir(place, parents=parents, exist_ok=parents),
            path=Path(path),
        )

    async def rm(self, path: Path | str, *, recursive: bool = False, user: str | User | None = None) -> None:
        """Remove a file or link or, with `recursive`, a directory; then a missing entry is not an error."""
        self._refuse_user(user)
        place = self._place(path, for_write=True)
        done, _ = await self._use("remove", place, lambda files: files.delete(place, recursive=recursive))
        self._check_within(done, path)
        if done.error_code == "not_found":
            if not recursive:
                raise _non_zero(done.message, "rm", "--", place)
        elif not done.success:
            raise WorkspaceArchiveWriteError(path=Path(path), message=done.message)

    async def mv(self, source: Path | str, destination: Path | str, *, user: str | User | None = None) -> None:
        """Rename a file or link; an existing destination is replaced unless it is a directory."""
        self._refuse_user(user)
        old, new = self._place(source, for_write=True), self._place(destination, for_write=True)

        def work(files: Filesystem) -> None:
            if files.stat(old).is_directory:
                raise IsADirectoryError(f"cannot move {old!r}: it is a directory; move its files")
            if files.is_directory(new):
                raise IsADirectoryError(f"cannot move {old!r} to {new!r}: that is a directory; name a file")
            if old != new:
                files.move(old, new)

        done, _ = await self._use("move", old, work, destination=new)
        self._check_within(done, source)
        if not done.success:
            raise _non_zero(done.message, "mv", "-f", "--", old, new)

    async def same_file(
        self,
        left: Path | str,
        right: Path | str,
        *,
        follow_symlinks: bool = True,
        user: str | User | None = None,
    ) -> bool:
        """Return whether two paths name the same file."""
        self._refuse_user(user)
        one, other = self._place(left), self._place(right)

        def work(files: Filesystem) -> bool:
            found = []
            for path in (one, other):
                with suppress(FileNotFoundError, NotADirectoryError):
                    entry = files.stat(path)
                    if entry.is_symlink and follow_symlinks:
                        entry = files.stat(target_of(path, entry.target or ""))
                    if not entry.is_symlink:
                        found.append(entry.path)
            return len(found) == 2 and found[0] == found[1]

        done, same = await self._use("read_file", one, work, destination=other)
        if not done.success:
            raise _non_zero(done.message, "test", one, "-ef", other)
        return cast(bool, same)

    # The workspace as a whole

    async def running(self) -> bool:
        """Return whether the sandbox has not been shut down."""
        return self._is_running

    async def persist_workspace(self) -> io.IOBase:
        """Return the workspace as an uncompressed tar archive, without entries that the manifest declares ephemeral."""
        return io.BytesIO(await self._archive())

    async def hydrate_workspace(self, data: io.IOBase) -> None:
        """Write the files of a tar archive into the workspace, all of them or none.

        The archive may be compressed with gzip, bzip2 or xz. Raises `WorkspaceArchiveWriteError` if it has links that
        lead out of the workspace, or more entries or bytes than a command may leave behind.
        """
        await self._unpack(data, is_snapshot=False)

    async def _restore_snapshot_into_workspace_on_resume(self) -> None:
        # Done in one call, so that a snapshot that cannot be restored leaves the files unchanged.
        with await self.state.snapshot.restore(dependencies=self.dependencies) as data:
            await self._unpack(data, is_snapshot=True)

    async def _unpack(self, data: io.IOBase, *, is_snapshot: bool) -> None:
        """Write the files of an archive over the existing ones; the files of a snapshot replace them all.

        Links in a snapshot were made by commands, and are restored without a check.
        """
        root = Path(self.state.manifest.root)
        limits = self._archive_limits
        most = None if is_snapshot else self._shell.max_changed_bytes
        if limits is not None and limits.max_input_bytes is not None:
            most = limits.max_input_bytes
        archive = await asyncio.to_thread(read_all, data, most)
        if archive is None:
            raise _too_large(root, most, "max_input_bytes")
        if not is_snapshot:
            if limits is not None and limits.max_extracted_bytes is not None:
                most = limits.max_extracted_bytes
            try:
                unpacked = await asyncio.to_thread(decompressed, archive, most)
            except ValueError as error:
                raise WorkspaceArchiveWriteError(path=root, message=str(error), cause=error) from error
            if unpacked is None:
                raise _too_large(root, most, "max_extracted_bytes")
            archive = unpacked

        def work(files: Filesystem) -> None:
            at = self._session.now()
            found = from_tar(archive, limits=self._given.limits, at=at)
            if not is_snapshot:
                check_archive(found, root.as_posix(), self._shell.max_new_entries)
                found = overlaid(from_tar(files.export_bytes(), limits=self._given.limits, at=at), found)
            files.import_bytes(to_tar(without_set_id(found)))

        await self._change("import_files", str(root), work, path=root, size=len(archive))

    async def _archive(self) -> bytes:
        root = Path(self.state.manifest.root)
        skipped = [path.as_posix() for path in self._persist_workspace_skip_relpaths()]

        def work(files: Filesystem) -> bytes:
            archive = files.export_bytes()
            if not skipped:
                return archive
            tree = from_tar(archive, limits=self._given.limits, at=self._session.now())
            for path in skipped:
                segments = segments_of(f"/{path}")
                if find(tree, segments) is not None:
                    tree = remove(tree, segments, tree.modified_at)
            return to_tar(tree)

        done, archive = await self._use("export_files", str(root), work)
        if not done.success:
            raise WorkspaceArchiveReadError(path=root, context={"message": done.message})
        return cast(bytes, archive)

    async def _compute_and_cache_snapshot_fingerprint(self, *, version: str | None = None) -> dict[str, str]:
        # Archives of the same files have the same bytes.
        digest = sha256(await self._archive())
        digest.update(self._resume_manifest_digest().encode())
        return {"fingerprint": digest.hexdigest(), "version": FINGERPRINT_VERSION}

    async def _delete_cached_snapshot_fingerprint_best_effort(self) -> None:
        return

    async def _shutdown_backend(self) -> None:
        self._is_running = False
        await asyncio.to_thread(self._on_shutdown)

    # Calls

    async def _change(
        self, name: str, place: str, work: Callable[[Filesystem], object], *, path: Path, size: int | None = None
    ) -> None:
        done, _ = await self._use(name, place, work, size=size)
        self._check_within(done, path)
        if not done.success:
            raise WorkspaceArchiveWriteError(path=path, message=done.message)

    def _check_within(self, done: ToolResult[object], path: Path | str) -> None:
        """Raise the SDK's error if a path leads out of the workspace through a link."""
        if done.error_code == "path_forbidden" and not self._is_bounded:
            raise InvalidManifestPathError(rel=path, reason="escape_root", context={"message": done.message})

    async def _use(
        self,
        name: str,
        place: str,
        work: Callable[[Filesystem], T],
        *,
        destination: str | None = None,
        size: int | None = None,
    ) -> tuple[ToolResult[object], T | None]:
        exchange = Exchange(self._shell, work)
        arguments = {"path": place, "destination": destination, "size": size}
        given = {key: value for key, value in arguments.items() if value is not None}
        async with nullcontext() if name in READING else self._turn:
            done = await self._toolset.acall(name, given, caller=self._caller, adapter=exchange)
        return done, cast("T | None", exchange.result)

    def _place(self, path: Path | str, *, for_write: bool = False) -> str:
        return self.normalize_path(path, for_write=for_write).as_posix()

    def _refuse_user(self, user: str | User | None) -> None:
        if user is not None:
            raise ValueError(f"cannot work as the user {user!r}: a weakfs sandbox has one user; leave it out")


def _too_large(root: Path, most: int | None, limit: str) -> WorkspaceArchiveWriteError:
    return WorkspaceArchiveWriteError(
        path=root,
        message=f"cannot unpack an archive of more than {most} bytes; raise {limit} or ShellOptions.max_changed_bytes",
    )


def _non_zero(message: str, *command: str) -> ExecNonZeroError:
    return ExecNonZeroError(ExecResult(stdout=b"", stderr=f"{message}\n".encode(), exit_code=1), command=command)
