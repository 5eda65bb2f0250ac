"""Brings the data of a run to its nodes, once for all runs with the same data; pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...durable.calls import on_all
from ..launch import data
from .controller_site import TrainingCalls
from .training_run import TrainingRun

FOLDER = "dml.vsphere.training_folder"
VARIABLE = "DML_DATA"


@dataclass(frozen=True)
class Data:
    """The data of a run: its source with its checksum, and the name of its file if it is one."""

    source: str = ""
    sha256: str = ""
    file: str = ""


def known(calls: TrainingCalls, run: TrainingRun) -> Data:
    """Return the data of a run, read on the controller; refuse it before anything is written."""
    given = str(run.o["data"])
    if not given:
        return Data()
    sha256 = data.sha256_of(given, str(run.o["data_sha256"]))
    if data.is_url(given):
        return Data(given, sha256)
    read = calls.files.data_checksum(given, run.o["data_limit"], sha256)
    return Data(given, str(read["sha256"]), str(read["file"]))


def send(calls: TrainingCalls, run: TrainingRun, known_data: Data) -> dict[str, Any]:
    """Send the data to nodes that do not have it, and return its source, its checksum and its path on every node."""
    given = known_data.source
    if not given:
        return {}
    source = {"url": given} if data.is_url(given) else {"path": given, "file": known_data.file}
    store = f"{run.o['dir']}/data"
    options = {**source, "sha256": known_data.sha256, "shared": True, "dest": store, "store": store}
    results = on_all(calls, run.nodes, FOLDER, options)
    path = next(iter(results.values())).get("data")
    return {"source": given, "sha256": known_data.sha256, "path": str(path or "")}


def of_manifest(sent: Mapping[str, object]) -> dict[str, str]:
    """Return what the manifest of a run keeps about its data, in the names of the options."""
    return {"data": str(sent.get("source") or ""), "data_sha256": str(sent.get("sha256") or "")}
