"""Commands with and without a sandbox."""

from __future__ import annotations

import pytest

from weakfs.processes import Bubblewrap, SandboxMode

BUBBLEWRAP = Bubblewrap()
MODES: list[SandboxMode] = ["off", "required"]


@pytest.fixture(params=MODES)
def mode(request: pytest.FixtureRequest) -> SandboxMode:
    chosen: SandboxMode = request.param
    if chosen == "required" and BUBBLEWRAP.problem():
        pytest.skip(f"no sandbox: {BUBBLEWRAP.problem()}")
    return chosen
