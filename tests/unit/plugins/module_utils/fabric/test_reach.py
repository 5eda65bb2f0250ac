# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The pings between hosts as one error."""

from __future__ import annotations

from plugins.module_utils.fabric import reach

ANSWERED = {"reached": True, "text": "vmk1 of esx01 -> esx02 (10.0.0.2), 8972 bytes: 3 of 3 answered"}
LOST = {"reached": False, "text": "vmk1 of esx02 -> esx01 (10.0.0.1), 8972 bytes: 0 of 3 answered (no answer)"}


def test_pings_that_were_all_answered_are_no_error() -> None:
    assert reach.error("gpu", "rdma", [ANSWERED]) == ""
    assert reach.error("gpu", "rdma", []) == ""


def test_only_the_pings_without_all_answers_are_named_with_what_to_check() -> None:
    said = f"gpu: not all hosts reach each other over switch rdma: {LOST['text']}; check VLAN and MTU of the physical"
    assert reach.error("gpu", "rdma", [ANSWERED, LOST]) == f"{said} switch"
