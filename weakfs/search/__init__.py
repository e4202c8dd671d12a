"""Searches of names and lines: glob patterns and regular expressions, both in linear time, without any I/O."""

from weakfs.search.glob import GlobPattern, GlobState, compile_glob
from weakfs.search.grep import Hit, LinePattern, MultilinePattern, compile_multiline, compile_pattern, is_binary

__all__ = [
    "GlobPattern",
    "GlobState",
    "Hit",
    "LinePattern",
    "MultilinePattern",
    "compile_glob",
    "compile_multiline",
    "compile_pattern",
    "is_binary",
]
