# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Workers with devices of a class (Enhanced DirectPath I/O): placement by class, and moves where the class moves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from lab.simulator import Simulator
from tests.integration.ansible import Ansible
from tests.integration.workers import TEMPLATE, states

# Two hosts with both classes, one with a class that does not move there, and one without.
CLASSES = """
hardware:
  both: &both
    sockets: 2
    cores_per_socket: 16
    mhz: 2600
    memory_gb: 256
    nics: [{device: vmnic0, pci: "0000:18:00.0", driver: i40en, name: X710, vendor_id: 0x8086, device_id: 0x1572}]
    dvx_classes: [{name: nvidia-mover, devices: 1, checkpoint: true}, {name: amd-stayer, devices: 2}]
  old: {<<: *both, dvx_classes: [{name: nvidia-mover, devices: 1}]}
  plain: {<<: *both, dvx_classes: []}
host_defaults: {vmotion_seconds: 0.1}
clusters:
  - name: gpu
    hosts:
      - {name: esx01.lab, hardware: both}
      - {name: esx02.lab, hardware: both}
      - {name: esx03.lab, hardware: old}
      - {name: esx04.lab, hardware: plain}
vms:
  - {name: debian-12, template: true, cpus: 2, memory_mb: 4096, firmware: efi}
"""
MOVER, STAYER = "nvidia-mover", "amd-stayer"


def wanted(name: str, device_class: str, count: int = 1, **more: Any) -> dict[str, Any]:
    """One worker with devices of a class."""
    gpus = [{"device_class": device_class, "count": count, "memory_gb": 40}]
    defaults = {"template": TEMPLATE, "memory_mb": 16384, "gpus": gpus}
    return {
        "cluster": "gpu",
        "one_per_host": False,
        "wait_for_address": False,
        "defaults": defaults,
        "workers": [{"name": name, **more}],
    }


def move(ansible: Ansible, worker: str, target: str, **more: Any) -> Any:
    return ansible.module("vmotion", cluster="gpu", worker=worker, target=target, **more)


@pytest.fixture(params=["8.0 U3", "9.0"])
def place(start: Callable[..., Simulator], request: pytest.FixtureRequest) -> Simulator:
    return start("", f"--release={request.param}", text=CLASSES)


def test_workers_are_placed_by_class_and_move_where_it_moves(
    place: Simulator, ansible_for: Callable[[Simulator], Ansible]
) -> None:
    ansible = ansible_for(place)
    mover, stayer = wanted("w1", MOVER, host="esx01.lab"), wanted("w2", STAYER, count=2)
    for asked, host, gpus in ((mover, "esx01.lab", [MOVER]), (stayer, "esx01.lab", [STAYER] * 2)):
        done = ansible.module("worker_vm", **asked)
        assert done.rc == 0, done.out
        (state,) = states(done).values()
        assert (state["host"], state["gpus"]) == (host, gpus)
        again = ansible.module("worker_vm", **asked)
        assert (again.rc, again.changed) == (0, False), again.out
    place.clear()
    refused = {
        ("w1", "esx03.lab"): "esx03.lab reports no vMotion support for its devices of class nvidia-mover",
        ("w1", "esx04.lab"): "esx04.lab has no device of class nvidia-mover; it has none",
        ("w2", "esx02.lab"): "it holds a device of class amd-stayer, for which the host reports no vMotion support",
    }
    for (worker, target), words in refused.items():
        outcome = move(ansible, worker, target)
        assert outcome.rc != 0 and words in outcome.msg, outcome.out
    assert place.writes() == []
    moved = move(ansible, "w1", "esx02.lab")
    assert moved.rc == 0, moved.out
    assert moved.result["move"]["vsphere"]["host"] == {"before": "esx01.lab", "after": "esx02.lab"}


def test_a_class_without_a_free_device_is_refused_before_any_write(
    start: Callable[..., Simulator], ansible_for: Callable[[Simulator], Ansible]
) -> None:
    place = start("", "--release=9.0", text=CLASSES)
    ansible = ansible_for(place)
    assert ansible.module("worker_vm", **wanted("w1", MOVER, host="esx01.lab")).rc == 0
    place.clear()
    refused = ansible.module("worker_vm", **wanted("w2", MOVER, host="esx01.lab"))
    assert "not enough free devices of class nvidia-mover (w1 has nvidia-mover 1)" in refused.msg, refused.out
    unknown = ansible.module("worker_vm", **wanted("w2", "nvidia-other"))
    assert "not enough free devices of class nvidia-other" in unknown.msg, unknown.out
    assert place.writes() == []
    elsewhere = ansible.module("worker_vm", **wanted("w2", MOVER))
    assert elsewhere.rc == 0, elsewhere.out
    full = move(ansible, "w1", states(elsewhere)["w2"]["host"])
    assert "has no free device of class nvidia-mover" in full.msg or "no vMotion support" in full.msg, full.out
