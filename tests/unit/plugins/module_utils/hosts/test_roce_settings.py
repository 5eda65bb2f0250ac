"""From priority, trust and DSCP to driver options and switch settings."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plugins.module_utils.hosts.driver_options import OptionError
from plugins.module_utils.hosts.roce_settings import (
    DRIVER_OPTIONS,
    LosslessRoce,
    desired_options,
    differing,
    lossless_roce,
    merged,
    pfc_of,
    priorities_of,
    switch_settings,
)

DSCP = lossless_roce(3, "dscp", 26)
PCP = lossless_roce(3, "pcp")
DSCP_CORE = {"pfctx": "0x08", "pfcrx": "0x08", "trust_state": "2"}
PCP_CORE = {**DSCP_CORE, "trust_state": "1"}


@pytest.mark.parametrize(
    ("priority", "trust", "dscp", "expected"),
    [
        (3, "dscp", None, LosslessRoce(3, "dscp", 26)),
        (3, "dscp", 24, LosslessRoce(3, "dscp", 24)),
        (0, "dscp", None, LosslessRoce(0, "dscp", 2)),
        (7, "dscp", None, LosslessRoce(7, "dscp", 58)),
        (4, "pcp", None, LosslessRoce(4, "pcp", None)),
    ],
)
def test_chooses_the_dscp_value_by_trust_and_priority(
    priority: int, trust: str, dscp: int | None, expected: LosslessRoce
) -> None:
    assert lossless_roce(priority, trust, dscp) == expected


@pytest.mark.parametrize(
    ("priority", "trust", "dscp", "message"),
    [
        (3, "dscp", 34, "DSCP 34 is of priority 4, not 3; priority 3 has 24 to 31"),
        (8, "dscp", None, "The PFC priority 8"),
        (-1, "pcp", None, "The PFC priority -1"),
        (3, "dscp", 64, "The DSCP 64"),
        (3, "pcp", 26, "dscp 26 has no effect with trust pcp"),
        (3, "cos", None, "The trust 'cos'"),
    ],
)
def test_contradictory_options_are_refused(priority: int, trust: str, dscp: int | None, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        lossless_roce(priority, trust, dscp)


@pytest.mark.parametrize(
    ("driver", "desired", "expected"),
    [
        ("nmlx5_core", DSCP, {"nmlx5_core": DSCP_CORE, "nmlx5_rdma": {"dscp_force": "26"}}),
        ("nmlx5_core", PCP, {"nmlx5_core": PCP_CORE, "nmlx5_rdma": {"pcp_force": "3"}}),
        ("nmlx5_core", None, {"nmlx5_core": {}, "nmlx5_rdma": {}}),
        ("nmlx4_en", PCP, {"nmlx4_en": {"pfctx": "0x08", "pfcrx": "0x08"}}),
        ("nmlx4_en", None, {"nmlx4_en": {}}),
    ],
)
def test_chooses_options_by_driver(driver: str, desired: LosslessRoce | None, expected: dict[str, Any]) -> None:
    assert desired_options(driver, desired) == expected


def test_an_old_card_cannot_trust_dscp() -> None:
    with pytest.raises(OptionError, match="nmlx4_en of ConnectX-3 cannot trust DSCP"):
        desired_options("nmlx4_en", DSCP)


@pytest.mark.parametrize(
    ("core", "rdma", "desired", "after_core", "after_rdma"),
    [
        ({"max_vfs": "8"}, {}, DSCP, {"max_vfs": "8", **DSCP_CORE}, {"dscp_force": "26"}),
        ({"pfctx": "8", "RSS": "4", "pfcrx": "0x8", "trust_state": "0x2"}, {"dscp_force": "26"}, DSCP,
         {"pfctx": "8", "RSS": "4", "pfcrx": "0x8", "trust_state": "0x2"}, {"dscp_force": "26"}),
        (DSCP_CORE, {"dscp_force": "26"}, PCP, PCP_CORE, {"pcp_force": "3"}),
        (PCP_CORE, {"pcp_force": "3"}, DSCP, DSCP_CORE, {"dscp_force": "26"}),
        (DSCP_CORE, {"pcp_force": "-1", "dscp_force": "26"}, DSCP, DSCP_CORE, {"pcp_force": "-1", "dscp_force": "26"}),
        ({"ecn": "1", **DSCP_CORE}, {"dscp_force": "26"}, None, {"ecn": "1"}, {}),
        ({}, {"dscp_force": "-1"}, None, {}, {}),
    ],
)  # fmt: skip
def test_keeps_foreign_options_and_removes_stale_ones(
    core: Any, rdma: Any, desired: LosslessRoce | None, after_core: Any, after_rdma: Any
) -> None:
    after = merged("nmlx5_core", {"nmlx5_core": core, "nmlx5_rdma": rdma}, desired)
    assert after == {"nmlx5_core": after_core, "nmlx5_rdma": after_rdma}
    assert merged("nmlx5_core", after, desired) == after
    assert not any(differing("nmlx5_core", after, desired).values())


VALUES = st.sampled_from(["0", "-1", "1", "8", "0x08", "0x18", "26"])
KEYS = ("pfctx", "pfcrx", "trust_state", "dscp_force", "pcp_force", "max_vfs", "ecn")


@given(
    st.dictionaries(st.sampled_from(KEYS), VALUES),
    st.dictionaries(st.sampled_from(KEYS), VALUES),
    st.sampled_from([DSCP, PCP, lossless_roce(5, "dscp"), None]),
)
def test_merging_twice_changes_nothing_and_loses_nothing_foreign(
    core: Any, rdma: Any, desired: LosslessRoce | None
) -> None:
    current = {"nmlx5_core": core, "nmlx5_rdma": rdma}
    after = merged("nmlx5_core", current, desired)
    assert merged("nmlx5_core", after, desired) == after
    for module, ours in DRIVER_OPTIONS["nmlx5_core"].items():
        foreign = {key: value for key, value in current[module].items() if key not in ours}
        assert {key: value for key, value in after[module].items() if key not in ours} == foreign


@pytest.mark.parametrize(("mask", "expected"), [("0x08", [3]), ("8", [3]), ("0x81", [0, 7]), ("0", []), ("odd", [])])
def test_reads_priorities_from_a_mask(mask: str, expected: list[int]) -> None:
    assert priorities_of(mask) == expected


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ({"Nic": "vmnic2", "PFCEnabled": "true", "PFCConfiguration": "0 0 0 1 0 0 0 0"}, [3]),
        ({"PFC Enabled": "True", "PFC Configuration": "1 0 0 0 0 0 0 1"}, [0, 7]),
        ({"PFCEnabled": "true", "PFCConfiguration": ["0", "0", "0", "0", "1", "0", "0", "0"]}, [4]),
        ({"PFCEnabled": "false", "PFCConfiguration": "0 0 0 1 0 0 0 0"}, []),
        ({"Nic": "vmnic2"}, []),
        # Cards that agreed with the switch, of which one reports no mode, and one that did not:
        # https://github.com/Enizaksoy/rdma-ai-cluster
        ({"Mode": "Unknown", "PFC Enabled": "true", "PFC Configuration": "0 0 0 1 0 0 0 0"}, [3]),
        ({"Mode": "CEE Mode", "PFC Enabled": "false", "PFC Configuration": "0 0 0 0 0 0 0 0"}, []),
    ],
)
def test_reads_flow_control_from_the_host(status: dict[str, Any], expected: list[int]) -> None:
    assert pfc_of(status) == expected


def test_switch_settings_contain_priority_and_trust() -> None:
    by_dscp, by_pcp = switch_settings(DSCP), switch_settings(lossless_roce(5, "pcp"))
    assert "dcb priority-flow-control priority 3 enable" in by_dscp["onyx"].splitlines()
    assert "interface ethernet PORTS qos trust L3" in by_dscp["onyx"].splitlines()
    assert "switchport" not in by_dscp["onyx"] and "DSCP 26 to traffic class 3" in by_dscp["generic"]
    assert "dcb priority-flow-control priority 5 enable" in by_pcp["onyx"].splitlines()
    assert "interface ethernet PORTS qos trust L2" in by_pcp["onyx"].splitlines()
    assert "interface ethernet PORTS switchport mode trunk" in by_pcp["onyx"].splitlines()
    assert "carry the RDMA VLAN tagged" in by_pcp["generic"]
