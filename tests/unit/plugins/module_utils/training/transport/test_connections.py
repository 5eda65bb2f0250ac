"""The transport of a running job between two readings: connections for TCP, counters for RDMA, and no guess."""

from __future__ import annotations

from typing import Any

import pytest

from plugins.module_utils.training.transport import connections as transport_seen

MEGABYTE = 1 << 20
TCP = (("10.0.0.1", "10.0.0.2"),)


def rank(step: int, connections: Any = TCP, rdma: bool = False, number: int = 0) -> dict[str, Any]:
    return {"rank": number, "pid": 7, "step": step, "connections": connections, "rdma_open": rdma}


def look(step: int, sent: int | None = None, driver: str = "mlx5_core", **more: Any) -> dict[str, Any]:
    devices = [] if sent is None else [{"device": "rocep0", "driver": driver, "sent_bytes": sent}]
    return {"w1": {"ranks": [rank(step, **more)], "devices": devices}}


def host(sent: int, **more: Any) -> list[dict[str, Any]]:
    return [{"host": "esx1", "rdma_devices": [{"device": "vmrdma0", "counters": {"bytes_sent": sent}}], **more}]


def of(first: dict[str, Any], second: dict[str, Any], **more: Any) -> tuple[str, str]:
    judged = transport_seen.judge(first, second, **more)
    return judged["transports"]["w1"], judged["why"]["w1"]


def test_connections_without_an_rdma_device_are_tcp() -> None:
    transport, why = of(look(10), look(30))
    assert (transport, why) == ("tcp", "its ranks are connected by TCP to 10.0.0.2 and have no RDMA device open")


@pytest.mark.parametrize(
    ("second", "expected"),
    [
        ({"w1": {"error": "it did not answer in time"}}, "could not be read: it did not answer in time"),
        ({}, "it was not read"),
        ({"w1": {"ranks": [], "devices": []}}, "no rank was found on it"),
        ({"w1": {"ranks": [{"rank": 0, "pid": 7, "step": 3, "error": "/proc/7/fd: Permission denied"}]}}, "Permission"),
        (look(30, connections=[]), "rank 0 has neither a TCP connection nor an RDMA device open"),
        (look(30, rdma=True), "has an RDMA device open, but w1 has no RDMA device whose counter was read"),
    ],
)
def test_unobserved_transports_are_unproven(second: dict[str, Any], expected: str) -> None:
    transport, why = of(look(10), second)
    assert transport == "unproven"
    assert expected in why


def test_a_counter_that_grows_with_steps_proves_rdma() -> None:
    judged = transport_seen.judge(look(10, 0, rdma=True), look(30, 200 * MEGABYTE, rdma=True))
    assert judged["transports"] == {"w1": "rdma"}
    assert judged["bytes_per_step"] == {"w1": 10 * MEGABYTE}


def test_a_constant_counter_is_a_fallback() -> None:
    first, second = look(10, 5, rdma=True), look(30, 5, rdma=True)
    assert of(first, second)[0] == "tcp"
    slower = look(30, 20 * MEGABYTE, rdma=True)
    assert of(first, slower)[0] == "rdma"
    transport, why = of(first, slower, usual={"w1": 10 * MEGABYTE})
    assert (transport, "it fell back" in why) == ("tcp", True)


def test_without_a_step_nothing_is_confirmed() -> None:
    assert of(look(10, 0, rdma=True), look(10, MEGABYTE, rdma=True))[0] == "unproven"


def test_only_the_host_reports_paravirtual_rdma() -> None:
    first, second = (look(step, 0, driver="vmw_pvrdma", rdma=True) for step in (10, 30))
    transport, why = of(first, second)
    assert (transport, "only the counters of its ESXi host count, which were not read" in why) == ("unproven", True)
    there = {"at": {"w1": "esx1"}}
    assert of(first, second, hosts=(host(0), host(200 * MEGABYTE)), **there)[0] == "rdma"
    transport, why = of(first, second, hosts=(host(9), host(9)), **there)
    assert (transport, why.split("but ")[1]) == (
        "tcp",
        "the RDMA counter of vmrdma0 of esx1 grew by 0 bytes a step, less than 65536: it fell back",
    )
    assert of(first, second, hosts=(host(0), host(MEGABYTE)), at={"w1": "esx2"})[0] == "unproven"
    transport, why = of(first, second, hosts=(host(9), host(0)), **there)
    assert (transport, "it was reset meanwhile" in why) == ("unproven", True)


@pytest.mark.parametrize(
    ("rdma", "users", "shared"),
    [
        ({"w1": "esx1"}, [], False),
        ({"w1": "esx1", "w2": "esx2"}, [], False),
        ({"w1": "esx1", "w2": "esx1"}, [], True),
        ({"w1": "esx1", "another job's": "esx1"}, [], True),
        ({"w1": "esx1", "moved": "esx1"}, [], False),
        ({"w1": "esx1", "arrived": "esx3"}, [], True),
        ({"w1": "esx1"}, [{"kind": "vSAN", "name": "vmk2", "uplink": None}], True),
    ],
)
def test_a_shared_device_confirms_nothing(rdma: dict[str, str], users: list[Any], shared: bool) -> None:
    first, second = (look(step, 0, driver="vmw_pvrdma", rdma=True) for step in (10, 30))
    both = (host(0, rdma_users=users), host(200 * MEGABYTE, rdma_users=users))
    places = {"w1": "esx1", "moved": "esx3", "arrived": "esx1"}
    transport, why = of(first, second, hosts=both, at=places, rdma=rdma)
    assert (transport, "vmrdma0 of esx1 of w1 is shared with others" in why) == (
        ("unproven", True) if shared else ("rdma", False)
    )


def test_reads_host_counters_only_for_open_rdma_devices() -> None:
    assert transport_seen.uses_rdma(look(10, 0, rdma=True))
    assert not transport_seen.uses_rdma({**look(10, 0), "w2": {"error": "silent"}})
