"""The configuration of Sphinx for these pages; `make docs` runs it."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

import weakfs

project = "weakfs"
author = "the authors of weakfs"
release = version = weakfs.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx_click", "docs.generate.sphinx_extension"]
exclude_patterns = ["generate", "_build"]
source_suffix = {".md": "markdown"}

html_theme = "furo"
html_title = f"weakfs {release}"
html_copy_source = False
html_show_sourcelink = False

myst_heading_anchors = 4
myst_enable_extensions = ["deflist"]

autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
autodoc_default_options = {
    "members": True,
    # Inherited members are shown, except those of these classes: other pages or Python's documentation describe them.
    "inherited-members": (
        "BaseFilesystem,FilesystemPrimitives,Receipt,BaseException,Sequence,Protocol,Generic,str,tuple,type"
    ),
}
python_use_unqualified_type_names = True

# The benchmark pages keep the tables and heading levels that `make bench` prints.
suppress_warnings = ["myst.header"]
