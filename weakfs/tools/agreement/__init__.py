"""Recorded sessions of other programs: each call performed by our tools, in the world as it was, and compared.

`_claude_code` and `_codex` say which of our tools each of theirs is and what a recording tells of the files,
`_dialects` has our tools with their ways, `_world` puts the files right, and `_importing` compares.
"""

from weakfs.tools.agreement._importing import Agreement, Checked, Importer, Verdict
from weakfs.tools.agreement._texts import Difference

__all__ = ["Agreement", "Checked", "Difference", "Importer", "Verdict"]
