"""PyTorch without Horovod as a job on Kubernetes: real ranks over Gloo, and a test server instead of the cluster."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

from tests.frameworks.test_frameworks import FRAMEWORKS
from tests.integration.test_training_kubernetes import Kubernetes, kubernetes

__all__ = ["kubernetes"]
OPTIONS = ["--cpu", "--model", "small", "--image-size", "32", "--batch-size", "8", "--steps", "20", "--warmup", "3"]
# As PyTorch's tutorials write it, without a line for this collection.
TRAIN = """
import os
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("gloo")
assert os.environ["GLOO_SOCKET_IFNAME"] == "lo"
model = DDP(torch.nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), 0.05)
for number in range(40):
    optimizer.zero_grad()
    torch.nn.functional.mse_loss(model(torch.rand(16, 4)), torch.rand(16, 1)).backward()
    optimizer.step()
if dist.get_rank() == 0:
    torch.save(model.module.state_dict(), "outputs/model.pt")
dist.destroy_process_group()
"""


def options() -> dict[str, Any]:
    """Return the options of PyTorch without Horovod, in the environment of the frameworks."""
    python = FRAMEWORKS / "pytorch" / "bin" / "python"
    assert python.exists(), "the frameworks are not installed: run make frameworks"
    # Ranks of other tests on this machine have a rendezvous too.
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    return {"training_framework": "pytorch_ddp", "training_python": str(python), "training_port": port}


def test_benchmark_trains_and_ranks_agree_on_parameters(kubernetes: Kubernetes, tmp_path: Path) -> None:
    kubernetes.run(training_name="one", training_command=[], training_options=OPTIONS, **options())
    result = json.loads((tmp_path / "results" / "one.json").read_text())
    assert (result["job"]["state"], result["steps"], result["gpus"]) == ("finished", 20, 2)
    summaries = [json.loads((tmp_path / "runs" / "one" / f"summary{rank}.json").read_text()) for rank in (0, 1)]
    assert len({summary["parameters_sha256"] for summary in summaries}) == 1


def test_an_unchanged_folder_for_torchrun_trains(kubernetes: Kubernetes, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "train.py").write_text(TRAIN)
    command = {"training_folder": str(tmp_path / "mine"), "training_command": "torchrun train.py"}
    kubernetes.run(training_name="two", **command, **options())
    result = json.loads((tmp_path / "results" / "two.json").read_text())
    assert (result["job"]["state"], result["steps"], result["gpus"]) == ("finished", 40, 2)
    assert [path.name for path in kubernetes.outputs("two")] == ["model.pt"]
