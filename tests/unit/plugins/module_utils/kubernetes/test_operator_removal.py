"""Only what the role mpi_operator alone created is removed, and nothing of others that would be lost with it."""

from __future__ import annotations

from typing import Any

import pytest

from plugins.module_utils.errors import WholeError
from plugins.module_utils.kubernetes.operator_removal import removal

OURS = {"manager": "dml.vsphere", "operation": "Apply", "apiVersion": "apps/v1"}
STATUS = {"manager": "kube-controller-manager", "operation": "Update", "subresource": "status"}
SUMMED = {"manager": "clusterrole-aggregation-controller", "operation": "Apply"}
PERSONS = {"manager": "kubectl-rollout", "operation": "Update"}


def thing(kind: str, *managers: dict[str, str], name: str = "mpi-operator") -> dict[str, Any]:
    return {"kind": kind, "metadata": {"name": name, **({"managedFields": list(managers)} if managers else {})}}


NAMESPACE, DEPLOYMENT = thing("Namespace", OURS, STATUS), thing("Deployment", OURS, STATUS)
NAMED = [NAMESPACE, DEPLOYMENT]


@pytest.mark.parametrize(
    ("managers", "words"),
    [
        ([OURS, PERSONS], "was created or changed by dml.vsphere, kubectl-rollout, not only by this role"),
        ([PERSONS], "was created or changed by kubectl-rollout, not only"),
        ([STATUS], "was created or changed by an unknown manager"),
        ([], "was created or changed by an unknown manager"),
    ],
)
def test_operator_of_another_manager_refuses_its_removal(managers: list[dict[str, str]], words: str) -> None:
    with pytest.raises(WholeError, match=f"Deployment mpi-operator {words}"):
        removal([], [NAMESPACE, thing("Deployment", *managers)], NAMED, [])
    kept = removal([], [thing("CustomResourceDefinition", *managers), DEPLOYMENT], NAMED, [])
    assert kept["remove"] == [DEPLOYMENT] and "CustomResourceDefinition mpi-operator stays: it was" in kept["stays"][0]


def test_own_objects_are_removed_the_last_one_first() -> None:
    role = thing("ClusterRole", OURS, SUMMED)
    assert removal([], [*NAMED, role], NAMED, []) == {"remove": [role, DEPLOYMENT, NAMESPACE], "stays": []}


@pytest.mark.parametrize(
    ("beside", "is_left"),
    [
        ([{"metadata": {"name": "mpi-operator-1-2", "ownerReferences": [{"kind": "ReplicaSet"}]}}], False),
        ([{"metadata": {"name": "mpi-operator"}}], False),
        ([{"metadata": {"name": "somebodys"}}], True),
    ],
)
def test_keeps_a_namespace_that_others_use(beside: list[dict[str, Any]], is_left: bool) -> None:
    elsewhere = {"item": [thing("Namespace", name="other"), {}], "resources": [{"metadata": {"name": "x"}}]}
    decided = removal([], NAMED, NAMED, [{"item": [NAMESPACE, {}], "resources": beside}, elsewhere])
    assert (NAMESPACE not in decided["remove"]) is is_left
    assert decided["stays"] == (["Namespace mpi-operator stays: it contains somebodys."] if is_left else [])


def test_mpijobs_refuse_the_removal() -> None:
    with pytest.raises(WholeError, match=r"would delete the MPIJobs a, b\. Delete them first, including finished ones"):
        removal([thing("MPIJob", name="b"), thing("MPIJob", name="a")], NAMED, NAMED, [])


def test_removal_is_refused_when_jobs_are_not_listed() -> None:
    """An API server that starts answers 503 for MPIJobs, which kubernetes.core reports as no MPIJobs."""
    definition = thing("CustomResourceDefinition", OURS, name="mpijobs.kubeflow.org")
    with pytest.raises(WholeError, match="has the definition of MPIJobs, but did not list them"):
        removal([], [*NAMED, definition], NAMED, [], is_listed=False)
    assert removal([], NAMED, NAMED, [], is_listed=False)["remove"] == [DEPLOYMENT, NAMESPACE], "its definition is gone"
