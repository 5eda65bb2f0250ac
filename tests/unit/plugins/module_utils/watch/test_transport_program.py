"""The report about the ranks of a node: real connections of processes on this machine, and a card in a folder."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from plugins.module_utils.watch import node_programs, transport_program
from tests.reuse import reused

PROGRAM = """
import socket, sys
joined = socket.create_connection((sys.argv[1], int(sys.argv[2])))
card = open(sys.argv[3]) if sys.argv[3:] else None
print("joined", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def server() -> Iterator[socket.socket]:
    with socket.create_server(("0.0.0.0", 0)) as listening:
        yield listening


def own_address() -> str:
    """Return an address of this machine that is not a loopback address."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.connect(("192.0.2.1", 9))
        return str(sender.getsockname()[0])


def look(folder: Path, *before: str) -> dict[str, Any]:
    report = node_programs.run_on_nodes(
        [{"name": "n1", "reach": [*before, "sh", "-c"]}], transport_program, [str(folder)], 20
    )
    return dict(report["n1"])


def rank(folder: Path, pid: int) -> None:
    lines = [json.dumps({"rank": 3, "pid": pid, "step": step}) for step in (6, 7)]
    (folder / "rank3.jsonl").write_text("\n".join([*lines, '{"rank": 3, "pi']))


@pytest.mark.parametrize("where", ["beside", "loopback"])
def test_reports_the_connections_of_a_rank(tmp_path: Path, server: socket.socket, where: str) -> None:
    address = own_address() if where == "beside" else "127.0.0.1"
    command = [sys.executable, "-c", PROGRAM, address, str(server.getsockname()[1])]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "joined\n"
        rank(tmp_path, process.pid)
        (report,) = look(tmp_path)["ranks"]
        process.communicate()
    expected = [[address, address]] if where == "beside" else []
    assert report == {"rank": 3, "pid": process.pid, "step": 7, "connections": expected, "rdma_open": False}


def test_reports_a_rank_that_is_gone(tmp_path: Path) -> None:
    with subprocess.Popen(["true"]) as process:
        process.wait()
    rank(tmp_path, process.pid)
    (report,) = look(tmp_path)["ranks"]
    assert report["error"] == f"/proc/{process.pid}/fd: No such file or directory"


def test_does_not_read_a_process_with_reused_pid(tmp_path: Path) -> None:
    with subprocess.Popen(["sleep", "60"]) as process:
        record = {"rank": 3, "pid": process.pid, "start": transport_program.start_ticks(process.pid), "step": 7}
        (tmp_path / "rank3.jsonl").write_text(json.dumps(record) + "\n")
        assert look(tmp_path)["ranks"][0]["connections"] == []
        process.kill()
    with reused(process.pid):
        (report,) = look(tmp_path)["ranks"]
    assert report["error"] == f"the rank has ended, and another process has its PID {process.pid}"
    assert "connections" not in report


def test_addresses_are_read_as_the_kernel_writes_them() -> None:
    assert transport_program.address("0100007F") == "127.0.0.1"
    assert transport_program.address("0000000000000000FFFF00000101000A") == "10.0.1.1"


def test_devices_report_the_bytes_that_they_sent(tmp_path: Path) -> None:
    for name, driver, sent in (("rocep1", "mlx5_core", "25"), ("rocep2", "vmw_pvrdma", None)):
        card = tmp_path / "sys" / "class" / "infiniband" / name
        (card / "ports" / "1" / "counters").mkdir(parents=True)
        (card / "device").mkdir()
        (tmp_path / driver).mkdir()
        (card / "device" / "driver").symlink_to(tmp_path / driver)
        if sent:
            (card / "ports" / "1" / "counters" / "port_xmit_data").write_text(f"{sent}\n")
    report = look(tmp_path, "env", f"DML_SYS={tmp_path / 'sys'}")
    assert report["checksums"] == {}
    assert report["devices"] == [
        {"device": "rocep1", "driver": "mlx5_core", "sent_bytes": 100},
        {"device": "rocep2", "driver": "vmw_pvrdma", "sent_bytes": None},
    ]


@pytest.mark.parametrize(
    ("packets", "mtu", "sent"), [("100", "9000", 409600), ("100", "1500", 102400), ("0", "9000", 0), ("", "9000", None)]
)
def test_soft_roce_counts_only_packets(tmp_path: Path, packets: str, mtu: str, sent: int | None) -> None:
    device = tmp_path / "sys" / "class" / "infiniband" / "rxe0"
    (device / "ports" / "1" / "hw_counters").mkdir(parents=True)
    (device / "ports" / "1" / "hw_counters" / "sent_pkts").write_text(f"{packets}\n")
    (device / "parent").write_text("eth1\n")
    (tmp_path / "sys" / "class" / "net" / "eth1").mkdir(parents=True)
    (tmp_path / "sys" / "class" / "net" / "eth1" / "mtu").write_text(f"{mtu}\n")
    (report,) = look(tmp_path, "env", f"DML_SYS={tmp_path / 'sys'}")["devices"]
    assert (report["device"], report["sent_bytes"]) == ("rxe0", sent)


def test_an_unresponsive_node_hides_no_other(tmp_path: Path) -> None:
    nodes = [
        {"name": "silent", "reach": ["sh", "-c", "sleep 60 #"]},
        {"name": "refuses", "reach": ["sh", "-c", "echo no way >&2; exit 255 #"]},
        {"name": "answers", "reach": ["sh", "-c"]},
    ]
    report = node_programs.run_on_nodes(nodes, transport_program, [str(tmp_path)], 5)
    assert report["silent"] == {"error": "it did not answer in time"}
    assert report["refuses"] == {"error": "no way"}
    assert report["answers"]["ranks"] == []


def test_counter_of_the_kernel_may_be_missing(tmp_path: Path) -> None:
    (tmp_path / "rx").write_text("42\n")
    (tmp_path / "tx").write_text("N/A (not counted)\n")

    read = [transport_program.number(str(tmp_path), name) for name in ("rx", "tx", "none")]
    assert read == [42, None, None]
