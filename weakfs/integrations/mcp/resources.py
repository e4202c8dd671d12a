"""The files of a session as resources: `weakfs:///path`, and `weakfs:///path?at=MOMENT` for an earlier version."""

from __future__ import annotations

import asyncio
import json
import mimetypes
from base64 import b64decode, b64encode, urlsafe_b64encode
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import partial
from itertools import islice
from urllib.parse import parse_qs, quote, unquote, urlsplit

import mcp_types as types
from attrs import frozen
from mcp.shared.exceptions import MCPError

from weakfs.filesystem import FileEntry, Filesystem, normalize
from weakfs.filesystem.path_lookup import by_canonical_paths
from weakfs.integrations.judged_reads import Request, judged_read
from weakfs.integrations.mcp.calls import Context, caller_of
from weakfs.integrations.past_files import past_files
from weakfs.session import SessionError
from weakfs.tools import Toolset
from weakfs.tools.permissions import check_fits_inline, read_shown, shows

SCHEME = "weakfs"
PAGE = 500

# The error code for a missing resource in older protocol versions.
RESOURCE_NOT_FOUND = -32002


@frozen
class Place:
    """What a resource's URI names: a canonical path and, for an earlier version, a moment."""

    path: str
    at: str | None = None

    @classmethod
    def of(cls, uri: str) -> Place:
        """Parse a URI; raise `ValueError` if it is not in one of the two forms."""
        parts = urlsplit(uri)
        query = parse_qs(parts.query, keep_blank_values=True)
        if parts.scheme != SCHEME or parts.netloc or not query.keys() <= {"at"} or parts.fragment:
            raise ValueError(f"cannot read the resource {uri!r}: it is not weakfs:///path or weakfs:///path?at=MOMENT")
        return cls(normalize(unquote(parts.path, errors="strict")), query["at"][-1] if "at" in query else None)


def uri_of(path: str) -> str:
    """Return the URI of the file at a canonical path."""
    return f"{SCHEME}://{quote(path)}"


class Resources:
    """Handlers of `resources/list`, `resources/templates/list` and `resources/read`.

    The toolset's capability and policy apply here too; custom rules judge a request like a call of that name. Hidden
    files and everything in hidden directories can be read but are not listed.
    """

    def __init__(self, toolset: Toolset) -> None:
        self._toolset = toolset

    async def list(self, context: Context, params: types.PaginatedRequestParams | None) -> types.ListResourcesResult:
        """List one page of the files, in the order of their paths. O(files before the page)."""
        after = _after(None if params is None else params.cursor)
        try:
            found = await asyncio.to_thread(self._page, after, caller_of(context))
        except (OSError, ValueError, SessionError) as error:
            raise MCPError(types.INVALID_PARAMS, str(error)) from None
        cursor = urlsafe_b64encode(found[PAGE - 1].path.encode()).decode() if len(found) > PAGE else None
        resources = [
            types.Resource(uri=uri_of(one.path), name=one.name, mime_type=_media_type(one.path)) for one in found[:PAGE]
        ]
        return types.ListResourcesResult(resources=resources, next_cursor=cursor)

    async def templates(
        self, context: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        """List the only template: a path and a moment."""
        template = types.ResourceTemplate(
            uri_template="weakfs:///{+path}{?at}",
            name="file",
            title="File or directory",
            description="The file at a path, or the entries of a directory as JSON; at is the number of a record, or "
            "the tag or id of a snapshot.",
        )
        return types.ListResourceTemplatesResult(resource_templates=[template])

    async def read(self, context: Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        """Read a file as text or bytes, or list a directory."""
        uri = str(params.uri)
        try:
            contents = await asyncio.to_thread(self._contents, uri, caller_of(context))
        except (OSError, ValueError, SessionError) as error:
            raise MCPError(_code(context), str(error), {"uri": uri}) from None
        return types.ReadResourceResult(contents=[contents])

    def _page(self, after: str | None, caller: str) -> tuple[FileEntry, ...]:
        def read(files: Filesystem) -> tuple[FileEntry, ...]:
            return tuple(islice((one for one in _files(files, after) if one.is_file), PAGE + 1))

        request = Request("resources/list", "list", "/")
        return judged_read(self._toolset, self._toolset.filesystem, request, read, shown=_paths, caller=caller)

    def _contents(self, uri: str, caller: str) -> types.TextResourceContents | types.BlobResourceContents:
        place = Place.of(uri)
        files = self._toolset.filesystem if place.at is None else self._past(place.at)
        request = Request("resources/read", "read", place.path, place.at)
        return judged_read(
            self._toolset, files, request, partial(_contents, uri, place.path), shown=_text, caller=caller
        )

    def _past(self, at: str) -> Filesystem:
        return past_files(self._toolset.filesystem, int(at) if at.isascii() and at.isdigit() and len(at) < 19 else at)


def _contents(uri: str, path: str, files: Filesystem) -> types.TextResourceContents | types.BlobResourceContents:
    """Return the contents of a file, or the entries of a directory as JSON."""
    files = by_canonical_paths(files)
    if files.is_directory(path):
        shown = [one for one in files.list(path) if shows(files, "list", one.path)]
        entries = [{"name": one.name, "type": "directory" if one.is_directory else "file"} for one in shown]
        return types.TextResourceContents(uri=uri, mime_type="application/json", text=json.dumps(entries))
    found = read_shown(files, path)
    check_fits_inline(files, found.path, found.content)
    data = found.content
    media_type = _media_type(path)
    try:
        return types.TextResourceContents(uri=uri, mime_type=media_type, text=data.decode())
    except UnicodeDecodeError:
        return types.BlobResourceContents(uri=uri, mime_type=media_type, blob=b64encode(data).decode())


def _text(contents: types.TextResourceContents | types.BlobResourceContents) -> str:
    return contents.text if isinstance(contents, types.TextResourceContents) else contents.blob


def _paths(entries: Iterable[FileEntry]) -> str:
    return "\n".join(entry.path for entry in entries)


def _after(cursor: str | None) -> str | None:
    if cursor is None:
        return None
    try:
        path = b64decode(cursor, altchars=b"-_", validate=True).decode()
        if not path.startswith("/"):
            raise ValueError(path)
    except ValueError:
        raise MCPError(types.INVALID_PARAMS, f"cannot list from {cursor!r}: it is not a cursor of this list") from None
    return path


def _files(files: Filesystem, after: str | None) -> Iterator[FileEntry]:
    """Yield the entries whose paths come after `after`, in the order of their segments.

    Like a search, this passes over directories below the root that cannot be read or have vanished.
    """
    files = by_canonical_paths(files)
    # Not recursive, because commands may leave directories that are nested very deeply.
    stack = [iter(_by_name(files.list("/")))]
    while stack:
        entry = next(stack[-1], None)
        if entry is None:
            stack.pop()
            continue
        is_passed = after is not None and _is_before(entry.path, after)
        if is_passed or entry.name.startswith(".") or not shows(files, "list", entry.path):
            continue
        if entry.is_directory:
            with suppress(FileNotFoundError, NotADirectoryError, PermissionError):
                stack.append(iter(_by_name(files.list(entry.path))))
        elif entry.path != after:
            yield entry


def _by_name(entries: Iterable[FileEntry]) -> list[FileEntry]:
    return sorted(entries, key=lambda one: one.name)


def _is_before(path: str, after: str) -> bool:
    """Return whether everything at and below a path comes before `after`, and so has been listed."""
    segments, last = path.split("/"), after.split("/")
    return segments < last[: len(segments)]


def _media_type(path: str) -> str | None:
    return mimetypes.guess_type(path, strict=False)[0]


def _code(context: Context) -> int:
    # Version 2026-07-28 has no specific code for this.
    return RESOURCE_NOT_FOUND if context.protocol_version < "2026" else types.INVALID_PARAMS
