"""Notes on exported commits: the lines that their calls wrote, in two formats that other programs read.

The authorship log of git-ai (https://github.com/git-ai-project/git-ai, standard 3.0.0) belongs under `refs/notes/ai`;
an Agent Trace record (https://agent-trace.dev, 0.1) does not say where it is stored, and is put under
`refs/notes/agent-trace`.
"""

from __future__ import annotations

from hashlib import sha256
from urllib.parse import quote
from uuid import UUID

import orjson

from weakfs.editing.unified_hunks import changes
from weakfs.history.commit_graph import Commit
from weakfs.history.plain_values import moment
from weakfs.history.tree_patch import COUNTING_WORK, file_changes
from weakfs.reducers import diff
from weakfs.reducers.merging.line_merge import split_lines
from weakfs.reducers.tree.leaf import is_file, same_content
from weakfs.reducers.tree.node import EMPTY_TREE
from weakfs.search import is_binary
from weakfs.session import MissingBlob
from weakfs.snapshots.git.reserved_names import is_refused

AUTHORSHIP_REF, TRACE_REF = "refs/notes/ai", "refs/notes/agent-trace"

# The first and the last line, counted from 1.
Ranges = list[tuple[int, int]]


def added_lines(commit: Commit) -> dict[str, Ranges]:
    """Return the lines of text files that a commit added or changed, by path without the leading slash.

    A merge adds none: the merged commits have notes about its lines.
    """
    if len(commit.parents) > 1 or not commit.calls:
        return {}
    base = commit.parents[0].tree if commit.parents else EMPTY_TREE
    found: dict[str, Ranges] = {}
    for change in file_changes(base, commit.tree, diff(base, commit.tree)):
        new, old = change.new, change.old
        if new is None or not is_file(new) or any(map(is_refused, change.new_path.split("/"))):
            continue
        if old is not None and same_content(old, new):
            continue
        try:
            before, after = change.contents()
        except MissingBlob:
            continue
        if is_binary(before) or is_binary(after):
            continue
        edits = changes(split_lines(before), split_lines(after), COUNTING_WORK)
        ranges = [(start + 1, stop) for _, _, start, stop in edits if stop > start]
        if ranges:
            found[change.new_path[1:]] = ranges
    return found


def authorship_log(commit: Commit, object_id: str, session_id: str, lines: dict[str, Ranges]) -> bytes | None:
    """Return the git-ai note of a commit; `None` if there is nothing to attest."""
    caller = _caller(commit)
    conversation = session_id if caller is None else f"{session_id}/{caller}"
    session = "s_" + _hash(f"weakfs:{conversation}")
    key = f"{session}::t_{_hash(_calls(commit))}"
    attested: list[str] = []
    for path, ranges in lines.items():
        if '"' in path or not path.isprintable():
            # The format cannot represent such a name.
            continue
        name = f'"{path}"' if any(map(str.isspace, path)) else path
        spans = ",".join(str(first) if first == last else f"{first}-{last}" for first, last in ranges)
        attested.append(f"{name}\n  {key} {spans}\n")
    if not attested:
        return None
    record: dict[str, object] = {
        "agent_id": {"tool": "weakfs", "id": conversation, "model": "unknown"},
        "custom_attributes": {"calls": _calls(commit)},
    }
    metadata = {
        "schema_version": "authorship/3.0.0",
        "base_commit_sha": object_id,
        "prompts": {},
        "sessions": {session: record},
    }
    return "".join(attested).encode() + b"---\n" + orjson.dumps(metadata, option=orjson.OPT_INDENT_2) + b"\n"


def trace_record(commit: Commit, object_id: str, session_id: str, lines: dict[str, Ranges]) -> bytes | None:
    """Return the Agent Trace record of a commit as JSON; `None` if it added no lines."""
    if not lines:
        return None
    url = f"weakfs:session/{quote(session_id, safe='')}#record={commit.first}"
    files = [
        {
            "path": path,
            "conversations": [
                {
                    "url": url,
                    "contributor": {"type": "ai"},
                    "ranges": [{"start_line": first, "end_line": last} for first, last in ranges],
                }
            ],
        }
        for path, ranges in lines.items()
    ]
    own = {"calls": [call.call.call_id for call in commit.calls], "tools": [call.call.tool for call in commit.calls]}
    # The same record has the same id in every export.
    name = sha256(f"{session_id}\n{object_id}".encode("utf-8", "surrogatepass")).digest()[:16]
    record = {
        "version": "0.1",
        "id": str(UUID(bytes=name, version=5)),
        "timestamp": moment(max(commit.at, 0)),
        "vcs": {"type": "git", "revision": object_id},
        "files": files,
        "metadata": {"dev.weakfs": own},
    }
    return orjson.dumps(record) + b"\n"


def _caller(commit: Commit) -> str | None:
    callers = {call.call.caller for call in commit.calls}
    return callers.pop() if len(callers) == 1 else None


def _calls(commit: Commit) -> str:
    return ",".join(call.call.call_id for call in commit.calls)


def _hash(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:14]
