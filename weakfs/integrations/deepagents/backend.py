"""A deepagents backend that uses the files of a session."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from typing import TypeVar, get_args

from attrs import frozen
from deepagents.backends.protocol import (
    BackendProtocol,
    DeleteResult,
    EditResult,
    FileDownloadResponse,
    FileUploadResponse,
    GlobResult,
    GrepResult,
    LsResult,
    ReadResult,
    WriteResult,
)

from weakfs.filesystem import Filesystem
from weakfs.integrations.deepagents.exchange import Dialect, Exchange
from weakfs.integrations.deepagents.read_operations import READING
from weakfs.integrations.deepagents.write_operations import WRITING
from weakfs.integrations.fair_lock import Turns
from weakfs.session import Session
from weakfs.tools import Capability, Policy, Tool, ToolResult, Toolset

R = TypeVar("R")

_READING = {tool.name for tool in READING}


@frozen
class Request:
    """One call: its name, its arguments, and contents that are not recorded with the arguments."""

    name: str
    arguments: Mapping[str, object]
    contents: tuple[bytes, ...] = ()


class WeakfsBackend(BackendProtocol):
    """The files of a session, for `create_deep_agent(backend=...)`: each operation is one recorded call.

    By default the files are the session's own, in memory. An operation can be undone like any other call; one that
    fails has changed nothing. `capability` and `policy` restrict operations, and `caller` is recorded as their caller.

    `dialect` matters where the protocol of deepagents and its sandboxes disagree. "protocol" follows the protocol:
    `write` replaces a file, `glob` returns absolute paths, which permission rules need, and each line that `read`
    returns has its line ending. "sandbox" follows the sandboxes and `langchain-tests`: `write` refuses to replace a
    file, `glob` also returns directories, and paths relative to the directory searched, and every page but the last
    ends without a line break.

    Thread-safe; any number of tasks may make calls too. Calls that change files are made one after another. Raises
    `ValueError` for an unknown dialect, and what `Toolset` raises.
    """

    def __init__(
        self,
        session: Session,
        files: Filesystem | None = None,
        *,
        capability: Capability | None = None,
        policy: Policy | None = None,
        caller: str | None = None,
        dialect: Dialect = "protocol",
    ) -> None:
        self._toolset = Toolset(session, files, tools=self._tools(), capability=capability, policy=policy)
        self._caller = caller
        self._turns = Turns()
        if dialect not in get_args(Dialect):
            raise ValueError(f"dialect is {dialect!r}; use 'protocol' or 'sandbox'")
        self._dialect: Dialect = dialect

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._toolset.session!r}>"

    def _tools(self) -> tuple[Tool, ...]:
        return (*READING, *WRITING)

    @property
    def session(self) -> Session:
        """The session that records the calls."""
        return self._toolset.session

    @property
    def files(self) -> Filesystem:
        """The files, with the paths that the agent uses."""
        return self._toolset.filesystem

    # Making calls

    def _perform(self, request: Request) -> tuple[ToolResult[object], Exchange]:
        """Make a call; wait for its turn if it may change files."""
        exchange = Exchange(self._dialect, request.contents)
        with nullcontext() if request.name in _READING else self._turns.turn():
            done = self._toolset.call(request.name, request.arguments, caller=self._caller, adapter=exchange)
        return done, exchange

    async def _aperform(self, request: Request) -> tuple[ToolResult[object], Exchange]:
        """Make a call as `_perform` does; if the task is cancelled, the call is undone."""
        exchange = Exchange(self._dialect, request.contents)
        async with nullcontext() if request.name in _READING else self._turns.aturn():
            done = await self._toolset.acall(request.name, request.arguments, caller=self._caller, adapter=exchange)
        return done, exchange

    def _call(self, request: Request, kind: type[R]) -> R:
        return _answer(request, *self._perform(request), kind)

    async def _acall(self, request: Request, kind: type[R]) -> R:
        return _answer(request, *await self._aperform(request), kind)

    # Operations, each as a function and as a coroutine function

    def ls(self, path: str) -> LsResult:
        """List a directory."""
        return self._call(Request("ls", {"path": path}), LsResult)

    async def als(self, path: str) -> LsResult:
        """List a directory."""
        return await self._acall(Request("ls", {"path": path}), LsResult)

    def read(self, file_path: str, offset: int = 0, limit: int = 2000) -> ReadResult:
        """Read lines of a text, or a whole file that is not text as base64."""
        return self._call(_read(file_path, offset, limit), ReadResult)

    async def aread(self, file_path: str, offset: int = 0, limit: int = 2000) -> ReadResult:
        """Read lines of a text, or a whole file that is not text as base64."""
        return await self._acall(_read(file_path, offset, limit), ReadResult)

    def grep(
        self, pattern: str, path: str | None = None, glob: str | None = None, *, max_count: int | None = None
    ) -> GrepResult:
        """Find the lines that contain a literal text."""
        return self._call(_grep(pattern, path, glob, max_count), GrepResult)

    async def agrep(
        self, pattern: str, path: str | None = None, glob: str | None = None, *, max_count: int | None = None
    ) -> GrepResult:
        """Find the lines that contain a literal text."""
        return await self._acall(_grep(pattern, path, glob, max_count), GrepResult)

    def glob(self, pattern: str, path: str | None = None) -> GlobResult:
        """Find files by name."""
        return self._call(Request("glob", {"pattern": pattern, "path": path}), GlobResult)

    async def aglob(self, pattern: str, path: str | None = None) -> GlobResult:
        """Find files by name."""
        return await self._acall(Request("glob", {"pattern": pattern, "path": path}), GlobResult)

    def write(self, file_path: str, content: str) -> WriteResult:
        """Write a whole file."""
        return self._call(Request("write", {"file_path": file_path, "content": content}), WriteResult)

    async def awrite(self, file_path: str, content: str) -> WriteResult:
        """Write a whole file."""
        return await self._acall(Request("write", {"file_path": file_path, "content": content}), WriteResult)

    def edit(self, file_path: str, old_string: str, new_string: str, replace_all: bool = False) -> EditResult:
        """Replace a literal text."""
        return self._call(_edit(file_path, old_string, new_string, replace_all), EditResult)

    async def aedit(self, file_path: str, old_string: str, new_string: str, replace_all: bool = False) -> EditResult:
        """Replace a literal text."""
        return await self._acall(_edit(file_path, old_string, new_string, replace_all), EditResult)

    def delete(self, file_path: str) -> DeleteResult:
        """Delete a file, or a directory with everything in it."""
        return self._call(Request("delete", {"file_path": file_path}), DeleteResult)

    async def adelete(self, file_path: str) -> DeleteResult:
        """Delete a file, or a directory with everything in it."""
        return await self._acall(Request("delete", {"file_path": file_path}), DeleteResult)

    def upload_files(self, files: list[tuple[str, bytes]]) -> list[FileUploadResponse]:
        """Write several files as one call; each may fail by itself."""
        return self._call(_upload(files), list)

    async def aupload_files(self, files: list[tuple[str, bytes]]) -> list[FileUploadResponse]:
        """Write several files as one call; each may fail by itself."""
        return await self._acall(_upload(files), list)

    def download_files(self, paths: list[str]) -> list[FileDownloadResponse]:
        """Read several whole files."""
        return self._call(Request("download_files", {"paths": list(paths)}), list)

    async def adownload_files(self, paths: list[str]) -> list[FileDownloadResponse]:
        """Read several whole files."""
        return await self._acall(Request("download_files", {"paths": list(paths)}), list)


def _read(file_path: str, offset: int, limit: int) -> Request:
    return Request("read", {"file_path": file_path, "offset": offset, "limit": limit})


def _grep(pattern: str, path: str | None, glob: str | None, max_count: int | None) -> Request:
    return Request("grep", {"pattern": pattern, "path": path, "glob": glob, "max_count": max_count})


def _edit(file_path: str, old_string: str, new_string: str, replace_all: bool) -> Request:
    arguments = {"file_path": file_path, "old_string": old_string, "new_string": new_string, "replace_all": replace_all}
    return Request("edit", arguments)


def _upload(files: list[tuple[str, bytes]]) -> Request:
    contents = tuple(content for _, content in files)
    return Request(
        "upload_files",
        {"paths": [path for path, _ in files], "sizes": [len(content) for content in contents]},
        contents,
    )


def _answer(request: Request, done: ToolResult[object], exchange: Exchange, kind: type[R]) -> R:
    """Return the result that the handler left in the exchange, or the answer of a failed call."""
    if done.success and isinstance(exchange.answer, kind):
        return exchange.answer
    if kind is list:
        # An answer for each file: none of them was processed.
        paths = request.arguments["paths"]
        assert isinstance(paths, list)
        each = FileUploadResponse if request.name == "upload_files" else FileDownloadResponse
        return kind(each(path=path, error=_message(request, done)) for path in paths)  # type: ignore[call-arg]  # a list
    return kind(error=_message(request, done))  # type: ignore[call-arg]  # as all results of deepagents


def _message(request: Request, done: ToolResult[object]) -> str:
    """Return an error in the words that deepagents uses, followed by our message."""
    path = request.arguments.get("file_path", request.arguments.get("path"))
    if done.error_code == "not_found" and path is not None:
        return f"Error: File '{path}' not found: {done.message}"
    if done.error_code == "already_exists":
        return f"Error: File '{path}' already exists: {done.message}"
    return done.message
