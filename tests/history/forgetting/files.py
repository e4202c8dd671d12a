"""Looking for a text in files."""

from __future__ import annotations

from pathlib import Path

from weakfs.history.forgetting.search import files_with_forms
from weakfs.history.forgetting.text_redaction import forms_of


def files_with(text: str, *paths: Path) -> tuple[str, ...]:
    """Return the files among `paths`, and below the directories among them, that hold a text in any form."""
    return files_with_forms(tuple(forms_of(text)), map(str, paths))
