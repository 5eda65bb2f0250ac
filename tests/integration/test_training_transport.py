"""playbooks/train.yml judges RDMA by counters: those of guests, and for PVRDMA only those of simulated ESXi hosts."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.integration.ansible import Start
from tests.integration.training import Playbook

STEPS, GRADIENT_BYTES = 30, 1000
SENT = STEPS * GRADIENT_BYTES
# Says what NCCL says, and sends that many bytes by the card of its node; argv: what each node has for a card, as JSON.
SCRIPT = """
import json, socket, sys, urllib.request
import dml_records
print("NCCL INFO NET/IB : Using [0]mlx5_0:1/RoCE ; OOB eth0:10.0.0.1<0>", flush=True)
records = dml_records.start()
for number in range(30):
    records.step(images=8, loss=1.0)
card = json.loads(sys.argv[1])[socket.gethostname()]
if "file" in card:
    with open(card["file"], "w") as counter:
        counter.write(str(card["words"]))
else:
    request = urllib.request.Request(card["url"], data=json.dumps(card["body"]).encode(), method="PATCH")
    urllib.request.urlopen(request).read()
"""


class Wires:
    """Two nodes with an RDMA device each, as their sysfs reports."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self.playbook = Playbook(folder, environment)
        self.names = [self.playbook.nodes.here, "n2"]
        self.playbook.nodes.script.write_text(SCRIPT)

    def plug(self, driver: str) -> dict[str, Path]:
        """Put a card into each node; the files of its counters."""
        counters = {}
        for name in self.names:
            card = self.playbook.folder / f"sys-{name}" / "class" / "infiniband" / "mlx5_0"
            port = card / "ports" / "1"
            for folder in (port / "counters", port / "gids", port / "gid_attrs" / "types", card / "device"):
                folder.mkdir(parents=True)
            (port / "gids" / "3").write_text("0000:0000:0000:0000:0000:ffff:0a00:0001\n")
            (port / "gid_attrs" / "types" / "3").write_text("RoCE v2\n")
            (self.playbook.folder / driver).mkdir(exist_ok=True)
            (card / "device" / "driver").symlink_to(self.playbook.folder / driver)
            counters[name] = port / "counters" / "port_xmit_data"
            counters[name].write_text("100\n")
        return counters

    def run(self, cards: dict[str, Any], **more: Any) -> tuple[str, dict[str, Any]]:
        """Return what the playbook said, and the result that it kept."""
        command = [sys.executable, "-u", str(self.playbook.nodes.script), json.dumps(cards)]
        ran = self.playbook.run(
            training_command=command,
            training_name="one",
            training_transport="rdma",
            training_nccl="2.18.3",
            training_gradient_bytes=GRADIENT_BYTES,
            training_sysfs=str(self.playbook.folder / "sys-{{ inventory_hostname }}"),
            guests=",".join(self.names),
            **more,
        )
        assert (self.playbook.folder / "results" / "one.json").exists(), ran.stdout
        result = self.playbook.result("one")
        assert (ran.returncode == 0) == result["proof"]["ok"], ran.stdout
        return " ".join(ran.stdout.split()), result


@pytest.mark.slow
def test_rdma_counters_of_the_guest_confirm_rdma(tmp_path: Path) -> None:
    wires = Wires(tmp_path, {})
    files = wires.plug("mlx5_core")
    output, result = wires.run({name: {"file": str(path), "words": 100 + SENT // 4} for name, path in files.items()})
    assert result["proof"]["transport"] == "rdma"
    assert "by rdma: NCCL's log says NET/IB, and the RDMA counters grew with the work" in output.replace("''", "'")
    assert result["job"]["mpirun_command"].count("^openib") == 1


@pytest.mark.slow
@pytest.mark.parametrize(("share", "transport"), [(1.0, "rdma"), (0.0, "tcp")])
def test_only_the_esxi_host_reports_pvrdma_traffic(start: Start, tmp_path: Path, share: float, transport: str) -> None:
    vcenter = start()
    wires = Wires(tmp_path, vcenter.environment)
    wires.plug("vmw_pvrdma")
    hosts = dict(zip(wires.names, ["esx01.lab", "esx02.lab"], strict=True))
    traffic = {"rdma": {"vmrdma0": {"tx_bytes": int(SENT * share), "rx_bytes": 0}}}
    cards = {
        name: {"url": f"{vcenter.address}/hosts/{host}", "body": {"traffic": traffic}} for name, host in hosts.items()
    }
    output, result = wires.run(cards, training_esxi_hosts=hosts)
    assert result["proof"]["transport"] == transport
    if transport == "tcp":
        assert "was set to rdma and used tcp" in output
        assert f"grew by 0 bytes, and the job sent {SENT} or more: it fell back to TCP" in output
