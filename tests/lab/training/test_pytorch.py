"""PyTorch of the present trains on two workers without Horovod, by a stack alone, and goes on while both are moved."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from tests.lab.conftest import pytorch_pair
from tests.lab.images import RUNS, WORKERS, Pair, check_moved, check_run

pytestmark = pytest.mark.slow
VENV, KEPT, SCRIPT = "/opt/dml/pytorch", "/var/lib/dml/kept", "/var/lib/dml/own.py"
SMALL = ["--cpu", "--model", "small", "--image-size", "32", "--batch-size", "8"]
STEPS, EPOCHS, STUN = 10, 2, 5.0
# As PyTorch's tutorials write it for torchrun, with the three lines of our README.
OWN = """
import os
import sys
import dml_records
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("gloo")
assert dist.get_rank() == int(os.environ["RANK"]) and int(os.environ["LOCAL_RANK"]) == 0
records = dml_records.start()
model = DDP(torch.nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), 0.05)
batch, wanted = torch.rand(16, 4), torch.rand(16, 1)
for number in range(20):
    if number == 10 and sys.argv[1:] == ["--die"] and dist.get_rank() == 1:
        os.kill(os.getpid(), 9)
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(model(batch), wanted)
    loss.backward()
    optimizer.step()
    records.step(images=len(batch), loss=loss)
dist.destroy_process_group()
"""


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """Two workers with the stack, whose packages lie where an earlier run has left them."""
    with pytorch_pair(tmp_path_factory.mktemp("pytorch"), "pytorch") as made:
        checked = made.play("guests", "--check")
        assert checked.rc == 0, checked.out[-4000:]
        assert made.place.inside(1, "ls /opt/dml/*.py /etc/ansible/facts.d", check=False).stdout == ""
        done = made.play("guests")
        assert done.rc == 0, done.out[-4000:]
        yield made


def train(pair: Pair, name: str, *options: object, **variables: Any) -> dict[str, Any]:
    """The result of a run that ends well; nothing says by what it trains."""
    given = {"training_options": [*SMALL, *map(str, options)], "training_warmup": 3, **variables}
    done = pair.play("train", training_name=name, **given)
    assert done.rc == 0, done.out[-4000:]
    return dict(json.loads((pair.results / f"{name}.json").read_text()))


def check_equal(pair: Pair, name: str) -> None:
    """The ranks ended with the same parameters."""
    read = [pair.place.inside(number, f"cat {RUNS}/{name}/summary{number - 1}.json").stdout for number in (1, 2)]
    assert len({json.loads(one)["parameters_sha256"] for one in read}) == 1


def test_proof_names_versions_and_second_run_changes_nothing(pair: Pair) -> None:
    read = [pair.place.inside(number, "cat /etc/ansible/facts.d/dml_pytorch.fact").stdout for number in (1, 2)]
    first, second = map(json.loads, read)
    assert first == second
    assert (first["proven"], first["sum"], first["framework"], first["uses_nccl"]) == (True, 3.0, "pytorch_ddp", False)
    assert first["framework_version"].startswith("2.15.0") and first["versions"]["torch"] == "2.15.0"
    for again in (pair.play("guests", "--check"), pair.play("guests")):
        assert again.rc == 0, again.out
        assert set(again.changes.values()) == {0}, again.out


def test_epochs_with_checkpoints_and_on_from_the_newest(pair: Pair) -> None:
    common = ["--steps", STEPS, "--checkpoint-every", 5, "--checkpoints", KEPT, "--evaluate-every", STEPS]
    last = STEPS * EPOCHS
    result = train(pair, "epochs", *common, "--epochs", EPOCHS, training_steps=last)
    assert (result["steps"], result["gpus"], result["proof"]["transport"]) == (last, 2, "tcp")
    assert (result["asked"]["framework"], result["stack"]) == ("pytorch_ddp", "lab-ddp")
    check_run(pair, "epochs", 1, last)
    check_equal(pair, "epochs")
    train(pair, "resumed", *common, "--epochs", EPOCHS + 1, "--resume")
    check_run(pair, "resumed", last + 1, last + STEPS)
    check_equal(pair, "resumed")


def test_resnet_50_in_half_precision(pair: Pair) -> None:
    result = train(pair, "half", "--model", "resnet50", "--steps", 4, "--batch-size", 2, "--fp16")
    check_run(pair, "half", 1, 4)
    check_equal(pair, "half")
    assert result["proof"]["ok"] is True


def bring(pair: Pair) -> list[str]:
    """The command of a your own script, which both nodes have."""
    for number, _name in enumerate(WORKERS, 1):
        login = pair.place.login(pair.place.address(number), f"sudo tee {SCRIPT} > /dev/null")
        subprocess.run(login, input=OWN, text=True, check=True, timeout=60)
    return [f"{VENV}/bin/python", "-u", "/var/lib/dml/training/dml_torchrun.py", SCRIPT]


def test_a_script_for_torchrun_runs_as_it_is(pair: Pair) -> None:
    command = bring(pair)
    result = train(pair, "own", training_command=command)
    assert result["asked"]["command"] == command
    check_run(pair, "own", 1, 20)


def test_rdma_is_refused_before_the_job(pair: Pair) -> None:
    done = pair.play("train", training_name="rdma", training_options=SMALL, training_transport="rdma")
    assert done.rc != 0
    assert "PyTorch without Horovod has RDMA only through NCCL" in " ".join(done.out.split())
    assert pair.place.inside(1, f"test -e {RUNS}/rdma/run.json", check=False).returncode == 1


def test_names_the_rank_whose_kill_ended_the_job(pair: Pair) -> None:
    """Gloo notifies the other rank at once that its peer is gone, which is not the cause."""
    done = pair.play("train", training_name="killed", training_command=[*bring(pair), "--die"])
    message = " ".join(done.out.replace("\\n", " ").split())
    assert done.rc != 0
    assert "rank 1 on worker02 (process " in message and "was ended by signal 9 (Killed)" in message, message[-3000:]


def test_job_continues_while_both_workers_move(pair: Pair) -> None:
    options = [*SMALL, "--steps", "100", "--step-seconds", "0.2", "--seconds", "100000"]
    check_moved(pair.moved(STUN, training_options=options))
