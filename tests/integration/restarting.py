"""Restarts a run as a maintenance window does, without changing hosts: an action and a playbook for tests."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import yaml

from tests.integration.training import Playbook

# Waits for the next complete checkpoint, or asks for one with a signal; stops the run, and starts it again.
ACTION = """
import time
from ansible.plugins.action import ActionBase
from ansible_collections.dml.vsphere.plugins.module_utils.errors import CollectionError
from ansible_collections.dml.vsphere.plugins.plugin_utils.restartable_jobs import restartable

def until(condition, seconds):
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.5)
    return condition()

class ActionModule(ActionBase):
    def run(self, tmp=None, task_vars=None):
        try:
            return {"changed": True, **self.restarted(task_vars, self._task.args)}
        except CollectionError as error:
            return {"failed": True, "msg": str(error)}

    def restarted(self, task_vars, o):
        job = restartable(self, task_vars, o["kept"], "the maintenance window of me@here")
        refusal = job.refusal()
        if refusal:
            return {"refusal": refusal}
        before = job.checkpoints()
        def is_saved():
            newest = job.checkpoints()["newest"]
            return newest and newest["path"] != (before["newest"] or {}).get("path")
        if o.get("signal"):
            job.ask_for_checkpoint(o["signal"])
            until(lambda: is_saved() or job.state()["state"] != "running", o["seconds"])
            until(is_saved, 5)
        else:
            until(is_saved, o["seconds"])
        seen = job.checkpoints()
        if not is_saved() and job.state()["state"] == "running":
            job.withdraw()
            return {"seen": seen, "state": job.state()}
        stopped = job.stop()
        found = {"stopped": stopped, "saved": bool(is_saved()), "seen": job.checkpoints()}
        started = job.start_again(found["seen"]["newest"], {"waited_s": 1.0, "down": [["hosts", 0.0]]})
        again = job.start_again(found["seen"]["newest"])
        assert again == started, (started, again)
        return {**found, "started": started, "end": job.state()}
"""


def restart(playbook: Playbook, more: Mapping[str, Any], **options: Any) -> dict[str, Any]:
    """Restart the only run on the nodes with one playbook, and return the result of the action."""
    folder, result = playbook.folder, playbook.folder / "restarted.json"
    (folder / "action_plugins").mkdir(exist_ok=True)
    (folder / "action_plugins" / "restart_run.py").write_text(ACTION)
    kept = {"kept": "{{ training_started.restart }}", "seconds": 60, **options}
    tasks = [
        {"ansible.builtin.include_role": {"name": "dml.vsphere.training", "tasks_from": "find"}},
        {"restart_run": kept, "register": "restarted", "run_once": True},
        {
            "ansible.builtin.copy": {"content": "{{ restarted }}", "dest": str(folder / "restarted.json")},
            "run_once": True,
        },
    ]
    play = {"hosts": "workers", "gather_facts": True, "tasks": tasks}
    (folder / "restart.yml").write_text(yaml.safe_dump([play]))
    command = playbook.command(**more)
    given = {key: value for key, value in json.loads(command[-1]).items() if key != "training_command"}
    words = [*command[:3], str(folder / "restart.yml"), "-e", json.dumps(given)]
    ran = playbook.ansible.run(words, timeout=600)
    assert ran.returncode == 0, ran.stdout
    return dict(json.loads(result.read_text()))
