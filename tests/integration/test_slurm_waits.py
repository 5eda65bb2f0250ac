"""The waits of the role slurm end on time, also while each command of Slurm waits for a dead slurmctld."""

from __future__ import annotations

import json
from pathlib import Path

import yaml

from tests.integration.ansible import Ansible

TIMEOUT, COMMAND_SECONDS = 5, 5
# It stands in for that of a node, which waits MessageTimeout (10 s) for slurmctld.
SINFO = f"""#!/bin/sh
date +%s >> "$0.times"
sleep {COMMAND_SECONDS}
echo 'slurm_load_partitions: Unable to contact slurm controller (connect failure)' >&2
exit 1
"""
PLAY = {
    "name": "Verify a cluster without slurmctld",
    "hosts": "localhost",
    "gather_facts": False,
    "environment": {"PATH": "{{ programs }}:/usr/bin:/bin"},
    "tasks": [
        {
            "name": "Verify that Slurm runs jobs on all nodes",
            "ansible.builtin.include_role": {"name": "dml.vsphere.slurm", "tasks_from": "prove"},
        }
    ],
}


def test_role_stops_waiting_for_nodes_at_its_timeout(tmp_path: Path) -> None:
    sinfo, play = tmp_path / "sinfo", tmp_path / "play.yml"
    sinfo.write_text(SINFO)
    sinfo.chmod(0o755)
    play.write_text(yaml.safe_dump([PLAY]))

    done = Ansible({}, tmp_path).playbook(play, "-e", json.dumps({"slurm_timeout": TIMEOUT, "programs": str(tmp_path)}))

    times = [int(time) for time in Path(f"{sinfo}.times").read_text().split()]
    assert times[-1] - times[0] < 2 * (TIMEOUT + 2), "the last command starts soon after the end of the wait"
    assert done.rc != 0 and "Unable to contact slurm controller" in " ".join(done.out.split()), done.out
