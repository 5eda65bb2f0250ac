"""Projects with dml.yml and the command dml, as users type them on four workers, from several terminals."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from lab.simulator import ROOT
from plugins.module_utils.vsphere import tasks
from tests.integration.ansible import BIN
from tests.lab.conftest import prepared_pair
from tests.lab.images import RUNS, Pair
from tests.lab.places import Place, until

pytestmark = pytest.mark.slow
PROJECTS, SHARED = Path(__file__).parent / "projects", "/srv/runs"
# The last step of a project: its runs are stopped before it.
ENDLESS = 100_000
LINES, RUN_SECONDS = 10_000, 900
# The first checkpoint of each project that resumes.
SAVED = {"ddp": "step-20.pt", "fsdp2": "step-20", "lightning": "step-20.ckpt", "trainer": "checkpoint-20"}
# Their steps go on after those of the checkpoint.
CONTINUED = ("lightning", "trainer")
SWEPT = {
    "ddp": "torchrun train.py --steps 30 --lr {lr}",
    "fsdp2": "python train.py --steps 30 --lr {lr}",
    "lightning": "python -m litwave fit --config base.yaml --trainer.max_steps 30 --model.lr {lr}",
    "trainer": "python train.py --steps 30 --lr {lr}",
}
RATES = [0.1, 0.01, 0.001]


class User:
    """A user with a terminal, whose runs come from a host of this name."""

    def __init__(self, pair: Pair, folder: Path, host: str) -> None:
        self._pair, self._host, self.folder, self.results = pair, host, folder, folder / host

    def copies(self, project: str) -> None:
        """Make a project the folder of the user."""
        shutil.copytree(PROJECTS / project, self.folder)
        (self.folder / ".env").write_text("TOKEN=a-secret-value\n")

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
        return subprocess.Popen(named, cwd=self.folder, env=environment, stdin=subprocess.DEVNULL, **pipes)

    def awaits(self, name: str, steps: int, **place: Any) -> None:
        """Wait until a run has made a number of steps, and let a second terminal show them."""
        started, printed = self.results / name / "manifest.json", f"step {steps} of"
        until(started.exists, f"{name} starts", RUN_SECONDS)
        look = f"sudo grep '{printed}' {place.get('training_runs', RUNS)}/{name}/output.log"
        found = partial(self._pair.place.inside, 1, look, check=False)
        until(lambda: found().returncode == 0, f"{name} makes {steps} steps", RUN_SECONDS)
        assert printed in self.types(f"dml logs {name}", training_lines=LINES, **place)

    @property
    def settings(self) -> dict[str, Any]:
        return dict(yaml.safe_load((self.folder / "dml.yml").read_text()))

    def newest(self, name: str) -> int:
        """Return the step of the newest checkpoint of a run, as its file or folder is named."""
        names = (path.name.partition(".")[0].rpartition("-")[2] for path in (self.results / name / "outputs").iterdir())
        return max(int(step) for step in names if step.isdigit())

    def manifest(self, name: str) -> dict[str, Any]:
        return dict(json.loads((self.results / name / "manifest.json").read_text()))


@contextmanager
def without_power(place: Place, number: int) -> Iterator[None]:
    """Power a worker off as a person does, and on again at the end."""
    with place.machine(number) as machine:
        tasks.wait(machine.session, tasks.Started(machine.ref.PowerOffVM_Task(), "a person", "work"), 120)
        try:
            yield
        finally:
            tasks.wait(machine.session, tasks.Started(machine.ref.PowerOnVM_Task(), "a person", "work"), 120)
            is_back = partial(place.inside, number, "true", check=False)
            until(lambda: is_back().returncode == 0, f"worker0{number} is back", RUN_SECONDS)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """Four workers with the stack, whose packages lie where an earlier run has left them, and a folder for all."""
    folder = tmp_path_factory.mktemp("command")
    (folder / "shared").mkdir()
    (folder / "shared").chmod(0o777)
    with prepared_pair(folder, "command", 4, [f"{folder / 'shared'}:{SHARED}:rw"]) as made:
        yield made


@pytest.fixture
def anna(pair: Pair, tmp_path: Path) -> User:
    """A user in a copy of the project that the test's parameter names, by default plain DistributedDataParallel."""
    return User(pair, tmp_path / "mine", "desk")


@pytest.mark.parametrize("project", sorted(SAVED))
def test_project_resumes_on_fewer_and_more_workers(anna: User, project: str) -> None:
    anna.copies(project)
    saved, fewer, more = SAVED[project], f"{project}-fewer", f"{project}-more"
    # The parts of sharded checkpoints are written by all ranks.
    place: dict[str, Any] = {"training_runs": SHARED} if project == "fsdp2" else {}
    first = anna.begins(f"dml train -n 3 --name {project}", **place)
    anna.awaits(project, 25, **place)
    fetched = anna.types(f"dml fetch {project} outputs/{saved}")
    listed = anna.types("dml runs", **place)
    stopped = anna.types(f"dml stop {project}") + anna.types(f"dml logs {project}")
    followed = first.communicate(timeout=RUN_SECONDS)[0]
    anna.types(f"dml resume {project} -n 2 --name {fewer}", training_follow=False)
    anna.awaits(fewer, anna.manifest(fewer)["restart"]["step"] + 5, **place)
    anna.types(f"dml stop {fewer}")
    endless = anna.settings["command"]
    last = anna.newest(fewer) + 30
    shorter = endless.replace(str(ENDLESS), str(last))
    finished = anna.types(f"dml resume {fewer} -n 4 --name {more} -e training_folder=.", training_command=shorter)

    assert (anna.results / project / "outputs" / saved).exists() and first.returncode != 0, fetched + followed
    assert f" {project} root@desk " in listed and " running " in listed
    assert f"The training run {project} is stopped: stopped by root@desk" in stopped
    assert [len(anna.manifest(name)["nodes"]) for name in (project, fewer, more)] == [3, 2, 4]
    assert f"chosen: ranks: 2 in {fewer}, 4 in {more}" in finished, finished[-3000:]
    assert anna.manifest(more)["end"]["steps"] == (last if project in CONTINUED else 30)
    only_cause = f"where the checkpoint of {fewer} ends: command: {endless} in {fewer}, {shorter} in {more}."
    assert only_cause in finished, finished[-3000:]
    assert "a-secret-value" not in followed + fetched + listed + stopped + finished
    assert "duration" in anna.types(f"dml compare {fewer} {more}")


@pytest.mark.parametrize("project", sorted(SWEPT))
def test_sweep_of_three_is_compared_and_repeated(anna: User, project: str) -> None:
    anna.copies(project)
    settings = {**anna.settings, "command": SWEPT[project], "nodes": 1, "sweep": {"lr": RATES}}
    (anna.folder / "dml.yml").write_text(yaml.safe_dump(settings))
    runs = [f"{project}-rates.{number}" for number in (1, 2, 3)]

    swept = anna.types(f"dml train --name {project}-rates")
    compared = anna.types(f"dml compare {runs[0]} {runs[2]}")
    anna.types(f"dml repeat {runs[1]} --name {project}-again")

    on = zip(runs, ("worker01", "worker02", "worker03"), RATES)
    assert all(f"{run} trains on {worker} with lr {rate}" in swept for run, worker, rate in on), swept[-3000:]
    assert [anna.manifest(run)["end"]["steps"] for run in runs] == [30] * 3, swept[-3000:]
    assert "lr 0.001" in compared and "loss" in compared, compared
    assert anna.manifest(f"{project}-again")["code"] == anna.manifest(runs[1])["code"]


def test_rank_that_hangs_is_named_with_its_line(anna: User) -> None:
    anna.copies("ddp")

    failed = anna.types("dml train --name hangs -- torchrun train.py --steps 99 --hang 5", 2, training_silence=20)

    line = (anna.folder / "train.py").read_text().split("\n").index("        time.sleep(3600)") + 1
    assert f"rank 1 on worker02 is at train.py, line {line} (<module>), outside the collective in" in failed, failed


def test_gradients_that_are_not_finite_fail_the_run(anna: User) -> None:
    anna.copies("ddp")
    command = "dml train --name spoiled -- torchrun train.py --steps 60 --spoil 5"

    failed = anna.types(command, 2, training_fail_on_nan=True)

    assert f"The training job {RUNS}/spoiled finished, gradients not finite since step 20" in failed, failed[-3000:]


def test_run_that_loses_power_resumes_without_the_worker(anna: User, pair: Pair) -> None:
    """A machine without power closes no connection: its peers wait."""
    anna.copies("ddp")
    running = anna.begins(
        "dml train -n 4 --name cut", training_silence=30, training_attempts=2, training_attempt_wait=1
    )
    anna.awaits("cut", 25)
    with without_power(pair.place, 4):
        failed = " ".join(running.communicate(timeout=RUN_SECONDS)[0].split())
        anna.types("dml resume cut -n 3 --name others", training_follow=False)
        anna.awaits("others", anna.newest("cut") + 5)
        stopped = anna.types("dml stop others")

    assert running.returncode != 0 and "Node worker04 did not answer" in failed, failed[-3000:]
    assert "Attempt 2 of 2: the training run cut failed with a machine: stopped: it made no step for 30 s" in failed
    assert "its nodes did not respond within 1 s" in failed, failed[-3000:]
    assert len(anna.manifest("others")["nodes"]) == 3 and "others" in stopped
    assert anna.manifest("others")["restart"]["step"] == anna.newest("cut")


def test_full_disk_is_named_and_earlier_outputs_return(anna: User, pair: Pair) -> None:
    anna.copies("ddp")
    place: dict[str, Any] = {"training_runs": "/dev/shm/runs"}
    running = anna.begins("dml train --name full", **place)
    anna.awaits("full", 25, **place)
    pair.place.inside(1, "dd if=/dev/zero of=/dev/shm/much bs=4k", check=False)

    failed = " ".join(running.communicate(timeout=RUN_SECONDS)[0].split())
    pair.place.inside(1, "rm /dev/shm/much")

    assert running.returncode != 0 and "rank 0 on worker01" in failed, failed[-3000:]
    assert "no space left on worker01:/dev/shm/runs/full, whose file system /dev/shm has" in failed, failed[-3000:]
    assert anna.newest("full") >= 20


def test_runs_of_one_name_are_chosen_by_their_user(anna: User, pair: Pair, tmp_path: Path) -> None:
    bert, third = (User(pair, tmp_path / host, host) for host in ("laptop", "third"))
    for each in (anna, bert, third):
        each.copies("ddp")
    endless = " -- torchrun train.py --steps 99999 --pace 0.2"
    anna.types(f"dml train --name same -l worker01 -n 1{endless}", training_follow=False)
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
