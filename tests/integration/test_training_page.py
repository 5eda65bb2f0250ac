"""The live page while playbooks/train.yml trains: moves of a test, GPUs of a stand-in, output without secrets."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from plugins.module_utils.durable.program_journal import NAME
from tests.integration.browser import Browser
from tests.integration.training import BEGIN_SECONDS, Playbook
from tests.unit.plugins.module_utils.trials.folder.test_job_moves import at_time, keep
from tests.unit.simulation.world import World

SECRET = "a-secret-token"
TRAIN = """
import os, time
import dml_records
records = dml_records.start()
for number in range(1, 100000):
    time.sleep(0.1)
    records.step(images=8, loss=1.0 / number)
    print(f"\\033[32mstep {number}\\033[0m with {os.environ['TOKEN']}", flush=True)
    if os.path.exists(os.environ["DML_RECORDS"] + "/enough"):
        break
"""
SMI = """#!/bin/sh
echo "0, GRID A100D-16C, 93, 14210, 16384"
echo "1, GRID A100D-16C, [N/A], [Not Supported], 16384"
"""


def wait_for(page: Path, words: str) -> str:
    """Return the page once it contains the words."""
    deadline = time.monotonic() + BEGIN_SECONDS
    while not (page.exists() and words in page.read_text()):
        assert time.monotonic() < deadline, page
        time.sleep(0.5)
    return page.read_text()


@pytest.mark.slow
def test_live_page_shows_a_training_job(tmp_path: Path) -> None:
    programs, run = tmp_path / "bin", tmp_path / "runs" / "one"
    programs.mkdir()
    (programs / "nvidia-smi").write_text(SMI)
    (programs / "nvidia-smi").chmod(0o755)
    playbook = Playbook(tmp_path, {"PATH": f"{programs}:{os.environ['PATH']}"})
    playbook.nodes.script.write_text(TRAIN)
    options = {"training_environment": {"TOKEN": SECRET}, "training_vmotion_tests": str(tmp_path / "tests")}
    page = tmp_path / "results" / "one" / "live.html"
    with playbook.begin(training_name="one", training_python=sys.executable, **options) as controller:
        wait_for(page, "13.9 GiB of 16.0 GiB")
        wait_for(page, "with HIDDEN")
        time.sleep(5)  # so that the move is within the curve
        world = World(run_dir=str(run))
        world.carry_out()
        keep(at_time(world, time.time() - 4), tmp_path / "tests" / "gpu-1")
        text = wait_for(page, "Moves of workers")
        assert SECRET not in text and '<rect class="band moved"' in text and "unknown of 16.0 GiB" in text
        assert "gpu_utilization_ratio" in (page.parent / "metrics.prom").read_text()
        with Browser(tmp_path / "profile") as browser:
            for width, dark in ((1200, False), (1200, True), (390, False)):
                browser.open(page, width, dark)
                assert browser.complaints() == []
                assert browser.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
                browser.picture(tmp_path / f"page-{width}-{'dark' if dark else 'light'}.png")
        (run / "enough").touch()
        assert controller.wait(BEGIN_SECONDS) == 0
    text = page.read_text()
    assert "Moves of workers" in text and "with HIDDEN" in text and SECRET not in text and "GiB" not in text
    assert (tmp_path / "tests" / "gpu-1" / NAME).exists()
