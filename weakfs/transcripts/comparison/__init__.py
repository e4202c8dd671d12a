"""Recorded sessions of other programs: our tools run each call on the recorded files, and the results are compared.

`programs` maps the tools of each program to ours and reads what a recording says about the files; `programs.dialects`
contains variants of our tools that behave like theirs. `reconstruction` collects what the recording shows of files,
`file_states` sets up the files, `importer` runs the calls, and `verdicts` compares the results.

Names are imported from their modules when they are first used.
"""

from typing import TYPE_CHECKING

from weakfs.lazy_names import lazy_names

if TYPE_CHECKING:
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

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "file_states": "IMPORT_CAUSE",
        "importer": "Importer",
        "recorded_failures": "RECORDED_FAILURE record_failure",
        "verdicts": "Agreement Checked Difference Verdict",
    },
)
