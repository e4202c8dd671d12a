"""The examples of the README do what they say."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

README = Path(__file__).parent.parent / "README.md"


def examples() -> list[str]:
    """Give the README's pieces of Python: in memory, and on the host."""
    found = re.findall(r"^```python\n(.*?)^```$", README.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    assert len(found) == 2
    return found


def printed(code: str, folder: Path) -> list[str]:
    """Run an example in a folder with a small project, and give the lines that it prints."""
    (folder / "my-project").mkdir()
    (folder / "my-project" / "app.py").write_text("port = 80\n")
    words = [sys.executable, "-W", "error", "-c", code]
    environment = {**os.environ, "XDG_STATE_HOME": str(folder / "state")}
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def comments(code: str) -> list[str]:
    """Give what an example says that it prints."""
    return [line.partition("#")[2].strip().partition(", and")[0] for line in code.splitlines() if "print(" in line]


def test_the_example_prints_what_its_comments_say(tmp_path: Path) -> None:
    code = examples()[0]
    assert printed(code, tmp_path) == comments(code) == ["False edit_target_not_found", "False"]
    assert (tmp_path / "conversation.json").exists()


def test_the_example_on_the_host_prints_what_its_comments_say(tmp_path: Path) -> None:
    code = examples()[1]
    assert printed(code, tmp_path) == comments(code)
    assert (tmp_path / "my-project" / "notes.md").read_text() == "port = 80\n"


def test_the_examples_are_short() -> None:
    for code in examples():
        assert len([line for line in code.splitlines() if line.strip()]) <= 15


def test_the_folders_that_the_readme_names_are_there() -> None:
    text = README.read_text(encoding="utf-8")
    for folder in ("session", "reducers", "weakfs/filesystem", "weakfs/backends", "weakfs/tools", "weakfs/testing"):
        assert f"`{folder}`" in text or f"({folder!r})" in text
        assert (README.parent / folder).is_dir()
    for document in ("docs/benchmarks.md", "docs/why.md"):
        assert f"]({document})" in text
        assert (README.parent / document).is_file()
