"""The profile `filesystem` side by side with the reference server from npm: the same calls, the same answers."""

from __future__ import annotations

import asyncio
import json
import os
import re
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp.client.client import Client

from tests.integrations.mcp_server.reference import VERSION, reference_client, reference_program
from weakfs.integrations.mcp import filesystem_server

pytestmark = pytest.mark.skipif(
    reference_program() is None,
    reason=f"needs node, and on the PATH @modelcontextprotocol/server-filesystem@{VERSION} from npm",
)

PNG = bytes.fromhex("89504e470d0a1a0a0000000d49484452")


def fill(root: Path) -> None:
    (root / "src/deep/er").mkdir(parents=True)
    (root / "empty").mkdir()
    (root / "src/app.py").write_text("def a():\n    if x:\n        return 1\n    return 2\n")
    (root / "src/deep/b.txt").write_text("\n".join(f"line {number}" for number in range(30)) + "\n")
    (root / "src/deep/er/c.ts").write_text("no newline")
    (root / "src/.hidden").write_text("h")
    (root / "Ab.md").write_text("# A\r\ntwo\r\nthree\r\n")
    (root / "ab.md").write_text("x" * 3000)
    (root / "_x").write_text("")
    (root / "a-b").write_text("```\ncode\n```\n")
    (root / "p.PNG").write_bytes(PNG)
    (root / "s.wav").write_bytes(b"RIFF\xff")
    (root / "raw.bin").write_bytes(b"\x00\xff\xfea\n")
    (root / "bom.txt").write_bytes(b"\xef\xbb\xbfhello\nworld")
    (root / "été.txt").write_text("é\n")
    (root / "node_modules/x").mkdir(parents=True)
    (root / "node_modules/x/i.js").write_text("1")
    (root / "link.py").symlink_to("src/app.py")
    (root / "links").mkdir()
    (root / "links/out").symlink_to("/etc")
    (root / "links/dangling").symlink_to("nowhere")
    os.chmod(root / "ab.md", 0o600)


def calls(root: str) -> list[tuple[str, dict[str, Any]]]:
    """Return calls of every tool: reads, then changes, each followed by a look at what it did."""

    def path(*parts: str) -> str:
        return "/".join((root, *parts))

    reads: list[tuple[str, dict[str, Any]]] = [
        ("read_file", {"path": path("src/app.py")}),
        *(
            ("read_text_file", {"path": path(name)})
            for name in (
                "src/app.py",
                "Ab.md",
                "_x",
                "raw.bin",
                "bom.txt",
                "été.txt",
                "link.py",
                "none",
                "src",
                "links/out/passwd",
                "links/dangling",
                "../x",
            )
        ),
        ("read_text_file", {"path": "src/app.py"}),
        ("read_text_file", {"path": "/etc/passwd"}),
        ("read_text_file", {"path": "C:\\x"}),
        *(
            ("read_text_file", {"path": path(name), which: count})
            for name in ("src/deep/b.txt", "src/deep/er/c.ts", "Ab.md", "_x")
            for which in ("head", "tail")
            for count in (0, 1, 2, 29, 30, 31, 100)
        ),
        ("read_text_file", {"path": path("Ab.md"), "head": 1, "tail": 1}),
        ("read_text_file", {"path": path("Ab.md"), "unknown": 1}),
        ("read_text_file", {}),
        ("read_text_file", {"path": 5}),
        *(("read_media_file", {"path": path(name)}) for name in ("p.PNG", "s.wav", "raw.bin", "none")),
        ("read_multiple_files", {"paths": [path("_x"), path("src/app.py")]}),
        ("read_multiple_files", {"paths": []}),
        *(("list_directory", {"path": path(name)}) for name in ("", "src", "empty", "none", "_x")),
        *(
            ("list_directory_with_sizes", {"path": path(name), "sortBy": order})
            for name in ("", "src", "empty")
            for order in ("name", "size")
        ),
        ("list_directory_with_sizes", {"path": root}),
        ("list_directory_with_sizes", {"path": root, "sortBy": "age"}),
        *(
            ("directory_tree", {"path": root, "excludePatterns": patterns})
            for patterns in ([], ["node_modules"], ["*.md"], ["**/*.py"], ["src/**"], ["er"], [".hidden", "c.ts"])
        ),
        *(
            ("search_files", {"path": root, "pattern": pattern, "excludePatterns": excluded})
            for pattern in (
                "*.py",
                "**/*.py",
                "**",
                "*",
                "src/*",
                "**/{b,c}.*",
                "**/[bc].t?",
                "nothing",
                "**/er",
                "src/deep/**",
                "**/.*",
            )
            for excluded in ([], ["src/deep/**"], ["**/*.ts", "node_modules"])
        ),
        ("search_files", {"path": path("src"), "pattern": "**/*.txt"}),
        *(("get_file_info", {"path": path(name)}) for name in ("ab.md", "src", "link.py", "none")),
        ("list_allowed_directories", {}),
        ("no_such_tool", {}),
    ]
    app, text = path("src/app.py"), path("src/deep/b.txt")
    edits: list[tuple[str, dict[str, Any]]] = [
        ("edit_file", {"path": file, "edits": [{"oldText": old, "newText": new} for old, new in pairs], "dryRun": dry})
        for dry in (True, False)
        for file, pairs in (
            (app, [("return 1", "return 10")]),
            (app, [("if x:\nreturn 10", "if y:\n  return 11\n  more()")]),
            (app, [("def a():", "def b():"), ("nowhere", "x")]),
            (text, [("line 3\n", ""), ("line 20\n", "line 20\nline 20.5\n"), ("line 29\n", "end")]),
            (path("src/deep/er/c.ts"), [("no newline", "no newline\nmore")]),
            (path("a-b"), [("code", "$& code $1")]),
            (path("Ab.md"), [("two\nthree", "zwei\ndrei")]),
            (path("_x"), [("", "first\n")]),
            (path("links/dangling"), [("a", "b")]),
            (app, []),
            (path("none"), [("a", "b")]),
        )
    ]
    writes: list[tuple[str, dict[str, Any]]] = [
        *edits,
        ("edit_file", {"path": app, "edits": [{"oldText": "a"}]}),
        ("write_file", {"path": path("new.txt"), "content": "new\r\ntext"}),
        ("write_file", {"path": path("ab.md"), "content": "kept mode"}),
        ("get_file_info", {"path": path("ab.md")}),
        ("write_file", {"path": path("missing/new.txt"), "content": "x"}),
        ("write_file", {"path": path("src"), "content": "x"}),
        ("write_file", {"path": path("link.py"), "content": "through the link"}),
        ("write_file", {"path": path("links/out/x"), "content": "x"}),
        ("write_file", {"path": path("_x")}),
        ("create_directory", {"path": path("d/e/f")}),
        ("create_directory", {"path": path("d/e")}),
        ("create_directory", {"path": path("_x")}),
        ("move_file", {"source": path("new.txt"), "destination": path("d/moved.txt")}),
        ("move_file", {"source": path("d"), "destination": path("empty/d")}),
        ("move_file", {"source": path("_x"), "destination": path("ab.md")}),
        ("move_file", {"source": path("none"), "destination": path("other")}),
        ("move_file", {"source": path("_x"), "destination": path("gone/x")}),
        ("move_file", {"source": path("_x"), "destination": "/tmp/x"}),
        ("move_file", {"source": path("src"), "destination": path("src/inside")}),
    ]
    return reads + writes


def comparable(name: str, result: types.CallToolResult) -> object:
    """Return a result without times, and without texts of errors that are not the reference server's own."""
    if result.is_error:
        text = getattr(result.content[0], "text", "")
        own = text if text.startswith(("Access denied", "Could not find", "Cannot specify", "Destination")) else ""
        return ("error", own)
    content = json.dumps([one.model_dump(mode="json") for one in result.content], ensure_ascii=False)
    structured = json.dumps(result.structured_content, ensure_ascii=False, sort_keys=True)
    if name == "get_file_info":
        content, structured = (re.sub(r"(created|modified|accessed): [^\\]*", "", one) for one in (content, structured))
    return (content, structured)


async def answers(client: Client, root: Path, pairs: list[tuple[str, dict[str, Any]]]) -> list[object]:
    found: list[object] = []
    async with client:
        for name, arguments in pairs:
            done = comparable(name, await client.session.call_tool(name, arguments))
            found.append(json.loads(json.dumps(done).replace(str(root), "ROOT")))
    return found


def contents(root: Path) -> dict[str, tuple[int, bytes]]:
    return {
        str(path.relative_to(root)): (path.lstat().st_mode, path.read_bytes() if path.is_file() else b"")
        for path in sorted(root.rglob("*"))
        if not str(path.relative_to(root)).startswith("links/out/")
    }


@pytest.fixture
def places(tmp_path: Path) -> tuple[Path, Path]:
    made = tmp_path / "theirs", tmp_path / "ours.."
    for place in made:
        place.mkdir()
        fill(place)
    return made


@pytest.mark.slow
def test_the_same_calls_get_the_same_answers_and_leave_the_same_files(
    places: tuple[Path, Path], tmp_path: Path
) -> None:
    theirs, ours = places
    server = filesystem_server([ours], store=str(tmp_path / "store"))
    session_calls = calls(str(theirs)), calls(str(ours))

    expected = asyncio.run(answers(reference_client(theirs), theirs, session_calls[0]))
    found = asyncio.run(answers(Client(server, mode="legacy"), ours, session_calls[1]))

    different = [
        (call, one, other) for call, one, other in zip(session_calls[0], expected, found, strict=True) if one != other
    ]
    assert not different, "\n".join(map(str, different))
    kept = contents(theirs)
    # The reference server turns CRLF into LF where it edits; we keep the file's line endings.
    assert kept["Ab.md"][1] == b"# A\nzwei\ndrei\n"
    assert contents(ours) == kept | {"Ab.md": (kept["Ab.md"][0], b"# A\r\nzwei\r\ndrei\r\n")}
