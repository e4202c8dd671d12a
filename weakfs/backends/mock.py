"""A filesystem that is a script: it records every call and gives the answers that it was told to give."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from threading import Lock
from types import MappingProxyType
from typing import IO, Any, Literal, Self, TypeVar, cast

from attrs import define, field, frozen

from weakfs.filesystem.limits import Limits
from weakfs.filesystem.paths import normalize
from weakfs.filesystem.protocol import Filesystem, OpenMode
from weakfs.filesystem.results import (
    FileEntry,
    FilesystemSnapshot,
    FileStat,
    GlobResult,
    GrepResult,
    ReadBytesResult,
    ReadResult,
    RestoreReport,
    Statistics,
    WriteMode,
    WriteResult,
)
from weakfs.reducers import FileTree
from weakfs.session import Session

T = TypeVar("T")
