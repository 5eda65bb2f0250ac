"""The findings from inside the nodes that forbid a stun of a hundred seconds."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from plugins.module_utils.trials.checks import guest_checks

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
STACKS = Path(__file__).parents[6] / "stacks"
TABLE = yaml.safe_load((STACKS / "facts" / "compatibility.yml").read_text())


def judge(
    budget: float = 100.0, minutes: float | None = None, lasts: float = 0.0, **seen: Any
) -> list[tuple[str, ...]]:
    found = guest_checks.findings({"w1": {**WELL, **seen}}, budget, NOW, lasts=lasts, minutes=minutes)
    return [(one.severity, one.rule, one.text) for one in found]


def licence(line: str) -> str:
    return f"GPU 00000000:02:00.0\n    vGPU Software Licensed Product\n        License Status          : {line}\n"


def test_defaults_withstand_a_stun() -> None:
    assert judge() == []


@pytest.mark.parametrize(
    ("seen", "expected"),
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
        ({"mpirun": ["mpirun", "--mca", "pml", "ucx"]}, "UCX_RC_TIMEOUT with UCX_RC_RETRY_COUNT gives up on"),
        (
            {"environment": {"OMPI_MCA_pml": "ucx", "UCX_RC_VERBS_RETRY_COUNT": "3", "UCX_RC_TIMEOUT": "2s"}},
            "UCX_RC_VERBS_TIMEOUT with UCX_RC_VERBS_RETRY_COUNT gives up on a silent peer after 8 s",
        ),
        (
            {"environment": {"HOROVOD_CONTROLLER": "gloo"}},
            "HOROVOD_GLOO_TIMEOUT_SECONDS gives up on a silent peer after 30",
        ),
        ({"environment": {"HOROVOD_STALL_SHUTDOWN_TIME_SECONDS": "60"}}, "after 60 s"),
        ({"environment": {"TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC": "90"}}, "TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC gives"),
        ({"nvidia": licence("Licensed"), "rdma": ["mlx5_0"]}, "NCCL_IB_TIMEOUT is not set"),
        ({"environment": {"OMPI_MCA_pml": "ucx", "UCX_RC_TIMEOUT": "500ns"}}, "after 4e-06 s"),
        ({"environment": {"OMPI_MCA_pml": "ucx", "UCX_RC_TIMEOUT": ".5s"}}, "after 4 s"),
        ({"ssh": "serveraliveinterval 60\nserveralivecountmax 0\n"}, "after 60 s"),
    ],
)
def test_too_short_timer_stops_the_test(seen: dict[str, Any], expected: str) -> None:
    ((severity, rule, text),) = judge(**seen)
    assert (severity, rule, expected in text) == ("stop", "timers", True), text


@pytest.mark.parametrize(
    "environment",
    [
        {"NCCL_IB_HCA": "=mlx5_0", "NCCL_IB_TIMEOUT": "22", "NCCL_IB_RETRY_CNT": "7"},
        {"NCCL_IB_DISABLE": "1"},
        {"NCCL_IB_DISABLE": "1", "NCCL_IB_HCA": "=mlx5_0"},
        {"NCCL_NET": "Socket", "NCCL_IB_HCA": "=mlx5_0"},
        {"NCCL_IB_HCA": "=mlx5_0", "NCCL_IB_TIMEOUT": "0"},
        {"TORCHELASTIC_RUN_ID": "7"},
        {"OMPI_MCA_pml": "ucx", "UCX_RC_TIMEOUT": "inf"},
        {"HOROVOD_STALL_SHUTDOWN_TIME_SECONDS": "0"},
        {"HOROVOD_CONTROLLER": "gloo", "HOROVOD_GLOO_TIMEOUT_SECONDS": "300"},
        {"OMPI_MCA_pml": "ucx", "UCX_RC_TIMEOUT": "20s"},
        {"OMPI_MCA_pml": "ucx", "UCX_RC_TIMEOUT": "1s", "UCX_RC_VERBS_TIMEOUT": "20s"},
    ],
)
def test_long_enough_timer_does_not_stop_the_test(environment: dict[str, str]) -> None:
    assert judge(environment=environment) == []


@pytest.mark.parametrize(
    ("line", "severity"),
    [
        ("Licensed (Expiry: 2026-9-22 12:0:0 GMT)", ""),
        ("Licensed", ""),
        ("Licensed (Expiry: Permanent)", ""),
        ("Licensed (Expiry: N/A)", ""),
        ("Licensed (Expiry: 2026-9-21 15:13:20 GMT)", ""),
        ("Licensed (Expiry: 2026-9-21 15:13:19 GMT)", "stop"),
        ("Licensed (Expiry: 2026-9-21 15:13:20 UTC)", ""),
        ("Licensed (Expiry: 2026-9-21 15:13:20)", ""),
        ("Licensed (Expiry: 2026-9-21 17:13:20 +0200)", ""),
        ("Licensed (Expiry: 2026-9-21 17:13:19 +02:00)", "stop"),
        ("Licensed (Expiry: 2026-9-21 10:43:20 -0430)", ""),
        ("Licensed (Expiry: 2026-9-21 10:43:19 -0430)", "stop"),
        ("Licensed (Expiry: 2026-9-22 12:0:0 CEST)", "warn"),
        ("Licensed (Expiry: 2026-13-45 12:0:0 GMT)", "warn"),
        ("Licensed (Expiry: soon)", "warn"),
        ("Unlicensed (Restricted)", "stop"),
        ("N/A", "note"),
        ("", "note"),
        ("Licensed (Expiry: 2026-9-21 14:30:0 GMT)", "stop"),
        ("Unlicensed (Unrestricted)", "stop"),
        ("Unlicensed", "stop"),
    ],
)
def test_requires_a_licence_valid_during_the_test(line: str, severity: str) -> None:
    result = judge(nvidia=licence(line), lasts=3600.0)
    assert [(one[0], one[1]) for one in result] == ([(severity, "licence")] if severity else [])


def test_slurm_that_ends_the_job_stops_the_test() -> None:
    config = "SlurmdTimeout           = 60 sec\n"
    ((severity, rule, text),) = judge(slurm={"daemons": ["slurmd"], "config": config, "changing": []})
    assert (severity, rule) == ("stop", "slurm") and "SlurmdTimeout is 60 s" in text


@pytest.mark.parametrize(
    ("nvidia", "budget", "named"),
    [
        (licence("Licensed"), 480.0, []),
        (licence("Licensed"), 500.0, ["TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC"]),
        (licence("Licensed"), 601.0, ["TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC", "torch's process group over NCCL"]),
        (None, 1800.0, []),
        (None, 1801.0, ["torch's process group over Gloo"]),
    ],
)
def test_torch_has_default_timeouts(nvidia: str | None, budget: float, named: list[str]) -> None:
    node = {"environment": {"MASTER_ADDR": "n1"}, "nvidia": nvidia, "sysctls": None, "mca": None}
    found = judge(budget, **node)
    assert [one[2].startswith(name) for one, name in zip(found, named, strict=True)] == [True] * len(named)
    off = {**node, "environment": {"MASTER_ADDR": "n1", "TORCH_NCCL_ENABLE_MONITORING": "0"}}
    assert not any("HEARTBEAT" in one[2] for one in judge(budget, **off))


def test_notes_a_ucx_time_in_an_unknown_unit() -> None:
    found = judge(environment={"OMPI_MCA_pml": "ucx", "UCX_RC_TIMEOUT": "3 fortnights"})
    assert [one[:2] for one in found] == [("note", "guest")]


def test_reads_blanks_behind_a_licence_in_linear_time() -> None:
    started = time.process_time()
    judge(nvidia=licence("Licensed" + " " * 20_000 + "x"))
    assert time.process_time() - started < 1


def test_each_gpu_must_be_licensed() -> None:
    both = licence("Licensed (Expiry: Permanent)") + licence("Unlicensed (Restricted)")
    assert [one[:2] for one in judge(nvidia=both)] == [("stop", "licence")]


def test_incompletely_reported_timers_are_unknown() -> None:
    for name in SYSCTLS:
        partial = {key: value for key, value in SYSCTLS.items() if key != name}
        result = judge(sysctls=partial, ssh="tcpkeepalive yes\n", budget=1e9)
        unknown = "net.ipv4.tcp_retries2" if name.endswith("retries2") else "ssh's tcpkeepalive"
        assert any(one[0] == "note" and one[2].startswith(f"{unknown} ") for one in result)
        assert not any(one[0] == "stop" and one[2].startswith(f"{unknown} ") for one in result)
    for odd in ({"NCCL_IB_HCA": "mlx5_0", "NCCL_IB_TIMEOUT": "long"}, {"HOROVOD_STALL_SHUTDOWN_TIME_SECONDS": "1m"}):
        assert [one[:2] for one in judge(environment=odd)] == [("note", "guest")]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=5,
)
VARIABLES = [
    "NCCL_IB_DISABLE", "NCCL_IB_HCA", "NCCL_IB_TIMEOUT", "NCCL_IB_RETRY_CNT", "OMPI_MCA_pml", "UCX_RC_TIMEOUT",
    "UCX_RC_RETRY_COUNT", "UCX_RC_VERBS_TIMEOUT", "HOROVOD_CONTROLLER", "HOROVOD_GLOO_TIMEOUT_SECONDS",
    "HOROVOD_STALL_SHUTDOWN_TIME_SECONDS", "TORCH_NCCL_TIMEOUT_SEC",
]  # fmt: skip
ODD = JSON | st.sampled_from(["0", "ucx", "gloo", "mlx5_0", "99999", "1e999", "-3", "1.2.3s", 10**400])
LICENCES = st.text(max_size=30) | st.sampled_from(
    ["Licensed (Expiry: ", "Licensed", "N/A", "2026-9-22 12:0:0 GMT)", "("]
)
SEEN = st.fixed_dictionaries(
    {},
    optional={
        "sysctls": JSON | st.dictionaries(st.sampled_from(list(SYSCTLS)), ODD),
        "mca": JSON | st.dictionaries(st.sampled_from(list(WELL["mca"])), ODD),
        "environment": JSON | st.dictionaries(st.sampled_from(VARIABLES), ODD),
        "ssh": JSON | st.sampled_from(["serveraliveinterval x", "serveraliveinterval 5\nserveralivecountmax", "tcp"]),
        "sshd": JSON | st.just("clientaliveinterval none\n"),
        "mpirun": JSON,
        "nvidia": JSON | st.lists(LICENCES).map(lambda parts: licence("".join(parts))),
        "checkpoint": JSON | st.dictionaries(st.sampled_from(["age_s", "path", "bytes", "verified"]), ODD),
    },
)  # fmt: skip


@settings(max_examples=300)
@given(JSON | SEEN, st.floats(0, 1e6), st.none() | st.floats(0, 1e4))
def test_accepts_any_answer_of_a_node(seen: Any, budget: float, minutes: float | None) -> None:
    found = guest_checks.findings({"w1": seen}, budget, NOW, lasts=10.0, minutes=minutes)
    assert all(one.severity in ("stop", "warn", "note") and one.text for one in found)
    output = [one.text for one in found if one.severity == "stop" and one.rule == "timers"]
    assert not [text for text in output if "nan" in text or "inf " in text]


def test_notes_a_gpu_without_licence_data() -> None:
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
def test_requires_a_young_verified_checkpoint(newest: dict[str, Any] | None, severity: str) -> None:
    assert [one[:2] for one in judge(checkpoint=newest, minutes=30)] == ([(severity, "checkpoint")] if severity else [])
    assert judge(checkpoint=newest) == []


def test_names_unreadable_settings() -> None:
    assert [one[:2] for one in judge(sshd=None, environment=None)] == [("note", "guest")] * 2
    (one,) = guest_checks.findings({"w1": {"error": "no way"}}, 100, NOW)
    assert (one.severity, one.text) == ("warn", "it could not be read: no way")


def node(driver: str, mode: str = "VGPU") -> dict[str, Any]:
    message = f"Driver Version : {driver}\nGPU 00000000:02:00.0\n    Virtualization Mode : {mode}\n"
    return {"nvidia": message}


def host(manager: str, name: str = "esx1") -> dict[str, Any]:
    vibs = [{"name": "esx-base", "version": "8.0.3"}, {"name": "NVD-AIE_ESXi_8.0.0_Driver", "version": manager}]
    return {"host": name, "vibs": {"running": vibs}}


@pytest.mark.parametrize(
    ("driver", "manager", "severity", "expected"),
    [
        ("580.65.06", "580.82.02-1OEM.800.1.0.20613240", "", ""),
        ("535.54.03", "580.82.02-1OEM.800.1.0.20613240", "", ""),
        ("580.65.06", "535.54.06-1OEM.800.1.0.20613240", "stop", "is newer than the vGPU manager 535.54.06"),
        ("550.54.14", "580.82.02-1OEM.800.1.0.20613240", "stop", "branches 580, 570, 535, but not 550.54.14"),
        ("535.54.03", "550.90.05-1OEM.800.1.0.20613240", "note", "only the same branch is known to fit"),
    ],
)
def test_compares_guest_driver_and_manager_of_each_host(
    driver: str, manager: str, severity: str, expected: str
) -> None:
    found = guest_checks.driver_findings({"w1": node(driver)}, [host(manager)], TABLE)
    assert [(one.severity, one.rule, one.object) for one in found] == (
        [(severity, "versions", "w1")] if severity else []
    )
    assert all(expected in one.text and one.text.startswith("on esx1: ") for one in found)


def test_ignores_machines_without_a_manager_or_vgpu() -> None:
    hosts = [host("418.66"), {"host": "esx2", "vibs": {"running": []}}, {"host": "esx3", "failed": True}]
    nodes = {"w1": node("580.65.06", "Pass-Through"), "w2": {"nvidia": None}, "w3": {"error": "silent"}}
    assert guest_checks.driver_findings(nodes, hosts, TABLE) == []
    found = guest_checks.driver_findings({"w1": node("580.65.06")}, hosts, TABLE)
    assert [one.text.partition(":")[0] for one in found] == ["on esx1"]
