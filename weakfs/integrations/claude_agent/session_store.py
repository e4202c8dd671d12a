"""`StorageSessionStore`: transcripts of the Claude Agent SDK in a `Storage`.

| key, below the prefix | value |
| --- | --- |
| `PROJECT/SESSION/main/NUMBER` | a batch of entries, with the time at which it was stored |
| `PROJECT/SESSION/sub/SUBPATH/NUMBER` | the same for a subagent |
| `PROJECT/SESSION/summary` | the SDK's summary of the session |
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any, cast
from urllib.parse import quote, unquote

from claude_agent_sdk import SessionKey, SessionStore, fold_session_summary
from claude_agent_sdk.types import (
    SessionListSubkeysKey,
    SessionStoreEntry,
    SessionStoreListEntry,
    SessionSummaryEntry,
)

from weakfs.class_decorators import frozen
from weakfs.messages import a_type
from weakfs.storage import AsyncStorage, StorageDamaged


class StorageSessionStore(SessionStore):
    """Transcripts in storage, for `ClaudeAgentOptions(session_store=...)`.

    `storage` is the result of `await weakfs.storage.aopen(url)`; the caller must close it. Several processes may append
    to one session. An entry that is sent twice, as by a retry, is loaded once if it has a `uuid`.
    """

    def __init__(
        self, storage: AsyncStorage, *, prefix: str = "claude", clock: Callable[[], int] = time.time_ns
    ) -> None:
        self._storage = storage
        self._prefix = prefix
        self._clock = clock
        # The probable number of the next batch of each transcript.
        self._next: dict[str, int] = {}

    async def append(self, key: SessionKey, entries: list[SessionStoreEntry]) -> None:
        """Store a batch of entries under one key, then update the summary."""
        if not entries:
            return
        await self._create_batch(self._transcript(key), _encoded({"at": self._now(), "entries": entries}))
        if not key.get("subpath"):
            await self._fold(key, entries)

    async def load(self, key: SessionKey) -> list[SessionStoreEntry] | None:
        """Return the entries of a transcript in the order in which they were stored, or `None` if there are none."""
        seen: set[str] = set()
        found: list[SessionStoreEntry] = []
        async for name, value in self._storage.items(self._transcript(key)):
            for entry in _batch(name, value).entries:
                uuid = entry.get("uuid")
                if isinstance(uuid, str):
                    if uuid in seen:
                        continue
                    seen.add(uuid)
                found.append(entry)
        return found or None

    async def list_sessions(self, project_key: str) -> list[SessionStoreListEntry]:
        """Return the sessions of a project that have a main transcript, each with the time of its last append."""
        listed: list[SessionStoreListEntry] = []
        for session_id in await self._session_ids(project_key):
            keys = await self._storage.keys(self._transcript({"project_key": project_key, "session_id": session_id}))
            value = await self._storage.get(keys[-1]) if keys else None
            if value is not None:
                listed.append({"session_id": session_id, "mtime": _batch(keys[-1], value).at})
        return listed

    async def list_session_summaries(self, project_key: str) -> list[SessionSummaryEntry]:
        """Return the summaries of a project's sessions."""
        names = [self._session(project_key, one) + "summary" for one in await self._session_ids(project_key)]
        values = await self._storage.get_many(names)
        return [_summary(name, values[name]) for name in names if name in values]

    async def delete(self, key: SessionKey) -> None:
        """Delete a session with its subagents' transcripts, or only the transcript of the key's `subpath`."""
        whole = self._session(key["project_key"], key["session_id"])
        await self._storage.clear(self._transcript(key) if key.get("subpath") else whole)

    async def list_subkeys(self, key: SessionListSubkeysKey) -> list[str]:
        """Return the subpaths of a session's subagents."""
        directory = self._session(key["project_key"], key["session_id"]) + "sub"
        return [unquote(name.removesuffix("/")) for name in await self._storage.children(directory)]

    async def _create_batch(self, transcript: str, value: bytes) -> None:
        number = self._next.get(transcript)
        while True:
            if number is None:
                keys = await self._storage.keys(transcript)
                number = _number(transcript, keys[-1]) + 1 if keys else 0
            if await self._storage.create(f"{transcript}{number:012d}", value) is not None:
                self._next[transcript] = number + 1
                return
            # Another process has appended a batch.
            number = None

    async def _fold(self, key: SessionKey, entries: list[SessionStoreEntry]) -> None:
        name = self._session(key["project_key"], key["session_id"]) + "summary"
        while True:
            before = await self._storage.get_versioned(name)
            previous = None if before is None else _summary(name, before.value)
            summary = fold_session_summary(previous, key, entries)
            value = _encoded({**summary, "mtime": self._now()})
            if before is None:
                stored = await self._storage.create(name, value)
            else:
                stored = await self._storage.replace(name, value, version=before.version)
            if stored is not None:
                return

    async def _session_ids(self, project_key: str) -> list[str]:
        children = await self._storage.children(f"{self._prefix}/{_segment('project_key', project_key)}")
        return [unquote(name.removesuffix("/")) for name in children if name.endswith("/")]

    def _session(self, project_key: str, session_id: str) -> str:
        return f"{self._prefix}/{_segment('project_key', project_key)}/{_segment('session_id', session_id)}/"

    def _transcript(self, key: SessionKey) -> str:
        subpath = key.get("subpath")
        part = f"sub/{_segment('subpath', subpath)}/" if subpath else "main/"
        return self._session(key["project_key"], key["session_id"]) + part

    def _now(self) -> int:
        return self._clock() // 1_000_000


def _segment(what: str, text: str) -> str:
    """Return any text as one segment of a key."""
    if not text:
        raise ValueError(f"invalid session key: its {what} is empty; give a name")
    try:
        escaped = quote(text, safe="")
    except UnicodeEncodeError as error:
        raise ValueError(f"invalid session key: its {what} {text!r} is not Unicode text; give another name") from error
    return "%2E" + escaped[1:] if escaped.startswith(".") else escaped


def _encoded(value: object) -> bytes:
    # The standard library's encoder supports what Claude may write: large integers and lone surrogates.
    return json.dumps(value, separators=(",", ":")).encode()


@frozen
class _Batch:
    """Entries that were stored together, and the time in milliseconds."""

    at: int
    entries: list[SessionStoreEntry]


def _batch(name: str, value: bytes) -> _Batch:
    found = _decoded(name, value)
    at, entries = found.get("at"), found.get("entries")
    if not isinstance(at, int) or not isinstance(entries, list) or not all(isinstance(one, dict) for one in entries):
        raise _damaged(name, "its entries or the time at which they were stored are missing")
    return _Batch(at, cast("list[SessionStoreEntry]", entries))


def _summary(name: str, value: bytes) -> SessionSummaryEntry:
    found = _decoded(name, value)
    if not isinstance(found.get("session_id"), str) or not isinstance(found.get("data"), dict):
        raise _damaged(name, "it is not a summary")
    return cast(SessionSummaryEntry, found)


def _number(transcript: str, key: str) -> int:
    number = key.removeprefix(transcript)
    if not number.isdecimal():
        raise _damaged(key, "its name is not the number of a batch")
    return int(number)


def _decoded(name: str, value: bytes) -> dict[str, Any]:
    try:
        found = json.loads(value)
    except (ValueError, RecursionError) as error:
        raise _damaged(name, f"its value is not JSON ({error})") from error
    if not isinstance(found, dict):
        raise _damaged(name, f"its value is {a_type(found)}")
    return cast("dict[str, Any]", found)


def _damaged(name: str, problem: str) -> StorageDamaged:
    return StorageDamaged(f"cannot read {name!r}: {problem}; delete the session")
