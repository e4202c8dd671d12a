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
from collections.abc import Awaitable, Callable
from threading import Lock
from weakref import WeakKeyDictionary

import mcp_types as types
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
from weakfs.tools import Toolset
from weakfs.tools.permissions.guard import guard_of, guarded, point_of
from weakfs.tools.slices import FileSeen, KeptBlob, ToolCall

logger = logging.getLogger("weakfs.integrations.mcp")

# Records that change no files, and those that do not change the list of files.
_SILENT = (EntryFound, ExternalFsSnapshot, FileSeen, KeptBlob, LowerEntry, ToolCall, TreeSeen)
_SAME_LIST = (DirectoryMade, FileAppended, FileSpliced, ModeChanged)

# The maximum number of subscriptions of one client, and of resources that all clients together listen for.
MOST_SUBSCRIPTIONS = 10_000


class Notifications:
    """Follows the session while clients are connected, and notifies each according to its subscriptions.

    Records that arrive while the event loop is busy are reported together. The session keeps no reference to a client
    that has disconnected.
    """

    def __init__(self, toolset: Toolset) -> None:
        self.bus = InMemorySubscriptionBus()
        self._session = toolset.session
        files = toolset.filesystem
        self._point = point_of(files)
        self._guard = guard_of(guarded(files, toolset.capability, toolset.policy, "read"))
        # Clients with older protocol versions, and the URIs to which each has subscribed.
        self._clients: WeakKeyDictionary[Connection, set[str]] = WeakKeyDictionary()
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
            self._clients[connection] = set()
        return await call_next(ctx)

    async def subscribe(self, context: Context, params: types.SubscribeRequestParams) -> types.EmptyResult:
        """Subscribe this client to a resource; a directory includes everything below it."""
        uris, uri = self._clients.setdefault(_connection(context), set()), str(params.uri)
        _check(uri)
        if len(uris) >= MOST_SUBSCRIPTIONS:
            raise MCPError(types.INVALID_PARAMS, f"there are {len(uris)} subscriptions already; cancel some first")
        uris.add(uri)
        return types.EmptyResult()

    async def unsubscribe(self, context: Context, params: types.UnsubscribeRequestParams) -> types.EmptyResult:
        """Undo `subscribe`."""
        self._clients.get(_connection(context), set()).discard(str(params.uri))
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
        asked = {*self._listened}.union(*self._clients.values())
        changes = [(record, paths) for record in records if (paths := self._paths(record))]
        changed = {path for _, paths in changes for path in paths}
        updated = {uri for uri in asked if self._concerns(uri, changed)}
        is_new_list = any(not isinstance(record.event, _SAME_LIST) for record, _ in changes)
        if is_new_list:
            await self.bus.publish(ResourcesListChanged())
        for uri in updated:
            await self.bus.publish(ResourceUpdated(uri=uri))
        for connection, uris in [*self._clients.items()]:
            if is_new_list:
                await connection.notify("notifications/resources/list_changed", None)
            for uri in updated & uris:
                await connection.notify("notifications/resources/updated", {"uri": uri})

    def _paths(self, record: Record) -> set[str]:
        """Return the paths at which a record changed something, in the form that clients use, without hidden ones."""
        named = [getattr(record.event, name, None) for name in ("path", "source", "destination")]
        found = [path for path in named if isinstance(path, str)]
        if not found:
            # A rollback, a merge or a restored snapshot may change everything.
            return {"/"}
        mounted = found if self._point is None else map(self._point.mounted, found)
        return {path for path in mounted if self._is_shown(path)}

    def _is_shown(self, path: str) -> bool:
        return self._guard is None or self._guard.may_name(path)

    def _concerns(self, uri: str, paths: set[str]) -> bool:
        """Return whether a resource may have changed because it is at, below or above one of these paths."""
        try:
            place = Place.of(uri)
        except (OSError, ValueError):
            return False
        if place.at is not None or not self._is_shown(place.path):
            return False
        own = f"{place.path.rstrip('/')}/"
        return any(own.startswith(f"{path.rstrip('/')}/") or f"{path}/".startswith(own) for path in paths)


def _connection(context: Context) -> Connection:
    # The SDK creates a session object for each request; only the connection lasts as long as the client.
    return context.session._connection


def _check(uri: str) -> None:
    try:
        Place.of(uri)
    except (OSError, ValueError) as error:
        raise MCPError(types.INVALID_PARAMS, str(error), {"uri": uri}) from None
