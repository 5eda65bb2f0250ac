"""Where a round is held: its own data centre, what is run on it, and how its end is read."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lab.simulator import Simulator
from tests.attack import controller, ends
from tests.attack.controller import Ended, Kill
from tests.attack.scenarios import Scenario, Step
from tests.integration.ansible import Ansible


class Ground:
    """Calls of modules, as a scenario has them."""

    def __init__(self, scenario: Scenario, certs: Path, folder: Path, **options: Any) -> None:
        self.scenario, self.folder = scenario, folder
        # Keys take longer to make than all the rest of a data centre.
        shutil.copytree(certs, folder, dirs_exist_ok=True)
        description = folder / "datacentre.yml"
        description.write_text(scenario.text)
        self.vcenter = Simulator(description, folder=folder, **options)
        self.ansible = Ansible(self.vcenter.environment, folder)

    def prepare(self) -> None:
        """All that comes before the attack."""
        self.scenario.place(self.vcenter)
        done = controller.carry_out(self.vcenter, self.folder, self.scenario.before)
        if done.failures or done.raised or done.hung:
            raise RuntimeError(f"it cannot be prepared: {done}")

    def run(self, kill: Kill | None = None, timeout: int = 60) -> Ended:
        """The scenario's steps, by their own controller."""
        return controller.carry_out(self.vcenter, self.folder, self.scenario.steps, kill=kill, timeout=timeout)

    def follow(self, advice: str) -> bool:
        """Do what a refusal asks of a person, if it is what this scenario may ask for."""
        expected = self.scenario.advice
        if not expected or expected not in advice:
            return False
        self.scenario.follow(self.vcenter)
        return True

    def end(self) -> Counter[str]:
        """All that can be compared with another end."""
        return ends.state(self.vcenter)

    def left_to_do(self) -> list[str]:
        """Return what is wrong at the end; looking must write nothing."""
        self.vcenter.clear()
        wrong = [text for step in self.scenario.steps if step.settles for text in self._unsettled(step)]
        return [*wrong, *self.held_by(), *(f"a look writes {one['method']}" for one in self.vcenter.writes())]

    def held_by(self) -> list[str]:
        """Who holds the lock of the cluster; nothing when it is free."""
        requested = self.ansible.module("cluster_lock", check=True, cluster="gpu", state="free", run="a look")
        return (
            [f"the lock is not free: {requested.msg or 'somebody gone holds it'}"]
            if requested.rc or requested.changed
            else []
        )

    def close(self) -> None:
        """End all that was started."""
        self.vcenter.stop()

    def _unsettled(self, step: Step) -> Iterator[str]:
        looked = self.ansible.module(step.module, check=True, **step.options)
        if looked.rc or looked.changed:
            yield f"{step.module} is not done: {looked.msg or looked.result.get('diff')}"
