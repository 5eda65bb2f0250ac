# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What nodes tell from inside, and what of it speaks against a stun of a hundred seconds."""

from __future__ import annotations

from typing import Any

import pytest

from plugins.module_utils.logic.migration import guest_checks

NOW = 1_790_000_000.0  # 2026-09-21 14:13:20 UTC
SYSCTLS = {
    "net.ipv4.tcp_retries2": 15,
    "net.ipv4.tcp_keepalive_time": 7200,
    "net.ipv4.tcp_keepalive_intvl": 75,
    "net.ipv4.tcp_keepalive_probes": 9,
}
WELL: dict[str, Any] = {
    "sysctls": SYSCTLS,
    "ssh": "serveraliveinterval 0\nserveralivecountmax 3\n",
    "sshd": "clientaliveinterval 0\nclientalivecountmax 3\n",
    "mca": {"oob_tcp_keepalive_time": 300, "oob_tcp_keepalive_intvl": 20, "oob_tcp_keepalive_probes": 9},
    "mpirun": [],
    "environment": {},
    "nvidia": None,
    "checkpoint": None,
}


def judge(
    budget: float = 100.0, minutes: float | None = None, lasts: float = 0.0, **seen: Any
) -> list[tuple[str, ...]]:
    found = guest_checks.findings({"w1": {**WELL, **seen}}, budget, NOW, lasts=lasts, minutes=minutes)
    return [(one.severity, one.rule, one.text) for one in found]


def test_defaults_bear_a_stun() -> None:
    assert judge() == []


@pytest.mark.parametrize(
    ("seen", "says"),
    [
        ({"ssh": "serveraliveinterval 2\nserveralivecountmax 2\n"}, "ssh's serveraliveinterval gives"),
        ({"sshd": "clientaliveinterval 10\nclientalivecountmax 3\n"}, "sshd's clientaliveinterval gives"),
        ({"sysctls": {**SYSCTLS, "net.ipv4.tcp_retries2": 3}}, "net.ipv4.tcp_retries2 gives"),
        (
            {"mca": {"oob_tcp_keepalive_time": 5, "oob_tcp_keepalive_intvl": 1, "oob_tcp_keepalive_probes": 3}},
            "after 8 s",
        ),
        ({"environment": {"NCCL_IB_DISABLE": "0"}}, "NCCL_IB_TIMEOUT is not set"),
        ({"environment": {"NCCL_IB_HCA": "=mlx5_0", "NCCL_IB_TIMEOUT": "14"}}, "after 0.536871 s"),
        ({"mpirun": ["mpirun", "--mca", "pml", "ucx"]}, "UCX_RC_TIMEOUT with UCX_RC_RETRY_COUNT gives a silent peer"),
        (
            {"environment": {"HOROVOD_CONTROLLER": "gloo"}},
            "HOROVOD_GLOO_TIMEOUT_SECONDS gives a silent peer up after 30",
        ),
        ({"environment": {"HOROVOD_STALL_SHUTDOWN_TIME_SECONDS": "60"}}, "after 60 s"),
        ({"environment": {"TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC": "90"}}, "TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC gives"),
    ],
)
def test_a_timer_that_is_too_short_stops(seen: dict[str, Any], says: str) -> None:
    ((severity, rule, text),) = judge(**seen)
    assert (severity, rule, says in text) == ("stop", "timers", True), text


@pytest.mark.parametrize(
    "environment",
    [
        {"NCCL_IB_HCA": "=mlx5_0", "NCCL_IB_TIMEOUT": "22", "NCCL_IB_RETRY_CNT": "7"},
        {"NCCL_IB_DISABLE": "1"},
        {"HOROVOD_STALL_SHUTDOWN_TIME_SECONDS": "0"},
        {"HOROVOD_CONTROLLER": "gloo", "HOROVOD_GLOO_TIMEOUT_SECONDS": "300"},
        {"OMPI_MCA_pml": "ucx", "UCX_RC_TIMEOUT": "20s"},
    ],
)
def test_a_timer_that_is_long_enough_does_not(environment: dict[str, str]) -> None:
    assert judge(environment=environment) == []


def licence(line: str) -> str:
    return f"GPU 00000000:02:00.0\n    vGPU Software Licensed Product\n        License Status          : {line}\n"


@pytest.mark.parametrize(
    ("line", "severity"),
    [
        ("Licensed (Expiry: 2026-9-22 12:0:0 GMT)", ""),
        ("Licensed", ""),
        ("Licensed (Expiry: 2026-9-21 14:30:0 GMT)", "stop"),
        ("Unlicensed (Unrestricted)", "stop"),
        ("Unlicensed", "stop"),
    ],
)
def test_the_licence_must_hold_for_the_test(line: str, severity: str) -> None:
    told = judge(nvidia=licence(line), lasts=3600.0)
    assert [(one[0], one[1]) for one in told] == ([(severity, "licence")] if severity else [])


def test_a_gpu_that_names_no_licence_is_noted() -> None:
    assert [one[:2] for one in judge(nvidia="GPU 00000000:02:00.0\n")] == [("note", "licence")]


@pytest.mark.parametrize(
    ("newest", "severity"),
    [
        ({"path": "/c/1", "age_s": 60.0, "bytes": 9, "verified": True}, ""),
        ({"path": "/c/1", "age_s": 60.0, "bytes": 9, "verified": None}, "warn"),
        ({"path": "/c/1", "age_s": 60.0, "bytes": 9, "verified": False}, "stop"),
        ({"path": "/c/1", "age_s": 3600.0, "bytes": 9, "verified": True}, "stop"),
        (None, "stop"),
    ],
)
def test_a_job_that_makes_checkpoints_needs_a_young_one(newest: dict[str, Any] | None, severity: str) -> None:
    assert [one[:2] for one in judge(checkpoint=newest, minutes=30)] == ([(severity, "checkpoint")] if severity else [])
    assert judge(checkpoint=newest) == []


def test_what_could_not_be_read_is_said() -> None:
    assert [one[:2] for one in judge(sshd=None, environment=None)] == [("note", "guest")] * 2
    (one,) = guest_checks.findings({"w1": {"error": "no way"}}, 100, NOW)
    assert (one.severity, one.text) == ("warn", "it could not be looked into: no way")
