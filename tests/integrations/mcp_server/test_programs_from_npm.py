"""Programs of the MCP project from npm: its conformance suite, and the command line of its inspector.

They need Node.js 22, which `.ci/run` installs next to them from npm. So a `node` next to the program is tried first.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.integrations.mcp_server.test_transports import WEAKFS, http

# The versions that are run, as in .ci/run.
CONFORMANCE = "@modelcontextprotocol/conformance@0.1.16"
INSPECTOR = "@modelcontextprotocol/inspector@2.12.0"

# The scenarios that pass; the others require tools, prompts and resources of the suite's own server.
PASSED = {
    "server-initialize": 1,
    "ping": 1,
    "tools-list": 1,
    # This scenario passes with any answer, even the answer that there is no tool with that name.
    "tools-call-simple-text": 1,
    "tools-call-error": 1,
    "server-sse-multiple-streams": 2,
    "resources-list": 1,
    "dns-rebinding-protection": 2,
}
FAILED = {
    "logging-set-level",
    "completion-complete",
    "tools-call-image",
    "tools-call-audio",
    "tools-call-embedded-resource",
    "tools-call-mixed-content",
    "tools-call-with-logging",
    "tools-call-with-progress",
    "tools-call-sampling",
    "tools-call-elicitation",
    "elicitation-sep1034-defaults",
    "elicitation-sep1330-enums",
    "resources-read-text",
    "resources-read-binary",
    "resources-templates-read",
    "resources-subscribe",
    "resources-unsubscribe",
    "prompts-list",
    "prompts-get-simple",
    "prompts-get-with-args",
    "prompts-get-embedded-resource",
    "prompts-get-with-image",
}


@cache
def program(name: str, package: str) -> list[str] | None:
    """Return the command of a program from npm with a Node.js that is new enough, or `None` if there is none."""
    found = shutil.which(name)
    if found is None:
        return None
    installed = Path(found).resolve()
    manifest = next((one / "package.json" for one in installed.parents if (one / "package.json").is_file()), None)
    wanted = package.rsplit("@", 1)
    if manifest is None or [json.loads(manifest.read_text()).get(part) for part in ("name", "version")] != wanted:
        return None
    for node in (shutil.which("node", path=str(Path(found).parent)), shutil.which("node")):
        if node is not None:
            version = subprocess.run(
                [node, "--version"], capture_output=True, text=True, timeout=120, check=False
            ).stdout
            if (number := re.match(r"v(\d+)", version)) and int(number[1]) >= 22:
                return [node, str(installed)]
    return None


def needs(name: str, package: str) -> list[str]:
    found = program(name, package)
    if found is None:
        pytest.skip(f"needs {package} from npm on the PATH, and node@22")
    return found


@pytest.mark.slow
def test_the_conformance_suite_passes_for_supported_features(tmp_path: Path) -> None:
    command = needs("conformance", CONFORMANCE)
    (tmp_path / "root").mkdir()
    (tmp_path / "root/a.txt").write_text("1\n")
    with http(str(tmp_path / "root"), "--store", str(tmp_path / "store")) as url:
        done = subprocess.run(
            [*command, "server", "--url", url, "--output-dir", str(tmp_path / "results")],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
    summary = done.stdout.partition("=== SUMMARY ===")[2]
    results = re.findall(r"^. (\S+): (\d+) passed, (\d+) failed", summary, re.MULTILINE)
    assert {name: int(passed) for name, passed, failed in results if failed == "0"} == PASSED, done.stdout
    assert {name for name, _, failed in results if failed != "0"} == FAILED


@pytest.mark.slow
@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_the_inspector_lists_and_calls_the_tools(tmp_path: Path, transport: str) -> None:
    command = needs("mcp-inspector", INSPECTOR)
    root = tmp_path / "root"
    root.mkdir()
    options = (str(root), "--store", str(tmp_path / "store"))

    def inspect(server: list[str], *words: str) -> Any:
        done = subprocess.run(
            [*command, "--cli", *server, *words], capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def check(server: list[str]) -> None:
        names = {tool["name"] for tool in inspect(server, "--method", "tools/list")["tools"]}
        assert {"read_file", "write_file", "apply_patch", "undo"} <= names
        arguments = ("--tool-arg", "path=/a.txt", "--tool-arg", "content=one")
        answer = inspect(server, "--method", "tools/call", "--tool-name", "write_file", *arguments)
        assert not answer.get("isError")
        assert (root / "a.txt").read_text() == "one"
        uris = [one["uri"] for one in inspect(server, "--method", "resources/list")["resources"]]
        assert uris == ["weakfs:///a.txt"]

    if transport == "stdio":
        check([*WEAKFS, "mcp", *options])
    else:
        with http(*options) as url:
            check([url, "--transport", "http"])
