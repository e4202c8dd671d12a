"""Work at scale: the source tree of the standard library is mounted, searched, refactored, rolled back and saved."""

from __future__ import annotations

import os
import sysconfig
from pathlib import Path

from examples.demo.report import Report, megabytes
from weakfs import HostMount, InMemoryFilesystem, Limits, Session, Toolset
from weakfs.backends.host_mount import mount

EXCLUDED = ("__pycache__", "site-packages", "dist-packages")


def standard_library() -> Path:
    """Return the directory of the running interpreter's standard library."""
    return Path(sysconfig.get_paths()["stdlib"])


def work_at_scale(report: Report, library: Path, file: Path) -> None:
    """Do to thousands of real files what an agent does to a project, and prove each step."""
    session = Session()
    files = InMemoryFilesystem(session)
    copy_in(report, session, files, library)
    mounted = session.snapshot("mounted")
    before = files.tree().fingerprint
    search(report, files)
    refactor(report, session, files)
    session.snapshot("refactored")
    after = files.tree().fingerprint
    report.prove("the refactored tree is different", before != after, True)
    fail_in_the_middle(report, session, files)
    with report.step("roll back to the mounted tree"):
        session.rollback(mounted)
    report.prove("every file is as it was mounted", files.tree().fingerprint, before)
    with report.step("roll forward to the refactored one"):
        session.rollback("refactored")
    report.prove("every edit is there again", files.tree().fingerprint, after)
    keep(report, session, files, file)


def copy_in(report: Report, session: Session, files: InMemoryFilesystem, library: Path) -> None:
    """Mount the tree, and prove that the files in memory equal those on disk."""
    with report.step("mount") as step, report.bar("mount") as advance:
        wanted = HostMount(library, exclude=EXCLUDED)
        done = mount(session, wanted, Limits(), on_file=lambda _path, _size: advance())
        assert done is not None
        step.result = f"{done.file_count:,} files in {done.directory_count:,} directories, {megabytes(done.total_size)}"
    for path, reason in done.skipped:
        report.note(f"left out {path}: {reason}")
    left_out = {path for path, _ in done.skipped}
    with report.step("digest") as step:
        step.result = files.tree().digest[:16]
    differing = [path for path in paths_below(library) if path not in left_out and not same(files, library, path)]
    report.prove("every file in memory equals the one on disk, byte for byte", differing, [])


def paths_below(library: Path) -> list[str]:
    """List the files to be mounted, according to the operating system."""
    found: list[str] = []
    for folder, directories, names in os.walk(library):
        directories[:] = [name for name in directories if name not in EXCLUDED]
        prefix = Path(folder).relative_to(library)
        found += [f"/{(prefix / name).as_posix()}" for name in names]
    return found


def same(files: InMemoryFilesystem, library: Path, path: str) -> bool:
    """Return whether a file in memory equals the one on disk."""
    host = library / path[1:]
    if host.is_symlink():
        return files.readlink(path) == os.readlink(host)
    return files.read_bytes(path).content == host.read_bytes()


def search(report: Report, files: InMemoryFilesystem) -> None:
    """Search the whole tree for names and contents."""
    with report.step("glob **/*.py") as step:
        modules = files.glob("**/*.py", max_results=100_000)
        step.result = f"{len(modules):,} modules"
    with report.step("glob **/{test_*,__main__}.py") as step:
        step.result = f"{len(files.glob('**/{test_*,__main__}.py', max_results=100_000)):,} modules"
    with report.step(r"grep def \w+\(self\b") as step:
        found = files.grep(r"def \w+\(self\b", glob="*.py", max_matches=1_000_000)
        step.result = f"{len(found):,} methods in {len({match.path for match in found}):,} files"
    with report.step("grep a word that does not occur") as step:
        nothing = files.grep("a word that does " + "not occur", glob="*.py")
        step.result = f"{len(nothing):,} lines in {nothing.files_searched:,} files"


def refactor(report: Report, session: Session, files: InMemoryFilesystem) -> None:
    """Move a package and edit every file that may import it, as an agent would: one tool call after another."""
    toolset = Toolset(session, files)
    with report.step("move /email to /mail"):
        assert toolset.call("mv", {"source": "/email", "destination": "/mail"}).success
    found = files.grep(r"^import (sys|os|re)$", glob="*.py", max_matches=1_000_000)
    lines = {match.path: match.line_content for match in found}
    with report.step("edit_file where sys, os, re are imported") as step, report.bar("edit", len(lines)) as advance:
        refused: dict[str, str | None] = {}
        for path, line in lines.items():
            edit = {"path": path, "old_string": line, "new_string": f"{line}  # seen", "replace_all": True}
            result = toolset.call("edit_file", edit)
            if not result.success:
                refused[path] = result.error_code
            advance()
        step.result = f"{len(lines) - len(refused):,} files, {len(session.records):,} records"
    for path, code in refused.items():
        report.note(f"refused {path}: {code}")
    report.prove("every file that is text was edited", set(refused.values()) - {"not_utf8"}, set[str]())
    seen = {match.path for match in files.grep(r"# seen$", glob="*.py", max_matches=1_000_000)}
    report.prove("and grep finds every edit", seen, lines.keys() - refused.keys())


def fail_in_the_middle(report: Report, session: Session, files: InMemoryFilesystem) -> None:
    """Make a job fail after a thousand deletions and writes, and prove that none of its changes remain."""
    before = files.tree().fingerprint
    with report.step("a job of 1,001 changes fails"):
        try:
            with session.transaction(cause="job"):
                files.delete("/mail", recursive=True)
                for number in range(1000):
                    files.write(f"/generated/{number % 20}/module_{number}.py", f"NUMBER = {number}\n")
                raise RuntimeError("the disk of the build machine is full")
        except RuntimeError:
            pass
    report.prove("none of its changes remain", files.tree().fingerprint, before)


def keep(report: Report, session: Session, files: InMemoryFilesystem, file: Path) -> None:
    """Save and load, and prove that nothing was lost."""
    with report.step("save") as step, report.bar("save"):
        saved = session.save(file)
        step.result = f"{megabytes(saved.size_bytes)}: {saved.records:,} records, {saved.snapshots} snapshots"
    with report.step("load") as step, report.bar("load"):
        loaded = Session.load(file)
        step.result = f"{len(loaded.records):,} records"
    again = InMemoryFilesystem(loaded)
    report.prove("the loaded tree has the same digest", again.tree().digest, files.tree().digest)
    report.prove("and the same fingerprint", again.tree().fingerprint, files.tree().fingerprint)
    with report.step("roll the loaded session back"):
        loaded.rollback("mounted")
    session.rollback("mounted")
    report.prove("its snapshots lead back to the same files", again.tree().fingerprint, files.tree().fingerprint)
