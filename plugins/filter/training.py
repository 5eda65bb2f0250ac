# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filters for training jobs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ansible.errors import AnsibleFilterError
from ansible_collections.dml.vsphere.plugins.module_utils.logic.training import log as training_log
from ansible_collections.dml.vsphere.plugins.module_utils.logic.training import scaling, sweep
from ansible_collections.dml.vsphere.plugins.module_utils.logic.transport import counters, proof
from ansible_collections.dml.vsphere.plugins.module_utils.logic.transport import settings as transport


def transport_settings(nodes: list[dict[str, Any]], name: str, nccl: str | None = None, **more: Any) -> dict[str, Any]:
    """The environment and the arguments of mpirun for a transport."""
    try:
        return dict(transport.settings(name, nodes, nccl or None, **more))
    except transport.TransportError as error:
        raise AnsibleFilterError(str(error)) from error


def transport_proof_of(log: str, wanted: str, sent_bytes: Any = None, **more: Any) -> dict[str, Any]:
    """Which transport was used; in ansible-core 2.17 a number that went through a variable is text, none is empty."""
    sent = float(sent_bytes) if sent_bytes not in (None, "", "None") else None
    return dict(proof.judge(wanted, log, sent_bytes=sent, **more))


def scaling_table(runs: list[dict[str, Any]], images_per_epoch: int | None = None) -> list[dict[str, Any]]:
    """The scaling table of some runs."""
    try:
        return list(scaling.table(runs, images_per_epoch))
    except scaling.ScalingError as error:
        raise AnsibleFilterError(str(error)) from error


def training_total(output: str) -> float | None:
    """Images per second of all ranks, where a benchmark printed that at its end; every rank prints the same sum."""
    totals = training_log.parse(output).totals
    return max(totals.values(), default=None)


def sweep_runs(nodes: list[int], transports: list[str], repeats: int, name: str = "scaling") -> list[dict[str, Any]]:
    """The runs of a scaling measurement in their order, their names beginning with the measurement's."""
    try:
        found = sweep.runs([int(count) for count in nodes], transports, repeats)
    except sweep.SweepError as error:
        raise AnsibleFilterError(str(error)) from error
    return [{**run, "name": f"{name}-{run['name']}"} for run in found]


def sweep_left(
    runs: list[dict[str, Any]], results: list[dict[str, Any]], asked: dict[str, Any], prove: bool = True
) -> list[dict[str, Any]]:
    """Those that have no good result yet."""
    try:
        return list(sweep.left(runs, results, asked, prove=prove))
    except sweep.SweepError as error:
        raise AnsibleFilterError(str(error)) from error


class FilterModule:
    """The filters by name."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {
            "transport_settings": transport_settings,
            "transport_proof": transport_proof_of,
            "rdma_counters": counters.counters,
            "allreduce_bytes": counters.least_sent,
            "training_total": training_total,
            "sweep_runs": sweep_runs,
            "sweep_left": sweep_left,
            "scaling_table": scaling_table,
        }
