"""A job of another tool, which its owner's commands stop and start around a window."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

import pytest

from plugins.module_utils.errors import CollectionError
from plugins.module_utils.training.programs.restart_commands import OUTPUT_AND_CODE, STARTED, OthersJob, lacking
from tests.fakes import job_of_owner
from tests.fakes.deaths import histories
from tests.fakes.job_of_owner import GIVEN, WorldOfOwner

JOB: dict[str, Any] = {
    **job_of_owner.JOB,
    "run_dir": "/data/run",
    "records": "/data/run/records",
    "stop": "systemctl --user stop train",
    "start": ["start-train", "--from={resume}"],
    "checkpoints": "/data/ck",
}


class OthersWorld(WorldOfOwner):
    """Two nodes on which a job of another tool runs; ``starts_after`` seconds pass until its ranks write records."""

    def __init__(self, deaths: Iterable[int] = ()) -> None:
        super().__init__(deaths)
        self.runs_from: float | None = 0.0
        self.commands, self.codes, self.is_stuck = list[list[str]](), dict[str, str](), False
        self.starts_after = 20.0

    @property
    def is_running(self) -> bool:
        return self.runs_from is not None and self.clock >= self.runs_from

    def _command(self, _host: str, options: Mapping[str, Any]) -> dict[str, Any]:
        shell, words = options["argv"][: len(OUTPUT_AND_CODE)], options["argv"][len(OUTPUT_AND_CODE) :]
        assert tuple(shell) == OUTPUT_AND_CODE
        self.commands.append(words)
        if words[0] in self.codes:
            return {"stdout": f"Unit not found.\n{self.codes[words[0]]}\n"}
        self.runs_from = self.clock + self.starts_after if words[0] == "start-train" else None
        return {"stdout": "0\n"}

    @property
    def has_ranks(self) -> bool:
        return self.is_running or self.is_stuck


def job(world: OthersWorld) -> OthersJob:
    return OthersJob(world, JOB)


restarted = partial(job_of_owner.restarted, job)


def test_each_death_leads_to_one_start_with_the_checkpoint() -> None:
    for world, started in histories(OthersWorld, restarted, pairs=30):
        assert [words for words in world.commands if words[0] == "start-train"] == [
            ["start-train", "--from=/data/ck/epoch1.pt"]
        ]
        assert ["systemctl", "--user", "stop", "train"] in world.commands and world.is_running
        assert (started["run"], started["launcher"], started["run_dir"]) == ("run", "w1", "/data/run")


def test_reads_state_and_checkpoints_and_signals_all_ranks() -> None:
    world = OthersWorld()
    assert job(world).refusal() == "" and job(world).state()["state"] == "running"
    newest = job(world).checkpoints()["newest"]
    assert newest is not None and (newest["path"], newest["since"]) == ("epoch1.pt", world.clock - 20.0)
    job(world).ask_for_checkpoint("USR2", 60.0)
    job(world).withdraw()
    assert world.signals == [("USR2", "0"), ("USR2", "1")]
    world.ranks = ["0"]
    with pytest.raises(CollectionError, match="their records identify 1 of 2 running processes"):
        job(world).ask_for_checkpoint("USR2", 60.0)
    assert job(world).judged()["verdict"] == "inconclusive"


@pytest.mark.parametrize(("seconds", "commands"), [(30.0, []), (200.0, [["systemctl", "--user", "stop", "train"]])])
def test_ranks_on_other_nodes_end_before_a_window(seconds: float, commands: list[list[str]]) -> None:
    class Ending(OthersWorld):
        @property
        def has_ranks(self) -> bool:
            return self.clock < ends and not self.commands

    world = Ending()
    world.runs_from, ends = None, world.clock + seconds

    assert job(world).state()["state"] == "absent" and job(world).stop()["state"] == "stopped"

    assert not world.has_ranks and world.commands == commands


def test_next_window_starts_the_job_again() -> None:
    world = OthersWorld()
    restarted(world)
    restarted(world)
    assert [words[0] for words in world.commands] == ["systemctl", "start-train"] * 2
    assert ("w1", f"/data/run/{STARTED}") in world.node_files


def test_job_that_its_owner_resumed_is_not_started() -> None:
    world = OthersWorld()
    job(world).stop()
    world.runs_from = 0.0
    assert job(world).start_again(GIVEN) == {"by_owner": "a job in /data/run"}
    assert len(world.commands) == 1


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"codes": {"systemctl": "5"}}, "could not stop it with systemctl --user stop train: Unit not found; correct"),
        ({"is_stuck": True}, "could not stop it: ranks 0, 1 run 120 s after its command stop had ended"),
        ({"codes": {"start-train": "1"}}, "could not start it with start-train --from=/data/ck/epoch1.pt: Unit not"),
        ({"starts_after": 1e9}, "could not start it again: no rank has written a record 300 s after its command start"),
    ],
)
def test_command_without_its_effect_is_an_error(change: dict[str, Any], words: str) -> None:
    world = OthersWorld()
    for name, value in change.items():
        setattr(world, name, value)

    with pytest.raises(CollectionError) as failed:
        restarted(world)

    assert f"the job in /data/run: {words}" in str(failed.value)


@pytest.mark.parametrize("output", ["", "stopped", "stopped\n"])
def test_command_counts_by_its_code_with_any_output(output: str) -> None:
    class Shell(OthersWorld):
        def _command(self, host: str, options: Mapping[str, Any]) -> dict[str, Any]:
            super()._command(host, options)
            return {"stdout": subprocess.run(options["argv"], capture_output=True, text=True, check=True).stdout}

    def stopped(code: int) -> str:
        given: Any = {**JOB, "stop": ["sh", "-c", f"printf '{output}'; exit {code}"]}
        return str(OthersJob(Shell(), given).stop()["state"])

    assert stopped(0) == "stopped"
    with pytest.raises(CollectionError, match="stopped; correct" if output else "it ended with exit code 3"):
        stopped(3)


def test_job_without_its_commands_cannot_be_restarted() -> None:
    assert lacking(JOB) == ""
    needed = "maintenance_job needs the commands stop and start, and the folder checkpoints for a restart"
    assert lacking({**JOB, "start": [], "checkpoints": ""}) == f"{needed}: it lacks start, checkpoints."
