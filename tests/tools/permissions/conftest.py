"""Files that policies hide in part, on each kind of backend."""

from __future__ import annotations

import pytest

from tests.tools.conftest import Files, OpenFiles
from tests.tools.permissions.hidden_files import SECRET
from weakfs import Filesystem, Session


@pytest.fixture
def files(open_files: OpenFiles) -> Filesystem:
    found = open_files(Session(), follow_symlinks="within_root_only")
    for path, content in {
        "/src/app.py": "port = 80\n",
        "/src/lib/util.py": "port = 1\n",
        "/docs/guide.md": "the port\n",
        "/secrets/token": "port knocking\n",
        "/server.key": "port key\n",
    }.items():
        found.write(path, content)
    found.symlink("../docs/guide.md", "/src/link.md")
    return found


@pytest.fixture
def session_files(open_files: OpenFiles) -> Files:
    files = open_files(Session())
    files.write("/secrets/token.py", SECRET)
    files.write("/pub/open.py", "open = 1\n")
    return files
