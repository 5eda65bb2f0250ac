"""PyTorch and Horovod train on two nodes by playbooks/train.yml: Debian's PyTorch, Horovod compiled once for it."""

from __future__ import annotations

from statistics import median
from typing import Any

import pytest
import yaml

from lab.simulator import ROOT
from plugins.module_utils.guests.software_packages import python_requirements
from tests.lab.benchmark import NAMES, SERVED, Cluster
from tests.lab.training.test_benchmark import KEPT, check_equal, check_hook, check_steps, draw, options, paused, phases
from tests.lab.trial import together

pytestmark = pytest.mark.slow
VENV, CHECKPOINTS = "/opt/dml/pytorch", f"{KEPT}-pytorch"
PYTHON = f"{VENV}/bin/python"
OURS = {"training_framework": "pytorch", "training_python": PYTHON}
PACKAGES = "python3-torch python3-torchvision python3-venv"
BUILD_PACKAGES = "libtorch-dev pybind11-dev libopenmpi-dev python3-dev g++ make"
BUILD_SECONDS, STEPS, EPOCHS, STEP_SECONDS = 3600, 10, 2, 0.1
INSTALL = "sudo DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends"
FLAGS = {"HOROVOD_WITH_PYTORCH": "1", "HOROVOD_WITHOUT_TENSORFLOW": "1"}
# Beside the environment that all nodes share, where the next lab finds it; another PyTorch is another wheel.
WHEELS = "/opt/dml/horovod/wheels/pytorch-$(dpkg-query --show --showformat '${Version}' python3-torch)"
ENVIRONMENT = """
set -e
printf '%s' '{packages}' > packages.txt
sudo python3 -m venv --system-site-packages {venv}
sudo {venv}/bin/pip install --quiet --no-deps --require-hashes --requirement packages.txt
"""
COMPILE = """
set -e
[ -z "$(find {wheels} -name 'horovod-*.whl' 2> /dev/null)" ] || exit 0
{install} {build_packages} > /dev/null
printf '%s' '{source}' > source.txt
sudo env {flags} MAKEFLAGS=-j$(nproc) PATH={venv}/bin:/usr/bin:/bin {venv}/bin/pip wheel --quiet --no-deps \
  --no-build-isolation --no-cache-dir --require-hashes --wheel-dir wheels --requirement source.txt
sudo mkdir -p {wheels}
sudo mv wheels/horovod-*.whl {wheels}/
"""
# The README's example of a loop, with Horovod's optimizer around it.
HOOK = """
import dml_records
import horovod.torch as hvd
import torch
hvd.init()
torch.manual_seed(hvd.rank())
torch.set_num_threads(1)
records = dml_records.start()
model = torch.nn.Linear(4, 1)
optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), 0.05), model.named_parameters())
hvd.broadcast_parameters(model.state_dict(), root_rank=0)
batch, wanted = torch.rand(16, 4), torch.rand(16, 1)
for number in range(20):
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(model(batch), wanted)
    loss.backward()
    optimizer.step()
    records.step(images=len(batch), loss=loss)
    if number in (9, 19):
        with records.phase("eval"), torch.no_grad():
            model(batch)
"""


@pytest.fixture(scope="module")
def nodes(cluster: Cluster) -> Cluster:
    """Nodes with PyTorch of Debian and Horovod, compiled where no earlier lab has left its wheel."""
    horovod = yaml.safe_load((ROOT / "stacks" / "lab-cpu.yml").read_text())["horovod"]
    source = {"name": "horovod", "version": horovod["version"], "sha256": horovod["source"]["sha256"]}
    kept = {name: value for name, value in horovod["build_environment"].items() if "TORCH" not in name}
    kept.pop("HOROVOD_WITH_TENSORFLOW")
    words = {
        "venv": VENV,
        "wheels": WHEELS,
        "install": INSTALL,
        "build_packages": BUILD_PACKAGES,
        "packages": python_requirements(horovod["packages"] + horovod["build_tools"]),
        "source": python_requirements([source]),
        "flags": " ".join(f"{name}={value}" for name, value in {**kept, **FLAGS}.items()),
    }

    def on_all(command: str) -> None:
        together(lambda name: cluster.inside(name, command, seconds=BUILD_SECONDS), NAMES)

    on_all(f"sudo apt-get update -qq && {INSTALL} {PACKAGES} > /dev/null && {ENVIRONMENT.format(**words)}")
    cluster.inside(NAMES[0], COMPILE.format(**words), seconds=BUILD_SECONDS)
    on_all(f"sudo {VENV}/bin/pip install --quiet --no-deps --no-index {WHEELS}/horovod-*.whl")
    return cluster


def train(nodes: Cluster, name: str, *more: object, **variables: Any) -> tuple[str, dict[str, Any]]:
    """A run of our benchmark for PyTorch."""
    return nodes.train(name, **OURS, **options(*more), **variables)


def test_benchmark_trains_epochs_and_resumes_from_newest_checkpoint(nodes: Cluster) -> None:
    draw(nodes)
    common = ["--data", f"{SERVED}/images", "--classes", 3, "--steps", STEPS, "--step-seconds", STEP_SECONDS]
    common += ["--checkpoint-every", 5, "--checkpoints", CHECKPOINTS, "--evaluate-every", STEPS]
    last = STEPS * EPOCHS
    report, result = train(nodes, "torch-epochs", *common, "--epochs", EPOCHS, training_steps=last)

    assert f"step {last} of {last}" in report
    assert (result["steps"], result["gpus"], result["proof"]["transport"]) == (last, 2, "tcp")
    check_steps(nodes, "torch-epochs", 1, last)
    expected = []
    for step in range(5, last + 1, 5):
        expected += (paused("eval", step) if step % STEPS == 0 else []) + paused("checkpoint", step)
    assert [phases(nodes, "torch-epochs", rank) for rank in (0, 1)] == [expected] * 2
    assert result["seconds_per_epoch"] >= STEPS * STEP_SECONDS
    check_equal(nodes, "torch-epochs")
    assert nodes.inside(NAMES[0], f"cd {CHECKPOINTS} && sha256sum --check *.sha256").count(": OK\n") == last // 5
    assert nodes.inside(NAMES[1], f"ls -A {CHECKPOINTS}", check=False) == ""

    train(nodes, "torch-resumed", *common, "--epochs", EPOCHS + 1, "--resume")
    check_steps(nodes, "torch-resumed", last + 1, last + STEPS)
    check_equal(nodes, "torch-resumed")
    before, after = (median(one["loss"] for one in nodes.steps(name, 0)) for name in ("torch-epochs", "torch-resumed"))
    assert after < before, "the second run did not learn on"


def test_half_precision(nodes: Cluster) -> None:
    _result, result = train(nodes, "torch-half", "--classes", 10, "--steps", 15, "--fp16")
    check_steps(nodes, "torch-half", 1, 15)
    check_equal(nodes, "torch-half")
    assert result["images_per_sec"] > 0


def test_refuses_what_this_pytorch_does_not_support(nodes: Cluster) -> None:
    code, result = nodes.end(nodes.begin("torch-xla", **OURS, **options("--steps", 5, "--xla")))
    assert code != 0
    assert "--xla needs torch.compile, which PyTorch 1.13" in result, result


def test_hook_records_steps_of_a_user_script(nodes: Cluster) -> None:
    check_hook(nodes, "torch-hook", HOOK, PYTHON)
