"""One conversation in a few calls: an edit, a call that fails, a mistake that is rolled back, another process."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Mapping
from difflib import unified_diff
from pathlib import Path

from examples.demo.recorded import mounted
from examples.demo.report import Report
from weakfs import InMemoryFilesystem, Session, Toolset

CART = "/src/shop/cart.py"
SEARCH = {"pattern": r"bulk_from\b", "path": "/src"}
# What the model remembers of the file, and what is really there.
MISQUOTED = {
    "path": CART,
    "old_string": "if line.quantity > self.settings.bulk_threshold:",
    "new_string": "if line.quantity >= self.settings.bulk_threshold:",
}
QUOTED = {
    "path": CART,
    "old_string": "if line.quantity > self._settings.bulk_from:",
    "new_string": "if line.quantity >= self._settings.bulk_from:",
}
MISTAKE = {"path": "/src", "recursive": True}


def tell_story(report: Report, file: Path) -> None:
    """Make the calls of a short conversation, print what each did, and save the session to `file`."""
    session, files = mounted()
    toolset = Toolset(session, files)
    report.text("The user asks: the bulk discount must start at 10 items, not at 11.")
    call(report, toolset, "grep", SEARCH)
    before = files.tree().fingerprint
    call(report, toolset, "edit_file", MISQUOTED)
    report.prove("the call that failed changed nothing", files.tree().fingerprint, before)
    old = files.read(CART).content
    call(report, toolset, "edit_file", QUOTED)
    report.text("What that changed:")
    report.diff(unified_diff(old.splitlines(), files.read(CART).content.splitlines(), CART, CART, "", "", 1, ""))
    session.snapshot("fixed")
    fixed = files.tree().fingerprint
    call(report, toolset, "rm", MISTAKE)
    report.paragraph("That was a mistake, and is rolled back:")
    with report.step('session.rollback("fixed")') as step:
        session.rollback("fixed")
        step.result = f"{files.statistics().file_count} files are there"
    report.prove("every file is as it was", files.tree().fingerprint, fixed)
    report.paragraph("The conversation continues elsewhere:")
    with report.step(f'session.save("{file.name}")') as step:
        saved = session.save(file)
        step.result = f"{saved.records} records, {saved.size_bytes:,} bytes"
    with report.step("another process resumes the session") as step:
        step.result = resumed_elsewhere(file)
    loaded = Session.load(file)
    log = InMemoryFilesystem(loaded).read("/CHANGELOG.md").content
    report.prove("this process loads what that one saved", RESUMED_LINE in log, True)
    report.prove("and both processes' records are in it", len(loaded.records) > saved.records, True)


def call(report: Report, toolset: Toolset, name: str, arguments: Mapping[str, object]) -> None:
    """Make a tool call; print what the agent asked, and what its model gets."""
    report.paragraph(f"The agent calls {name}:")
    for key, value in arguments.items():
        report.text(str(value), label=f"  {key}: ", style="bold")
    result = toolset.call(name, arguments)
    report.text("Its model gets:" if result.success else "The call fails, and its model gets:")
    report.text(result.message, label="  ", style="" if result.success else "red")


RESUMED_LINE = "- The bulk discount starts at ten items of a product."
RESUME = """
import sys
from weakfs import Session, Toolset

session = Session.load(sys.argv[1])
result = Toolset(session).call(
    "edit_file", {"path": "/CHANGELOG.md", "old_string": "- Nothing yet.", "new_string": sys.argv[2]}
)
session.save(sys.argv[1])
print(result.message)
"""


def resumed_elsewhere(file: Path) -> str:
    """Continue a saved session in another process, and return what that printed."""
    words = [sys.executable, "-c", RESUME, str(file), RESUMED_LINE]
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()


def commands(file: Path) -> tuple[str, ...]:
    """List the commands that show more of the saved session."""
    installed = Path(sys.executable).with_name("weakfs")
    program = shown(installed) if installed.exists() else f"{shown(Path(sys.executable))} -m weakfs"
    where = shown(file)
    return (
        f"{program} log {where}",
        f"{program} diff {where}",
        f"{program} diff --call 4 {where}",
        f"{program} cat {where} {CART}",
    )


def shown(path: Path) -> str:
    """Write a path as one would type it in the current directory."""
    path = path.absolute()
    return shlex.quote(str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path))
