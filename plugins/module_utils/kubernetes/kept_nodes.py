"""The nodes and the queue of a job that a window stops, which no other job gets until the job goes on; pure.

Kueue admits jobs as long as their queue has quota, so it would give that of a stopped job to others, whose pods would
take its GPUs. Without a queue, the scheduler would do so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ..durable.calls import Calls, Result, required
from ..durable.program import MemoryJournal, Program
from ..errors import Failed, Refused
from ..training.runs.any_job import Ask
from .object_fields import Object, conditions, is_true, part, quantity, whole

K8S, K8S_INFO = "kubernetes.core.k8s", "kubernetes.core.k8s_info"
KUEUE = "kueue.x-k8s.io/v1beta2"
# An operator whose pods start again with their node refuses objects until they answer.
WEBHOOK, WEBHOOK_SECONDS = "failed calling webhook", 300.0
# The annotation of what a window has closed, with the job: others may have closed more.
KEPT_FOR = "dml.vsphere/kept-for"


class Gate(NamedTuple):
    """A kind of objects that lets jobs in, unless a field of its ``spec`` has the value ``closed``."""

    api: str
    kind: str
    field: str
    closed: Any
    open: Any


NODE = Gate("v1", "Node", "unschedulable", closed=True, open=None)
QUEUE = Gate(KUEUE, "ClusterQueue", "stopPolicy", closed="Hold", open="None")


class JobPlace:
    """The nodes of a job and its queue; ``access`` says how to reach Kubernetes, ``needs`` what each worker requests.

    ``job`` names it in all attempts, whoever continues its window. Without ``nodes``, they are those kept for it.
    """

    def __init__(
        self,
        here: Ask,
        access: Mapping[str, str],
        job: str,
        nodes: Sequence[str] = (),
        queue: tuple[str, str] = ("", ""),
        needs: Mapping[str, int] | None = None,
    ) -> None:
        self._here, self._access, self._job = here, dict(access), job
        self._nodes, self._queue, self._needs = list(nodes), queue, dict(needs or {})

    def pending(self) -> int:
        """Return the number of jobs that wait for the quota of the queue; refuse one that does not exist.

        An account that cannot read nodes is refused too.
        """
        self._read(NODE)
        return sum(whole(part(each, "status").get("pendingWorkloads")) or 0 for each in self._queues())

    def keep(self) -> None:
        """Hold the queue, and cordon the nodes, unless others did so."""
        for gate, found in ((QUEUE, self._queues()), (NODE, self._named_nodes())):
            for each in found:
                if part(each, "spec").get(gate.field) in (None, False, gate.open):
                    self._set(gate, each, gate.closed, self._job)

    def free(self, every_queue: bool = False) -> None:
        """Open again what ``keep`` has closed, the nodes first."""
        queues = self._every_queue() if every_queue else self._queues()
        for gate, found in ((NODE, self._read(NODE)), (QUEUE, queues)):
            for each in found:
                if self._is_mine(each):
                    self._set(gate, each, gate.open, None)

    def why_not_ready(self) -> str:
        """Return why the nodes cannot run the job yet: a guest answers before its kubelet and its device plugin do."""
        return "; ".join(why for each in self._named_nodes() for why in _lacks(each, self._needs))

    def _named_nodes(self) -> list[Object]:
        found = self._read(NODE)
        return [each for each in found if (_name(each) in self._nodes if self._nodes else self._is_mine(each))]

    def _queues(self) -> list[Object]:
        """Return the ClusterQueue behind the LocalQueue of the job; nothing for a job without a queue."""
        namespace, name = self._queue
        if not name:
            return []
        local = self._read(QUEUE, kind="LocalQueue", name=name, namespace=namespace)
        behind = str(part(local[0], "spec").get("clusterQueue") or "") if local else ""
        found = self._read(QUEUE, name=behind) if behind else []
        if not found:
            cause = f"Kueue has no queue {name} in the namespace {namespace}"
            raise Refused(f"the queue {name}", "keep its nodes from other jobs", cause, "correct the queue of the job")
        return found

    def _every_queue(self) -> list[Object]:
        """Return all ClusterQueues; nothing if Kubernetes has no Kueue."""
        options = {"api_version": QUEUE.api, "kind": QUEUE.kind, **self._access}
        return list(required(self._here(K8S_INFO, options))["resources"])

    def _read(self, gate: Gate, **which: str) -> list[Object]:
        return objects_of(self._here, {"api_version": gate.api, "kind": gate.kind, **which, **self._access})

    def _set(self, gate: Gate, thing: Object, value: object, job: str | None) -> None:
        metadata = {"name": _name(thing), "annotations": {KEPT_FOR: job}}
        definition = {"apiVersion": gate.api, "kind": gate.kind, "metadata": metadata, "spec": {gate.field: value}}
        patch(self._here, self._access, definition)

    def _is_mine(self, thing: Object) -> bool:
        return part(part(thing, "metadata"), "annotations").get(KEPT_FOR) == self._job


def patient(calls: Calls) -> Ask:
    """Return how to run modules that wait for the webhooks of operators, whose pods may run on nodes that boot."""

    def here(module: str, options: Mapping[str, Any]) -> Result:
        results: list[Result] = []

        def is_answered() -> bool:
            results.append(calls.here(module, options))
            return WEBHOOK not in str(results[-1].get("msg"))

        Program(MemoryJournal(), calls).wait(is_answered, WEBHOOK_SECONDS)
        return results[-1]

    return here


def objects_of(here: Ask, options: Mapping[str, Any]) -> list[Object]:
    """Return objects; raise if their kind is unknown: an API server that starts does not know those of operators yet.

    It answers 503 then, and the module reports no objects and no failure.
    """
    answer = required(here(K8S_INFO, options))
    if answer.get("api_found") is False:
        cause = str(answer.get("msg") or "the API server does not know this kind")
        remedy = "check that the API server is ready and that the operator is installed, and run again"
        raise Failed("Kubernetes", f"read {options['kind']}", cause, remedy)
    return list(answer["resources"])


def patch(here: Ask, access: Mapping[str, str], definition: Mapping[str, object]) -> None:
    """Change fields of an existing object; those that are None are removed."""
    required(here(K8S, {"state": "patched", "definition": definition, "merge_type": ["merge"], **access}))


def _lacks(node: Object, needs: Mapping[str, int]) -> Iterator[str]:
    ready = conditions(node)
    if not is_true(ready, "Ready"):
        yield f"node {_name(node)} is not ready: {ready.get('Ready', {}).get('message') or 'it has not reported'}"
        return
    offers = part(part(node, "status"), "allocatable")
    for resource, count in needs.items():
        offered = quantity(offers.get(resource)) or 0
        if offered < count:
            yield f"node {_name(node)} offers {offered} {resource}, and a worker needs {count}"


def _name(thing: Object) -> str:
    return str(part(thing, "metadata").get("name") or "")
