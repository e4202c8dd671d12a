"""A LangGraph checkpoint saver that uses any storage."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, cast

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

from weakfs.integrations.langgraph.records import (
    CHANNEL,
    CHECKPOINT,
    WRITE,
    Place,
    Typed,
    damaged,
    packed,
    parts_of,
    segment,
)
from weakfs.messages import a_type
from weakfs.shield import run_in_thread, shielded
from weakfs.storage import Storage

# Inside the class, `list` is a method.
Writes = list[PendingWrite]

# The type under which a channel without a value is stored.
EMPTY = "empty"
# The key in a checkpoint's metadata for channels whose values are computed from the writes of its ancestors.
DELTA_CHANNELS = "counters_since_delta_snapshot"
# The number of checkpoints that `list` reads at a time.
PAGE = 50

_RANDOM = random.SystemRandom()


class StorageSaver(BaseCheckpointSaver[str]):
    """A checkpoint saver that uses any storage: a folder, SQLite, PostgreSQL, Redis, an object store.

    `storage` is the result of `weakfs.storage.open(url)`; the caller must close it. Checkpoints are stored atomically,
    whatever happens to the process. Several processes may work on one thread: each keeps its checkpoints and writes. A
    repeated write is stored once. Async methods run in a thread.
    """

    def __init__(self, storage: Storage, *, prefix: str = "langgraph", serde: SerializerProtocol | None = None) -> None:
        super().__init__(serde=serde)
        self._storage = storage
        self._prefix = prefix

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Return the named checkpoint or, without a name, the latest one of the thread and namespace."""
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
                metadata = self._metadata(key, value)
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
        """Store a checkpoint: first the values of the changed channels, then the checkpoint itself."""
        place = self._place(config)
        values = checkpoint["channel_values"]
        channels = {
            place.channel(name, version): packed(
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
        self._storage.set(place.checkpoint(checkpoint["id"]), packed(header, parts))
        return place.config(checkpoint["id"])

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Store the writes of a task; writes that are stored already are not replaced.

        In a storage with atomic batches, all of them are stored or none: LangGraph does not repeat a task that has any.
        """
        place = self._place(config)
        directory = place.writes(cast(str, get_checkpoint_id(config)))
        new: dict[str, bytes] = {}
        replaced: dict[str, bytes] = {}
        for number, (channel, value) in enumerate(writes):
            index = WRITES_IDX_MAP.get(channel, number)
            header = {"task": task_id, "index": index, "channel": channel, "path": task_path}
            key, written = (
                f"{directory}{segment(task_id)}/{index}",
                packed(header, {"value": self.serde.dumps_typed(value)}),
            )
            # For errors, interrupts and resumptions, the last write counts.
            (replaced if index < 0 else new)[key] = written
        if len(new) > 1 and self._storage.atomic_batches:
            for key in self._storage.get_many(new):
                del new[key]
            replaced |= new
        else:
            for key, written in new.items():
                self._storage.create(key, written)
        if replaced:
            self._storage.set_many(replaced)

    def delete_thread(self, thread_id: str) -> None:
        """Delete all data of a thread."""
        self._storage.clear(self._thread(thread_id))

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Delete the checkpoints of these runs, with their writes. Reads the metadata of all threads."""
        runs = set(run_ids)
        for place in self._places(None) if runs else ():
            kept: dict[str, bytes] = {}
            deleted: dict[str, bytes] = {}
            for key, value in self._checkpoints(place):
                made_by = self._metadata(key, value).get("run_id")
                if made_by in runs:
                    deleted[key] = value
                else:
                    kept[key] = value
            if deleted:
                self._delete(place, deleted, kept)

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy all checkpoints and writes of a thread to another one."""
        source, target = self._thread(source_thread_id), self._thread(target_thread_id)
        # Checkpoints are copied last, so that each has its channels and its writes.
        for part in ("channel/", "writes/", "checkpoint/"):
            for key, value in self._storage.items(source + part):
                if part == "checkpoint/":
                    header, parts = parts_of(key, value, CHECKPOINT)
                    value = packed({**header, "thread": target_thread_id}, parts)
                self._storage.set(target + key.removeprefix(source), value)

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Keep only the latest checkpoint of each namespace or, with "delete", none.

        Also keep the ancestors from which the delta channels of the latest checkpoint are computed. Raises `ValueError`
        for an unknown strategy.
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
                self._delete(place, {key: found[key] for key in found if key not in kept}, kept)

    def get_next_version(self, current: str | int | None, channel: None) -> str:
        """Return a version after `current` that no other process uses for another value."""
        number = current if isinstance(current, int) else 0 if current is None else int(current.split(".")[0])
        # Not from `random.random`, which a program may seed: forks would store their values under the same version.
        return f"{number + 1:032}.{_RANDOM.random():016}"

    # Coroutine functions

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Return a checkpoint as `get_tuple` does."""
        return await shielded(run_in_thread(partial(self.get_tuple, config)))

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
        while (one := await shielded(run_in_thread(partial(next, found, None)))) is not None:
            yield one

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Store a checkpoint as `put` does."""
        return await shielded(run_in_thread(partial(self.put, config, checkpoint, metadata, new_versions)))

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Store writes as `put_writes` does."""
        await shielded(run_in_thread(partial(self.put_writes, config, writes, task_id, task_path)))

    async def adelete_thread(self, thread_id: str) -> None:
        """Delete a thread as `delete_thread` does."""
        await shielded(run_in_thread(partial(self.delete_thread, thread_id)))

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Delete checkpoints as `delete_for_runs` does."""
        await shielded(run_in_thread(partial(self.delete_for_runs, run_ids)))

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy a thread as `copy_thread` does."""
        await shielded(run_in_thread(partial(self.copy_thread, source_thread_id, target_thread_id)))

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Prune threads as `prune` does."""
        await shielded(run_in_thread(partial(self.prune, thread_ids, strategy=strategy)))

    # Keys

    def _thread(self, thread_id: str) -> str:
        return f"{self._prefix}/{segment(str(thread_id))}/"

    def _place(self, config: RunnableConfig) -> Place:
        given = config.get("configurable", {})
        thread_id = given["thread_id"]
        return Place(thread_id, given.get("checkpoint_ns", ""), self._thread(thread_id))

    def _places(self, config: RunnableConfig | None) -> Iterator[Place]:
        """Yield the requested namespaces, of one thread or of all threads."""
        given = {} if config is None else config.get("configurable", {})
        if config is not None and given.get("checkpoint_ns") is not None:
            yield self._place(config)
            return
        threads = [segment(str(given["thread_id"]))] if given else self._names(self._prefix)
        for thread in threads:
            for namespace in self._names(f"{self._prefix}/{thread}/checkpoint"):
                keys = self._storage.keys(f"{self._prefix}/{thread}/checkpoint/{namespace}/", limit=1)
                if keys and (value := self._storage.get(keys[0])) is not None:
                    header, _ = parts_of(keys[0], value, CHECKPOINT)
                    yield Place(header["thread"], header["namespace"], f"{self._prefix}/{thread}/")

    def _names(self, directory: str) -> Iterable[str]:
        return [name.removesuffix("/") for name in self._storage.children(directory) if name.endswith("/")]

    # Stored values

    def _checkpoints(self, place: Place, *, after: str | None = None) -> Iterator[tuple[str, bytes]]:
        """Yield the checkpoints of a namespace with their keys, newest first; with `after`, only older ones."""
        last = "" if after is None else place.checkpoint(after)
        while keys := self._storage.keys(place.checkpoints, after=last, limit=PAGE):
            values = self._storage.get_many(keys)
            # A missing one was deleted meanwhile.
            yield from ((key, values[key]) for key in keys if key in values)
            last = keys[-1]

    def _tuple(self, place: Place, key: str, value: bytes) -> CheckpointTuple:
        header, parts = parts_of(key, value, CHECKPOINT)
        checkpoint = self._mapping(key, parts["checkpoint"])
        parent = header["parent"]
        return CheckpointTuple(
            config=place.config(header["id"]),
            checkpoint=cast(
                Checkpoint, {**checkpoint, "channel_values": self._channels(place, checkpoint["channel_versions"])}
            ),
            metadata=cast(CheckpointMetadata, self._mapping(key, parts["metadata"])),
            parent_config=place.config(parent) if parent else None,
            pending_writes=self._writes(place, header["id"]),
        )

    def _channels(self, place: Place, versions: ChannelVersions) -> dict[str, Any]:
        keys = {place.channel(name, version): name for name, version in versions.items()}
        found = self._storage.get_many(keys)
        values = {key: parts_of(key, value, CHANNEL)[1]["value"] for key, value in found.items()}
        present = {key: typed for key, typed in values.items() if typed[0] != EMPTY}
        return {name: self._loaded(key, present[key]) for key, name in keys.items() if key in present}

    def _writes(self, place: Place, checkpoint_id: str) -> Writes:
        found = [(key, *parts_of(key, value, WRITE)) for key, value in self._storage.items(place.writes(checkpoint_id))]
        found.sort(key=lambda one: writes_sort_key(one[1]["path"], one[1]["task"], one[1]["index"]))
        return [(header["task"], header["channel"], self._loaded(key, parts["value"])) for key, header, parts in found]

    def _needed(self, place: Place, found: Mapping[str, bytes]) -> dict[str, bytes]:
        """Return the latest checkpoint, and the ancestors up to those that hold its delta channels."""
        key = next(iter(found), None)
        missing: set[str] | None = None
        kept: dict[str, bytes] = {}
        while key is not None and key in found:
            kept[key] = found[key]
            header, parts = parts_of(key, found[key], CHECKPOINT)
            if missing is None:
                missing = set(self._mapping(key, parts["metadata"]).get(DELTA_CHANNELS) or ())
            versions = self._mapping(key, parts["checkpoint"])["channel_versions"]
            missing -= self._channels(place, {name: versions[name] for name in missing if name in versions}).keys()
            if not missing or not header["parent"]:
                break
            key = place.checkpoint(header["parent"])
        return kept

    def _delete(self, place: Place, deleted: Mapping[str, bytes], kept: Mapping[str, bytes]) -> None:
        """Delete checkpoints, then their writes and the channels that only they used.

        Channels that no checkpoint names stay: they may belong to a checkpoint that another process is about to store.
        """
        for key in deleted:
            self._storage.delete(key)
            self._storage.clear(place.all_writes + key.removeprefix(place.checkpoints) + "/")
        for key in self._used(place, deleted) - self._used(place, kept):
            self._storage.delete(key)

    def _used(self, place: Place, checkpoints: Mapping[str, bytes]) -> set[str]:
        used: set[str] = set()
        for key, value in checkpoints.items():
            versions = self._mapping(key, parts_of(key, value, CHECKPOINT)[1]["checkpoint"])["channel_versions"]
            used.update(place.channel(name, version) for name, version in versions.items())
        return used

    def _loaded(self, key: str, typed: Typed) -> Any:
        try:
            return self.serde.loads_typed(typed)
        except (ValueError, TypeError, KeyError, EOFError, NotImplementedError, RecursionError) as error:
            raise damaged(key, error) from error

    def _metadata(self, key: str, value: bytes) -> dict[str, Any]:
        return self._mapping(key, parts_of(key, value, CHECKPOINT)[1]["metadata"])

    def _mapping(self, key: str, typed: Typed) -> dict[str, Any]:
        found = self._loaded(key, typed)
        if not isinstance(found, dict):
            raise damaged(key, f"a part of it is {a_type(found)}")
        return cast("dict[str, Any]", found)
