"""dml_pairs.py in ranks of real mpirun: messages of MPI, a stand-in for NCCL, and a pair that stalls."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from plugins.module_utils.training.pairs import pair_result, pair_rounds
from tests.integration.training import FILES, need_mpirun, one_card

# The signatures are those of nccl.h and cuda_runtime_api.h. A byte takes a nanosecond: 8 Gbit/s.
STAND_IN = r"""
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
typedef struct { char internal[128]; } ncclUniqueId;
const char *ncclGetErrorString(int error) { return "a stand-in for an error"; }
int ncclGetUniqueId(ncclUniqueId *id) { memset(id->internal, 'u', 128); return 0; }
int ncclCommInitRank(void **comm, int count, ncclUniqueId id, int rank) {
  if (count != 2 || rank < 0 || rank > 1 || id.internal[0] != 'u' || id.internal[127] != 'u') return 4;
  *comm = malloc(1);
  return getenv("NCCL_FAILS") ? 2 : 0;
}
int ncclAllReduce(const void *from, void *to, size_t count, int type, int operation, void *comm, void *stream) {
  if (!from || !to || !comm || stream || type != 7 || operation != 0) return 4;
  usleep(count * 4 / 1000);
  return 0;
}
int ncclCommDestroy(void *comm) { free(comm); return 0; }
const char *cudaGetErrorString(int error) { return "a stand-in for an error"; }
int cudaSetDevice(int device) { return device; }
int cudaMalloc(void **pointer, size_t bytes) { *pointer = malloc(bytes); return *pointer ? 0 : 2; }
int cudaStreamSynchronize(void *stream) { return stream ? 4 : 0; }
"""


def start(folder: Path, nodes: int, environment: dict[str, str] | None = None, **more: Any) -> Any:
    need_mpirun()
    names = [f"n{number}" for number in range(nodes)]
    options = {
        "rounds": pair_rounds.text(pair_rounds.rounds(nodes)),
        "nodes": names,
        "devices": [[]] * nodes,
        "library": "libmpi.so.40",
        "seconds": 0.1,
        "repeats": 2,
        "bytes": 65536,
        "stall": 120,
        "sysfs": "/sys",
        "nccl": "",
        **more,
    }
    mpirun = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-np", str(nodes), "--mca", "btl", "tcp,self"]
    program = [sys.executable, str(FILES / "dml_pairs.py"), json.dumps(options)]
    place = {**os.environ, "DML_RECORDS": str(folder), **(environment or {})}
    command = [*mpirun, *one_card(), *program]
    return subprocess.run(command, env=place, check=False, capture_output=True, text=True, timeout=300)


def records(folder: Path, nodes: int) -> list[dict[str, Any]]:
    text = (folder / "pairs.jsonl").read_text()
    found, malformed = pair_result.parsed(text, [f"n{number}" for number in range(nodes)])
    assert malformed == 0, text
    return found


def test_odd_number_of_ranks_measures_all_pairs(tmp_path: Path) -> None:
    ran = start(tmp_path, 3)
    assert ran.returncode == 0, ran.stderr
    found = records(tmp_path, 3)
    assert len(found) == 6
    assert {(each["node"], each["peer"]) for each in found} == {
        (f"n{one}", f"n{other}") for one in range(3) for other in range(3) if one != other
    }
    assert all(len(each["gbits"]) == 2 and each["latency_us"] > 0 for each in found)


@pytest.fixture
def stand_in(tmp_path: Path) -> dict[str, str]:
    """Two libraries in place of those of NVIDIA."""
    (tmp_path / "stand_in.c").write_text(STAND_IN)
    for name in ("libnccl.so.2", "libcudart.so.12"):
        command = ["cc", "-shared", "-fPIC", "-o", str(tmp_path / name), str(tmp_path / "stand_in.c")]
        subprocess.run(command, check=True)
    return {"LD_LIBRARY_PATH": str(tmp_path)}


def test_two_rank_bus_bandwidth_is_bytes_per_second(tmp_path: Path, stand_in: dict[str, str]) -> None:
    ran = start(tmp_path, 2, stand_in, nccl="2.26.2", seconds=0.3, bytes=1048576)
    assert ran.returncode == 0, ran.stderr
    found = records(tmp_path, 2)
    assert [each["latency_us"] for each in found] == [None, None]
    # The stand-in sleeps, and a busy machine wakes it late.
    assert all(1 < rate <= 8 for each in found for rate in each["gbits"]), found


def test_names_an_nccl_error(tmp_path: Path, stand_in: dict[str, str]) -> None:
    ran = start(tmp_path, 2, {**stand_in, "NCCL_FAILS": "1"}, nccl="2.26.2")
    assert ran.returncode != 0
    assert "ncclCommInitRank returned 2: a stand-in for an error" in ran.stderr


def test_names_the_missing_libraries_without_nccl(tmp_path: Path) -> None:
    ran = start(tmp_path, 2, nccl="2.26.2")
    assert ran.returncode != 0
    assert "none of these libraries can be loaded" in ran.stderr


def test_pair_without_progress_ends_the_measurement(tmp_path: Path, stand_in: dict[str, str]) -> None:
    """A window of 2 GB takes two seconds, so that a limit of half a second is exceeded."""
    ran = start(tmp_path, 2, stand_in, nccl="2.26.2", stall=0.5, bytes=268435456)
    assert ran.returncode != 0
    assert "StalledPairError: the pair n0 and n1 moved no data for 0.5 s" in ran.stderr
