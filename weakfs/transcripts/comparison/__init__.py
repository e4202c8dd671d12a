"""Recorded sessions of other programs: each call performed by our tools, in the world as it was, and compared.

`_claude_code`, `_codex` and `_copilot` say which of our tools each of theirs is and what a recording tells of the
files, `_dialects` has our tools with their ways, `_reconstruction` collects what is shown of files at any place,
`_world` puts the files right, `_importing` performs, and `_verdicts` compares.
"""

from weakfs.transcripts.comparison.file_states import IMPORT_CAUSE
from weakfs.transcripts.comparison.importer import Importer
from weakfs.transcripts.comparison.recorded_failures import RECORDED_FAILURE, record_failure
from weakfs.transcripts.comparison.verdicts import Agreement, Checked, Verdict
from weakfs.transcripts.reconstruction.file_text import Difference

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
