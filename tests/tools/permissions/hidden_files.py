"""A file whose words must not be revealed, rules that hide it, and what a call reveals."""

from __future__ import annotations

from tests.tools.conftest import Files
from weakfs import Capability, Policy, PolicyRule, ToolResult, Toolset
from weakfs.tools.permissions import CONTENTS

# Each word of the secret occurs only in the file that is hidden.
SECRET = "def unlock(door):\n    alpha = 'wombat'\n    beta = 'quokka'\n    return alpha\n\nalpha = 'numbat'\n"
WORDS = ("wombat", "quokka", "numbat")


def rule(effect: str, operations: object, paths: object = "/secrets", reason: str = "credentials") -> Policy:
    made = PolicyRule(effect=effect, operations=operations, paths=paths, reason=reason)  # type: ignore[arg-type]
    return Policy([made])


DENIED = rule("deny", ["read"])
WITHHELD = rule("blob", ["read"])


def toolset(files: Files, policy: Policy | None = None, capability: Capability | None = None) -> Toolset:
    assert files.session is not None
    return Toolset(files.session, files, policy=policy, capability=capability)


def told(result: ToolResult[object]) -> str:
    return f"{result.message}\n{result.value!r}\n{getattr(result.value, 'content', '')}"


def quotes(result: ToolResult[object]) -> list[str]:
    return [word for word in WORDS if word in told(result)]


def patch(*lines: str) -> tuple[str, dict[str, object]]:
    return "apply_patch", {"patch": "\n".join(["*** Begin Patch", *lines, "*** End Patch"])}


def unified(*lines: str) -> tuple[str, dict[str, object]]:
    return "apply_patch", {"patch": "\n".join(lines) + "\n", "patch_format": "unified"}


UPDATE = "*** Update File: /secrets/token.py"
RULES = {
    "deny read": DENIED,
    "deny contents": rule("deny", CONTENTS),
    "blob": WITHHELD,
    "blob on search": rule("blob", ["search"]),
    "only elsewhere": rule("only", ["read"], "/pub"),
}
