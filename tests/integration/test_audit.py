"""How GPUs are used, against the simulated data centre: what the module and the playbook tell is the truth."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from lab.simulator import ROOT, Simulator
from tests.integration.ansible import Ansible, AnsibleFor, Start
from tests.integration.releases import NEWEST
from tests.page import Page

pytestmark = pytest.mark.release(NEWEST)

T4, A100 = "0000:3b:00.0", "0000:ca:00.0"
EVIL = "<script>alert(1)</script>"
TEMPLATE = "{{ 6 * 7 }}"
PLACE = f"""
statistics_level: 4
hardware:
  pair: &big
    sockets: 2
    cores_per_socket: 24
    mhz: 2400
    memory_gb: 768
    gpus:
      - {{pci: "{T4}", model: a100, numa: 0}}
      - {{pci: "{A100}", model: a100, numa: 1}}
    nics: []
  mig:
    <<: *big
    gpus: [{{pci: "{A100}", model: a100, mig: true, numa: 1}}]
host_defaults:
  hardware: t4_cx5
  graphics: {{default: sharedDirect}}
  vibs: [{{name: NVD-AIE_ESXi_8.0.0_Driver, version: "550.90.05-1", vendor: NVIDIA}}]
clusters:
  - name: gpu
    hosts:
      - {{name: esx01.lab, gpu_load: {{"{T4}": {{utilisation: [80, 90], memory_mb: 12288}}}}}}
      - {{name: esx02.lab, gpu_load: {{"{T4}": {{utilisation: [0, 2], memory_mb: 512}}}}}}
      - {{name: esx03.lab}}
      - name: esx04.lab
        hardware: pair
        gpu_load:
          "{T4}": {{utilisation: [60, 100], memory_mb: 20480, instance: "gpu 00000000:3B:00.0"}}
          "{A100}": {{utilisation: [40]}}
      - {{name: esx05.lab, hardware: mig}}
      - {{name: esx06.lab, hardware: pair, passthrough: [all], gpu_load: {{"{T4}": {{utilisation: [99]}}}}}}
      - {{name: esx07.lab, graphics: {{default: shared}}}}
      - {{name: esx08.lab, hardware: no_gpu}}
  - {{name: other, hosts: [{{name: esx20.lab}}]}}
vms:
  - {{name: golden, template: true, host: esx03.lab, vgpu: grid_t4-16c}}
  - {{name: half-a, host: esx01.lab, powered_on: true, running_hours: 30, vgpu: grid_t4-8c, folder: research,
     pool: gold, owner: "owner: ada", attributes: {{tenant: red}}}}
  - {{name: half-b, host: esx01.lab, powered_on: true, running_hours: 30, vgpu: grid_t4-8c, folder: vision, pool: gold,
     attributes: {{tenant: blue}}}}
  - {{name: lazy, host: esx02.lab, powered_on: true, running_hours: 30, vgpu: grid_t4-16c, folder: "{TEMPLATE}",
     attributes: {{tenant: "{EVIL}"}}}}
  - {{name: later, host: esx03.lab, vgpu: grid_t4-16c, folder: vision, attributes: {{tenant: blue}}}}
  - {{name: too-late, host: esx02.lab, vgpu: grid_t4-16c, folder: vision}}
  - {{name: twins, host: esx04.lab, powered_on: true, running_hours: 6, vgpus: [grid_a100-40c, grid_a100-40c],
     folder: research, attributes: {{tenant: red}}}}
  - {{name: slice-a, host: esx05.lab, powered_on: true, running_hours: 30, vgpu: grid_a100-3-20c, folder: vision,
     attributes: {{tenant: blue}}}}
  - {{name: slice-b, host: esx05.lab, powered_on: true, running_hours: 30, vgpu: grid_a100-2-10c, folder: research,
     attributes: {{tenant: red}}}}
  - {{name: whole, host: esx06.lab, powered_on: true, running_hours: 30, passthrough: gpu, folder: research,
     attributes: {{tenant: red}}}}
  - {{name: whole-off, host: esx06.lab, passthrough: gpu, folder: vision}}
  - {{name: no-gpu, host: esx01.lab, powered_on: true}}
"""
BY_TENANT = {"cluster": "gpu", "group_by": "attribute", "attribute": "tenant"}
TYPES = {"sharedDirect": "vgpu", "direct": "passthrough", "shared": "shared"}


@pytest.fixture
def place(start: Start) -> Simulator:
    return start(text=PLACE)


def usage(ansible_: Ansible, **options: Any) -> dict[str, Any]:
    outcome = ansible_.module("gpu_usage", **{**BY_TENANT, **options})
    assert outcome.rc == 0 and not outcome.changed, outcome.out
    return dict(outcome.result["usage"])


def by_card(found: dict[str, Any]) -> dict[tuple[str, str], dict[str, Any]]:
    return {(gpu["host"], gpu["address"]): gpu for gpu in found["gpus"]}


def truth(place: Simulator) -> dict[tuple[str, str], dict[str, Any]]:
    """Every GPU of the cluster, as the simulator itself has it."""
    hosts = [name for name in place.ask("GET", "/hosts") if name != "esx20.lab"]
    return {(name, gpu["pci"]): gpu for name in hosts for gpu in place.ask("GET", f"/hosts/{name}")["gpus"]}


def test_reports_true_modes_users_and_load_without_writing(place: Simulator, ansible_for: AnsibleFor) -> None:
    found, real = by_card(usage(ansible_for(place))), truth(place)
    assert place.writes() == []
    assert set(found) == set(real) and len(real) == 9
    for key, gpu in found.items():
        there = real[key]
        whole = [(there["passthrough_to"], "whole GPU")] if there["passthrough_to"] else []
        assert gpu["mode"] == TYPES[there["graphics_type"]]
        assert sorted((one["vm"], one["what"]) for one in gpu["users"]) == sorted(
            [(one["vm"], one["profile"]) for one in there["vgpus"]] + whole
        )
        assert all(one["card_told"] for one in gpu["users"])
        load = there["load"] if gpu["mode"] == "vgpu" else None
        assert (gpu["utilisation"] is None) == (load is None), key
        if load:
            assert gpu["utilisation"]["mean"] == sum(load["utilisation"]) / len(load["utilisation"])
            assert gpu["utilisation"]["peak"] == max(load["utilisation"])
            assert gpu["utilisation"]["memory_gb"] == load["memory_mb"] / 1024
            assert gpu["utilisation"]["samples"] == 288


@pytest.mark.parametrize(
    ("group_by", "tenants"),
    [
        ({}, {"red", "blue", EVIL}),
        ({"group_by": "folder"}, {"research", "vision", TEMPLATE}),
        ({"group_by": "resource_pool"}, {"gold", "Resources"}),
        ({"group_by": "owner"}, {"ada", ""}),
    ],
)
def test_groups_tenants_by_the_requested_attribute(
    place: Simulator, ansible_for: AnsibleFor, group_by: dict[str, str], tenants: set[str]
) -> None:
    found = usage(ansible_for(place), **group_by)
    assert {one["tenant"] for gpu in found["gpus"] for one in gpu["users"]} == tenants


def test_reads_only_the_last_hour_without_history(start: Start, ansible_for: AnsibleFor) -> None:
    place = start(text=PLACE.replace("statistics_level: 4", "statistics_level: 1"))
    period = usage(ansible_for(place), hours=48)["period"]
    assert (period["asked_hours"], period["hours"], period["sample_seconds"]) == (48, 1, 20)
    level = 3 if NEWEST.startswith("9.") else 4
    assert f"statistics level 1, these counters require level {level}" in period["why"]
    found = by_card(usage(ansible_for(place), hours=48))
    assert found["esx01.lab", T4]["utilisation"]["mean"] == 85
    assert found["esx01.lab", T4]["utilisation"]["samples"] >= 179


def test_reports_an_unreachable_host_and_continues_with_others(place: Simulator, ansible_for: AnsibleFor) -> None:
    place.set_host("esx04.lab", connection="notResponding")
    cards = by_card(usage(ansible_for(place)))
    assert not cards["esx04.lab", T4]["reachable"] and cards["esx04.lab", T4]["utilisation"] is None
    assert cards["esx01.lab", T4]["utilisation"]["mean"] == 85


def test_number_of_calls_does_not_grow_with_hosts(start: Start, ansible_for: AnsibleFor) -> None:
    calls = []
    for count in (4, 32):
        hosts = f"{{name: gpu, hosts: [{{name: 'esx%02d.lab', count: {count}}}]}}"
        place = start(text=f"host_defaults: {{hardware: t4_cx5}}\nclusters: [{hosts}]")
        usage(ansible_for(place), group_by="owner")
        calls.append(sum(place.calls().values()))
    assert calls[0] == calls[1] <= 20


def test_error_explains_wrong_options_and_server_faults(place: Simulator, ansible_for: AnsibleFor) -> None:
    ansible_ = ansible_for(place)
    assert "a period of 0 hours is too short" in ansible_.module("gpu_usage", **{**BY_TENANT, "hours": 0}).msg
    assert "attribute" in ansible_.module("gpu_usage", cluster="gpu", group_by="attribute").msg
    unknown = ansible_.module("gpu_usage", **{**BY_TENANT, "attribute": "tenent"}).msg
    assert "could not find its custom attribute tenent: it has" in unknown and "tenant" in unknown
    assert "nosuch" in ansible_.module("gpu_usage", cluster="nosuch").msg
    place.fault("QueryPerf", fault="NoPermission")
    refused = ansible_.module("gpu_usage", **BY_TENANT)
    assert refused.rc == 1 and "could not read performance counters of 7 objects" in refused.msg
    assert "NoPermission" in refused.msg


@pytest.mark.every_release
def test_playbook_shows_and_keeps_a_true_report(place: Simulator, ansible_for: AnsibleFor, tmp_path: Path) -> None:
    inventory, kept = tmp_path / "inventory.yml", tmp_path / "kept"
    inventory.write_text("clusters: {hosts: {gpu: {ansible_connection: local}}}\n")
    options = {
        "audit_dir": str(kept),
        "audit_metrics": str(tmp_path / "metrics"),
        "audit_price": "2.50",
        "audit_currency": "EUR",
        "audit_group_by": "attribute",
        "audit_attribute": "tenant",
    }
    desired = ["-i", str(inventory), "-e", json.dumps(options)]
    planned = ansible_for(place).playbook(ROOT / "playbooks" / "audit.yml", *desired, "--check")
    assert planned.rc == 0 and f"esx02.lab {T4}" in planned.out, planned.out
    assert not kept.exists() and not (tmp_path / "metrics").exists()
    done = ansible_for(place).playbook(ROOT / "playbooks" / "audit.yml", *desired)
    assert done.rc == 0 and f"{kept}/gpu.html" in done.out and place.writes() == [], done.out
    idle = f'dml_audit_gpu_state{{cluster="gpu",host="esx02.lab",gpu="{T4}",state="idle"}} 1\n'
    assert idle in (tmp_path / "metrics" / "dml_audit_gpu.prom").read_text()
    report = json.loads((kept / "gpu.json").read_text())
    _matches(report, truth(place))
    assert report["idle"][0] == f"esx02.lab {T4}" and report["idle"][0] in done.out
    page = Page((kept / "gpu.html").read_text())
    assert page.external == [] and "script" not in page.elements and len(page.titles) == len(truth(place))
    assert {(row[1], row[2]) for row in page.tables[1]} == set(truth(place))
    assert EVIL in str(page.tables)
    files = {path.name: path.stat().st_mode & 0o777 for path in kept.iterdir()}
    assert (files, kept.stat().st_mode & 0o777) == ({"gpu.json": 0o600, "gpu.html": 0o600}, 0o700)


def test_playbook_shows_faulty_gpus_of_workers_without_failing(
    place: Simulator, ansible_for: AnsibleFor, tmp_path: Path
) -> None:
    dump = ROOT / "tests" / "fixtures" / "nvidia_smi" / "blackwell-v13.xml"
    xid = "NVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off the bus."
    log = f"{time.time() - 3600:.1f} w1 kernel: {xid}"
    for name, text in (("nvidia-smi", f"cat {dump}"), ("journalctl", f"echo '{log}'")):
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    local = f"{{ansible_connection: local, ansible_become: false, ansible_python_interpreter: {sys.executable}}}"
    inventory = tmp_path / "inventory.yml"
    inventory.write_text(
        f"clusters: {{hosts: {{gpu: {{ansible_connection: local}}}}}}\n"
        f"workers: {{hosts: {{w1: {local}, w2: {local}}}, vars: {{vm_host: esx01.lab}}}}\n"
    )
    path = f"{tmp_path}:{os.environ['PATH']}"
    audited = Ansible({**ansible_for(place).environment, "PATH": path}, tmp_path)

    done = audited.playbook(ROOT / "playbooks" / "audit.yml", "-i", str(inventory))

    assert done.rc == 0 and place.writes() == [], done.out
    assert done.out.count("Xid 79 at GPU 0000:3b:00 in the log of the kernel") == 2, done.out
    assert "esx01.lab" in done.out.partition("Show the sick GPUs")[2]


def _matches(report: dict[str, Any], real: dict[tuple[str, str], dict[str, Any]]) -> None:
    """The sums of the report, worked out from the truth."""
    assert report["totals"]["gpus"] == len(real)
    groups = {group["tenant"]: group for group in report["groups"]}
    assert sum(group["gpus"] for group in groups.values()) == len(real)
    assert {name: group["gpus"] for name, group in groups.items()} == {"red": 3.75, "blue": 1, EVIL: 1, None: 3.25}
    assert groups["red"]["cost_per_hour"] == 3.75 * 2.5
    # half-a 0.5 and slice-b 0.25 and whole 1 ran all of the 24 hours, twins with two GPUs ran 6 of them.
    assert groups["red"]["gpu_hours"] == pytest.approx(1.75 * 24 + 2 * 6, rel=0.01)
    assert groups["red"]["cost"] == pytest.approx(54 * 2.5, rel=0.01)
    assert report["totals"]["states"] == {"idle": 1, "unassigned": 3, "not measured": 2, "unreachable": 0, "busy": 3}
