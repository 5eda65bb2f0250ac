"""The GPUs, connections and guests of a node, with this machine as the node and stand-ins for its programs."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from plugins.module_utils.training.transport import connections as transport_seen
from plugins.module_utils.watch import gpu_program, node_programs
from plugins.module_utils.watch.node_programs import read_connections, read_gpus, read_guests
from tests.fakes.calling import here
from tools.gpu.checks import no_pools_library

DUMPS = Path(__file__).parents[4] / "fixtures" / "nvidia_smi"
# The functions of the driver and of NCCL that the program calls; POOLS and NCCL are their answers.
STAND_IN = """
#include <stdlib.h>
int cuInit(unsigned flags) { return 0; }
int cuDeviceGetCount(int *count) { *count = 2; return 0; }
int cuDeviceGet(int *device, int number) { *device = number; return 0; }
int cuDeviceGetAttribute(int *value, int attribute, int device) {
  *value = attribute == 115 ? atoi(getenv("POOLS")) : attribute == 116 || attribute == 124 ? atoi(getenv("GDR")) : -1;
  return 0;
}
int cuGetProcAddress_v2(const char *name, void **function, int version, unsigned long long flags, void *status) {
  *function = (void *)cuDeviceGetAttribute; return 0;
}
int ncclGetVersion(int *version) { *version = atoi(getenv("NCCL")); return 0; }
"""


def program(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{text}\n")
    (folder / name).chmod(0o755)


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of the programs of a node with one healthy T4 and a driver of two GPUs."""
    (tmp_path / "stand_in.c").write_text(STAND_IN)
    for name in ("libcuda.so.1", "libnccl.so.2"):
        command = ["cc", "-shared", "-fPIC", "-o", str(tmp_path / name), str(tmp_path / "stand_in.c")]
        subprocess.run(command, check=True)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
    monkeypatch.setenv("POOLS", "0")
    monkeypatch.setenv("GDR", "1")
    monkeypatch.setenv("NCCL", "23007")
    program(tmp_path, "nvidia-smi", f"cat {DUMPS}/blackwell-v13.xml")
    program(tmp_path, "journalctl", f"cat {DUMPS}/xids.txt")
    return tmp_path


def read(**more: Any) -> dict[str, Any]:
    nodes = [{"name": "w1", "reach": ["sh", "-c"]}]
    return here(read_gpus, nodes=nodes, python=sys.executable, **more)


def stops(answer: dict[str, Any]) -> list[str]:
    return [finding["text"] for finding in answer["findings"] if finding["severity"] == "stop"]


def test_finds_unusable_nccl_before_the_job_starts(node: Path) -> None:
    answer = read()

    found = answer["nodes"]["w1"]
    assert (found["driver"], found["memory_pools"], found["nccl"]) == ("590.44.01", [0, 0], "2.30.7")
    assert (found["gpudirect"], found["dma_buf"]) == (True, [1, 1])
    assert len(stops(answer)) == 1, "the errors in the log are of 2024"
    assert "w1: NCCL 2.30.7 of the job needs CUDA's memory pools, and the GPUs 0, 1 have none: use" in stops(answer)[0]


@pytest.mark.parametrize(("pools", "nccl"), [("1", "23007"), ("0", "23203"), ("0", "22105")])
def test_an_nccl_that_starts_is_not_refused(node: Path, monkeypatch: pytest.MonkeyPatch, pools: str, nccl: str) -> None:
    monkeypatch.setenv("POOLS", pools)
    monkeypatch.setenv("NCCL", nccl)

    assert stops(read()) == []


@pytest.mark.parametrize(("gdr", "severity"), [("PHB", "stop"), ("auto", "note"), ("off", ""), ("", "")])
def test_missing_gpudirect_stops_only_runs_that_require_it(
    node: Path, monkeypatch: pytest.MonkeyPatch, gdr: str, severity: str
) -> None:
    monkeypatch.setenv("POOLS", "1")
    monkeypatch.setenv("GDR", "0")

    found = [each for each in read(gdr=gdr)["findings"] if "GPUDirect" in each["text"]]

    assert [each["severity"] for each in found] == ([severity] if severity else [])
    assert all("its GPUs do not support GPUDirect RDMA" in each["text"] for each in found)


def test_errors_in_the_kernel_log_expire_with_age(node: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POOLS", "1")

    assert [text.split(" in the log")[0] for text in stops(read(xid_seconds=1e9))] == [
        "w1: Xid 109 at GPU 0000:cb:00",
        "w1: Xid 149 at GPU 0019:01:00",
        "w1: Xid 79 at GPU 0000:44:00",
    ]


def test_a_failing_nvidia_smi_is_a_sick_node(node: Path) -> None:
    program(
        node, "nvidia-smi", "echo 'Unable to determine the device handle for GPU0000:3B:00.0: Unknown Error'; exit 15"
    )

    answer = read()

    assert "nvidia-smi fails (Unable to determine the device handle" in stops(answer)[0]
    found = answer["nodes"]["w1"]
    assert (found["driver"], found["memory_pools"], found["nccl"], found["gpudirect"]) == (None, None, None, None)


def test_a_node_without_nvidia_smi_has_no_findings(node: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (node / "nvidia-smi").unlink()

    assert read()["findings"] == []


# As the CUDA runtime does, which finds the driver by name and its functions by cuGetProcAddress.
BY_NAME = """
import ctypes
cuda, function, value = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p(), ctypes.c_int()
cuda.cuGetProcAddress_v2(b"cuDeviceGetAttribute", ctypes.byref(function), 13000, ctypes.c_ulonglong(0), None)
ask = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.c_int, ctypes.c_int)(function.value)
ask(ctypes.byref(value), 115, 0)
pools = value.value
ask(ctypes.byref(value), 116, 0)
print(pools, value.value)
"""


def test_the_test_library_hides_the_drivers_memory_pools(node: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POOLS", "1")
    library = no_pools_library(node)

    def answer(program_text: str, **more: str) -> str:
        words = [sys.executable, "-c", program_text, "115", "116"]
        done = subprocess.run(words, env={**os.environ, **more}, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    assert (answer(gpu_program.ASK), answer(BY_NAME)) == ("[[1, 1], [1, 1]]", "1 1")
    assert (answer(gpu_program.ASK, LD_PRELOAD=str(library)), answer(BY_NAME, LD_PRELOAD=str(library))) == (
        "[[0, 0], [1, 1]]",
        "0 1",
    )


def test_runs_dcgm_diagnostics_only_on_whole_idle_gpus(node: Path) -> None:
    dumps = DUMPS.parent / "dcgm"
    program(node, "dcgmi", f'test "$*" = "diag -r 1 -j" && cat {dumps}/persistence-v4.json; exit 226')

    def failed(**more: Any) -> list[str]:
        return [one["text"] for one in read(**more)["findings"] if "fails the test software" in one["text"]]

    assert len(failed(idle=True)) == 2
    assert failed(idle=False) == []
    for name in ("vgpu-l40s", "a100-mig"):
        program(node, "nvidia-smi", f"cat {DUMPS}/{name}.xml")
        assert failed(idle=True) == [], name


@pytest.mark.parametrize(
    ("program", "why"), [("yes", "its answer has more than 16 MiB"), ("sleep 600", "it did not answer in time")]
)
def test_endless_or_missing_answer_is_an_error(program: str, why: str) -> None:
    nodes: Any = [{"name": "w1", "reach": ["sh", "-c", f"{program}; #"]}]
    seconds = 60.0 if program == "yes" else 0.5
    assert node_programs.run_on_nodes(nodes, node_programs.gpu_program, [], seconds) == {"w1": {"error": why}}


def test_a_finished_job_reports_its_ranks_checksums(tmp_path: Path) -> None:
    for rank, checksum in ((0, "aa"), (1, "bb")):
        (tmp_path / f"summary{rank}.json").write_text(json.dumps({"rank": rank, "parameters_sha256": checksum}))
    nodes = [{"name": "n1", "reach": ["sh", "-c"]}]
    result = here(read_connections, nodes=nodes, folder=str(tmp_path))
    assert result["nodes"]["n1"] == {
        "ranks": [],
        "devices": result["nodes"]["n1"]["devices"],
        "checksums": {"summary0.json": "aa", "summary1.json": "bb"},
    }
    assert transport_seen.checksums(result["nodes"]) == {"n1:summary0.json": "aa", "n1:summary1.json": "bb"}


def test_a_node_reports_timers_ranks_and_checkpoint(tmp_path: Path) -> None:
    kept = tmp_path / "checkpoints" / "step-40"
    kept.parent.mkdir()
    kept.write_bytes(b"weights")
    os.utime(kept, (time.time() - 90,) * 2)
    kept.with_suffix(".sha256").write_text(f"{hashlib.sha256(b'weights').hexdigest()}  step-40\n")
    with subprocess.Popen(["sleep", "60"], env={**os.environ, "NCCL_IB_TIMEOUT": "22", "SECRET": "no"}) as rank:
        (tmp_path / "rank0.jsonl").write_text(json.dumps({"rank": 0, "pid": rank.pid}) + "\n")
        nodes = [{"name": "n1", "reach": ["sh", "-c"]}, {"name": "n2", "reach": ["false"]}]
        reported = here(read_guests, nodes=nodes, folder=str(tmp_path), checkpoints=str(kept.parent), timeout=60)[
            "nodes"
        ]
        rank.kill()
    assert reported["n2"] == {"error": "it ended with 1"}
    node = reported["n1"]
    assert node["sysctls"]["net.ipv4.tcp_retries2"] > 0
    assert (node["environment"]["NCCL_IB_TIMEOUT"], "SECRET" in node["environment"]) == ("22", False)
    assert (node["checkpoint"]["path"], node["checkpoint"]["verified"]) == (str(kept), True)
    assert 89 <= node["checkpoint"]["age_s"] < 200
    kept.write_bytes(b"spoilt")
    spoilt = here(read_guests, nodes=nodes[:1], folder=str(tmp_path), checkpoints=str(kept.parent))
    assert spoilt["nodes"]["n1"]["checkpoint"]["verified"] is False
    assert spoilt["nodes"]["n1"]["environment"] is None, "its rank is gone"
