"""Artifacts of Google's ADK as files of a session: each version is a file, and saving one is a recorded call."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast
from urllib.parse import quote, unquote

from attrs import field
from google.adk.artifacts import artifact_util
from google.adk.artifacts.base_artifact_service import ArtifactVersion, BaseArtifactService, ensure_part
from google.adk.errors.input_validation_error import InputValidationError
from google.genai import types

from weakfs.backends import InMemoryFilesystem
from weakfs.class_decorators import define, frozen
from weakfs.filesystem import Filesystem
from weakfs.session import Session
from weakfs.tools import Receipt, Tool, ToolContext, ToolResult, Toolset, require_filesystem
from weakfs.tools.results import answer, summarize

USER_PREFIX = "user:"
METADATA = ".json"
# The maximum number of references from artifact to artifact that are followed.
MAX_REFERENCES = 5


@frozen
class ArtifactParams:
    """The recorded arguments of a call: the directory of the artifact's versions, and the size of a new version."""

    path: str
    size: int | None = None


@define
class _Exchange:
    """The part for the handler to save, and the version number that it returns."""

    part: types.Part = field(factory=types.Part)
    custom_metadata: dict[str, Any] | None = None
    uri: str = ""
    version: int = -1


class WeakfsArtifactService(BaseArtifactService):
    """Artifacts in `files`, by default the session's own files in memory.

    Version n of an artifact is the file n in a directory named after application, user, session and artifact; the file
    n.json next to it has its MIME type and metadata. Artifacts are saved, rolled back, forked and undone together with
    everything else in the session. `directory` is where they are stored, and `caller` is recorded as the caller.
    """

    def __init__(
        self,
        session: Session,
        files: Filesystem | None = None,
        *,
        directory: str = "/artifacts",
        caller: str | None = None,
    ) -> None:
        self._toolset = Toolset(session, InMemoryFilesystem(session) if files is None else files, tools=TOOLS)
        self._directory = directory.rstrip("/")
        self._caller = caller

    def __repr__(self) -> str:
        return f"<WeakfsArtifactService of {self._toolset.session!r} at {self._directory or '/'}>"

    async def save_artifact(
        self,
        *,
        app_name: str,
        user_id: str,
        filename: str,
        artifact: types.Part | dict[str, Any],
        session_id: str | None = None,
        custom_metadata: dict[str, Any] | None = None,
    ) -> int:
        """Save a new version of an artifact and return its number; the first one is 0."""
        scope = _Scope(app_name, user_id, session_id)
        part = ensure_part(artifact)
        _check_part(part, scope)
        exchange = _Exchange(part, custom_metadata, scope.uri(filename))
        await self._call("save_artifact", self._path(scope, filename), exchange, len(_content(part)))
        return exchange.version

    async def load_artifact(
        self,
        *,
        app_name: str,
        user_id: str,
        filename: str,
        session_id: str | None = None,
        version: int | None = None,
    ) -> types.Part | None:
        """Return a version of an artifact, by default the latest, or `None` if there is none.

        References to other artifacts are followed. Raises `InputValidationError` if there are too many of them.
        """
        scope = _Scope(app_name, user_id, session_id)
        for _ in range(MAX_REFERENCES + 1):
            found = self._find(scope, filename, version)
            if found is None:
                return None
            part = self._part(found)
            if not artifact_util.is_artifact_ref(part):
                return None if _is_removed(part) else part
            target = _target(part, scope)
            scope, filename, version = target.scope, target.filename, target.version
        raise InputValidationError(
            f"cannot load artifact {filename!r}: it is part of a chain of more than {MAX_REFERENCES} references; "
            f"save an artifact that does not refer to another one"
        )

    async def list_artifact_keys(self, *, app_name: str, user_id: str, session_id: str | None = None) -> list[str]:
        """Return the names of the artifacts of the user, and of the session if one is given."""
        scope = _Scope(app_name, user_id, session_id)
        places = [self._user_directory(scope)]
        if session_id is not None:
            places.append(self._session_directory(scope))
        files = self._toolset.filesystem
        return sorted(unquote(entry.name) for place in places if files.exists(place) for entry in files.list(place))

    async def delete_artifact(
        self, *, app_name: str, user_id: str, filename: str, session_id: str | None = None
    ) -> None:
        """Delete an artifact with all its versions; `undo` restores it."""
        path = self._path(_Scope(app_name, user_id, session_id), filename)
        if self._toolset.filesystem.exists(path):
            await self._call("delete_artifact", path, _Exchange())

    async def list_versions(
        self, *, app_name: str, user_id: str, filename: str, session_id: str | None = None
    ) -> list[int]:
        """Return the version numbers of an artifact."""
        return self._versions(self._path(_Scope(app_name, user_id, session_id), filename))

    async def list_artifact_versions(
        self, *, app_name: str, user_id: str, filename: str, session_id: str | None = None
    ) -> list[ArtifactVersion]:
        """Return what is known about each version of an artifact."""
        path = self._path(_Scope(app_name, user_id, session_id), filename)
        return [self._version(f"{path}/{number}") for number in self._versions(path)]

    async def get_artifact_version(
        self,
        *,
        app_name: str,
        user_id: str,
        filename: str,
        session_id: str | None = None,
        version: int | None = None,
    ) -> ArtifactVersion | None:
        """Return what is known about a version of an artifact, by default the latest."""
        found = self._find(_Scope(app_name, user_id, session_id), filename, version)
        return None if found is None else self._version(found)

    def _user_directory(self, scope: _Scope) -> str:
        return f"{self._directory}/{_name(scope.app_name)}/{_name(scope.user_id)}/user"

    def _session_directory(self, scope: _Scope) -> str:
        session_id = scope.session_id or ""
        return f"{self._directory}/{_name(scope.app_name)}/{_name(scope.user_id)}/sessions/{_name(session_id)}"

    def _path(self, scope: _Scope, filename: str) -> str:
        if not filename:
            raise InputValidationError("cannot use an artifact without a name; give filename")
        if filename.startswith(USER_PREFIX):
            return f"{self._user_directory(scope)}/{_name(filename)}"
        if scope.session_id is None:
            raise InputValidationError(
                f"cannot find artifact {filename!r}: it belongs to a session; give session_id, or a name that starts "
                f"with {USER_PREFIX!r}"
            )
        return f"{self._session_directory(scope)}/{_name(filename)}"

    def _versions(self, path: str) -> list[int]:
        return _versions(self._toolset.filesystem, path)

    def _find(self, scope: _Scope, filename: str, version: int | None) -> str | None:
        path = self._path(scope, filename)
        versions = self._versions(path)
        number = max(versions, default=None) if version is None else version
        return f"{path}/{number}" if number in versions else None

    def _metadata(self, path: str) -> dict[str, Any]:
        content = self._toolset.filesystem.read_bytes(path + METADATA).content
        try:
            return cast("dict[str, Any]", json.loads(content))
        except ValueError as error:
            raise ValueError(
                f"cannot load the artifact at {path!r}: its metadata, {path + METADATA!r}, is not JSON ({error}); save "
                f"a new version, or undo what changed that file"
            ) from error

    def _part(self, path: str) -> types.Part:
        part = types.Part.model_validate(self._metadata(path)["part"])
        content = self._toolset.filesystem.read_bytes(path).content
        if part.inline_data is not None:
            part.inline_data.data = content
        elif part.file_data is None:
            part.text = content.decode()
        return part

    def _version(self, path: str) -> ArtifactVersion:
        return ArtifactVersion.model_validate(self._metadata(path)["version"])

    async def _call(self, name: str, path: str, exchange: _Exchange, size: int | None = None) -> None:
        arguments = {"path": path, "size": size}
        done = await self._toolset.acall(name, arguments, caller=self._caller, adapter=exchange)
        while done.error_code == "already_exists":
            # Another version was saved at the same time, so try the next number.
            done = await self._toolset.acall(name, arguments, caller=self._caller, adapter=exchange)
        if not done.success:
            raise OSError(done.message)


@frozen
class _Scope:
    """The owner of artifacts: an application, a user and perhaps a session."""

    app_name: str
    user_id: str
    session_id: str | None

    def __attrs_post_init__(self) -> None:
        artifact_util.validate_path_segment(self.app_name, "app_name")
        artifact_util.validate_path_segment(self.user_id, "user_id")
        if self.session_id is not None:
            artifact_util.validate_path_segment(self.session_id, "session_id")

    def uri(self, filename: str) -> str:
        """Return the URI of an artifact without its version number."""
        user = f"weakfs://apps/{self.app_name}/users/{self.user_id}"
        owner = user if filename.startswith(USER_PREFIX) else f"{user}/sessions/{self.session_id}"
        return f"{owner}/artifacts/{filename}"


@frozen
class _Target:
    """The artifact that a reference points to."""

    scope: _Scope
    filename: str
    version: int


def save_artifact(params: ArtifactParams, *, context: ToolContext) -> ToolResult[Receipt]:
    """Write the two files of a new version."""
    files = require_filesystem(context)
    exchange = cast(_Exchange, context.adapter)
    number = max(_versions(files, params.path), default=-1) + 1
    part = exchange.part
    version = ArtifactVersion(
        version=number,
        canonical_uri=f"{exchange.uri}/versions/{number}",
        custom_metadata=exchange.custom_metadata or {},
        mime_type=_mime_type(part),
    )
    described = {"part": _described(part), "version": version.model_dump(mode="json")}
    files.write_bytes(f"{params.path}/{number}", _content(part), mode="create")
    files.write_bytes(f"{params.path}/{number}{METADATA}", json.dumps(described).encode(), mode="create")
    exchange.version = number
    return answer(Receipt(summary_text=summarize(f"saved version {number} of {params.path}")))


def delete_artifact(params: ArtifactParams, *, context: ToolContext) -> ToolResult[Receipt]:
    """Delete the directory of an artifact."""
    require_filesystem(context).delete(params.path, recursive=True)
    return answer(Receipt(summary_text=summarize(f"deleted {params.path}")))


TOOLS = (
    Tool("save_artifact", "Save an artifact.", ArtifactParams, save_artifact, operation="write", is_quick=True),
    Tool("delete_artifact", "Delete an artifact.", ArtifactParams, delete_artifact, operation="write"),
)


def _versions(files: Filesystem, path: str) -> list[int]:
    if not files.exists(path):
        return []
    return sorted(int(entry.name) for entry in files.list(path) if entry.name.isdecimal())


def _name(name: str) -> str:
    """Return a name as one segment of a path."""
    quoted = quote(name, safe=" !#$&'()+,;=@[]{}~^`")
    return quoted.replace(".", "%2E") if quoted in (".", "..") else quoted


def _check_part(part: types.Part, scope: _Scope) -> None:
    if artifact_util.is_artifact_ref(part):
        _target(part, scope)
    elif part.inline_data is None and part.text is None and part.file_data is None:
        raise InputValidationError(
            "cannot save an artifact that has neither text, inline_data nor file_data; give it one of them"
        )


def _target(part: types.Part, scope: _Scope) -> _Target:
    uri = (part.file_data and part.file_data.file_uri) or ""
    parsed = artifact_util.parse_artifact_uri(uri)
    if parsed is None:
        raise InputValidationError(
            f"cannot follow {uri!r}: it is not the URI of an artifact; use artifact://apps/.../versions/N"
        )
    artifact_util.validate_artifact_reference_scope(
        app_name=scope.app_name, user_id=scope.user_id, session_id=scope.session_id, parsed_uri=parsed
    )
    return _Target(_Scope(parsed.app_name, parsed.user_id, parsed.session_id), parsed.filename, parsed.version)


def _is_removed(part: types.Part) -> bool:
    """Return whether a version is the empty one that a rewind saves for an artifact that did not exist before."""
    blob = part.inline_data
    return blob is not None and not blob.data and blob.mime_type == "application/octet-stream"


def _mime_type(part: types.Part) -> str | None:
    if part.inline_data is not None:
        return part.inline_data.mime_type
    if part.text is not None:
        return "text/plain"
    return None if artifact_util.is_artifact_ref(part) or part.file_data is None else part.file_data.mime_type


def _content(part: types.Part) -> bytes:
    """Return the bytes of an artifact; empty if it refers to data elsewhere."""
    if part.inline_data is not None:
        return part.inline_data.data or b""
    return (part.text or "").encode()


def _described(part: types.Part) -> Mapping[str, Any]:
    """Return all fields of a part except its bytes."""
    left = part.model_copy(update={"text": None})
    if part.inline_data is not None:
        left = left.model_copy(update={"inline_data": part.inline_data.model_copy(update={"data": b""})})
    return left.model_dump(mode="json", exclude_none=True)
