"""The demo proves what it says, and fails if it cannot."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from examples.demo.report import NotProved, Report, duration

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Name the directory in which the demo keeps its sessions."""
    return tmp_path_factory.mktemp("demo") / "kept"


@pytest.fixture(scope="module")
def shown(kept: Path) -> str:
    """Run the demo once, and return what it printed."""
    library = kept.parent / "library"
    for name in ("email/__init__.py", "email/mime/text.py", "json/decoder.py", "os.py", "__pycache__/os.pyc"):
        (library / name).parent.mkdir(parents=True, exist_ok=True)
        (library / name).write_text("import sys\nimport re\n\n\nclass A:\n    def b(self):\n        pass\n")
    (library / "latin.py").write_bytes(b"# -*- coding: latin-1 -*-\nimport os\n# gr\xfcn\n")
    words = [sys.executable, "-W", "error", "-m", "examples.demo"]
    places = ["--library", str(library), "--keep", str(kept)]
    done = subprocess.run([*words, *places], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_the_demo_ends_with_all_proofs_confirmed(shown: str, kept: Path) -> None:
    assert "5 files in 3 directories" in shown
    assert "refused /latin.py: not_utf8" in shown
    assert "proofs hold" in shown
    assert {path.name for path in kept.iterdir()} >= {"host.json", "library.json", "shop.json", "story.json"}


def test_the_demo_begins_with_a_conversation(shown: str) -> None:
    story = shown.partition("A recorded session")[0]
    for line in (
        "The agent calls edit_file:",
        "The call fails, and its model gets:",
        "you\n    mean line 49?",
        "+        if line.quantity >= self._settings.bulk_from:",
        'session.rollback("fixed")',
        "another process resumes the session",
        "Updated /CHANGELOG.md",
    ):
        assert line in story


def test_the_demo_fits_80_columns_but_for_its_commands(shown: str) -> None:
    before = shown.partition("Look into the conversation")[0]
    assert [line for line in before.splitlines() if len(line) > 80] == []


@pytest.mark.exhaustive
def test_the_commands_at_the_end_of_the_demo_work(shown: str) -> None:
    lines = [line.strip() for line in shown.partition("Look into the conversation")[2].splitlines()[1:]]
    assert len(lines) == 4
    for line in lines:
        done = subprocess.run(line, shell=True, cwd=ROOT, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout


def test_the_demo_on_the_host_proves_it_all(shown: str) -> None:
    assert "106 calls, 15 of them fail" in shown
    assert "rename_word: " in shown
    assert "the first had changed files when it failed" in shown
    assert "a walk of the disk finds every byte, mode and time as at the beginning" in shown


def test_a_difference_is_not_reported_as_proved(capsys: pytest.CaptureFixture[str]) -> None:
    report = Report()
    report.prove("one is one", 1, 1)
    with pytest.raises(NotProved, match="one is two: 1 is not 2"):
        report.prove("one is two", 1, 2)
    assert "one is one" in capsys.readouterr().out


@pytest.mark.parametrize(("seconds", "written"), [(12.3456, "12.35 s"), (0.0123, "12.3 ms"), (0.00000451, "5 µs")])
def test_times_have_the_unit_that_suits_them(seconds: float, written: str) -> None:
    assert duration(seconds) == written
