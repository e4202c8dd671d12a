"""The conformance suite: what every backend answers to the same call.

A backend's test class gives `make_fs` and inherits every case:

    from weakfs.testing import FilesystemConformance

    class TestMyBackend(FilesystemConformance):
        def make_fs(self, *, prepare=None, limits=None, read_only=False, follow_symlinks="deny"):
            ...

The cases lie in one module a theme; `harness.py` says what an implementer may override.
"""

from __future__ import annotations

from .append_cases import AppendCases
from .archive_cases import ArchiveCases
from .byte_cases import ByteCases
from .copy_cases import CopyCases
from .delete_cases import DeleteCases
from .digest_cases import DigestCases
from .directory_cases import DirectoryCases
from .glob_cases import GlobCases
from .grep_cases import GrepCases
from .grep_pattern_cases import GrepPatternCases
from .harness import FilesystemCases, Prepare, refused
from .limit_cases import LimitCases
from .link_cases import LinkCases
from .link_policy_cases import LinkPolicyCases
from .message_cases import MessageCases
from .mode_cases import ModeCases
from .move_cases import MoveCases
from .name_cases import NameCases
from .page_cases import PageCases
from .path_cases import PathCases
from .quota_cases import QuotaCases
from .read_only_cases import ReadOnlyCases
from .snapshot_cases import SnapshotCases
from .splice_cases import SpliceCases
from .stat_cases import StatCases
from .stream_cases import StreamCases
from .text_cases import TextCases
from .write_cases import WriteCases

__all__ = ["FilesystemCases", "FilesystemConformance", "Prepare", "refused"]


class FilesystemConformance(
    PathCases,
    NameCases,
    TextCases,
    PageCases,
    ByteCases,
    WriteCases,
    AppendCases,
    SpliceCases,
    StreamCases,
    DirectoryCases,
    DeleteCases,
    MoveCases,
    CopyCases,
    LinkCases,
    LinkPolicyCases,
    ModeCases,
    StatCases,
    GlobCases,
    GrepCases,
    GrepPatternCases,
    LimitCases,
    QuotaCases,
    ReadOnlyCases,
    SnapshotCases,
    ArchiveCases,
    DigestCases,
    MessageCases,
):
    """Prove that a backend answers as every other backend does; inherit it and give `make_fs`."""
