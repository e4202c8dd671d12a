"""Checkpoints of LangGraph in a `Storage`: `graph.compile(checkpointer=StorageSaver(weakfs.storage.open(url)))`.

| key, below the prefix and the thread | value |
| --- | --- |
| `checkpoint/NAMESPACE/ID` | a checkpoint without the values of its channels, its metadata and its parent |
| `channel/NAMESPACE/CHANNEL/VERSION` | the value of a channel |
| `writes/NAMESPACE/ID/TASK/INDEX` | a write of a task that belongs to no checkpoint yet |

`ID` is written such that the newest checkpoint of a namespace is the first in the order of keys. Needs the extra
`weakfs[langgraph]`.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any, cast
from urllib.parse import quote

from weakfs.class_decorators import frozen
from weakfs.storage import Storage, StorageDamaged

try:
    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.base import (
        WRITES_IDX_MAP,
        BaseCheckpointSaver,
        ChannelVersions,
        Checkpoint,
        CheckpointMetadata,
        CheckpointTuple,
        PendingWrite,
        get_checkpoint_id,
        get_checkpoint_metadata,
        writes_sort_key,
    )
    from langgraph.checkpoint.serde.base import SerializerProtocol
except ImportError as error:
    if error.name is None or error.name.partition(".")[0] not in ("langgraph", "langchain_core"):
        raise
    raise ModuleNotFoundError(
        "cannot use weakfs.integrations.langgraph: the package langgraph-checkpoint is not installed, or is older than "
        "4.3; run: pip install 'weakfs[langgraph]'"
    ) from error

__all__ = ["StorageSaver"]

Typed = tuple[str, bytes]
# The class has a method `list`.
Writes = list[PendingWrite]

# The type under which a channel without a value is stored.
EMPTY = "empty"
# In the metadata of a checkpoint: the channels whose values are made from the writes of its ancestors.
DELTA_CHANNELS = "counters_since_delta_snapshot"
# How many checkpoints `list` reads at a time.
PAGE = 50
# The longest segment of a key, in characters.
MAX_SEGMENT = 160


class StorageSaver(BaseCheckpointSaver[str]):
    """A checkpoint saver over any storage: a folder, SQLite, PostgreSQL, Redis, an object store.

    `storage` is what `weakfs.storage.open(url)` returns; closing it is the caller's. A checkpoint is there as a whole
    or not at all, whatever happens to the process. Several processes may work on one thread: each keeps its checkpoints
    and writes. A write that is repeated is stored once. Async methods run in a thread.
    """

    def __init__(self, storage: Storage, *, prefix: str = "langgraph", serde: SerializerProtocol | None = None) -> None:
        super().__init__(serde=serde)
        self._storage = storage
        self._prefix = prefix

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Return the checkpoint that is named, or the latest one of its thread and namespace."""
        place = self._place(config)
        checkpoint_id = get_checkpoint_id(config)
        if checkpoint_id:
            key = place.checkpoint(checkpoint_id)
        else:
            latest = self._storage.keys(place.checkpoints, limit=1)
            if not latest:
                return None
            key = latest[0]
        value = self._storage.get(key)
        return None if value is None else self._tuple(place, key, value)

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Yield checkpoints, the newest of each namespace first."""
        if limit is not None and limit <= 0:
            return
        wanted = get_checkpoint_id(config) if config is not None else None
        bound = get_checkpoint_id(before) if before is not None else None
        for place in self._places(config):
            for key, value in self._checkpoints(place, after=bound):
                if wanted is not None and key != place.checkpoint(wanted):
                    continue
                metadata = self._loaded(_parts(key, value)[1]["metadata"])
                if filter and any(metadata.get(name) != expected for name, expected in filter.items()):
                    continue
                yield self._tuple(place, key, value)
                if limit is not None:
                    limit -= 1
                    if limit <= 0:
                        return

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Store a checkpoint: first the values of the channels that changed, then the checkpoint itself."""
        place = self._place(config)
        values = checkpoint["channel_values"]
        channels = {
            place.channel(name, version): _packed(
                {}, {"value": self.serde.dumps_typed(values[name]) if name in values else (EMPTY, b"")}
            )
            for name, version in new_versions.items()
        }
        rest = {name: value for name, value in checkpoint.items() if name != "channel_values"}
        parts = {
            "checkpoint": self.serde.dumps_typed(rest),
            "metadata": self.serde.dumps_typed(get_checkpoint_metadata(config, metadata)),
        }
        header = {
            "id": checkpoint["id"],
            "parent": get_checkpoint_id(config),
            "namespace": place.namespace,
            "thread": place.thread_id,
        }
        if channels:
            self._storage.set_many(channels)
        self._storage.set(place.checkpoint(checkpoint["id"]), _packed(header, parts))
        return place.config(checkpoint["id"])

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Store the writes of a task; those that are stored already stay as they are."""
        place = self._place(config)
        directory = place.writes(cast(str, get_checkpoint_id(config)))
        replaced: dict[str, bytes] = {}
        for number, (channel, value) in enumerate(writes):
            index = WRITES_IDX_MAP.get(channel, number)
            header = {"task": task_id, "index": index, "channel": channel, "path": task_path}
            key, packed = f"{directory}{_segment(task_id)}/{index}", _packed(header, {"value": self._dumped(value)})
            if index < 0:
                # Errors, interrupts and what resumes them: the last one counts.
                replaced[key] = packed
            else:
                self._storage.create(key, packed)
        if replaced:
            self._storage.set_many(replaced)

    def delete_thread(self, thread_id: str) -> None:
        """Delete everything of a thread."""
        self._storage.clear(self._thread(thread_id))

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Delete the checkpoints that these runs made, with their writes. Reads the metadata of all threads."""
        runs = set(run_ids)
        for place in self._places(None) if runs else ():
            kept: dict[str, bytes] = {}
            deleted: list[str] = []
            for key, value in self._checkpoints(place):
                made_by = self._loaded(_parts(key, value)[1]["metadata"]).get("run_id")
                if made_by in runs:
                    deleted.append(key)
                else:
                    kept[key] = value
            if deleted:
                self._delete(place, deleted, kept)

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy all checkpoints and writes of a thread to another one."""
        source, target = self._thread(source_thread_id), self._thread(target_thread_id)
        # Checkpoints come last: each has its channels and its writes.
        for part in ("channel/", "writes/", "checkpoint/"):
            for key, value in self._storage.items(source + part):
                if part == "checkpoint/":
                    header, parts = _parts(key, value)
                    value = _packed({**header, "thread": target_thread_id}, parts)
                self._storage.set(target + key.removeprefix(source), value)

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Keep the latest checkpoint of each namespace, or with "delete" none.

        Ancestors that hold what the delta channels of the latest checkpoint are made of are kept too.
        """
        if strategy not in ("keep_latest", "delete"):
            raise ValueError(f"strategy is {strategy!r}; use 'keep_latest' or 'delete'")
        for thread_id in thread_ids:
            if strategy == "delete":
                self.delete_thread(thread_id)
                continue
            for place in self._places({"configurable": {"thread_id": thread_id}}):
                found = dict(self._checkpoints(place))
                kept = self._needed(place, found)
                self._delete(place, [key for key in found if key not in kept], kept)

    def get_next_version(self, current: str | int | None, channel: None) -> str:
        """Return a version after `current`, which no other process gives to another value."""
        number = current if isinstance(current, int) else 0 if current is None else int(current.split(".")[0])
        return f"{number + 1:032}.{random.random():016}"

    # The same as coroutine functions

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Return a checkpoint as `get_tuple` does."""
        return await asyncio.to_thread(self.get_tuple, config)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """Yield checkpoints as `list` does."""
        found = self.list(config, filter=filter, before=before, limit=limit)
        while (one := await asyncio.to_thread(next, found, None)) is not None:
            yield one

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Store a checkpoint as `put` does."""
        return await asyncio.to_thread(self.put, config, checkpoint, metadata, new_versions)

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Store writes as `put_writes` does."""
        await asyncio.to_thread(self.put_writes, config, writes, task_id, task_path)

    async def adelete_thread(self, thread_id: str) -> None:
        """Delete a thread as `delete_thread` does."""
        await asyncio.to_thread(self.delete_thread, thread_id)

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Delete checkpoints as `delete_for_runs` does."""
        await asyncio.to_thread(self.delete_for_runs, run_ids)

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy a thread as `copy_thread` does."""
        await asyncio.to_thread(self.copy_thread, source_thread_id, target_thread_id)

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Prune threads as `prune` does."""
        await asyncio.to_thread(lambda: self.prune(thread_ids, strategy=strategy))

    # Where things are

    def _thread(self, thread_id: str) -> str:
        return f"{self._prefix}/{_segment(str(thread_id))}/"

    def _place(self, config: RunnableConfig) -> _Place:
        given = config.get("configurable", {})
        thread_id = given["thread_id"]
        return _Place(thread_id, given.get("checkpoint_ns", ""), self._thread(thread_id))

    def _places(self, config: RunnableConfig | None) -> Iterator[_Place]:
        """Yield the namespaces that are asked for, of one thread or of all."""
        given = {} if config is None else config.get("configurable", {})
        if config is not None and given.get("checkpoint_ns") is not None:
            yield self._place(config)
            return
        threads = [_segment(str(given["thread_id"]))] if given else self._names(self._prefix)
        for thread in threads:
            for namespace in self._names(f"{self._prefix}/{thread}/checkpoint"):
                keys = self._storage.keys(f"{self._prefix}/{thread}/checkpoint/{namespace}/", limit=1)
                if keys and (value := self._storage.get(keys[0])) is not None:
                    header, _ = _parts(keys[0], value)
                    yield _Place(header["thread"], header["namespace"], f"{self._prefix}/{thread}/")

    def _names(self, directory: str) -> Iterable[str]:
        return [name.removesuffix("/") for name in self._storage.children(directory) if name.endswith("/")]

    # What is there

    def _checkpoints(self, place: _Place, *, after: str | None = None) -> Iterator[tuple[str, bytes]]:
        """Yield the checkpoints of a namespace with their keys, the newest first, or those older than one."""
        last = "" if after is None else place.checkpoint(after)
        while keys := self._storage.keys(place.checkpoints, after=last, limit=PAGE):
            values = self._storage.get_many(keys)
            # One that is missing was deleted meanwhile.
            yield from ((key, values[key]) for key in keys if key in values)
            last = keys[-1]

    def _tuple(self, place: _Place, key: str, value: bytes) -> CheckpointTuple:
        header, parts = _parts(key, value)
        checkpoint = cast("dict[str, Any]", self._loaded(parts["checkpoint"]))
        parent = header["parent"]
        return CheckpointTuple(
            config=place.config(header["id"]),
            checkpoint=cast(
                Checkpoint, {**checkpoint, "channel_values": self._channels(place, checkpoint["channel_versions"])}
            ),
            metadata=cast(CheckpointMetadata, self._loaded(parts["metadata"])),
            parent_config=place.config(parent) if parent else None,
            pending_writes=self._writes(place, header["id"]),
        )

    def _channels(self, place: _Place, versions: ChannelVersions) -> dict[str, Any]:
        keys = {place.channel(name, version): name for name, version in versions.items()}
        found = self._storage.get_many(keys)
        values = {keys[key]: _parts(key, value)[1]["value"] for key, value in found.items()}
        return {name: self._loaded(values[name]) for name in versions if name in values and values[name][0] != EMPTY}

    def _writes(self, place: _Place, checkpoint_id: str) -> Writes:
        found = [_parts(key, value) for key, value in self._storage.items(place.writes(checkpoint_id))]
        found.sort(key=lambda one: writes_sort_key(one[0]["path"], one[0]["task"], one[0]["index"]))
        return [(header["task"], header["channel"], self._loaded(parts["value"])) for header, parts in found]

    def _needed(self, place: _Place, found: Mapping[str, bytes]) -> dict[str, bytes]:
        """Return the latest checkpoint, and the ancestors up to those that hold its delta channels."""
        key = next(iter(found), None)
        missing: set[str] | None = None
        kept: dict[str, bytes] = {}
        while key is not None and key in found:
            kept[key] = found[key]
            header, parts = _parts(key, found[key])
            if missing is None:
                missing = set(self._loaded(parts["metadata"]).get(DELTA_CHANNELS) or ())
            versions = self._loaded(parts["checkpoint"])["channel_versions"]
            missing -= self._channels(place, {name: versions[name] for name in missing if name in versions}).keys()
            if not missing or not header["parent"]:
                break
            key = place.checkpoint(header["parent"])
        return kept

    def _delete(self, place: _Place, deleted: Collection[str], kept: Mapping[str, bytes]) -> None:
        """Delete checkpoints, then their writes and the channels that only they used."""
        for key in deleted:
            self._storage.delete(key)
            self._storage.clear(place.all_writes + key.removeprefix(place.checkpoints) + "/")
        used: set[str] = set()
        for key, value in kept.items():
            versions = self._loaded(_parts(key, value)[1]["checkpoint"])["channel_versions"]
            used.update(place.channel(name, version) for name, version in versions.items())
        # Newer versions belong to a checkpoint that another process is about to store.
        newest = {key.rpartition("/")[0]: key for key in sorted(used)}
        for key in self._storage.keys(place.channels):
            if key not in used and (not kept or key < newest.get(key.rpartition("/")[0], "")):
                self._storage.delete(key)

    def _dumped(self, value: object) -> Typed:
        return self.serde.dumps_typed(value)

    def _loaded(self, typed: Typed) -> Any:
        return self.serde.loads_typed(typed)


@frozen
class _Place:
    """A namespace of a thread."""

    thread_id: str
    namespace: str
    thread: str

    @property
    def checkpoints(self) -> str:
        return f"{self.thread}checkpoint/{_segment(self.namespace)}/"

    @property
    def channels(self) -> str:
        return f"{self.thread}channel/{_segment(self.namespace)}/"

    @property
    def all_writes(self) -> str:
        return f"{self.thread}writes/{_segment(self.namespace)}/"

    def checkpoint(self, checkpoint_id: str) -> str:
        return self.checkpoints + _newest_first(checkpoint_id)

    def channel(self, name: str, version: str | int | float) -> str:
        return f"{self.channels}{_segment(name)}/{_segment(str(version))}"

    def writes(self, checkpoint_id: str) -> str:
        return f"{self.all_writes}{_newest_first(checkpoint_id)}/"

    def config(self, checkpoint_id: str) -> RunnableConfig:
        return {
            "configurable": {
                "thread_id": self.thread_id,
                "checkpoint_ns": self.namespace,
                "checkpoint_id": checkpoint_id,
            }
        }


def _segment(text: str) -> str:
    """Return any text as one segment of a key; a long one ends in its digest, since keys are not longer than 900."""
    escaped = quote(text, safe=":|")
    if len(escaped) > MAX_SEGMENT:
        return f"{escaped[: MAX_SEGMENT - 65]}~{sha256(text.encode()).hexdigest()}"
    # Segments are not empty and do not begin with a dot. No other text has these forms.
    return "%" if not escaped else "%2E" + escaped[1:] if escaped.startswith(".") else escaped


def _newest_first(checkpoint_id: str) -> str:
    """Return a segment whose order is the reverse of that of the ids, one that begins with another included."""
    return bytes(255 - byte for byte in checkpoint_id.encode()).hex() + "z"


def _packed(header: Mapping[str, object], parts: Mapping[str, Typed]) -> bytes:
    """Return a line of JSON with the header and the sizes of the parts, and the parts after it."""
    sizes = {name: [kind, len(data)] for name, (kind, data) in parts.items()}
    line = json.dumps({**header, "parts": sizes}, separators=(",", ":")).encode()
    return b"\n".join([line, b"".join(data for _, data in parts.values())])


def _parts(key: str, value: bytes) -> tuple[dict[str, Any], dict[str, Typed]]:
    line, _, data = value.partition(b"\n")
    try:
        header = json.loads(line)
        found: dict[str, Typed] = {}
        at = 0
        for name, (kind, size) in header["parts"].items():
            found[name] = kind, data[at : at + size]
            at += size
        is_whole = at == len(data)
    except (ValueError, KeyError, TypeError) as error:
        raise StorageDamaged(f"cannot read {key!r}: {error}; delete the thread, or restore the storage") from error
    if not is_whole:
        raise StorageDamaged(
            f"cannot read {key!r}: it is not as long as it says; delete the thread, or restore the storage"
        )
    return header, found
