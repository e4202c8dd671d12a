"""The text editor tool: the commands of Anthropic's `text_editor` tools, on the files of a session."""

from __future__ import annotations

from typing import Any, Literal, cast

from anthropic.lib.tools import BetaAsyncBuiltinFunctionTool, BetaBuiltinFunctionTool, BetaFunctionToolResultType
from anthropic.types.beta import BetaToolUnionParam

from weakfs.filesystem import Filesystem
from weakfs.integrations.anthropic.editor_commands import editor_tool
from weakfs.integrations.anthropic.runner import shown
from weakfs.session import Session
from weakfs.tools import Capability, Policy, Toolset

EditorVersion = Literal["20250728", "20250429", "20250124", "20241022"]

# The older versions have another name, and the additional command undo_edit.
NAMES: dict[EditorVersion, str] = {
    "20250728": "str_replace_based_edit_tool",
    "20250429": "str_replace_based_edit_tool",
    "20250124": "str_replace_editor",
    "20241022": "str_replace_editor",
}


def _definition(version: EditorVersion, max_characters: int | None) -> BetaToolUnionParam:
    if version not in NAMES:
        raise ValueError(f"there is no version {version!r} of the text editor; use one of {', '.join(NAMES)}")
    if max_characters is not None and (version != "20250728" or max_characters < 1):
        raise ValueError("max_characters must be a number above 0, and needs the version 20250728; leave it out")
    definition: dict[str, object] = {"type": f"text_editor_{version}", "name": NAMES[version]}
    if max_characters is not None:
        definition["max_characters"] = max_characters
    return cast("BetaToolUnionParam", definition)


class _Editor:
    """What the tools for both clients share."""

    def __init__(
        self,
        session: Session,
        filesystem: Filesystem | None = None,
        *,
        version: EditorVersion = "20250728",
        max_characters: int | None = None,
        capability: Capability | None = None,
        policy: Policy | None = None,
        caller: str | None = None,
    ) -> None:
        super().__init__()
        self._definition = _definition(version, max_characters)
        tool = editor_tool(NAMES[version], max_characters, has_undo=NAMES[version] == "str_replace_editor")
        self.toolset = Toolset(
            session, filesystem, tools=[tool], capability=capability, policy=policy, refuse_stale_writes=False
        )
        self._caller = caller

    def to_dict(self) -> BetaToolUnionParam:
        """Return the definition for a request."""
        return self._definition


class TextEditorTool(_Editor, BetaBuiltinFunctionTool):
    """Anthropic's text editor tool on the files of a session, or on a filesystem with that session.

    Each command is one call of the session: it is recorded, and undone if it fails. `version` is the version in the
    tool's type, and `max_characters` limits how much of a file `view` shows. `capability` and `policy` limit what
    a command may do: `str_replace` and `insert` read and write. `caller` is recorded with each call.
    """

    def call(self, input: object) -> BetaFunctionToolResultType:
        """Run one command, as the model sent it."""
        return shown(self.toolset.call(self.name, cast("Any", input), caller=self._caller))


class AsyncTextEditorTool(_Editor, BetaAsyncBuiltinFunctionTool):
    """`TextEditorTool` for an `AsyncAnthropic` client."""

    async def call(self, input: object) -> BetaFunctionToolResultType:
        """Run one command, as the model sent it."""
        return shown(await self.toolset.acall(self.name, cast("Any", input), caller=self._caller))
