"""Hooks of the Sphinx build: generated parts of pages, docstrings in Markdown, plain copies and `llms.txt`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from docs.generate import api, commands, error_codes, renamed, tools, top_level, type_tags

# A page has one of these comments where the part belongs: <!-- generated: tools -->
PARTS: dict[str, Callable[[], str]] = {
    "tools": tools.page,
    "error codes": error_codes.page,
    "renamed": renamed.page,
    "top level": top_level.page,
    "type tags": type_tags.page,
}
_PART = re.compile(r"^<!-- generated: ([a-z ]+) -->$", re.MULTILINE)

_AUTODOC = re.compile(r"^```\{eval-rst\}\n\.\. automodule:: (\S+)\n(?: .*\n)*```$", re.MULTILINE)
_CLICK = re.compile(r"^```\{eval-rst\}\n\.\. click:: \S+\n(?: .*\n|\n)*```$", re.MULTILINE)

PACKAGES = (
    "weakfs.session",
    "weakfs.filesystem",
    "weakfs.backends",
    "weakfs.reducers",
    "weakfs.snapshots",
    "weakfs.editing",
    "weakfs.search",
    "weakfs.storage",
    "weakfs.tools",
    "weakfs.tools.handlers",
    "weakfs.tools.sections",
    "weakfs.processes",
    "weakfs.transcripts",
    "weakfs.testing",
)

_SPAN = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
# The parts of `llms.txt`, by directory.
HEADINGS = {
    "tutorial": "Tutorial",
    "howto": "How-to guides",
    "reference": "Reference",
    "explanation": "Explanation",
}

_NO_PROSE = re.compile(r"```|[#<|:-]")
_ATTRS_DEFAULT = re.compile(r"attr_dict\['(\w+)'\]\.default")
_FENCE = re.compile(r"^```(\w*)$")
# A block that the reader is to save as a file.
_TITLED = re.compile(r"^```(\w+) title=(\S+)$", re.MULTILINE)


def expand_parts(app: Any, docname: str, source: list[str]) -> None:
    """Put the generated parts into a page before it is parsed, and captions above blocks to save as files."""
    text = _PART.sub(lambda found: PARTS[found[1]](), source[0])
    text = _AUTODOC.sub(lambda found: found[0] + tool_constants(found[1]), text)
    source[0] = _TITLED.sub(r"```{code-block} \1\n:caption: \2\n", text)


def tool_constants(package: str) -> str:
    """Return the entries of the tools among a package's names: autodoc leaves out imported constants."""
    module = import_module(package)
    entries = [
        f".. py:data:: {name}\n   :module: {package}\n\n   {shown.replace('`', '``')}\n"
        for name in module.__all__
        if (shown := api.tools_in(getattr(module, name))) is not None
    ]
    return "\n\n```{eval-rst}\n" + "\n".join(entries) + "```" if entries else ""


def homes() -> dict[str, str]:
    """Return the full name of each public name, by the short name."""
    return {
        name: f"{package}.{name}"
        for package in PACKAGES
        for name in import_module(package).__all__
        if name[0].isupper()
    }


_HOMES = homes()


def _span(found: re.Match[str]) -> str:
    home = _HOMES.get(found[1])
    # An escaped space lets a role end before a letter.
    return f"``{found[1]}``\\ " if home is None else f":py:obj:`{found[1]} <{home}>`\\ "


def docstring_to_rst(app: Any, what: str, name: str, value: object, options: object, lines: list[str]) -> None:
    """Convert the Markdown of a docstring to reStructuredText: code spans, fences, lists and block quotes."""
    out: list[str] = []
    fenced = False
    for line in lines:
        fence = _FENCE.match(line.strip())
        if fence:
            fenced = not fenced
            out += ["", f".. code-block:: {fence[1] or 'python'}", ""] if fenced else [""]
        elif fenced:
            out.append("    " + line)
        else:
            if line.startswith("- ") and out and out[-1].strip() and not out[-1].startswith(("- ", "  ")):
                out.append("")
            out.append(_SPAN.sub(_span, line) if not line.startswith("    ") else line)
    lines[:] = _with_literal_blocks(out)


def _with_literal_blocks(lines: list[str]) -> list[str]:
    """Put `::` before indented blocks, which are tables and examples in our docstrings."""
    out: list[str] = []
    in_code = False
    for line in lines:
        indented = line.startswith("    ")
        if line.startswith(".. code-block"):
            in_code = True
        elif line.strip() and not indented:
            in_code = False
        if indented and not in_code and not (out and out[-1].startswith("    ")):
            before = next((text for text in reversed(out) if text.strip()), "")
            if not before.startswith(("    ", "::")):
                out += ["::", ""]
        out.append(line)
    return out


def show_defaults(app: Any, function: Any, is_bound: bool) -> None:
    """Put the defaults of an attrs class into its signature: attrs generates the source of its `__init__`."""
    fields = getattr(function, "__globals__", {}).get("attr_dict")
    if fields is None or not hasattr(function, "__signature__"):
        return
    parameters = [
        parameter.replace(default=_Default(str(parameter.default), fields))
        if parameter.default is not parameter.empty
        else parameter
        for parameter in function.__signature__.parameters.values()
    ]
    function.__signature__ = function.__signature__.replace(parameters=parameters)


class _Default:
    """A default in the generated source of an attrs class, shown as its value; `...` if a factory makes it."""

    def __init__(self, source: str, fields: Mapping[str, Any]) -> None:
        found = _ATTRS_DEFAULT.fullmatch(source)
        value = repr(fields[found[1]].default) if found else source
        self._shown = "..." if source == "NOTHING" or len(value) > 60 else value

    def __repr__(self) -> str:
        return self._shown


def skip_member(app: Any, what: str, name: str, value: object, skip: bool, options: object) -> bool | None:
    """Leave out a backend's primitives: they are documented once, with `FilesystemPrimitives`."""
    return True if api.implements_a_primitive(name, value) else None


def write_copies(app: Any, failure: Exception | None) -> None:
    """Write each page as plain Markdown beside its HTML, and `llms.txt` with a link to each."""
    if failure is not None or app.builder.name != "html":
        return
    out, source = Path(app.outdir), Path(app.srcdir)
    entries: list[tuple[str, str, str]] = []
    for docname in _in_order(app):
        text = (source / f"{docname}.md").read_text(encoding="utf-8")
        text = _PART.sub(lambda found: PARTS[found[1]](), text)
        text = _AUTODOC.sub(lambda found: api.page(found[1]), text)
        text = _CLICK.sub(lambda found: commands.page(), text)
        target = out / f"{docname}.md"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
        entries.append((docname, *_title_and_summary(text)))
    (out / "llms.txt").write_text(_llms(entries), encoding="utf-8")


def _in_order(app: Any) -> list[str]:
    """Return all pages in the order of the tables of contents."""
    found: list[str] = []

    def visit(docname: str) -> None:
        if docname not in found:
            found.append(docname)
            for below in app.env.toctree_includes.get(docname, ()):
                visit(below)

    visit(app.config.root_doc)
    return found


def _title_and_summary(text: str) -> tuple[str, str]:
    title = next(line[2:] for line in text.splitlines() if line.startswith("# "))
    paragraphs = text.partition(f"# {title}\n")[2].split("\n\n")
    plain = (" ".join(part.split()) for part in paragraphs if part.strip() and not _NO_PROSE.match(part.strip()))
    summary = re.sub(r"\[([^\]]+)\]\([^)]+\)", r"\1", next(plain, ""))
    return title, re.split(r"(?<=\.) ", summary)[0].rstrip(":")


def _llms(entries: list[tuple[str, str, str]]) -> str:
    index, rest = entries[0], entries[1:]
    lines = [f"# {index[1]}", "", f"> {index[2]}", ""]
    heading = ""
    for docname, title, summary in rest:
        here = HEADINGS.get(docname.partition("/")[0], "More")
        if here != heading:
            lines += ["", f"## {here}", ""]
            heading = here
        lines.append(f"- [{title}]({docname}.md): {summary}")
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)) + "\n"


def show_options(app: Any) -> None:
    """Show the signatures of `Toolset.call` and `acall`, which name each option, instead of their overloads."""
    analyzer = import_module("sphinx.pycode").ModuleAnalyzer.for_module("weakfs.tools.toolset")
    analyzer.analyze()
    for name in ("Toolset.call", "Toolset.acall"):
        del analyzer.overloads[name]


def import_documented(app: Any) -> None:
    """Import all packages of the reference, since an incremental build reads only the pages that changed.

    Autodoc may reload modules, which some optional packages do not survive if they are first imported afterwards.
    """
    for page in Path(app.srcdir).rglob("*.md"):
        for package in _AUTODOC.findall(page.read_text(encoding="utf-8")):
            import_module(package)


def setup(app: Any) -> dict[str, Any]:
    """Connect the hooks."""
    app.connect("builder-inited", import_documented)
    app.connect("builder-inited", show_options)
    app.connect("source-read", expand_parts)
    # After autodoc, which takes defaults from the source.
    app.connect("autodoc-before-process-signature", show_defaults, priority=600)
    app.connect("autodoc-process-docstring", docstring_to_rst)
    app.connect("autodoc-skip-member", skip_member)
    app.connect("build-finished", write_copies)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
