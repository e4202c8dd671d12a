"""The client that creates, resumes and deletes sandboxes that use sessions."""

from __future__ import annotations

import asyncio
import os
import uuid
from collections.abc import Callable
from functools import partial
from typing import Literal

from agents.sandbox.manifest import Manifest
from agents.sandbox.session import (
    BaseSandboxClient,
    BaseSandboxClientOptions,
    Dependencies,
    Instrumentation,
    SandboxSession,
    SandboxSessionState,
)
from agents.sandbox.snapshot import SnapshotBase, SnapshotSpec, resolve_snapshot

from weakfs import InMemoryFilesystem, Session
from weakfs.filesystem import Filesystem
from weakfs.integrations.command_files import shell_options
from weakfs.integrations.openai_agents.sandbox import WeakfsSandboxSession
from weakfs.integrations.openai_agents.snapshots import is_stored
from weakfs.tools import Capability, Policy
from weakfs.tools.handlers import ProcessOptions, ShellOptions


class WeakfsSandboxState(SandboxSessionState):
    """The saved state of a sandbox: its id is the id of the weakfs session; the client knows where that is stored."""

    type: Literal["weakfs"] = "weakfs"  # pyright: ignore[reportIncompatibleVariableOverride]  # as the SDK requires


class WeakfsSandboxOptions(BaseSandboxClientOptions):
    """The options of one sandbox: the ports at which its programs can be reached. The client sets everything else."""

    type: Literal["weakfs"] = "weakfs"  # pyright: ignore[reportIncompatibleVariableOverride]  # as the SDK requires
    exposed_ports: tuple[int, ...] = ()


class WeakfsSandboxClient(BaseSandboxClient[WeakfsSandboxOptions | None]):
    """Creates sandboxes whose files are sessions, for `SandboxRunConfig(client=...)`.

    With `location`, a folder or a URL, each sandbox is a durable session there, with the sandbox's id: every change is
    stored as it is made, and any process with the same location can resume a sandbox, even after a kill. Without it,
    sessions are in memory, and a sandbox of another process is resumed from its snapshot. `files` creates the
    filesystem of a session, by default one in memory. Commands run with the options `shell`; `capability` and `policy`
    restrict operations, and `caller` is recorded as their caller. With `processes`, which needs files in a directory or
    a container, an agent's commands may keep running after the call, with or without a terminal; their changes are not
    part of a call.
    """

    backend_id = "weakfs"
    supports_default_options = True

    def __init__(
        self,
        location: str | os.PathLike[str] | None = None,
        *,
        files: Callable[[Session], Filesystem] | None = None,
        shell: ShellOptions | None = None,
        capability: Capability | None = None,
        policy: Policy | None = None,
        processes: ProcessOptions | None = None,
        caller: str | None = None,
        instrumentation: Instrumentation | None = None,
        dependencies: Dependencies | None = None,
    ) -> None:
        self._location = None if location is None else os.fspath(location)
        self._files = _in_memory if files is None else files
        self._shell = shell_options(shell)
        self._capability, self._policy, self._caller = capability, policy, caller
        self._processes = processes
        self._instrumentation = Instrumentation() if instrumentation is None else instrumentation
        self._dependencies = dependencies
        # The open sessions: all that are not stored, and the stored ones of running sandboxes.
        self._open: dict[str, Session] = {}

    def session_of(self, sandbox: SandboxSession) -> Session:
        """Return the session of a sandbox, for its timeline, undo and diff."""
        return _inner(sandbox).session

    async def create(
        self,
        *,
        snapshot: SnapshotSpec | SnapshotBase | None = None,
        manifest: Manifest | None = None,
        options: WeakfsSandboxOptions | None = None,
    ) -> SandboxSession:
        """Create a sandbox with a new session; raises `ValueError` if it does not support the manifest."""
        manifest = Manifest() if manifest is None else manifest
        _refuse_unsupported(manifest)
        self._validate_manifest_for_create(manifest)
        session_id = uuid.uuid4()
        state = WeakfsSandboxState(
            session_id=session_id,
            snapshot=resolve_snapshot(snapshot, str(session_id)),
            manifest=manifest,
            exposed_ports=() if options is None else options.exposed_ports,
        )
        return await self._sandbox(state)

    async def resume(self, state: SandboxSessionState) -> SandboxSession:
        """Return the sandbox of a saved state, with the files of its session or, without one, of its snapshot.

        Raises `TypeError` for the state of another kind of sandbox, and what `create` raises.
        """
        if not isinstance(state, WeakfsSandboxState):
            raise TypeError(f"cannot resume a sandbox of the type {state.type!r}: pass the state of a weakfs sandbox")
        state.assert_path_grants_rebound()
        _refuse_unsupported(state.manifest)
        return await self._sandbox(state)

    async def delete(self, session: SandboxSession) -> SandboxSession:
        """Delete a sandbox. If its session is at a location, the session stays there with its history.

        `Session.delete(location, sandbox.state.session_id.hex)` deletes the stored session.
        """
        key = _inner(session).state.session_id.hex
        found = self._open.pop(key, None)
        if found is not None:
            await asyncio.to_thread(found.close)
        return session

    def deserialize_session_state(self, payload: dict[str, object]) -> SandboxSessionState:
        """Return the state from its saved JSON."""
        return self._deserialize_session_state_payload(payload, WeakfsSandboxState)

    async def _sandbox(self, state: WeakfsSandboxState) -> SandboxSession:
        session, is_old = await asyncio.to_thread(self._session, state.session_id.hex)
        sandbox = WeakfsSandboxSession(
            state,
            session,
            await asyncio.to_thread(self._files, session),
            shell=self._shell,
            capability=self._capability,
            policy=self._policy,
            processes=self._processes,
            caller=self._caller,
            on_shutdown=partial(self._release, state.session_id.hex),
        )
        sandbox._set_start_state_preserved(is_old)
        return self._wrap_session(sandbox, instrumentation=self._instrumentation)

    def _session(self, key: str) -> tuple[Session, bool]:
        """Return the session of a sandbox, and whether it existed already."""
        found = self._open.get(key)
        if found is not None:
            return found, True
        is_old = self._location is not None and is_stored(self._location, key)
        made = Session(session_id=key) if self._location is None else Session.open(self._location, key)
        self._open[key] = made
        return made, is_old

    def _release(self, key: str) -> None:
        if self._location is not None and (session := self._open.pop(key, None)) is not None:
            session.close()


def _in_memory(session: Session) -> Filesystem:
    return InMemoryFilesystem(session, follow_symlinks="within_root_only")


def _inner(sandbox: SandboxSession) -> WeakfsSandboxSession:
    inner = sandbox._inner
    if not isinstance(inner, WeakfsSandboxSession):
        raise TypeError(f"cannot use {type(inner).__name__}: pass a sandbox that a WeakfsSandboxClient made")
    return inner


def _refuse_unsupported(manifest: Manifest) -> None:
    if manifest.users or manifest.groups:
        raise ValueError("a weakfs sandbox does not support manifest users or groups: it has one user; leave them out")
    if manifest.mount_targets():
        raise ValueError("cannot mount storage in a weakfs sandbox; leave the mounts out of the manifest")
    if manifest.extra_path_grants:
        paths = ", ".join(repr(grant.path) for grant in manifest.extra_path_grants)
        raise ValueError(
            f"cannot grant {paths}: a weakfs sandbox shows only its workspace; put the files into the manifest, or "
            "name directories that commands may read in ShellOptions(readable=...)"
        )
