"""`make demo` keeps its promises on each release of vSphere, as far as no guests are needed."""

from __future__ import annotations

import subprocess
import sys

import pytest

from lab.simulator import ROOT
from tests.integration.releases import NEWEST, RELEASES

LONG = 1800  # seconds, for a machine that has much else to do


@pytest.mark.slow
@pytest.mark.parametrize(("release", "lab"), [*((release, "nodes") for release in RELEASES), (NEWEST, "tied")])
def test_demo_keeps_every_promise_on_each_release(release: str, lab: str) -> None:
    command = [sys.executable, "-m", "lab.demo", "--without-guests", "--release", release, "--lab", lab]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=LONG, check=False)
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
    assert "Not shown: guests" in done.stdout
