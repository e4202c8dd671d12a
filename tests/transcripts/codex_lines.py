"""Lines of rollout files of Codex."""

from __future__ import annotations

import json

from tests.transcripts.codex_model import ROOT, Line


def meta(cwd: str = ROOT) -> Line:
    return {"timestamp": "t", "type": "session_meta", "payload": {"id": "r1", "cwd": cwd}}


def item(**payload: object) -> Line:
    return {"timestamp": "t", "type": "response_item", "payload": payload}


def patch_call(id: str, *lines: str) -> Line:
    patch = "\n".join(["*** Begin Patch", *lines, "*** End Patch", ""])
    return item(type="custom_tool_call", status="completed", call_id=id, name="apply_patch", input=patch)


def shell_call(id: str, command: object, **more: object) -> Line:
    arguments = json.dumps({"command": command, **more})
    return item(type="function_call", name="shell", arguments=arguments, call_id=id)


def output(id: str, text: str = "Success. Updated the following files:\nM a\n", code: int = 0) -> Line:
    body = json.dumps({"output": text, "metadata": {"exit_code": code, "duration_seconds": 0.1}})
    return item(type="function_call_output", call_id=id, output=body)


def applied(id: str, **changes: object) -> Line:
    payload = {"type": "patch_apply_end", "call_id": id, "success": True, "stdout": "", "stderr": ""}
    named = {f"{ROOT}/{name}": change for name, change in changes.items()}
    return {"timestamp": "t", "type": "event_msg", "payload": {**payload, "changes": named}}
