"""An integration whose package is not installed names the extra to install."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    ("package", "module", "extra"),
    [
        ("pydantic_ai", "pydantic_ai", "pydantic-ai"),
        ("anthropic", "anthropic", "anthropic"),
        ("acp", "acp", "acp"),
        ("agents", "openai_agents", "openai-agents"),
        ("langgraph.checkpoint", "langgraph", "langgraph"),
        ("google.adk", "google_adk", "google-adk"),
        ("langchain", "langchain", "langchain"),
    ],
)
def test_the_message_names_the_extra(package: str, module: str, extra: str) -> None:
    program = f"import sys; sys.modules[{package!r}] = None; import weakfs.integrations.{module}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("ModuleNotFoundError: cannot use weakfs.integrations")
    assert f"run: pip install 'weakfs[{extra}]'" in last
