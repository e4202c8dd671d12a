"""The table of names that can be imported from `weakfs` itself, with the package that documents each."""

from __future__ import annotations

import inspect

import weakfs
from weakfs import _HOME_OF

PAGES = {"weakfs.tools": "tools-package.md"}

# Classes that `weakfs.composition_root` derives from documented ones.
DERIVED = {"Registry": "weakfs.session", "Session": "weakfs.session", "StorageFilesystem": "weakfs.backends"}


def page() -> str:
    """Return the table as Markdown."""
    lines = ["| name | documented in | what it is |", "| --- | --- | --- |"]
    for name in weakfs.__all__:
        home = DERIVED.get(name, _HOME_OF[name])
        target = PAGES.get(home, f"{home.rpartition('.')[2]}.md")
        link = f"[`{home}`]({target})" if home != "weakfs.errors" else "[Error codes](error-codes.md)"
        value = getattr(weakfs, name)
        is_documented = inspect.isclass(value) or inspect.isfunction(value)
        summary = (
            (inspect.getdoc(value) or "").partition("\n")[0] if is_documented else "The tools that come with weakfs."
        )
        lines.append(f"| `{name}` | {link} | {summary} |")
    return "\n".join(lines) + "\n"
