"""How a patch is read where runtimes differ."""

from __future__ import annotations

from typing import Literal

from attrs import frozen

OnExisting = Literal["replace", "reject"]
OnAmbiguous = Literal["reject", "first"]
FinalNewline = Literal["keep", "add"]


@frozen
class Dialect:
    """How a patch is read where runtimes differ; see `weakfs.editing.apply_patch`.

    `is_codex` gives updates the ways of Codex; what is said of places and last newlines is then for nothing.
    """

    on_existing: OnExisting = "replace"
    on_ambiguous: OnAmbiguous = "reject"
    final_newline: FinalNewline = "keep"
    added_file_newline: bool = True
    is_codex: bool = False
