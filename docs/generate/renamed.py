"""The table of names from the design documents, from the table that import errors use."""

from __future__ import annotations

from weakfs._name_hints import RENAMED


def page() -> str:
    """Return the table as Markdown."""
    lines = ["| name | here |", "| --- | --- |"]
    for name, here in sorted(RENAMED.items(), key=lambda pair: pair[0].lower()):
        shown = f"`{here}`" if " " not in here else here
        lines.append(f"| `{name}` | {shown} |")
    return "\n".join(lines) + "\n"
