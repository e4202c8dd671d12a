"""The recorded run with LangChain: the work, what went wrong, going back in time, and continuing in another process."""

from __future__ import annotations

import pytest

from tests.examples.agent_work import lines_of_example


@pytest.mark.exhaustive
def test_the_files_go_back_with_the_thread_in_another_process() -> None:
    printed = lines_of_example("langchain")
    assert [line.partition(":")[0] for line in printed[:4]] == [
        "edit_file success",
        "write_file success",
        "shell error",
        "shell success",
    ]
    assert printed[4:] == [
        "left: nothing",
        "write_file success: Created /notes.md (12 bytes)",
        "left: docs/ports.md notes.md src/app.py",
        "port = 8000",
        "calls: edit_file write_file shell shell write_file",
    ]
