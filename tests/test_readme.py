"""The example of the README does what it says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

README = Path(__file__).parent.parent / "README.md"


def example() -> str:
    """Give the README's only piece of Python."""
    _, opening, rest = README.read_text(encoding="utf-8").partition("```python\n")
    code, closing, more = rest.partition("```")
    assert opening
    assert closing
    assert "```python" not in more
    return code


def test_the_example_prints_what_its_comments_say(tmp_path: Path) -> None:
    (tmp_path / "my-project").mkdir()
    (tmp_path / "my-project" / "app.py").write_text("port = 80\n")
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", example()], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == ["False edit_target_not_found", "False"]
    assert (tmp_path / "conversation.json").exists()


def test_the_example_is_short() -> None:
    lines = [line for line in example().splitlines() if line.strip()]
    assert len(lines) <= 15


def test_the_folders_that_the_readme_names_are_there() -> None:
    text = README.read_text(encoding="utf-8")
    for folder in ("session", "reducers", "weakfs/filesystem", "weakfs/backends", "weakfs/tools", "weakfs/testing"):
        assert f"`{folder}`" in text or f"({folder!r})" in text
        assert (README.parent / folder).is_dir()
    for document in ("docs/benchmarks.md", "docs/why.md"):
        assert f"]({document})" in text
        assert (README.parent / document).is_file()
