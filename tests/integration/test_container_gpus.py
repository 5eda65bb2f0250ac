"""The description of the GPUs for containers, which names the files of the driver with its version."""

from __future__ import annotations

from pathlib import Path

import yaml

from tests.integration.ansible import Ansible

# As nvidia-ctk 1.20.2 wrote it on a mock driver: the description on the standard output, messages on the other one.
DESCRIBES = """#!/bin/sh
echo 'level=info msg="Auto-detected mode as nvml"' >&2
test "$*" = "cdi generate --format=yaml" && cat <<'E'
---
cdiVersion: 0.5.0
kind: nvidia.com/gpu
devices:
    - name: all
      containerEdits:
        mounts:
            - hostPath: /usr/lib/x86_64-linux-gnu/libcuda.so.{driver}
E
"""


def describe(ansible: Ansible, folder: Path, driver: str) -> bool:
    """Run the task with a driver, and return whether it changed the description."""
    program = folder / "nvidia-ctk"
    program.write_text(DESCRIBES.format(driver=driver))
    program.chmod(0o755)
    target = f"__kubernetes_node_spec={folder}/cdi/nvidia.yaml"
    ran = ansible.playbook(folder / "play.yml", "-i", "localhost,", "-e", target)
    assert ran.rc == 0, ran.out
    return ran.changes["localhost"] > 0


def test_description_of_gpus_follows_the_driver(tmp_path: Path) -> None:
    role = {"ansible.builtin.include_role": {"name": "dml.vsphere.training_image", "tasks_from": "gpus"}}
    play = {"hosts": "localhost", "connection": "local", "gather_facts": False, "tasks": [role]}
    (tmp_path / "play.yml").write_text(yaml.safe_dump([play]))
    ansible = Ansible({}, tmp_path)
    ansible.environment["PATH"] = f"{tmp_path}:{ansible.environment['PATH']}"

    assert describe(ansible, tmp_path, "550.163.01")
    assert not describe(ansible, tmp_path, "550.163.01")
    assert describe(ansible, tmp_path, "595.71.05")

    written = yaml.safe_load((tmp_path / "cdi" / "nvidia.yaml").read_text())
    assert written["devices"][0]["containerEdits"]["mounts"][0]["hostPath"].endswith("libcuda.so.595.71.05")
