"""The files of a session as resources: `weakfs:///path`, and `weakfs:///path?at=MOMENT` for an earlier version."""

from __future__ import annotations

import asyncio
import json
import mimetypes
from base64 import b64decode, b64encode, urlsafe_b64encode
from collections.abc import Iterator
from itertools import islice
from urllib.parse import parse_qs, quote, unquote, urlsplit

import mcp_types as types
from attrs import frozen
from mcp.shared.exceptions import MCPError

from weakfs.filesystem import FileEntry, Filesystem, normalize
from weakfs.integrations.mcp.calls import Context
from weakfs.integrations.past_files import past_files
from weakfs.session import SessionError
from weakfs.tools import Toolset, build_tool_context
from weakfs.tools.permissions import check_may_show

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

    The toolset's capability and policy apply here too. Hidden files and everything in hidden directories can be read
    but are not listed.
    """

    def __init__(self, toolset: Toolset) -> None:
        self._toolset = toolset

    async def list(self, context: Context, params: types.PaginatedRequestParams | None) -> types.ListResourcesResult:
        """List one page of the files, in the order of their paths. O(files before the page)."""
        after = _after(None if params is None else params.cursor)
        found = await asyncio.to_thread(self._page, after)
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
            contents = await asyncio.to_thread(self._contents, uri)
        except (OSError, ValueError, SessionError) as error:
            raise MCPError(_code(context), str(error), {"uri": uri}) from None
        return types.ReadResourceResult(contents=[contents])

    def _page(self, after: str | None) -> tuple[FileEntry, ...]:
        beyond = (one for one in _files(self._guarded(self._toolset.filesystem), "/", after) if one.is_file)
        return tuple(islice(beyond, PAGE + 1))

    def _contents(self, uri: str) -> types.TextResourceContents | types.BlobResourceContents:
        place = Place.of(uri)
        files = self._guarded(self._toolset.filesystem if place.at is None else self._past(place.at))
        if files.is_directory(place.path):
            kinds = {one.name: "directory" if one.is_directory else "file" for one in files.list(place.path)}
            entries = [{"name": name, "type": kind} for name, kind in kinds.items()]
            return types.TextResourceContents(uri=uri, mime_type="application/json", text=json.dumps(entries))
        found = files.read_bytes(place.path)
        check_may_show(files, found.path)
        data = found.content
        media_type = _media_type(place.path)
        try:
            return types.TextResourceContents(uri=uri, mime_type=media_type, text=data.decode())
        except UnicodeDecodeError:
            return types.BlobResourceContents(uri=uri, mime_type=media_type, blob=b64encode(data).decode())

    def _guarded(self, files: Filesystem) -> Filesystem:
        toolset = self._toolset
        if toolset.capability is None and toolset.policy is None:
            return files
        context = build_tool_context(
            session=getattr(files, "session", toolset.session),
            filesystem=files,
            limits=toolset.limits,
            capability=toolset.capability,
            policy=toolset.policy,
            operation="read",
        )
        return files if context.filesystem is None else context.filesystem

    def _past(self, at: str) -> Filesystem:
        return past_files(self._toolset.filesystem, int(at) if at.isascii() and at.isdigit() and len(at) < 19 else at)


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


def _files(files: Filesystem, directory: str, after: str | None) -> Iterator[FileEntry]:
    """Yield the entries below a directory whose paths come after `after`, in the order of their segments."""
    for entry in sorted(files.list(directory), key=lambda one: one.name):
        if entry.name.startswith(".") or (after is not None and _is_before(entry.path, after)):
            continue
        if entry.is_directory:
            yield from _files(files, entry.path, after)
        elif entry.path != after:
            yield entry


def _is_before(path: str, after: str) -> bool:
    """Return whether everything at and below a path comes before `after`, and so has been listed."""
    segments, last = path.split("/"), after.split("/")
    return segments < last[: len(segments)]


def _media_type(path: str) -> str | None:
    return mimetypes.guess_type(path, strict=False)[0]


def _code(context: Context) -> int:
    # Version 2026-07-28 has no specific code for this.
    return RESOURCE_NOT_FOUND if context.protocol_version < "2026" else types.INVALID_PARAMS
