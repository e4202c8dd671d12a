"""Files that policies hide in part, and handlers of a tool under a guard."""

from __future__ import annotations

from collections.abc import Callable

from attrs import frozen

from tests.tools.commands import TOOLS
from weakfs import Capability, Filesystem, Policy, PolicyRule, Tool, ToolContext, ToolResult, Toolset
from weakfs.tools import require_filesystem
from weakfs.tools.permissions import CONTENTS

SECRETS = Policy([PolicyRule(effect="deny", operations=CONTENTS, paths=["/secrets", "*.key"], reason="credentials")])
SOURCES = Policy(
    [PolicyRule(effect="only", operations=["write", "edit", "patch"], paths="/src", reason="only sources change")]
)


def toolset(files: Filesystem, capability: Capability | None = None, policy: Policy | None = None) -> Toolset:
    session = files.session  # type: ignore[attr-defined]  # these three have one
    return Toolset(session, files, tools=TOOLS, capability=capability, policy=policy)


@frozen
class Script:
    """Something that a custom tool does with its filesystem."""


def handled(files: Filesystem, work: Callable[[Filesystem], object], **bounds: object) -> ToolResult[object]:
    def handle(params: Script, *, context: ToolContext) -> ToolResult[object]:
        return ToolResult("done", work(require_filesystem(context)))

    session = files.session  # type: ignore[attr-defined]  # these three have one
    tools = Toolset(session, files, tools=[Tool("script", "Do it.", Script, handle)], **bounds)  # type: ignore[arg-type]
    return tools.call("script", {})
