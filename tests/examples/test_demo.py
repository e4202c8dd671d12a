"""The demo proves what it says, and fails if it cannot."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from examples.demo.report import NotProved, Report, duration

ROOT = Path(__file__).parents[2]


def test_the_demo_ends_with_all_proofs_holding(tmp_path: Path) -> None:
    library = tmp_path / "library"
    for name in ("email/__init__.py", "email/mime/text.py", "json/decoder.py", "os.py", "__pycache__/os.pyc"):
        (library / name).parent.mkdir(parents=True, exist_ok=True)
        (library / name).write_text("import sys\nimport re\n\n\nclass A:\n    def b(self):\n        pass\n")
    (library / "latin.py").write_bytes(b"# -*- coding: latin-1 -*-\nimport os\n# gr\xfcn\n")
    words = [sys.executable, "-W", "error", "-m", "examples.demo"]
    places = ["--library", str(library), "--keep", str(tmp_path / "kept")]
    done = subprocess.run([*words, *places], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert "5 files in 3 directories" in done.stdout
    assert "refused /latin.py: not_utf8" in done.stdout
    assert "proofs hold" in done.stdout
    kept = {path.name for path in (tmp_path / "kept").iterdir()}
    assert kept >= {"host.json", "library.json", "shop.json"}


def test_what_is_not_the_same_is_not_proved(capsys: pytest.CaptureFixture[str]) -> None:
    report = Report()
    report.prove("one is one", 1, 1)
    with pytest.raises(NotProved, match="one is two: 1 is not 2"):
        report.prove("one is two", 1, 2)
    assert "one is one" in capsys.readouterr().out


@pytest.mark.parametrize(("seconds", "written"), [(12.3456, "12.35 s"), (0.0123, "12.3 ms"), (0.00000451, "5 µs")])
def test_times_have_the_unit_that_suits_them(seconds: float, written: str) -> None:
    assert duration(seconds) == written
