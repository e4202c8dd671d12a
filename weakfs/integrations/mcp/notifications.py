"""Notifications about resources: records of the session become events for the clients that subscribed to them.

In protocol versions up to 2025-11-25, clients subscribe to single resources, and are notified of changes to the list
without a subscription. Since 2026-07-28, a client opens a stream with `subscriptions/listen`. Delivery is
fire-and-forget in both. Clients are also notified of records of other processes, but not of those about files that the
toolset's capability or policy hides.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator
from functools import lru_cache
from threading import Lock
from weakref import WeakKeyDictionary

import mcp_types as types
from attrs import define, field, frozen
from mcp.server.connection import Connection
from mcp.server.context import CallNext, HandlerResult
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourcesListChanged, ResourceUpdated
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from weakfs.integrations.mcp.calls import Context
from weakfs.integrations.mcp.resources import Place
from weakfs.reducers.events import (
    DirectoryMade,
    EntryFound,
    ExternalFsSnapshot,
    FileAppended,
    FileSpliced,
    LowerEntry,
    ModeChanged,
    TreeSeen,
)
from weakfs.session import Record
from weakfs.session.external_filesystems import recorded_id
from weakfs.tools import Toolset
from weakfs.tools.permissions.guard import guard_of, guarded, point_of
from weakfs.tools.slices import FileSeen, KeptBlob, ToolCall

logger = logging.getLogger("weakfs.integrations.mcp")

# Records that change no files, and those that do not change the list of files.
_SILENT = (EntryFound, ExternalFsSnapshot, FileSeen, KeptBlob, LowerEntry, ToolCall, TreeSeen)
_SAME_LIST = (DirectoryMade, FileAppended, FileSpliced, ModeChanged)

# The maximum number of subscriptions of one client, and of resources that all clients together listen for.
MOST_SUBSCRIPTIONS = 10_000


@define(eq=False)
class _Client:
    """A client with an older protocol version: the URIs to which it has subscribed, and its pending notifications.

    Each client is notified by its own task, so that one that reads nothing does not keep others waiting. The number of
    pending notifications is limited by the subscriptions: a resource has only one, however often it changes.
    """

    uris: set[str] = field(factory=set[str])
    is_new_list: bool = False
    updated: set[str] = field(factory=set[str])
    telling: asyncio.Task[None] | None = None

    def notify(self, connection: Connection, *, is_new_list: bool, updated: set[str]) -> None:
        """Notify the client as soon as it has read the previous notifications."""
        self.is_new_list |= is_new_list
        self.updated |= updated & self.uris
        if (self.telling is None or self.telling.done()) and (self.is_new_list or self.updated):
            self.telling = asyncio.get_running_loop().create_task(self._tell(connection))

    async def _tell(self, connection: Connection) -> None:
        while self.is_new_list or self.updated:
            if self.is_new_list:
                self.is_new_list = False
                await connection.notify("notifications/resources/list_changed", None)
            elif (uri := self.updated.pop()) in self.uris:
                await connection.notify("notifications/resources/updated", {"uri": uri})


class Notifications:
    """Follows the session while clients are connected, and notifies each according to its subscriptions.

    Records that arrive while the event loop is busy are reported together. The session keeps no reference to a client
    that has disconnected.
    """

    def __init__(self, toolset: Toolset) -> None:
        self.bus = InMemorySubscriptionBus()
        self._session = toolset.session
        self._files = files = toolset.filesystem
        self._point = point_of(files)
        self._guard = guard_of(guarded(files, toolset.capability, toolset.policy, "read"))
        # Clients with older protocol versions.
        self._clients: WeakKeyDictionary[Connection, _Client] = WeakKeyDictionary()
        # The URIs for which streams of the newer protocol version are open.
        self._listened: Counter[str] = Counter()
        self._lock = Lock()
        self._waiting: list[Record] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._unsubscribe: Callable[[], None] | None = None
        self._telling: asyncio.Task[None] | None = None
        self._watching: asyncio.Task[None] | None = None

    async def remember_client(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """Middleware: remember each client with an older protocol version, to notify it of changes to the list."""
        if self._loop is not (loop := asyncio.get_running_loop()):
            self._follow(loop)
        connection = _connection(ctx)
        if ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS and connection not in self._clients:
            self._clients[connection] = _Client()
        return await call_next(ctx)

    async def subscribe(self, context: Context, params: types.SubscribeRequestParams) -> types.EmptyResult:
        """Subscribe this client to a resource; a directory includes everything below it."""
        uris, uri = self._clients.setdefault(_connection(context), _Client()).uris, str(params.uri)
        _check(uri)
        if len(uris) >= MOST_SUBSCRIPTIONS:
            raise MCPError(types.INVALID_PARAMS, f"there are {len(uris)} subscriptions already; cancel some first")
        uris.add(uri)
        return types.EmptyResult()

    async def unsubscribe(self, context: Context, params: types.UnsubscribeRequestParams) -> types.EmptyResult:
        """Undo `subscribe`."""
        client = self._clients.get(_connection(context))
        if client is not None:
            client.uris.discard(str(params.uri))
        return types.EmptyResult()

    def listening(
        self, listen: ListenHandler
    ) -> Callable[[Context, types.SubscriptionsListenRequestParams], Awaitable[types.SubscriptionsListenResult]]:
        """Return the handler of `subscriptions/listen`: the SDK's, which also notes the URIs of the stream here."""

        async def handler(
            context: Context, params: types.SubscriptionsListenRequestParams
        ) -> types.SubscriptionsListenResult:
            uris = [str(uri) for uri in params.notifications.resource_subscriptions or ()]
            if len(uris) + len(self._listened) > MOST_SUBSCRIPTIONS:
                raise MCPError(types.INVALID_PARAMS, f"cannot listen for {len(uris)} resources: there are too many")
            self._listened.update(uris)
            try:
                return await listen(context, params)
            finally:
                self._listened.subtract(uris)
                self._listened = +self._listened

        return handler

    def _follow(self, loop: asyncio.AbstractEventLoop) -> None:
        """Follow the session in this event loop, replacing a loop that has ended."""
        if self._unsubscribe is not None:
            self._unsubscribe()
        with self._lock:
            self._loop, self._waiting = loop, []
        self._unsubscribe = self._session.subscribe(object, self._noticed)
        if self._session._log is not None:
            self._watching = loop.create_task(self._watch())

    async def _watch(self) -> None:
        """Fetch what other processes do in the session, as long as the event loop runs."""
        try:
            async for _ in self._session.awatch():
                pass
        except Exception:
            logger.exception("clients are no longer notified of changes by other processes")

    def _noticed(self, record: Record) -> None:
        """Queue a record; may be called in any thread."""
        if isinstance(record.event, _SILENT):
            return
        with self._lock:
            self._waiting.append(record)
            loop = self._loop if len(self._waiting) == 1 else None
        if loop is not None:
            # The loop may have ended meanwhile.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(self._start_telling)

    def _start_telling(self) -> None:
        self._telling = asyncio.get_running_loop().create_task(self._tell())

    async def _tell(self) -> None:
        with self._lock:
            records, self._waiting = self._waiting, []
        asked = {*self._listened}.union(*(client.uris for client in self._clients.values()))
        own = recorded_id(self._files, self._session.attached)
        changes = [(record, paths) for record in records if (paths := self._paths(record, own))]
        changed = _Changed.at(path for _, paths in changes for path in paths)
        updated = {uri for uri in asked if self._concerns(uri, changed)} if changes else set[str]()
        is_new_list = any(not isinstance(record.event, _SAME_LIST) for record, _ in changes)
        if is_new_list:
            await self.bus.publish(ResourcesListChanged())
        for uri in updated:
            await self.bus.publish(ResourceUpdated(uri=uri))
        for connection, client in [*self._clients.items()]:
            client.notify(connection, is_new_list=is_new_list, updated=updated)

    def _paths(self, record: Record, own: str | None) -> set[str]:
        """Return the paths at which a record changed something, in the form that clients use, without hidden ones.

        `own` is the id of the toolset's files in records; other files are not resources.
        """
        if getattr(record.event, "filesystem", own) != own:
            return set()
        named = [getattr(record.event, name, None) for name in ("path", "source", "destination")]
        found = [path for path in named if isinstance(path, str)]
        if not found:
            # A rollback, a merge or a restored snapshot may change everything.
            return {"/"}
        mounted = found if self._point is None else map(self._point.mounted, found)
        return {path for path in mounted if self._is_shown(path)}

    def _is_shown(self, path: str) -> bool:
        return self._guard is None or self._guard.may_name(path)

    def _concerns(self, uri: str, changed: _Changed) -> bool:
        """Return whether a resource may have changed because it is at, below or above a changed path."""
        path = _current_path(uri)
        return path is not None and changed.concerns(path) and self._is_shown(path)


@frozen
class _Changed:
    """Changed paths, and the directories above them."""

    paths: frozenset[str]
    above: frozenset[str]

    @classmethod
    def at(cls, paths: Iterable[str]) -> _Changed:
        found = frozenset(paths)
        return cls(found, frozenset(parent for path in found for parent in _parents(path)))

    def concerns(self, path: str) -> bool:
        """Return whether a path is at, below or above one of these. O(segments of the path)."""
        return path in self.paths or path in self.above or not self.paths.isdisjoint(_parents(path))


def _parents(path: str) -> Iterator[str]:
    while path != "/":
        path = path.rpartition("/")[0] or "/"
        yield path


@lru_cache(maxsize=2 * MOST_SUBSCRIPTIONS)
def _current_path(uri: str) -> str | None:
    """Return the path of a resource; `None` for an earlier version, which does not change, and for other URIs."""
    try:
        place = Place.of(uri)
    except (OSError, ValueError):
        return None
    return place.path if place.at is None else None


def _connection(context: Context) -> Connection:
    # The SDK creates a session object for each request; only the connection lasts as long as the client.
    return context.session._connection


def _check(uri: str) -> None:
    try:
        Place.of(uri)
    except (OSError, ValueError) as error:
        raise MCPError(types.INVALID_PARAMS, str(error), {"uri": uri}) from None
