"""Searches of names and lines: glob patterns and regular expressions, both in linear time, without any I/O."""

from weakfs.search.glob import GlobPattern, GlobState, compile_glob
from weakfs.search.grep import Hit, LinePattern, compile_pattern, is_binary

__all__ = [
    "GlobPattern",
    "GlobState",
    "Hit",
    "LinePattern",
    "compile_glob",
    "compile_pattern",
    "is_binary",
]
