"""Recorded sessions of other programs: each call performed by our tools, in the world as it was, and compared.

`_claude_code`, `_codex` and `_copilot` say which of our tools each of theirs is and what a recording tells of the
files, `_dialects` has our tools with their ways, `_reconstruction` collects what is shown of files at any place,
`_world` puts the files right, `_importing` performs, and `_verdicts` compares.
"""

from weakfs.tools.agreement._failures import RECORDED_FAILURE, record_failure
from weakfs.tools.agreement._importing import Importer
from weakfs.tools.agreement._texts import Difference
from weakfs.tools.agreement._verdicts import Agreement, Checked, Verdict
from weakfs.tools.agreement._world import IMPORT_CAUSE

__all__ = [
    "IMPORT_CAUSE",
    "RECORDED_FAILURE",
    "Agreement",
    "Checked",
    "Difference",
    "Importer",
    "Verdict",
    "record_failure",
]
