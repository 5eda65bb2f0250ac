"""Kubernetes' Cluster API provider and cloud provider for vSphere build, find and remove machines with GPUs."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from lab.simulator import USERNAME, Simulator

HERE = Path(__file__).resolve().parent / "capv"
PROGRAM = HERE.parent.parent.parent / ".cache" / "clients" / "capv"


def test_provider_builds_and_removes_machines(tmp_path: Path) -> None:
    PROGRAM.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["go", "build", "-o", PROGRAM, "."], cwd=HERE, check=True)
    with Simulator(HERE / "datacentre.yml", folder=tmp_path) as vcenter:
        account = {"ACCOUNT": USERNAME, "PASSWORD": vcenter.password, "CA": vcenter.environment["VMWARE_CA_PATH"]}
        server = f"{vcenter.environment['VMWARE_HOST']}:{vcenter.environment['VMWARE_PORT']}"
        ran = subprocess.run(
            [PROGRAM], env={**os.environ, **account, "SERVER": server}, capture_output=True, text=True, check=False
        )
        assert ran.returncode == 0, ran.stdout + ran.stderr
        assert "directpath: its node is gone" in ran.stdout
        assert not vcenter.violations()
