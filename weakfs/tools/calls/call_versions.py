"""The versions of files that one call sees: checked before its handler runs, remembered once it has succeeded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from types import MappingProxyType

from weakfs.class_decorators import define
from weakfs.filesystem import Filesystem
from weakfs.filesystem.path_lookup import canonical_path
from weakfs.session.history.reduction import Row
from weakfs.tools.calls.stale_writes import SeenVersions, Version
from weakfs.tools.context import ToolContext
from weakfs.tools.results import ToolResult
from weakfs.tools.slices import FileSeen
from weakfs.tools.tool import Tool

NO_VERSIONS: Mapping[str, Version] = MappingProxyType({})


@define(eq=False)
class CallVersions:
    """The versions of files that a caller has seen in one call, which began after record `seq`."""

    # What the calls of the toolset have seen and changed.
    known: SeenVersions
    caller: str | None
    # Whether the caller must have read a file that it changes.
    require_read: bool
    seq: int = 0
    # The version that a read-only tool is about to read.
    _version: Version = None
    _seen: Mapping[str, Version] = NO_VERSIONS

    def check(self, tool: Tool, params: object, context: ToolContext) -> None:
        """Raise `StaleRead` or `UnreadFile` if the tool would overwrite what the caller has not seen."""
        if tool.read_only:
            # Taken before the file is read: the caller might not see what another call changes meanwhile.
            path = getattr(params, "path", None)
            if tool.operation == "read" and isinstance(path, str):
                self._version = self.known.version(self.caller, path)
        elif tool.targets is not None and self.known.matter_to(self.caller):
            for target in tool.targets(params, context):
                self._check_target(target, context.filesystem)

    def _check_target(self, target: str, filesystem: Filesystem | None) -> None:
        known, caller = self.known, self.caller
        try:
            # The path after following links.
            path = known.path_of(target)
        except (OSError, ValueError):
            with suppress(OSError, ValueError):
                # The target no longer exists, or is not a file.
                known.check(caller, canonical_path(filesystem, target))
        else:
            if self.require_read:
                known.check_was_read(caller, path)
            known.check(caller, path, shown_by=filesystem)

    def add_read(self, tool: Tool, result: ToolResult[object]) -> None:
        """Add the file that a read-only tool has read."""
        path = getattr(result.value, "path", None)
        if tool.operation == "read" and isinstance(path, str) and path:
            self._seen = {path: self._version}

    def add_changes(self, rows: Iterable[Row]) -> None:
        """Add the files that the call changed, given its records; what others changed is left out."""
        self._seen = self.known.changed(self.caller, rows)

    def remember(self) -> None:
        """Let later calls know what this one saw. For a call with a caller, its events do that."""
        if self.caller is None:
            for path, version in self._seen.items():
                self.known.saw(path, version, seq=self.seq)

    def events(self) -> list[FileSeen]:
        """Return the events that record which versions of files the caller has seen."""
        if self.caller is None:
            return []
        found = (self.known.sighting(self.caller, path, version, seq=self.seq) for path, version in self._seen.items())
        return [seen for seen in found if seen is not None]
