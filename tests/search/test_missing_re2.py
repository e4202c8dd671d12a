"""Without the package google-re2, which has no wheel for every Python and platform: only searching fails."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

WITHOUT_RE2 = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("re2", "_re2"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
"""

ALL_BUT_SEARCHING = """
import weakfs, weakfs.testing, weakfs.cli, weakfs.transcripts

session = weakfs.Session()
toolset = weakfs.Toolset(session)
assert toolset.call("write_file", {"path": "/a.py", "content": "one"}).success
assert toolset.call("edit_file", {"path": "/a.py", "old_string": "one", "new_string": "two"}).success
assert toolset.call("glob", {"pattern": "**/*.py"}).success
assert len(toolset.definitions("openai")) > 0
session.save("session.json")
assert weakfs.InMemoryFilesystem(weakfs.Session.load("session.json")).read("/a.py").content == "two"
"""

SEARCHING = """
import weakfs

files = weakfs.InMemoryFilesystem()
toolset = weakfs.Toolset(files.session, files)
for search in (lambda: files.grep("one"), lambda: toolset.call("grep", {"pattern": "one"})):
    try:
        search()
    except ModuleNotFoundError as error:
        assert error.name == "re2"
        print(error)
"""


def run_without_re2(code: str, directory: Path) -> str:
    words = [sys.executable, "-W", "error", "-c", WITHOUT_RE2 + code]
    done = subprocess.run(words, cwd=directory, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_everything_but_searching_works_without_re2(tmp_path: Path) -> None:
    run_without_re2(ALL_BUT_SEARCHING, tmp_path)


def test_the_error_of_a_search_says_how_to_install_re2(tmp_path: Path) -> None:
    messages = run_without_re2(SEARCHING, tmp_path).splitlines()
    assert len(messages) == 2
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    for message in messages:
        assert "google-re2 cannot be imported (No module named 're2'); run pip install --only-binary" in message
        assert f"if there is no wheel for Python {python} on {sys.platform}, install" in message
        assert "libre2-dev libabsl-dev pybind11-dev" in message
