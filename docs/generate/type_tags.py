"""The table of types that a session file may hold: every tag of the standard registry with its fields."""

from __future__ import annotations

import inspect

from weakfs import Registry
from weakfs.session.slices.tags import fields_of


def page() -> str:
    """Return the table as Markdown."""
    lines = ["| tag | type | fields |", "| --- | --- | --- |"]
    for tag, shape in sorted(Registry.standard().by_tag.items()):
        fields = ", ".join(f"`{field.name}`" for field in fields_of(shape.cls))
        summary = (inspect.getdoc(shape.cls) or "").partition("\n")[0].replace("|", "\\|")
        lines.append(f"| `{tag}` | `{shape.cls.__name__}`: {summary} | {fields} |")
    return "\n".join(lines) + "\n"
