"""The format of a patch, and its dialect: options for parsing and applying it where runtimes differ."""

from __future__ import annotations

from typing import Literal

from weakfs.class_decorators import frozen
from weakfs.fast_init import fast_init

PatchFormat = Literal["v4a", "unified", "search_replace"]
OnExisting = Literal["replace", "reject"]
OnAmbiguous = Literal["reject", "first"]
FinalNewline = Literal["keep", "add"]


@fast_init
@frozen
class Dialect:
    """How to parse and apply a patch where runtimes differ; see `weakfs.editing.apply_patch`.

    `is_codex` makes updates behave like Codex's; the options about places and final newlines are then ignored.
    """

    on_existing: OnExisting = "replace"
    on_ambiguous: OnAmbiguous = "reject"
    final_newline: FinalNewline = "keep"
    added_file_newline: bool = True
    is_codex: bool = False
