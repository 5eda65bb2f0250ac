"""Horovod, Hugging Face's Trainer and Lightning on two nodes: as jobs in Slurm, and through a window by restart."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from lab.demo import SHARED
from lab.running import FOLDER
from lab.simulator import ROOT
from plugins.module_utils.trials.steps.stopping import FRESH_SECONDS
from tests.lab.images import FILES, RUNS
from tests.lab.moves.test_window_restart import FullCluster, full_cluster, verdict_of
from tests.lab.places import until

pytestmark = pytest.mark.slow
STEPS = 20
TESTS = ROOT / "tests"
# The pins of packages that are not in the stack lab-ddp.
PINS = (TESTS / "frameworks" / "pytorch.txt").read_text().splitlines()


class Framework(NamedTuple):
    """A script as a user has it, how it is started, and the role and the stack that install its framework."""

    name: str
    script: Path
    command: str
    role: str
    stack: str
    steps_by: str
    packages: tuple[str, ...]
    # A replacement in the script, so that it ends.
    ends: tuple[str, str]

    def program(self, folder: Path, *changes: tuple[str, str]) -> dict[str, str]:
        """Write the folder of the script, and return the variables with which it trains."""
        text, code = self.script.read_text(), folder / "code"
        for old, new in changes:
            assert old in text, old
            text = text.replace(old, new)
        code.mkdir()
        (code / "train.py").write_text(text)
        pins = [line for line in PINS if line.partition("==")[0] in self.packages]
        (code / "requirements.txt").write_text("\n".join(pins))
        return {"training_folder": str(code), "training_command": self.command}

    @property
    def options(self) -> dict[str, Any]:
        """Return the variables that name its Python."""
        return {"training_python": f"/opt/dml/{self.role}/bin/python", "training_steps_by": self.steps_by}


def of_pytorch(name: str, *packages: str) -> Framework:
    """A script of PyTorch for torchrun."""
    script, ends = TESTS / "frameworks" / "scripts" / f"{name}_saves.py", ("max_steps=5000", f"max_steps={STEPS}")
    command = "torchrun --nproc-per-node 1 train.py {resume}"
    return Framework(name, script, command, "pytorch", "lab-ddp", "auto", packages, ends)


HOROVOD = Framework(
    "horovod",
    TESTS / "lab" / "horovod_train.py",
    "python train.py --seconds 0.2 --every 50 --resume {resume}",
    "horovod",
    "lab-cpu",
    "script",
    (),
    ('"--steps", type=int', f'"--steps", type=int, default={STEPS}'),
)
TRAINER, LIGHTNING = of_pytorch("trainer", "transformers", "accelerate"), of_pytorch("lightning", "lightning")


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FullCluster]:
    """Two workers on which both roles find packages where an earlier run has left them."""
    kept = FILES / "pytorch"
    for folder in (FOLDER / "shared", kept):
        folder.mkdir(parents=True, exist_ok=True)
    shares = [SHARED, f"{kept}:/opt/dml/pytorch:rw"]
    with full_cluster(tmp_path_factory.mktemp("frameworks"), "frameworks", (1, 2), shares) as made:
        yield made


@pytest.fixture(scope="module", params=[HOROVOD, TRAINER, LIGHTNING], ids=lambda framework: framework.name)
def framework(request: pytest.FixtureRequest, full: FullCluster) -> Framework:
    """A framework that is installed on both workers."""
    chosen: Framework = request.param
    full.install(chosen.role, stack=chosen.stack, **{f"{chosen.role}_venv_shared": True})
    return chosen


def test_framework_trains_in_slurm(full: FullCluster, tmp_path: Path, framework: Framework) -> None:
    name, results = framework.name, tmp_path / "results"
    run = {"training_name": name, "training_results": str(results), "training_backend": "slurm", **framework.options}

    done = full.play("train", **run, **framework.program(tmp_path, framework.ends))

    assert done.rc == 0, done.out[-6000:]
    result = json.loads((results / f"{name}.json").read_text())
    assert (result["steps"], result["gpus"]) == (STEPS, len(full.place.numbers)), result
    listed = f"squeue --noheader --states=all --name=dml-{name} --format='%T %D'"
    assert full.place.inside(1, listed).stdout.split() == ["COMPLETED", "2"]


def test_framework_resumes_after_its_guests_have_shut_down(
    full: FullCluster, tmp_path: Path, framework: Framework
) -> None:
    run = full.train(tmp_path, program=framework.program(tmp_path), **framework.options)

    done = full.change(tmp_path, **run)

    assert verdict_of(tmp_path) == "resumed", done.out[-6000:]
    stopped = full.play("stop", **run)
    assert stopped.rc == 0, stopped.out[-4000:]


@pytest.mark.parametrize("framework", [TRAINER], ids=["trainer"], indirect=True)
def test_torn_checkpoint_stops_no_job(full: FullCluster, tmp_path: Path, framework: Framework) -> None:
    boots = full.boots()
    program = framework.program(tmp_path, ("step % 10 == 0", "step == 10"))
    run = full.train(tmp_path, program=program, **framework.options)
    saved, torn = (f"{RUNS}/{tmp_path.name}/work/outputs/checkpoint-{step}" for step in (10, 4000))
    age = f"sudo stat --format=%Y {saved}/trainer_state.json"

    def is_old() -> bool:
        written = full.place.inside(1, age, check=False).stdout
        return bool(written) and time.time() - int(written) > FRESH_SECONDS

    until(is_old, "the checkpoint is no longer a new one", 300)
    # Trainer leaves the last file in a folder that it could not complete.
    parts = (f"{torn}/{part}" for part in ("trainer_state.json", "checkpoint-is-incomplete.txt"))
    full.place.inside(1, f"sudo mkdir {torn}; head -c 1000 {saved}/trainer_state.json | sudo tee {' '.join(parts)}")

    refused = full.window(tmp_path, window_checkpoint_wait=5, **run)

    words = " ".join(refused.out.split())
    assert refused.rc != 0 and "no new checkpoint was complete within 5 s; checkpoint-4000 is not complete:" in words
    assert "(step 10) is" in words and full.boots() == boots, words
    stopped = full.play("stop", **run)
    assert stopped.rc == 0, stopped.out[-4000:]
