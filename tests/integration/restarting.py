"""Restarts a run as a maintenance window does, without changing hosts: an action and a playbook for tests."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from tests.integration.ansible import Ansible

# Waits for the next complete checkpoint, or asks for one with a signal; stops the run, and starts it again.
ACTION = """
import json
import time
from pathlib import Path
from ansible.plugins.action import ActionBase
from ansible_collections.dml.vsphere.plugins.module_utils.errors import CollectionError
from ansible_collections.dml.vsphere.plugins.module_utils.trials.steps.stopping import SETTLED_AT_MOST
from ansible_collections.dml.vsphere.plugins.plugin_utils.restartable_jobs import restartable

def until(condition, seconds):
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.5)
    return condition()

class ActionModule(ActionBase):
    def run(self, tmp=None, task_vars=None):
        try:
            found = self.restarted(task_vars, self._task.args)
            Path(self._task.args["result"]).write_text(json.dumps(found))
            return {"changed": True, **found}
        except CollectionError as error:
            return {"failed": True, "msg": str(error)}

    def restarted(self, task_vars, o):
        job = restartable(self, task_vars, o["kept"], "the maintenance window of me@here")
        refusal = job.refusal()
        if refusal:
            return {"refusal": refusal}
        # A window too begins at a checkpoint that counts already: its files have not changed for a moment.
        until(lambda: job.checkpoints()["newest"], SETTLED_AT_MOST)
        before = job.checkpoints()
        def is_saved():
            newest = job.checkpoints()["newest"]
            return newest and newest["path"] != (before["newest"] or {}).get("path")
        if o.get("signal"):
            job.ask_for_checkpoint(o["signal"], 600.0)
            # All programs here that heed the signal end at it: mpirun may crash at a stop in the middle of that.
            until(lambda: job.state()["state"] != "running", o["seconds"])
            until(is_saved, 5)
        else:
            until(is_saved, o["seconds"])
        seen = job.checkpoints()
        if not is_saved() and job.state()["state"] == "running":
            job.withdraw()
            return {"seen": seen, "state": job.state()}
        stopped = job.stop()
        # A window waits too until the files of the last checkpoint have not changed for a moment.
        until(lambda: not job.checkpoints()["torn"], SETTLED_AT_MOST)
        found = {"stopped": stopped, "saved": bool(is_saved()), "seen": job.checkpoints()}
        started = job.start_again(found["seen"]["newest"], {"waited_s": 1.0, "down": [["hosts", 0.0]]})
        again = job.start_again(found["seen"]["newest"])
        assert again == started, (started, again)
        return {**found, "started": started, "end": job.state()}
"""


def restart(ansible: Ansible, inventory: Path, variables: Mapping[str, Any], **options: Any) -> dict[str, Any]:
    """Restart the only run on the nodes with one playbook, and return the result of the action."""
    folder, result = ansible.folder, ansible.folder / "restarted.json"
    (folder / "action_plugins").mkdir(exist_ok=True)
    (folder / "action_plugins" / "restart_run.py").write_text(ACTION)
    given = {"kept": "{{ training_started.restart }}", "seconds": 60, "result": str(result), **options}
    tasks = [
        {"ansible.builtin.include_role": {"name": "dml.vsphere.training", "tasks_from": "find"}},
        {"restart_run": given, "run_once": True, "become": False},
    ]
    play = {"hosts": "workers", "gather_facts": True, "become": True, "tasks": tasks}
    (folder / "restart.yml").write_text(yaml.safe_dump([play]))
    words = [str(folder / "restart.yml"), "-i", str(inventory), "-e", json.dumps(variables)]
    ran = ansible.playbook(*words, timeout=600)
    assert ran.rc == 0, ran.out
    return dict(json.loads(result.read_text()))
