"""A job whose ranks run in pods: its state, the checks before its nodes move, and its end; pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from ..durable.calls import Result, required
from ..training.runs.any_job import Ask, Findings, touch_finish
from ..training.runs.training_run import PLACE
from .job_kinds import KINDS, V2BETA1
from .manifests import deletion

# The annotation with which the owner of a job acknowledges a maintenance window.
ANNOTATION = "dml.vsphere/window-ack"
INFO, K8S = "mpijob_info", "kubernetes.core.k8s"


class MpiJob:
    """An MPIJob. ``options`` has its name and place, as mpijob_info takes them."""

    def __init__(self, here: Ask, on_launcher: Ask, options: Mapping[str, Any], records: str) -> None:
        self._here, self._on_launcher = here, on_launcher
        self._options, self._records = dict(options), records
        self._kind = KINDS[str(options.get("api") or V2BETA1)]
        self.name = f"{self._kind.kind} {options['name']}: it"
        self.workers: Mapping[str, str] = options.get("names") or {}
        stamp = "$(date +%Y-%m-%dT%H:%M:%S%z)"
        self.ack = f"kubectl annotate --overwrite {self._kind.kind.lower()} {options['name']} {ANNOTATION}={stamp}"

    def acknowledged(self) -> float:
        """Return the time in the annotation with which the owner acknowledges a window."""
        which = {"api_version": self._kind.api_version, "kind": self._kind.kind, "name": self._options["name"]}
        found = required(self._here(f"{K8S}_info", {**which, "namespace": "default", **self._place()}))["resources"]
        notes = ((found or [{}])[0].get("metadata") or {}).get("annotations") or {}
        try:
            text = str(notes.get(ANNOTATION, "")).replace("Z", "+0000")
            return datetime.strptime(text, "%Y-%m-%dT%H:%M:%S%z").timestamp()
        except ValueError:
            return 0.0

    def look(self) -> Result:
        """Return the state of the job, or a failure, as while the API server itself moves and does not respond."""
        return self._here(INFO, self._options)

    def checked(self, moved: Sequence[str], stun_seconds: float, accept: Sequence[str], /) -> Findings:
        """Return the conditions in Kubernetes that would end the job while the nodes of these workers are silent."""
        nodes: list[str] = []
        for worker in moved:
            nodes += [node for node, name in self.workers.items() if name == worker] or [worker]
        api = {"api": self._options["api"]} if self._options.get("api") else {}
        job = {"name": self._options["name"], **api, **self._place()}
        options = {"stun_seconds": stun_seconds, "accept": list(accept), "moved": nodes, "at_once": len(nodes) > 1}
        findings: Findings = required(self._here("mpijob_info", {"gather": ["findings"], **job, **options}))["findings"]
        return findings

    def finish(self) -> None:
        """Ask the benchmark of the collection to end after its epoch."""
        touch_finish(self._on_launcher, self._records)

    def stop(self) -> Result:
        """Delete the job and its other objects, with all that the operator created for them."""
        options = deletion(str(self._options["name"]), str(self._options.get("api") or V2BETA1))
        # mpijob_info assumes this namespace if none is given; kubernetes.core.k8s refuses to delete without one.
        return required(self._here(K8S, {**options, "namespace": "default", **self._place()}))

    def _place(self) -> dict[str, Any]:
        return {key: self._options[key] for key in PLACE if key in self._options}
