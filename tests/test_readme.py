"""The examples of the README do what they say."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

README = Path(__file__).parent.parent / "README.md"


def examples() -> list[str]:
    """Return the README's blocks of Python: in memory, and on the host."""
    found = re.findall(r"^```python\n(.*?)^```$", README.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    assert len(found) == 2
    return found


def printed(code: str, folder: Path) -> list[str]:
    """Run an example in a folder with a small project, and return the lines that it prints."""
    (folder / "my-project").mkdir()
    (folder / "my-project" / "app.py").write_text("port = 80\n")
    words = [sys.executable, "-W", "error", "-c", code]
    environment = {**os.environ, "XDG_STATE_HOME": str(folder / "state")}
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def comments(code: str) -> list[str]:
    """Return what the comments of an example say that it prints."""
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


def test_the_links_of_the_readme_lead_to_files() -> None:
    links = re.findall(r"\]\(([^)#]+)\)", README.read_text(encoding="utf-8"))
    assert len(links) > 10
    assert [link for link in links if "://" not in link and not (README.parent / link).is_file()] == []


def test_the_core_packages_are_linked_at_the_top_level() -> None:
    text = README.read_text(encoding="utf-8")
    for link in ("session", "reducers"):
        assert f"`{link}`" in text
        assert (README.parent / link).resolve() == (README.parent / "weakfs" / link).resolve()


def test_every_package_is_on_the_map_of_the_repository() -> None:
    text = (README.parent / "docs" / "contributing.md").read_text(encoding="utf-8")
    packages = {path.parent.name for path in (README.parent / "weakfs").glob("*/__init__.py")}
    assert [name for name in sorted(packages) if f"| `weakfs/{name}` |" not in text] == []
