"""The report on the GPUs of a cluster as metrics for Prometheus, which name no virtual machine and no tenant."""

from __future__ import annotations

from collections.abc import Iterator

from ..core import prometheus
from ..core.prometheus import Gauge
from ..maintenance.lock.lock_rules import parse_stamp
from .usage_report import STATES, Report


def metrics(report: Report) -> str:
    """Return the metrics of a report; a value that was not measured is left out."""
    return prometheus.text(_gauges(report))


def _gauges(report: Report) -> Iterator[Gauge]:
    cluster = {"cluster": report["cluster"]}
    taken = parse_stamp(report["taken"]).timestamp()
    yield Gauge("dml_audit_read_timestamp_seconds", "When the GPUs were read, on vCenter's clock.", [(cluster, taken)])
    gpus = [({**cluster, "host": gpu["host"], "gpu": gpu["address"]}, gpu) for gpu in report["gpus"]]
    states = [({**key, "state": state}, int(gpu["state"] == state)) for key, gpu in gpus for state in STATES]
    yield Gauge("dml_audit_gpu_state", "Whether the GPU is in this state.", states)
    shares = [(key, gpu["assigned_share"]) for key, gpu in gpus]
    yield Gauge("dml_audit_gpu_assigned_ratio", "The share of the GPU that virtual machines have.", shares)
    busy = [(key, gpu["utilisation"] and gpu["utilisation"]["mean"] / 100) for key, gpu in gpus]
    yield Gauge("dml_audit_gpu_utilization_ratio", "The mean utilization of the GPU in the period.", busy)
    hosts = {gpu["host"]: gpu for gpu in report["gpus"]}
    reached = [({**cluster, "host": host}, int(gpu["reachable"])) for host, gpu in hosts.items()]
    yield Gauge("dml_audit_host_reachable", "Whether vCenter reaches the host.", reached)
    out = [({**cluster, "host": host}, int(gpu["maintenance"])) for host, gpu in hosts.items()]
    yield Gauge("dml_audit_host_maintenance", "Whether the host is in maintenance mode.", out)
