# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The workers for SkyPilot and dstack, read by the parsers of both: `make frameworks`."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import yaml

from plugins.module_utils.guests import node_pools

FRAMEWORKS = Path(os.environ.get("DML_FRAMEWORKS", Path(__file__).parents[2] / ".cache" / "frameworks"))
SKYPILOT = """
import json, sys
from sky.ssh_node_pools import utils
(name, pool), = utils.get_cluster_config(utils.load_ssh_targets(sys.argv[1])).items()
print(json.dumps({"name": name, "hosts": utils.prepare_hosts_info(name, pool)}))
"""
DSTACK = """
import sys, yaml
from dstack._internal.core.models.configurations import parse_apply_configuration
fleet = parse_apply_configuration(yaml.safe_load(open(sys.argv[1])))
print(fleet.model_dump_json())
"""


def workers(folder: Path) -> dict[str, dict[str, Any]]:
    key = folder / "key"
    key.write_text("a key")
    login = {"ansible_user": "ubuntu", "ansible_ssh_private_key_file": str(key)}
    return {
        f"w{number}": {**login, "ansible_host": f"10.0.0.{number}", "vm_rdma_addresses": [f"192.168.5.{number}"]}
        for number in (1, 2)
    }


def parsed(tool: str, program: str, folder: Path, content: dict[str, Any]) -> Any:
    """Return what the parser of a tool reads in a file with the content."""
    python = FRAMEWORKS / tool / "bin" / "python"
    assert python.exists(), f"{tool} is not installed: run make frameworks"
    path = folder / "export.yml"
    path.write_text(yaml.safe_dump(content, sort_keys=False))
    place = {**os.environ, "HOME": str(folder), "SKYPILOT_DISABLE_USAGE_COLLECTION": "1"}
    command = [str(python), "-c", program, str(path)]
    ran = subprocess.run(command, check=False, env=place, cwd=folder, capture_output=True, text=True, timeout=600)
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout.splitlines()[-1])


def test_skypilot_reads_its_pool(tmp_path: Path) -> None:
    given = workers(tmp_path)
    found = parsed("skypilot", SKYPILOT, tmp_path, node_pools.skypilot("gpus", given))
    assert found["name"] == "gpus"
    assert [(host["ip"], host["user"], host["identity_file"], host["password"]) for host in found["hosts"]] == [
        (f"10.0.0.{number}", "ubuntu", str(tmp_path / "key"), "") for number in (1, 2)
    ]


def test_dstack_reads_its_fleet(tmp_path: Path) -> None:
    given = workers(tmp_path)
    given["w2"]["ansible_port"] = 2222
    found = parsed("dstack", DSTACK, tmp_path, node_pools.dstack("gpus", given))
    assert (found["type"], found["name"], found["placement"]) == ("fleet", "gpus", "cluster")
    assert [(host["hostname"], host["internal_ip"], host["port"]) for host in found["ssh_config"]["hosts"]] == [
        ("10.0.0.1", "192.168.5.1", None),
        ("10.0.0.2", "192.168.5.2", 2222),
    ]
