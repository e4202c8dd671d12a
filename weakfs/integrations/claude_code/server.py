"""The server of a project: it keeps the session open and answers the hooks, which run in separate processes."""

from __future__ import annotations

import asyncio
import fcntl
import json
import logging
import os
import signal
import sys
from contextlib import suppress
from typing import Any, TextIO

from attrs import field

from weakfs import HostFilesystem, Session, Toolset
from weakfs.backends.host.root import HostRoot
from weakfs.class_decorators import define
from weakfs.integrations.claude_code.events import READ_ONLY_TOOLS, ClaudeEvents
from weakfs.integrations.claude_code.hook import lock_path, socket_path
from weakfs.integrations.claude_code.hook_process import Owner, owner_of
from weakfs.integrations.tool_recorder import ToolRecorder
from weakfs.messages import a_type

# A server ends after this many seconds without an event.
IDLE = 1800.0
# While a tool runs, the server checks this often, in seconds, whether the process that runs it has ended.
CHECKED = 1.0
# The maximum size of an event in bytes: it includes all output of a tool.
MAX_EVENT = 64 << 20

logger = logging.getLogger("weakfs.integrations.claude_code")


@define(eq=False)
class HookServer:
    """Answers the hooks of one project until `idle` seconds have passed without any."""

    _directory: str
    _session: Session
    # A file that is not empty while a tool runs: if a new server finds it like that, the last server was killed.
    _mark: TextIO
    _idle: float = IDLE
    _events: ClaudeEvents = field(init=False)
    # The identity of the directory that was opened.
    _opened: tuple[int, int] = field(init=False)
    _opening: asyncio.Lock = field(factory=asyncio.Lock, init=False)
    _stopped: asyncio.Event = field(factory=asyncio.Event, init=False)
    _events_seen: int = field(default=0, init=False)
    _busy: int = field(default=0, init=False)

    @classmethod
    def of(cls, directory: str, location: str, mark: TextIO, *, idle: float = IDLE) -> HookServer:
        """Open or create the session of a project."""
        if mark.read():
            # Keep the changes of the tool that was running, as Claude expects; the next scan finds them.
            HostRoot(directory, None).recover(keeps_files=True)
        # Other processes, such as `weakfs undo`, may change the session meanwhile.
        made = cls(directory, Session.open(location, on_conflict="merge"), mark, idle)
        made._open()
        return made

    def _open(self) -> None:
        files = HostFilesystem(self._directory, session=self._session)
        recorder = ToolRecorder(Toolset(self._session, files), "claude")
        self._events = ClaudeEvents(recorder, READ_ONLY_TOOLS, logger)
        self._opened = _identity(self._directory)

    async def _open_again(self) -> None:
        """Open the directory again if another one has replaced it, such as a new clone or work tree."""
        async with self._opening:
            try:
                if _identity(self._directory) == self._opened:
                    return
            except OSError:
                return  # The answer to the event reports this error.
            await self._events.recorder.finish()
            await asyncio.to_thread(self._open)

    async def serve(self, path: str) -> None:
        """Listen on a socket until the server has been idle too long, or the process gets a termination signal."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            loop.add_signal_handler(number, self._stopped.set)
        temporary = f"{path}.{os.getpid()}"
        server = await asyncio.start_unix_server(self._answer, temporary)
        # The socket exists only once the server can answer.
        os.replace(temporary, path)
        check = asyncio.create_task(self._check())
        try:
            while not await self._is_over():
                pass
        finally:
            os.unlink(path)
            server.close()
            self._stopped.set()
            await check
            while self._busy:
                await asyncio.sleep(0.01)
            await self._events.recorder.finish()
            await asyncio.to_thread(self._session.close)

    async def _is_over(self) -> bool:
        seen = self._events_seen
        try:
            await asyncio.wait_for(self._stopped.wait(), self._idle)
        except TimeoutError:
            return seen == self._events_seen and not self._busy
        return True

    async def _check(self) -> None:
        """End the tools of processes that have ended, until the server stops."""
        while not self._stopped.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stopped.wait(), CHECKED)
            if self._events.recorder.is_under_way:
                await self._events.finish_ended()
                self._show(is_under_way=self._events.recorder.is_under_way)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._events_seen += 1
        self._busy += 1
        try:
            text = await _read(reader)
            try:
                event = _event(text)
            except (RecursionError, ValueError) as error:
                answer = {"systemMessage": f"weakfs cannot read the event of this hook: {error}"}
                logger.warning("an event cannot be read: %s", error)
            else:
                answer = await self._answer_to(event, owner_of(writer.get_extra_info("socket")))
            writer.write(json.dumps(answer).encode())
            await writer.drain()
        except OSError as error:
            logger.warning("an event was not answered: %s", error)
        finally:
            self._busy -= 1
            writer.close()

    async def _answer_to(self, event: dict[str, Any], owner: Owner | None) -> dict[str, Any]:
        if event["hook_event_name"] == "PreToolUse":
            await self._open_again()
            await self._events.finish_ended()
            self._show(is_under_way=True)
        answer = await self._events.answer(event, owner)
        self._show(is_under_way=self._events.recorder.is_under_way)
        return answer

    def _show(self, *, is_under_way: bool) -> None:
        self._mark.truncate(0)
        if is_under_way:
            self._mark.write("a tool is under way")
        self._mark.flush()


def _identity(directory: str) -> tuple[int, int]:
    found = os.stat(directory)
    return found.st_dev, found.st_ino


async def _read(reader: asyncio.StreamReader) -> bytes:
    """Read an event to its end, but keep only one byte more than the maximum size."""
    text = bytearray()
    while part := await reader.read(1 << 16):
        text += part[: MAX_EVENT + 1 - len(text)]
    return bytes(text)


def _event(text: bytes) -> dict[str, Any]:
    if len(text) > MAX_EVENT:
        raise ValueError(f"it is larger than {MAX_EVENT} bytes")
    event = json.loads(text)
    if not isinstance(event, dict):
        raise ValueError(f"it is {a_type(event)}")
    names = ["hook_event_name"]
    if event.get("hook_event_name") == "PreToolUse":
        names += ["tool_name", "tool_use_id"]
    for name in names:
        if not isinstance(event.get(name), str):
            raise ValueError(f"it has no {name!r}")
    return event


def main() -> None:
    """Serve the project that the arguments name, unless another process already serves it."""
    server, directory, location = sys.argv[1:]
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s")
    path = socket_path(server)
    with open(lock_path(server), "a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return

        async def serve() -> None:
            lock.seek(0)
            await HookServer.of(directory, location, lock).serve(path)

        asyncio.run(serve())
