"""The timers that outlast a stun, with the kernel's figures."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plugins.module_utils.guests import stun_timers

KERNEL = {
    "net.ipv4.tcp_retries2": "15",
    "net.ipv4.tcp_keepalive_time": "7200",
    "net.ipv4.tcp_keepalive_intvl": "75",
    "net.ipv4.tcp_keepalive_probes": "9",
}
HASTY = {**KERNEL, **{f"net.ipv4.tcp_keepalive_{name}": "5" for name in ("time", "intvl", "probes")}}
SSH = "user dml\nserveraliveinterval 0\nserveralivecountmax 3\ntcpkeepalive no\n"
SSHD = "clientaliveinterval 0\nclientalivecountmax 3\ntcpkeepalive no\n"
MPI = {f"oob_tcp_keepalive_{name}": value for name, value in (("time", "300"), ("intvl", "20"), ("probes", "9"))}


@pytest.mark.parametrize(("retries", "seconds"), [(0, 0.2), (3, 3.0), (8, 102.2), (9, 204.6), (15, 924.6)])
def test_the_kernel_waits_as_documented(retries: int, seconds: float) -> None:
    assert stun_timers.retransmission_patience(retries) == pytest.approx(seconds)


@given(st.integers(0, 60))
def test_more_retries_wait_longer(retries: int) -> None:
    assert stun_timers.retransmission_patience(retries) < stun_timers.retransmission_patience(retries + 1)


@pytest.mark.parametrize(
    ("observed", "named"),
    [
        ({}, []),
        ({"ssh": SSH, "sshd": SSHD, "sysctls": KERNEL, "mca": MPI}, []),
        ({"ssh": SSH.replace("val 0", "val 2"), "sysctls": KERNEL}, ["ssh's serveraliveinterval"]),
        ({"ssh": SSH.replace("val 0", "val 40")}, []),
        ({"sshd": SSHD.replace("val 0", "val 15")}, ["sshd's clientaliveinterval"]),
        ({"sshd": SSHD.replace("val 0", "val 15").replace("max 3", "max 0")}, []),
        ({"ssh": SSH.replace("val 0", "val 9").replace("max 3", "max 0")}, ["ssh's serveraliveinterval"]),
        ({"ssh": SSH, "sysctls": HASTY}, []),
        ({"ssh": SSH.replace("no", "yes"), "sysctls": HASTY}, ["ssh's tcpkeepalive"]),
        ({"ssh": SSH.replace("no", "yes"), "sysctls": KERNEL}, []),
        ({"sysctls": {**KERNEL, "net.ipv4.tcp_retries2": "7"}}, ["net.ipv4.tcp_retries2"]),
        ({"sysctls": {**KERNEL, "net.ipv4.tcp_retries2": "8"}}, []),
        ({"mca": {**MPI, "oob_tcp_keepalive_time": "5", "oob_tcp_keepalive_probes": "3"}}, ["OpenMPI's"]),
        ({"mca": {**MPI, "oob_tcp_keepalive_time": "0", "oob_tcp_keepalive_probes": "0"}}, []),
    ],
)
def test_timers_shorter_than_a_stun_are_listed(observed: dict[str, Any], named: list[str]) -> None:
    sentences = stun_timers.risks(observed, 100)
    assert len(sentences) == len(named)
    for sentence, words in zip(sentences, named):
        assert sentence.startswith(words) and "100 s" in sentence


@given(st.integers(1, 60), st.integers(1, 10), st.integers(1, 900))
def test_a_client_is_a_risk_below_the_stun(interval: int, most: int, seconds: int) -> None:
    message = f"serveraliveinterval {interval}\nserveralivecountmax {most}\ntcpkeepalive no"
    assert bool(stun_timers.risks({"ssh": message}, seconds)) == (interval * most < seconds)
