"""A world in which another tool runs a job on two nodes, and a restart of it by controllers that die."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

from plugins.module_utils.errors import CollectionError
from plugins.module_utils.training.runs.restartable import Restartable, SeenCheckpoint

from .training_world import SAVED, TrainingWorld

JOB: dict[str, Any] = {
    "launcher": "w1",
    "user": "anna",
    "nodes": [{"name": "w1", "reach": ["ssh", "w1"]}, {"name": "w2", "reach": ["ssh", "w2"]}],
    "results": "/reports/.jobs",
}
GIVEN = cast("SeenCheckpoint", {**SAVED, "since": 0.0})


class WorldOfOwner(TrainingWorld):
    """Two nodes; ``is_running`` is whether the job runs there, and ``has_ranks`` whether its ranks do."""

    @property
    def is_running(self) -> bool:
        return True

    @property
    def has_ranks(self) -> bool:
        return self.is_running

    def _stat(self, host: str, options: Mapping[str, Any]) -> dict[str, Any]:
        return {"stat": {"exists": (host, str(options["path"])) in self.node_files}}

    def _read(self, _run_dir: str) -> dict[str, Any]:
        return {"state": "running" if self.is_running else "absent"}

    def _nodes_signal_ranks(self, host: str, options: Mapping[str, Any]) -> dict[str, Any]:
        found = super()._nodes_signal_ranks(host, options)
        return found if self.has_ranks else {**found, "ranks": []}


World = TypeVar("World", bound=WorldOfOwner)


def restarted(job: Callable[[World], Restartable], world: World) -> dict[str, Any]:
    """Restart the job with as many controllers as it takes; the window writes that it was stopped."""
    is_stopped = False
    while True:
        world.is_dead = False
        try:
            if not is_stopped:
                assert job(world).stop()["state"] == "stopped"
                is_stopped = True
            return job(world).start_again(GIVEN)
        except CollectionError:
            raise
        except BaseException:  # the controller died
            if not world.is_dead:
                raise
