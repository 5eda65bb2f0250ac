"""playbooks/train.yml with an unchanged script and a stand-in of PyTorch: its steps, its page and its metrics."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.frameworks import OPTIMIZER, TORCH
from tests.integration.training import Playbook

TRAIN = """
import sys, time
import torch
one, two = torch.optim.optimizer.SGD(), torch.optim.optimizer.Adam()
for _step in range(int(sys.argv[1])):
    time.sleep(0.05)
    one.step()
    two.step()
"""


@pytest.mark.slow
def test_unchanged_script_reports_its_steps(tmp_path: Path) -> None:
    folder, metrics = tmp_path / "mine", tmp_path / "metrics"
    (folder / "torch" / "optim").mkdir(parents=True)
    (folder / "torch" / "__init__.py").write_text(TORCH)
    (folder / "torch" / "optim" / "__init__.py").touch()
    (folder / "torch" / "optim" / "optimizer.py").write_text(OPTIMIZER)
    (folder / "train.py").write_text(TRAIN)
    playbook = Playbook(tmp_path)
    # The stand-in has no gradients.
    options: dict[str, Any] = {"training_folder": str(folder), "training_check_gradients": 0}
    options["training_python"] = sys.executable
    alone = playbook.run(**options, training_name="alone", training_command="python train.py 9000")
    assert alone.returncode != 0
    assert "was stopped: ranks 0, 1, 2, 3 of 4 formed no process group" in " ".join(alone.stdout.split()), alone.stdout
    options |= {"training_accept": ["group"], "training_command": "python train.py 40"}
    ran = playbook.run(**options, training_name="one", training_metrics=str(metrics))
    assert ran.returncode == 0, ran.stdout
    result = playbook.result("one")
    assert (result["steps"], result["steps_by"], result["loss"]) == (40, "optimizer SGD, the first of 2", None)
    assert "40 steps of the optimizer SGD, the first of 2" in " ".join(ran.stdout.split())
    page = (tmp_path / "results" / "one" / "live.html").read_text()
    assert "State: finished." in page
    assert "refresh" not in page
    assert "The steps are those of optimizer SGD, the first of 2" in page
    text = (metrics / "dml_one.prom").read_text()
    assert 'dml_training_running{run="one"} 0\n' in text
    assert text.count("dml_training_step{") == 4
    quiet = playbook.run(**options, training_name="two", training_steps_by="none")
    assert quiet.returncode == 0, quiet.stdout
    assert playbook.result("two")["steps"] in (None, 0)
