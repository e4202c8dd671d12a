"""Searches of names and lines: glob patterns and regular expressions, both in linear time, without any I/O.

Names are imported from their modules when they are first used: a new process uses few of them.
"""

from typing import TYPE_CHECKING

from weakfs.lazy_names import lazy_names

if TYPE_CHECKING:
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

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "glob": "GlobPattern GlobState compile_glob",
        "grep": "Hit LinePattern MultilinePattern compile_multiline compile_pattern is_binary",
    },
)
