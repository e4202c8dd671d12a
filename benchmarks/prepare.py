"""Make one environment for each peer below `.bench-venv`: `python -m benchmarks.prepare`.

Each environment contains the dependencies of weakfs and one peer, because a measurement is a pair: ours and theirs
in one process. A peer that does not support this Python is tried with the other versions on the machine. What could not
be installed, and why, is written to `.bench-venv/environments.json`; this is not an error.
"""

from __future__ import annotations

import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.peers import ADAPTERS

ROOT = Path(__file__).resolve().parent.parent
HOME = ROOT / ".bench-venv"
RECORD = HOME / "environments.json"
HARNESS = "harness"
NEWER = (12, 13, 14)
HARNESS_REQUIREMENTS = ("rich==15.0.0", "matplotlib==3.10.7", "openai-agents==0.24.0")


@dataclass(frozen=True)
class Environment:
    """Where a subject can be measured, or why it cannot."""

    name: str
    requirements: tuple[str, ...]
    python: str | None = None
    version: str = ""
    why_not: str = ""


def main() -> None:
    HOME.mkdir(exist_ok=True)
    known = {environment.name: environment for environment in recorded()}
    environments = []
    for name, requirements in wanted():
        environment = known.get(name)
        if environment is None or environment.requirements != requirements or not usable(environment):
            environment = prepare(name, requirements)
        environments.append(environment)
        print(f"{name}: {environment.why_not or 'ready'}", flush=True)
    RECORD.write_text(json.dumps([asdict(environment) for environment in environments], indent=2))


def wanted() -> list[tuple[str, tuple[str, ...]]]:
    """Return each environment's name and everything to install in it."""
    ours = tuple(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"])
    lines = [line.strip() for line in (ROOT / "benchmarks" / "peers.txt").read_text().splitlines()]
    peers = [line for line in lines if line and not line.startswith("#")]
    return [(HARNESS, (*HARNESS_REQUIREMENTS, *ours))] + [
        (re.split(r"[=<>~!\[ ]", peer, maxsplit=1)[0], (peer, *ours)) for peer in peers
    ]


def recorded() -> list[Environment]:
    """Return the environments that the last `prepare` recorded, none if it never ran."""
    if not RECORD.exists():
        return []
    return [
        Environment(**{**entry, "requirements": tuple(entry["requirements"])})
        for entry in json.loads(RECORD.read_text())
    ]


def usable(environment: Environment) -> bool:
    return environment.python is not None and Path(environment.python).exists()


def prepare(name: str, requirements: tuple[str, ...]) -> Environment:
    """Install into a fresh environment, with the first Python for which this succeeds."""
    why_not = ""
    for interpreter in interpreters():
        home = HOME / name
        shutil.rmtree(home, ignore_errors=True)
        run(interpreter, "-m", "venv", str(home))
        python = str(home / "bin" / "python")
        installed = run(python, "-m", "pip", "install", "--quiet", *requirements)
        if installed.returncode:
            why_not = why_not or reason(installed.stderr)
            continue
        imported = run(python, "-c", f"import {ADAPTERS[name].module}") if name in ADAPTERS else installed
        if imported.returncode == 0:
            version = run(python, "-c", "import platform; print(platform.python_version())").stdout.strip()
            return Environment(name, requirements, python, version)
        why_not = why_not or f"it can be installed but not imported: {last_line(imported.stderr)}"
    return Environment(name, requirements, why_not=why_not)


def interpreters() -> list[str]:
    """Return this Python, then newer ones that run: on the path, or where pyenv installs them."""
    pyenv = os.environ.get("PYENV_ROOT", os.path.expanduser("~/.pyenv"))
    others = [f"python3.{minor}" for minor in NEWER]
    others += [path for minor in NEWER for path in glob.glob(f"{pyenv}/versions/3.{minor}.*/bin/python")]
    found = [name for name in others if shutil.which(name) and run(name, "-c", "").returncode == 0]
    return [sys.executable, *found]


def reason(stderr: str) -> str:
    """Return a short reason why pip failed."""
    needs = re.findall(r"Requires-Python ([^;\n]+)", stderr)
    if needs:
        return f"it requires Python {needs[-1].strip()}"
    errors = [line for line in stderr.splitlines() if line.startswith("ERROR:")]
    return errors[-1].removeprefix("ERROR: ") if errors else last_line(stderr)


def last_line(text: str) -> str:
    return text.strip().splitlines()[-1] if text.strip() else "no message"


def run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


if __name__ == "__main__":
    main()
