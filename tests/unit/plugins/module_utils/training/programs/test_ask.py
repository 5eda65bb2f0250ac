"""The output of a named run, files of its folder, and commands on its nodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from plugins.module_utils.durable.program import MemoryJournal, Program
from plugins.module_utils.errors import CollectionError
from plugins.module_utils.training.programs import ask
from plugins.module_utils.training.programs.stop import stop
from plugins.module_utils.training.programs.train import train
from plugins.module_utils.training.runs import run_source
from plugins.module_utils.training.runs.training_run import TrainingRun
from tests.fakes.training_world import TrainingWorld


class World(TrainingWorld):
    """A world that answers what these programs ask; ``copied`` has the copies."""

    code, copied, owner = "0", dict[str, Any](), "ubuntu"

    def _stat(self, _host: str, _options: Mapping[str, Any]) -> dict[str, Any]:
        return {"stat": {"exists": bool(self.owner), "pw_name": self.owner}}

    def _outputs_copy_growing(self, _host: str, options: Mapping[str, Any]) -> dict[str, Any]:
        self.copied = dict(options)
        return {"names": ["a", "b"], "changed": True}

    _outputs_copy_path = _outputs_copy_growing

    def _command(self, host: str, options: Mapping[str, Any]) -> dict[str, Any]:
        self.copied = dict(options)
        return {"stdout": f"on {host}\n\n{self.code}", "rc": 0}


def started(**options: Any) -> tuple[World, TrainingRun]:
    world = World(follow=False, **options)
    train(Program(MemoryJournal(), world), world.site, world.run())
    known = world.kept("one")
    world.log.clear()
    return world, replace(world.run(known=known), o=run_source.with_followed(world.o, known))


def test_logs_show_the_last_lines_from_the_launcher_only() -> None:
    world, run = started()

    shown = ask.logs(world.site, run, 1)["lines"]

    assert shown[0] == "its output" and shown[1].startswith("The training run one is running. To follow it, use ")
    assert [line for line in world.log if " on " in line] == ["dml.vsphere.training_info on w1"]


@pytest.mark.parametrize(
    ("path", "copied"),
    [
        ("", {"folder": "/runs/one/work/outputs", "dest": "/results/one/outputs"}),
        ("outputs/", {"folder": "/runs/one/work/outputs", "dest": "/results/one/outputs"}),
        ("outputs/e/1.pt", {"folder": "/runs/one/work/outputs/e", "path": "1.pt", "dest": "/results/one/outputs/e"}),
        ("logs", {"folder": "/runs/one/work", "path": "logs", "dest": "/results/one/fetched"}),
        # The folder of the results has files of the collection, such as manifest.json.
        (".", {"folder": "/runs/one/work", "path": ".", "dest": "/results/one/fetched"}),
        ("a/b.txt", {"folder": "/runs/one/work/a", "path": "b.txt", "dest": "/results/one/fetched/a"}),
    ],
)
def test_fetch_copies_outputs_or_one_path(path: str, copied: dict[str, str]) -> None:
    world, run = started()

    planned = ask.fetch(world.site, run, path, is_check=True)
    before = dict(world.copied)
    fetched = ask.fetch(world.site, run, path, is_check=False)

    assert planned["changed"] and not before, "a check copies nothing"
    assert world.copied == {"node": "w1", "reach": ["ssh", "w1"], "limit": 2000, **copied}
    assert fetched["lines"][0].startswith("2 files of w1:/runs/one/work/")


@pytest.mark.parametrize("path", ["/etc/passwd", "../two", "a/../../two"])
def test_fetch_refuses_a_path_outside_the_folder(path: str) -> None:
    world, run = started()

    with pytest.raises(CollectionError, match="is not in the folder of the run"):
        ask.fetch(world.site, run, path, is_check=False)


def test_command_runs_with_the_packages_on_each_node() -> None:
    world, run = started()

    shown = ask.execute(world.site, run, ["python", "-V"], is_check=False)

    assert shown["lines"] == ["w1: on w1", "w2: on w2"] and "failed" not in shown
    assert world.copied["argv"][3:] == ["/venv/bin", "python", "-V"] and world.copied["chdir"] == "/runs/one/work"
    world.code = "3"
    failed = ask.execute(world.site, run, ["false"], is_check=False)
    assert failed["failed"] and failed["msg"] == "false failed on w1 (3), w2 (3)."


@pytest.mark.parametrize(("user", "expected"), [("", "ubuntu"), ("anna", "anna")])
def test_command_never_runs_as_the_playbook_user(user: str, expected: str) -> None:
    """The playbook runs as root; a run of the login user has no other user."""
    world, run = started()
    run = replace(run, nodes={name: {**node, "user": user} for name, node in run.nodes.items()})

    ask.execute(world.site, run, ["python", "evaluate.py"], is_check=False)

    assert f"as {expected}" in world.log
    world.owner = ""
    if not user:
        with pytest.raises(CollectionError, match="the user of /runs/one on w1 is unknown"):
            ask.execute(world.site, run, ["ls"], is_check=False)


def test_unknown_run_and_containers_are_refused() -> None:
    world, run = started()

    with pytest.raises(CollectionError, match="has the manifest of the training run one"):
        ask.logs(world.site, replace(run, known={}), 1)
    with pytest.raises(CollectionError, match="its ranks run in containers"):
        ask.execute(world.site, replace(run, known={**run.known, "image": "i"}), ["ls"], is_check=False)
    with pytest.raises(CollectionError, match="training_exec: could not run a command: it is empty"):
        ask.execute(world.site, run, [], is_check=False)


def test_stop_asks_other_nodes_only_without_the_launcher() -> None:
    world, run = started()
    stop(Program(MemoryJournal(), world), world.site, run)
    first = [line for line in world.log if line.startswith("dml.vsphere.training_info")]
    world.log.clear()
    with pytest.raises(CollectionError, match="No worker runs a training job with the name"):
        stop(Program(MemoryJournal(), world), world.site, replace(run, o={**run.o, "name": "two"}, known={}))

    assert first == ["dml.vsphere.training_info on w1"]
    assert "dml.vsphere.training_info on w2" in world.log
