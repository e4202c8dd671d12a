"""Plain copies of the pages, `llms.txt`, and docstrings as autodoc reads them."""

from __future__ import annotations

import inspect
from pathlib import Path
from types import SimpleNamespace

import pytest
from attrs import field, frozen

from docs.generate import sphinx_extension
from tests.docs.test_pages import DOCS


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """Write the copies of some pages, as after a build."""
    includes = {"index": ["tutorial/agent", "reference/session", "reference/command-line", "reference/error-codes"]}
    app = SimpleNamespace(
        outdir=tmp_path,
        srcdir=DOCS,
        builder=SimpleNamespace(name="html"),
        config=SimpleNamespace(root_doc="index"),
        env=SimpleNamespace(toctree_includes=includes),
    )
    sphinx_extension.write_copies(app, None)
    return tmp_path


def test_llms_txt_links_to_a_copy_of_every_page(out: Path) -> None:
    lines = (out / "llms.txt").read_text().splitlines()
    assert lines[0] == "# weakfs"
    assert lines[2].startswith("> weakfs is the filesystem that an agent runtime embeds")
    links = [line.partition("](")[2].partition(")")[0] for line in lines if line.startswith("- ")]
    assert links == [
        "tutorial/agent.md",
        "reference/session.md",
        "reference/command-line.md",
        "reference/error-codes.md",
    ]
    assert all((out / link).is_file() for link in links)
    assert [line for line in lines if line.startswith("- ") and line.endswith(": ")] == []


def test_a_copy_contains_the_generated_parts_of_the_page(out: Path) -> None:
    assert "| `edit_target_not_found` |" in (out / "reference" / "error-codes.md").read_text()
    assert "weakfs.session.Session(" in (out / "reference" / "session.md").read_text()
    assert "## weakfs replay" in (out / "reference" / "command-line.md").read_text()
    for page in out.rglob("*.md"):
        assert "<!-- generated" not in page.read_text()
        assert "{eval-rst}" not in page.read_text()


def test_nothing_is_written_after_a_build_that_failed(tmp_path: Path) -> None:
    sphinx_extension.write_copies(SimpleNamespace(outdir=tmp_path), RuntimeError("broken"))
    assert list(tmp_path.iterdir()) == []


def test_code_in_a_docstring_is_code_in_the_reference() -> None:
    lines = ["Return `x` of a `Session`.", "", "```python", "x = 1", "```", "- one", "- two"]
    sphinx_extension.docstring_to_rst(None, "function", "f", None, None, lines)
    text = "\n".join(lines)
    assert "``x``" in text
    assert ":py:obj:`Session <weakfs.session.Session>`" in text
    assert ".. code-block:: python\n\n    x = 1\n" in text
    assert "\n\n- one\n- two" in text


def test_the_defaults_of_an_attrs_class_are_shown_as_values() -> None:
    @frozen
    class Options:
        depth: int = field(default=3, converter=int)
        names: list[str] = field(factory=list)

    function = Options.__init__
    signature = inspect.signature(function)
    # What autodoc finds in the source that attrs generates.
    sources = {"depth": "attr_dict['depth'].default", "names": "NOTHING"}
    function.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[
            parameter.replace(default=Source(sources[name])) if name in sources else parameter
            for name, parameter in signature.parameters.items()
        ]
    )
    sphinx_extension.show_defaults(None, function, True)
    parameters = inspect.signature(function).parameters
    assert [repr(parameters[name].default) for name in sources] == ["3", "..."]


class Source(str):
    """A default value as autodoc represents it: by its source text."""

    def __repr__(self) -> str:
        return str(self)
