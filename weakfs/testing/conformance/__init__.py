"""The conformance suite: every backend must give the same answer to the same call.

A backend's test class implements `make_fs` and inherits every case:

    from weakfs.testing import FilesystemConformance

    class TestMyBackend(FilesystemConformance):
        def make_fs(self, *, prepare=None, limits=None, read_only=False, follow_symlinks="deny"):
            ...

There is one module of cases per topic; `harness.py` documents what an implementer may override.

Where the interface leaves a choice, the suite decides:

- `move` and `copy` create missing parents. Onto a directory they raise `IsADirectoryError`, whatever the source; a
  directory onto a file raises `NotADirectoryError`; a directory into itself or onto itself raises `ValueError`, and a
  file or a link onto itself changes nothing. Both treat a link as a link, at the source and at the destination. Both
  keep the permission bits; a move also keeps the modification time.
- `write(mode="create")` on a directory raises `IsADirectoryError`; `mkdir` on a file raises `FileExistsError`, below a
  file `NotADirectoryError`; `mkdir` of the root is allowed as for any directory that exists.
- `stat`, `readlink`, `delete`, `move` and `copy` apply to the link itself under every policy; everything else
  follows it or is refused. A loop raises `OSError` (ELOOP). `readlink` of anything else is an error.
- `truncated` says whether lines (or bytes, or matches) follow those returned. A limit of 0 returns none, -1 all; a
  smaller limit raises `ValueError`, and so does an offset below 0. An explicit limit may exceed the preset.
- `write_lines` is the inverse of `read_lines`: every line but the last gets a newline if it lacks one.
- Directories and links have a size of 0. Overwriting and appending keep the permission bits; `chmod` keeps the
  modification time.
- Paths are ordered by their characters, so `/a b` comes before `/a/b`. `walk` yields a directory before its
  contents. `list` is ordered by name.
- A foreign snapshot and a damaged archive raise `ValueError`; `import_bytes` replaces the whole tree.
- A stream that is dropped without being closed has no effect; mode `x` is checked when it is opened and when it is
  closed.
"""

from __future__ import annotations

from weakfs.testing.conformance.contents.byte_cases import ByteCases
from weakfs.testing.conformance.contents.stream_cases import StreamCases
from weakfs.testing.conformance.contents.text_cases import TextCases
from weakfs.testing.conformance.contents.write_cases import WriteCases
from weakfs.testing.conformance.entries.directory_cases import DirectoryCases
from weakfs.testing.conformance.entries.link_cases import LinkCases
from weakfs.testing.conformance.entries.path_cases import PathCases
from weakfs.testing.conformance.entries.relocation_cases import RelocationCases
from weakfs.testing.conformance.entries.stat_cases import StatCases
from weakfs.testing.conformance.harness import FilesystemCases, Prepare, refused
from weakfs.testing.conformance.limit_cases import LimitCases
from weakfs.testing.conformance.message_cases import MessageCases
from weakfs.testing.conformance.read_only_cases import ReadOnlyCases
from weakfs.testing.conformance.search.glob_cases import GlobCases
from weakfs.testing.conformance.search.grep_cases import GrepCases
from weakfs.testing.conformance.states.archive_cases import ArchiveCases
from weakfs.testing.conformance.states.digest_cases import DigestCases
from weakfs.testing.conformance.states.history_cases import HistoryCases
from weakfs.testing.conformance.states.snapshot_cases import SnapshotCases

__all__ = ["FilesystemCases", "FilesystemConformance", "Prepare", "refused"]


class FilesystemConformance(
    PathCases,
    TextCases,
    ByteCases,
    WriteCases,
    StreamCases,
    DirectoryCases,
    RelocationCases,
    LinkCases,
    StatCases,
    GlobCases,
    GrepCases,
    LimitCases,
    ReadOnlyCases,
    SnapshotCases,
    ArchiveCases,
    DigestCases,
    HistoryCases,
    MessageCases,
):
    """Test that a backend behaves like all other backends; inherit from it and implement `make_fs`."""
