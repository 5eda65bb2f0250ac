"""A training run reaches the same end with any number of controllers, and is tried again only if a machine fails."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

import pytest
import yaml

from plugins.module_utils.durable.program import MemoryJournal, Program
from plugins.module_utils.errors import Refused
from plugins.module_utils.training.programs.train import train
from plugins.module_utils.training.results import manifest
from plugins.module_utils.training.runs.training_run import TrainingFailed, TrainingRun
from plugins.modules import mpijob_info, training_info
from tests.fakes.deaths import MOST_CONTROLLERS, Killed, histories
from tests.fakes.training_world import TrainingWorld

OF_MACHINE = {"state": "died", "machine": True, "why": "rank 1 on w2 was ended by signal 9", "ended": 1.0}
OF_PROGRAM = {"state": "died", "machine": False, "why": "rank 1: ValueError: no data", "ended": 1.0}
# The keys of a job that the programs and the verdict read, whichever module returns it.
READ = {"state", "why", "launcher", "nodes_of_ranks", "started", "ended", "exit_code", "last_lines"}


def once(world: TrainingWorld, run: TrainingRun | None = None) -> dict[str, Any]:
    """Train with one controller."""
    return train(Program(MemoryJournal(), world), world.site, run or world.run())


def to_its_end(world: TrainingWorld) -> dict[str, Any]:
    """Train with as many controllers as it takes; each has a new journal, as the state lies in files."""
    return _to_its_end(world, world.run)


def taken_up_to_its_end(world: TrainingWorld) -> dict[str, Any]:
    """The same, with the name of the run: a controller begins with the attempt to which the former came."""
    return _to_its_end(world, world.taken_up)


def _to_its_end(world: TrainingWorld, run: Callable[[], TrainingRun]) -> dict[str, Any]:
    for _controller in range(MOST_CONTROLLERS):
        world.is_dead = False
        # A watch ends itself with its controller.
        world.watches.clear()
        try:
            return once(world, run())
        except Killed:
            continue
    raise AssertionError("the run never ended")


def test_any_death_leads_to_one_job_and_result() -> None:
    for world, result in histories(TrainingWorld, to_its_end, pairs=60):
        assert (result["run"], world.starts) == ("one", {"/runs/one": 1})
        assert world.result("one")["steps"] == 40
        assert world.kept("one")["end"]["state"] == "finished"
        assert "/results/one/outputs" in world.outputs_at
        assert world.watches == set() and world.stops == []


def tried_again(deaths: Iterable[int] = ()) -> TrainingWorld:
    world = TrainingWorld(deaths, attempts=3)
    world.ends = [OF_MACHINE, {"state": "finished", "ended": 9.0}]
    return world


def test_any_death_leads_to_one_job_per_attempt() -> None:
    for world, result in histories(tried_again, taken_up_to_its_end, pairs=60):
        assert (result["run"], world.starts) == ("one-2", {"/runs/one": 1, "/runs/one-2": 1})
        assert world.jobs["/runs/one-2"].options["environment"]["DML_RESUME"].endswith("/work/outputs/epoch1.pt")
        assert (world.kept("one")["end"]["state"], world.kept("one-2")["end"]["state"]) == ("died", "finished")
        then = world.kept("one-2")
        assert (then["resumed_from"], then["first_attempt"], then["attempt"]) == ("one", "one", 2)
        assert world.watches == set()


def test_attempt_after_a_death_has_the_run_archive() -> None:
    """The folder of the user may differ by now."""
    world = tried_again()
    _manifest(world)
    world.sent.clear()

    assert once(world, world.taken_up())["run"] == "one-2"

    sent = [each for each in world.sent if each["path"] == world.o["folder"]]
    assert {each["sha256"] for each in sent} == {"ab" * 32}
    assert {each["kept"] for each in sent} == {"/results/one/code.tar"}


def test_does_not_retry_a_run_without_its_variables() -> None:
    world = tried_again()
    world.o["environment"] = {"TOKEN": "secret", "PLAIN": "1"}
    _manifest(world)
    world.o["environment"] = {"PLAIN": "1"}

    with pytest.raises(TrainingFailed, match="one is not tried again: TOKEN of training_environment differ from"):
        once(world, world.taken_up())

    assert world.starts == {"/runs/one": 1}
    world.o["environment"] = {"TOKEN": "secret", "PLAIN": "1"}
    assert once(world, world.taken_up())["run"] == "one-2"


def test_ignores_attempts_of_an_earlier_run_by_name() -> None:
    world = tried_again()
    once(world)
    kept = world.kept("one-2")
    world.here_files["/results/one/manifest.json"]["started"] = kept["started"] + 1.0

    assert world.taken_up().name == "one"


def test_announces_the_preparation_of_the_nodes() -> None:
    world = TrainingWorld(folder="/mine", requirements="requirements.txt", data="/images")
    once(world)
    assert "brings what they lack to w1, w2: /mine, /images" in world.lines


@pytest.mark.parametrize("node", ["w1", "w2"])
def test_powered_off_machine_leads_to_a_second_attempt(node: str) -> None:
    """The launcher has rank 0 and the outputs: they come back with their machine, and hide nothing before."""
    world = tried_again()
    world.powers_off = {node: 300.0}
    assert once(world)["run"] == "one-2"
    assert world.starts == {"/runs/one": 1, "/runs/one-2": 1}
    assert world.outputs_at["/results/one/outputs"] >= world.away[node]
    assert world.jobs["/runs/one-2"].options["environment"]["DML_RESUME"]
    assert any("failed with a machine" in line for line in world.lines)


@pytest.mark.parametrize(
    ("end", "attempts", "words"),
    [
        (OF_PROGRAM, 3, "The training job /runs/one on w1 died: rank 1: ValueError: no data"),
        (OF_MACHINE, 1, "died: rank 1 on w2 was ended by signal 9"),
        ({"state": "stopped"}, 3, "The training job /runs/one on w1 was stopped by a command. The end of"),
    ],
)
def test_unfinished_job_fails_with_its_cause(end: dict[str, Any], attempts: int, words: str) -> None:
    world = TrainingWorld(attempts=attempts)
    world.ends = [end]
    with pytest.raises(TrainingFailed) as failed:
        once(world)
    assert words in str(failed.value)
    assert "The end of its output is in /results/one/output.log." in str(failed.value)
    assert ("-e training_attempts=3 retries such a run" in str(failed.value)) == (end == OF_MACHINE)
    assert world.here_files["/results/one/output.log"] == "its output"
    assert world.starts == {"/runs/one": 1} and world.watches == set()
    assert "/results/one/outputs" in world.outputs_at, "outputs come back after a failure"


def test_lost_nodes_end_the_run_with_resume_command() -> None:
    world = tried_again()
    world.o["attempt_wait"], world.powers_off = 30, {"w2": 1e9}
    with pytest.raises(TrainingFailed, match=r"its nodes did not respond within 30 s\. Start them"):
        once(world)
    assert world.starts == {"/runs/one": 1} and world.watches == set()


def test_lost_launcher_ends_the_run_without_another_attempt() -> None:
    world = TrainingWorld()
    world.powers_off = {"w1": 1e9}
    with pytest.raises(TrainingFailed, match="The launcher w1 of the training job /runs/one did not report the state"):
        once(world)


def test_does_not_retry_a_run_found_on_launcher() -> None:
    """The user of the launcher could choose the program of the next attempt."""
    world = tried_again()
    known = {**_manifest(world), manifest.REPORTED: True}
    with pytest.raises(TrainingFailed, match="died: rank 1 on w2"):
        once(world, world.run(known=known))
    assert world.starts == {"/runs/one": 1}


def _manifest(world: TrainingWorld) -> dict[str, Any]:
    """Start the run as another controller, and return its manifest."""
    world.o["follow"] = False
    once(world)
    world.o["follow"] = True
    return world.kept("one")


def test_unfollowed_run_ends_with_its_start() -> None:
    world = TrainingWorld(follow=False)
    assert once(world) == {"run": "one", "changed": True}
    assert world.starts == {"/runs/one": 1}
    assert any("continues without this command" in line and "dml.vsphere.stop" in line for line in world.lines)
    assert "/results/one.json" not in world.here_files


@pytest.mark.parametrize("accept", [[], ["group"]])
def test_ranks_without_a_group_end_the_run(accept: list[str]) -> None:
    """Lightning with num_nodes=1 trained two models on two nodes, and the run was a success of two ranks."""
    world = TrainingWorld(accept=accept)
    world.apart = "ranks 0, 1 of 2 formed no process group"

    if accept:
        assert once(world)["result"]["steps"] == 40
    else:
        with pytest.raises(TrainingFailed, match="ranks 0, 1 of 2 formed no process group"):
            once(world)

    end = world.kept("one")["end"]
    assert (world.stops, world.watches) == ([] if accept else ["/runs/one"], set())
    assert end["state"] == ("finished" if accept else "stopped")
    assert accept or 'training_accept": ["group"]' in end["cause"]


def test_failed_copy_of_outputs_ends_no_running_job() -> None:
    world = TrainingWorld(outputs_every=60, forward=[6006])
    world.due = 2

    assert once(world)["run"] == "one"

    assert world.log.count("outputs_copy_growing") == 2
    assert any("use ssh -N -L 6006:localhost:6006" in line for line in world.lines)
    assert any("the disk is full" in line for line in world.lines)


def test_does_not_stop_a_script_without_reported_steps() -> None:
    world = TrainingWorld(silence=1)
    world.last_seen = None
    assert once(world)["run"] == "one"


def test_counts_steps_whose_records_arrive_after_the_end() -> None:
    world = TrainingWorld()
    world.is_late = True

    once(world)

    assert world.result("one")["steps"] == 40


def test_warns_of_a_checkpoint_that_cannot_resume() -> None:
    """Each node has only the parts of its ranks: the first resume of a long run found that out."""
    world = TrainingWorld()
    world.unusable = "No run can resume from the checkpoint step40: it lacks __1_0.distcp."

    once(world)

    assert world.lines.count(world.unusable) == 1


def test_fails_if_no_process_collects_the_records() -> None:
    world = TrainingWorld()
    world.last_seen, world.has_records = None, False
    with pytest.raises(TrainingFailed, match="which is finished, are not collected: the watch on the controller"):
        once(world)


@pytest.mark.parametrize("command", [[], ["python", "train.py"]])
def test_recognizes_new_job_despite_wrong_launcher_clock(command: list[str]) -> None:
    """A benchmark was stopped as silent at once, and a job was reported as not watched before its watch started."""
    world = TrainingWorld(command=command, folder="", requirements="", silence=600)
    world.behind, world.last_seen = 3600.0, None
    world.has_records = not command
    world.ends, began = [{"state": "running"}], world.clock

    with pytest.raises(TrainingFailed, match="the watch on the controller did not" if command else "no step for 600 s"):
        once(world)

    assert world.clock - began >= (60 if command else 600)


def test_next_run_ignores_the_manifest_on_the_launcher() -> None:
    """Its user rewrites it, and it names another command, other nodes and another archive."""
    world = TrainingWorld()
    once(world)
    kept = world.kept("one")
    lie = {**kept, "command": ["rm", "-rf", "/"], "nodes": ["w9"], "code": {"sha256": "00" * 32}, "asked_by": "eve"}
    world.node_files["w1", "/runs/one/manifest.json"] = json.dumps(lie)
    once(world, world.run(known=kept))
    again = {key: value for key, value in world.kept("one").items() if key != "end"}
    assert again == {key: value for key, value in kept.items() if key != "end"}
    world.node_files["w1", "/runs/one/manifest.json"] = "not JSON"
    once(world, world.run(known=kept))
    assert world.kept("one")["command"] == ["python", "train.py"]


def test_the_controller_keeps_the_program_that_it_packed() -> None:
    """A folder of 50 MB came back from a node before the first step was shown."""
    world = TrainingWorld()
    once(world)
    assert "/results/one/code.tar" in world.kept_code
    assert not any("fetch" in line for line in world.log)

    other = TrainingWorld()
    other.lacks_code = True
    once(other)
    fetched = next(number for number, line in enumerate(other.log) if "fetch" in line)
    assert fetched > other.log.index("records_follow"), "another controller's program comes back after the job"


@pytest.mark.parametrize("lie", [{"isreg": False}, {"size": 1 << 40}, {"checksum": "00" * 32}])
def test_does_not_fetch_a_replaced_archive(lie: dict[str, Any]) -> None:
    world = TrainingWorld()
    world.archive.update(lie)
    world.lacks_code = True

    with pytest.raises(Refused, match=r"w1: could not keep the program of the run: .* is not the archive that this"):
        once(world)


def test_a_repeated_run_needs_the_same_packages() -> None:
    world = TrainingWorld(repeat="before")
    source = {"name": "before", "stack": "another", "command": ["python", "train.py"]}
    with pytest.raises(Exception, match="stack") as refused:
        once(world, world.run(source=source))
    assert "training_accept" in str(refused.value) and world.starts == {}


def test_both_modules_describe_jobs_with_same_keys() -> None:
    for module in (mpijob_info, training_info):
        assert set(yaml.safe_load(module.RETURN)["job"]["contains"]) >= READ, module.__name__


def test_manifest_has_all_keys_that_repeated_runs_compare() -> None:
    world = TrainingWorld()
    once(world)
    assert set(manifest.OF_A_REPEAT) <= set(world.kept("one"))


def test_nccl_job_records_collectives_outside_the_user_folder() -> None:
    world = TrainingWorld(nccl="2.30.7", transport="tcp")

    once(world)

    environment = world.jobs["/runs/one"].options["environment"]
    assert environment["TORCH_FR_DUMP_TEMP_FILE"] == "/runs/one/recorders/rank_"
    assert environment["NCCL_RAS_ADDR"] == "localhost:30500"
    once(plain := TrainingWorld())
    assert not [
        name for name in plain.jobs["/runs/one"].options["environment"] if name.startswith(("TORCH", "NCCL_RAS"))
    ]


def test_each_rank_gets_the_path_of_the_data() -> None:
    world = TrainingWorld(data="/home/me/images", command=["python", "train.py", "--data={data}"])

    once(world)

    path = f"/lib/data/{'cd' * 32}"
    assert [sent["host"] for sent in world.sent if sent.get("shared")] == ["w1", "w2"]
    options = world.jobs["/runs/one"].options
    assert f"--data={path}" in options["command"] and options["environment"]["DML_DATA"] == path
    assert (world.kept("one")["data"], world.kept("one")["data_sha256"]) == ("/home/me/images", "cd" * 32)


def test_refuses_a_url_without_checksum_before_any_write() -> None:
    world = TrainingWorld(data="https://host/images.tar")

    with pytest.raises(Refused, match=r"training_data https://host/images\.tar: .* a URL needs a checksum"):
        once(world)

    assert not world.sent and not world.jobs
