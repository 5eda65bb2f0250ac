"""A folder with dml.yml and the command dml, as its user types them on two workers, from several terminals."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lab.simulator import ROOT
from tests.integration.ansible import BIN
from tests.lab.conftest import prepared_pair
from tests.lab.images import Pair

pytestmark = pytest.mark.slow
STEPS, RUN_SECONDS = 600, 900
TRAIN = """
import argparse, os, time
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

options = argparse.ArgumentParser()
options.add_argument("--steps", type=int)
options.add_argument("--lr", type=float, default=0.1)
options.add_argument("--from", dest="path", default="")
options.add_argument("--hang", type=int, default=0)
options = options.parse_args()
dist.init_process_group("gloo")
torch.manual_seed(0)
model, first = DDP(torch.nn.Linear(4, 1)), 0
optimizer = torch.optim.SGD(model.parameters(), options.lr)
if options.path:
    state = torch.load(options.path)
    first = state["step"]
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optim"])
os.makedirs("outputs", exist_ok=True)
for step in range(first + 1, options.steps + 1):
    if options.hang and step == options.hang and dist.get_rank() == 1:
        time.sleep(3600)
    time.sleep(0.1)
    given = torch.randn(16, 4)
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(model(given), given.sum(1, keepdim=True))
    loss.backward()
    optimizer.step()
    if dist.get_rank() == 0:
        print(f"step {step} on {dist.get_world_size()} ranks", flush=True)
        if step % 20 == 0:
            state = {"step": step, "model": model.state_dict(), "optim": optimizer.state_dict()}
            torch.save(state, "outputs/new")
            os.replace("outputs/new", f"outputs/step{step}.pt")
dist.destroy_process_group()
"""
SETTINGS = f"""
command: torchrun --nproc_per_node=1 train.py --steps {STEPS} --from {{resume}}
nodes: 2
environment_from: .env
"""


class User:
    """A user with a terminal, whose runs come from a host of this name."""

    def __init__(self, pair: Pair, folder: Path, host: str) -> None:
        self._pair, self._folder, self._host, self.results = pair, folder, host, folder / host
        folder.mkdir(exist_ok=True)

    def types(self, command: str, code: int = 0, **variables: Any) -> str:
        """Return the output of a command, which ends with this code."""
        started = self.begins(command, **variables)
        output, _none = started.communicate(timeout=RUN_SECONDS)
        text = " ".join(output.replace("\\n", " ").split())
        assert bool(started.returncode) == bool(code), f"{command}: {text[-4000:]}"
        return text

    def begins(self, command: str, **variables: Any) -> subprocess.Popen[str]:
        words, _dashes, program = command.partition(" -- ")
        given = json.dumps({"training_results": str(self.results), **variables})
        rest = ["--", *program.split()] if program else []
        front = [str(BIN / "python"), str(ROOT / "front" / "dml.py"), *words.split()[1:], "-e", given, *rest]
        place = self._pair.place.ansible.environment
        environment = {**place, "DML_INVENTORY": str(self._pair.inventory), "PATH": f"{BIN}:{place['PATH']}"}
        named = ["unshare", "--uts", "sh", "-c", 'hostname "$0" && exec "$@"', self._host, *front]
        pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        return subprocess.Popen(named, cwd=self._folder, env=environment, stdin=subprocess.DEVNULL, **pipes)

    def awaits(self, name: str, steps: int) -> None:
        """Wait until a run has printed a number of steps, as a second terminal shows."""
        deadline = time.monotonic() + RUN_SECONDS
        while f"step {steps} on" not in self.types(f"dml logs {name}", training_lines=STEPS):
            assert time.monotonic() < deadline

    def manifest(self, name: str) -> dict[str, Any]:
        return dict(json.loads((self.results / name / "manifest.json").read_text()))


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """Two workers with the stack, whose packages lie where an earlier run has left them."""
    with prepared_pair(tmp_path_factory.mktemp("command"), "command") as made:
        yield made


@pytest.fixture
def anna(pair: Pair, tmp_path: Path) -> User:
    user = User(pair, tmp_path, "desk")
    (tmp_path / "train.py").write_text(TRAIN)
    (tmp_path / "dml.yml").write_text(SETTINGS)
    (tmp_path / ".env").write_text("TOKEN=a-secret-value\n")
    return user


def test_run_resumes_on_fewer_and_more_workers(anna: User) -> None:
    anna.types("dml train --name one", training_follow=False)
    anna.awaits("one", 20)
    fetched = anna.types("dml fetch one outputs")
    listed = anna.types("dml runs")
    stopped = anna.types("dml stop one") + anna.types("dml logs one")
    anna.types("dml resume one -n 1 --name fewer", training_follow=False)
    anna.awaits("fewer", anna.manifest("fewer")["restart"]["step"] + 5)
    anna.types("dml stop fewer")
    finished = anna.types("dml resume fewer -n 2 --name more")

    assert "step20.pt" in " ".join(path.name for path in (anna.results / "one" / "outputs").iterdir()), fetched
    assert " one root@desk " in listed and " running " in listed
    assert "The training run one is stopped: stopped by root@desk" in stopped
    assert anna.manifest("fewer")["nodes"] == ["worker01"] and anna.manifest("more")["nodes"] == [
        "worker01",
        "worker02",
    ]
    assert "chosen: ranks: 1 in fewer, 2 in more" in finished and "[WARNING]" not in finished, finished[-3000:]
    assert "a-secret-value" not in fetched + listed + stopped + finished
    assert "duration" in anna.types("dml compare fewer more")


def test_rank_that_hangs_is_named_with_its_line(anna: User) -> None:
    command = "dml train --name hangs -- torchrun train.py --steps 99 --hang 5"

    failed = anna.types(command, code=2, training_silence=20)

    line = TRAIN.split("\n").index("        time.sleep(3600)") + 1
    assert f"rank 1 on worker02 is at train.py, line {line} (<module>), outside the collective in" in failed, failed


def test_runs_of_one_name_are_chosen_by_their_user(anna: User, pair: Pair, tmp_path: Path) -> None:
    bert = User(pair, tmp_path / "bert", "laptop")
    third = User(pair, tmp_path / "third", "third")
    endless = " -- torchrun train.py --steps 99999"
    anna.types(f"dml train --name same -l worker01 -n 1{endless}", training_follow=False)
    for name in ("train.py", "dml.yml", ".env"):
        (tmp_path / "bert" / name).write_text((tmp_path / name).read_text())
    bert.types(f"dml train --name same -l worker02 -n 1{endless}", training_follow=False)

    refused = third.types("dml logs same", code=2)
    listed = third.types("dml runs")
    shown = third.types("dml logs same --user root@laptop")
    third.types("dml stop same --user root@laptop")
    anna.types("dml stop same")

    assert "training_started_by" in refused and "root@desk" in refused and "root@laptop" in refused
    assert listed.count(" same root@") == 2, listed
    assert "The training run same is running" in shown
    assert "stopped by root@third" in bert.types("dml logs same")
