"""Run the tests of each extra with the oldest version that it names: `python -m tests.oldest_versions [EXTRA ...]`.

`core` is what the library needs without any extra.

The oldest versions of an extra's own packages are put in front of the environment that runs this; their dependencies
stay as new as they are there.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import tomllib
import venv
from pathlib import Path

ROOT = Path(__file__).parent.parent

# The tests of each extra; `docs` has none.
TESTS = {
    "acp": "tests/integrations/acp_client",
    "anthropic": "tests/integrations/anthropic_sdk",
    "claude-agent": "tests/integrations/claude_agent",
    "cli": "tests/cli",
    "core": "tests/session",
    "deepagents": "tests/integrations/deepagents_backend",
    "fsspec": "tests/integrations/test_fsspec.py",
    "google-adk": "tests/integrations/google_adk",
    "langchain": "tests/integrations/langchain_agent",
    "langgraph": "tests/integrations/langgraph_saver",
    "mcp": "tests/integrations/mcp_server",
    "mount": "tests/integrations/mount",
    "openai-agents": "tests/integrations/openai_agents",
    "postgresql": "tests/storage/test_postgresql.py",
    "pydantic-ai": "tests/integrations/pydantic_ai_agent",
    "redis": "tests/storage/test_redis.py",
    "s3": "tests/storage/test_objects.py",
    "testing": "tests/conformance/test_memory.py",
    "tui": "tests/cli/terminal",
}
# Older versions and their tests may use what newer packages next to them have deprecated.
ALLOWED = ("-W", "ignore::DeprecationWarning")


def oldest(extra: str) -> list[str]:
    """Return the requirements of an extra, or of the library itself, each with its oldest version."""
    with open(ROOT / "pyproject.toml", "rb") as stream:
        project = tomllib.load(stream)["project"]
    wanted: list[str] = project["dependencies"] if extra == "core" else project["optional-dependencies"][extra]
    found = [requirement.replace(">=", "==") for requirement in wanted]
    # The compiled part of psycopg is a package of its own, with the same version.
    return [*found, *(one.replace("[binary]", "-binary") for one in found if "[binary]" in one)]


def passes(extra: str, directory: Path) -> bool:
    """Run the tests of an extra, with a directory for its environment."""
    venv.create(directory, with_pip=False)
    here = Path(next(path for path in sys.path if path.endswith("site-packages")))
    own = directory.joinpath(*here.parts[-3:])
    (own / "~newest.pth").write_text(f"{here}\n")
    install = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(own), *oldest(extra)]
    python = str(directory / "bin" / "python")
    tests = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *ALLOWED, TESTS[extra]]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    print(f"== {', '.join(oldest(extra))}", flush=True)
    return all(
        subprocess.run(words, cwd=ROOT, env=environment, check=False).returncode == 0 for words in (install, tests)
    )


def main(extras: list[str]) -> int:
    failed: list[str] = []
    for extra in extras or sorted(TESTS):
        with tempfile.TemporaryDirectory() as directory:
            if not passes(extra, Path(directory)):
                failed.append(extra)
    print("failed:", " ".join(failed) or "none")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
