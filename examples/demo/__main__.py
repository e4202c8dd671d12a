"""Run the demo: a conversation, recorded sessions, the standard library refactored, a repository, a container."""

from __future__ import annotations

import argparse
import logging
import sys
import tempfile
from pathlib import Path

from examples.demo.container import in_a_container
from examples.demo.host import in_place
from examples.demo.library import standard_library, work_at_scale
from examples.demo.recorded import WORKSPACE, all_forms, one_session
from examples.demo.report import NotProved, Report
from examples.demo.story import commands, tell_story

# Where the session of the conversation is saved.
KEPT = Path(".demo")


def main() -> int:
    options = argparse.ArgumentParser(prog="python -m examples.demo", description=__doc__)
    options.add_argument("--library", type=Path, default=standard_library(), help="another source tree to work on")
    options.add_argument(
        "--keep", type=Path, help=f"save all sessions in this directory (by default only the first, in {KEPT})"
    )
    chosen = options.parse_args()

    # Warnings, for example about a process that a rollback ends, are part of the story.
    logging.basicConfig(level=logging.ERROR)
    report = Report()
    with tempfile.TemporaryDirectory() as scratch:
        folder = chosen.keep or Path(scratch)
        story = (chosen.keep or KEPT) / "story.json"
        folder.mkdir(parents=True, exist_ok=True)
        story.parent.mkdir(parents=True, exist_ok=True)
        try:
            report.section("A short conversation, in memory")
            tell_story(report, story)
            report.section(f"A recorded session over {WORKSPACE.name}")
            one_session(report, folder / "shop.json")
            report.section("The same session as other programs write it")
            all_forms(report)
            report.section(f"At scale: {chosen.library}")
            work_at_scale(report, chosen.library, folder / "library.json")
            report.section(f"On the host: {WORKSPACE.name} as a git repository, worked on in place")
            in_place(report, Path(scratch), folder / "host.json")
            report.section("In a container")
            in_a_container(report, Path(scratch))
        except NotProved as failure:
            print(f"NOT PROVED: {failure}", file=sys.stderr)
            return 1
    report.end()
    report.commands("Look into the conversation that was saved:", commands(story))
    return 0


if __name__ == "__main__":
    sys.exit(main())
