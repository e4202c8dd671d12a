"""The MCP project's reference filesystem server, from npm: where it is, and a client of it."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

# The version with which answers are compared.
VERSION = "2026.8.31"


def reference_program() -> str | None:
    """Return the path of the reference server's program, or `None` where Node.js or the package is missing."""
    return shutil.which("mcp-server-filesystem") if shutil.which("node") else None


def reference_client(*directories: Path) -> Client:
    program = reference_program()
    assert program is not None
    parameters = StdioServerParameters(command=program, args=[*map(str, directories)])
    return Client(stdio_client(parameters, errlog=sys.__stderr__ or sys.stderr), mode="legacy")
