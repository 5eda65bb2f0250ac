"""Workers that are virtual machines: first boot, RDMA that is found and verified, migrations, and what ends a job."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lab.nodes.network import AUTO
from lab.running import Desired, Lab
from lab.simulator import alive
from plugins.module_utils.errors import CollectionError
from plugins.module_utils.training.output.log import figures
from plugins.module_utils.training.transport.job_settings import TransportError
from plugins.module_utils.training.transport.proof import RdmaCounter, judge
from plugins.module_utils.vsphere import tasks
from plugins.module_utils.vsphere.sdk import vim
from tests.integration.test_vmotion import TAGGED
from tests.integration.workers import host_of
from tests.lab.machines.pair import (
    NUMBERS,
    PATIENCE,
    devices,
    job,
    move_both,
    moved_over_rdma,
    pair,
    rdma,
    traces,
    transports_of,
)
from tests.lab.places import Place, until

pytestmark = pytest.mark.slow
ROUNDS = int(os.environ.get("ROLLING_RDMA_ROUNDS", "1"))
# A time-out of RDMA is a power of two of 4.096 us: UCX makes 4.3 s of a second's retries.
RETRIES, TIMEOUT = 3, 4.096e-6 * 2**20
BUDGET = TIMEOUT * (RETRIES + 1)
LIMITS: dict[str, Any] = {"max_gap_s": 10 * PATIENCE, "resume_deadline_s": 10 * PATIENCE}
# As slow as the copy of a guest's memory must be for someone to act meanwhile.
SLOW_MIB = 4


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """Two workers on two of five hosts."""
    with pair(tmp_path_factory.mktemp("machines"), TAGGED) as made:
        yield made


def test_cloud_init_applies_what_worker_vm_wrote(place: Place) -> None:
    for number in NUMBERS:
        output = place.inside(
            number,
            "hostname; cat /var/lib/cloud/instance/datasource /sys/class/net/eth1/mtu; ip -4 -oneline address; "
            "sudo -n id -un; readlink /sys/class/net/eth1/device/driver",
            seconds=30 * PATIENCE,
        ).stdout
        for reported in (
            f"worker0{number}\n",
            "DataSourceVMware",
            f"eth0    inet {place.address(number)}/24",
            f"eth1    inet 10.216.1.{number}/24",
            "9000\n",
            "\nroot\n",
            "virtio_net",
        ):
            assert reported in output, output
    keys = {place.inside(number, "cat /etc/ssh/ssh_host_ed25519_key.pub /etc/machine-id").stdout for number in NUMBERS}
    assert len(keys) == len(NUMBERS), "workers share a host key or a machine id"


def test_rdma_devices_are_there_from_boot(place: Place) -> None:
    for number in NUMBERS:
        (device,) = devices(place, number)
        assert device["driver"] is None
        gid = place.inside(
            number,
            f"cat /sys/class/infiniband/{device['name']}/ports/1/gids/{device['gid_index']}",
            seconds=30 * PATIENCE,
        ).stdout
        assert gid == f"0000:0000:0000:0000:0000:ffff:0ad8:01{number:02x}\n"


def test_rdma_job_survives_moves_of_both_workers(place: Place, tmp_path: Path) -> None:
    before = {number: devices(place, number) for number in NUMBERS}
    with job(place, tmp_path, rdma(place)) as trial:
        move_both(place, trial)
        verdict = trial.judge(**LIMITS)
        assert verdict["verdict"] == "continuous", verdict
        assert transports_of(trial) == {"rdma"}
    for number in NUMBERS:
        assert devices(place, number)[0]["sent_bytes"] - before[number][0]["sent_bytes"] > 20 * 65536 * 4


def test_playbook_moves_both_workers_during_rdma_training(place: Place, tmp_path: Path) -> None:
    """Ten rounds in a row are ROLLING_RDMA_ROUNDS=10."""
    moved_over_rdma(place, tmp_path, ROUNDS)


def test_cancelled_migration_and_killed_target_spare_the_job(place: Place, tmp_path: Path) -> None:
    with job(place, tmp_path, rdma(place)) as trial:
        place.lab.hypervisor.ask("PUT", "/moves/worker02", {"mib_per_second": SLOW_MIB})
        for interrupt in (_cancel, _kill_target):
            before = place.facts_of(2)["host"]
            target = place.free_hosts()[0]
            with place.machine(2) as machine:
                task = machine.ref.RelocateVM_Task(vim.vm.RelocateSpec(host=host_of(machine, target)))
                until(lambda task=task: (task.info.progress or 0) > 5, "the copy makes progress", 30 * PATIENCE)  # type: ignore[misc]
                interrupt(place, task, target)
                with pytest.raises(CollectionError):
                    tasks.wait(machine.session, tasks.Started(task, "a person", "move"), int(30 * PATIENCE))
            assert place.facts_of(2)["host"] == before
            assert trial.trained(20, time.time()), "the job goes on"
            assert not trial.has_died()
        place.lab.hypervisor.ask("PUT", "/moves/worker02", {"mib_per_second": 0})


@pytest.mark.parametrize(
    ("transport", "seconds", "outlives"),
    [("rdma", BUDGET / 3, True), ("rdma", BUDGET * 3, False), ("tcp", BUDGET * 3, True)],
    ids=["rdma-within", "rdma-beyond", "tcp-beyond"],
)
def test_stun_beyond_rdma_retries_ends_only_rdma_jobs(
    place: Place, tmp_path: Path, transport: str, seconds: float, outlives: bool
) -> None:
    short = (f"UCX_RC_VERBS_RETRY_COUNT={RETRIES}", f"UCX_RC_VERBS_TIMEOUT={TIMEOUT:.3f}s")
    with job(place, tmp_path, rdma(place, *short) if transport == "rdma" else (), pause=0.0) as trial:
        place.lab.hypervisor.ask("POST", "/nodes/worker02/stun", {"seconds": seconds})
        if outlives:
            assert trial.trained(20, time.time()), "the job goes on"
            assert not trial.has_died()
            return
        until(trial.has_died, "the job ends", 30 * PATIENCE)
        verdict = trial.judge(died=True, **LIMITS)
        assert verdict["verdict"] == "broken", verdict
        assert "transport retry counter exceeded" in place.inside(1, f"cat {trial.run}/output.log").stdout


def test_refuses_a_worker_that_boots_without_rdma_device(place: Place) -> None:
    """The last one: the worker stays as it is."""
    place.lab.hypervisor.ask("POST", "/nodes/worker02/harm", {"kind": "lose_rdma"})
    boot_id = "cat /proc/sys/kernel/random/boot_id"
    before = place.inside(2, boot_id, seconds=30 * PATIENCE).stdout
    with place.machine(2) as machine:
        task = machine.ref.ResetVM_Task()
        tasks.wait(machine.session, tasks.Started(task, "a person", "reset"), int(30 * PATIENCE))
    until(
        lambda: place.inside(2, boot_id, check=False, seconds=90 * PATIENCE).stdout not in {"", before},
        "worker02 booted",
        90 * PATIENCE,
    )
    assert devices(place, 2) == []
    with pytest.raises(TransportError, match="there is no RDMA device on worker02: choose 'tcp'"):
        rdma(place)
    lacking = RdmaCounter(
        node="worker02", device=None, driver=None, source="guest", shared=False, before=None, after=None
    )
    proof = judge("rdma", figures(""), mpi_arguments=["--mca", "pml", "ucx"], counters=[lacking], sent_bytes=1.0)
    assert (proof["ok"], "worker02 has no RDMA device" in proof["why"]) == (False, True)


def test_removes_a_lab_whose_hypervisor_was_killed() -> None:
    lab = Lab("machines-traces")
    lab.down()
    before = traces(lab)
    lab.up(Desired(None, AUTO, proxy=False, machines=True))
    pid = int(lab.facts("hypervisor")["pid"])
    threading.Thread(target=_boot, args=(lab,), daemon=True).start()
    try:
        until(lambda: any("qemu-system" in line for line in traces(lab)["processes"]), "a guest boots", 30 * PATIENCE)
        during = traces(lab)
        assert all(during[kind] != before[kind] for kind in before), during
        os.kill(pid, signal.SIGKILL)
        until(lambda: not alive(pid), "the hypervisor is gone")
    finally:
        lab.down()
    assert traces(lab) == before


def _boot(lab: Lab) -> None:
    with contextlib.suppress(OSError):  # its hypervisor is killed meanwhile
        lab.node("n1")


def _cancel(_place: Place, task: vim.Task, _target: str) -> None:
    task.CancelTask()


def _kill_target(place: Place, _task: vim.Task, target: str) -> None:
    """Kill the QEMU that receives worker02: the one of two whose host is not its own."""
    key = place.facts_of(2)["moid"]
    receiving = [pid for pid, name in _emulators(key).items() if name == target]
    assert len(receiving) == 1, (target, _emulators(key))
    subprocess.run(["kill", "-9", receiving[0]], check=True)


def _emulators(key: str) -> dict[str, str]:
    """By process the host of each QEMU of a machine, as its UTS namespace is named."""
    found = {}
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with_zeros = path.read_bytes() if path.exists() else b""
        if with_zeros.startswith(b"/usr/bin/qemu-system") and f"guest={key},".encode() in with_zeros:
            pid = path.parent.name
            found[pid] = subprocess.run(
                ["nsenter", f"--target={pid}", "--uts", "hostname"], capture_output=True, text=True, check=True
            ).stdout.strip()
    return found
