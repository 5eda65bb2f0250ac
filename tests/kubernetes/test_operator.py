"""The role mpi_operator on the lab's Kubernetes: it installs what upstream publishes, and removes what it made."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from lab.kubernetes.cluster import Cluster
from tests import kubernetes_schema as schema
from tests.integration.ansible import Outcome
from tests.kubernetes.mpijob import Jobs, mpijob
from tests.lab.places import Place

PLAYBOOK = "[{hosts: localhost, gather_facts: false, roles: [dml.vsphere.mpi_operator]}]"
# Everything of the operator that is not in a namespace.
KINDS = "customresourcedefinitions,clusterroles,clusterrolebindings,namespaces"
KIND = "customresourcedefinition.apiextensions.k8s.io/mpijobs.kubeflow.org"
PLACE = "namespace/mpi-operator"
REFUSED = "The MPI Operator cannot be removed: "


def there(cluster: Cluster) -> set[str]:
    """Return what the cluster has of the kinds that an operator brings."""
    return set(cluster.kubectl("get", KINDS, "--output", "name").split())


class Role:
    """The role, run on one cluster with the manifest that upstream publishes."""

    def __init__(self, place: Place, folder: Path) -> None:
        self.place, self.manifest = place, folder / "operator.yaml"
        self.book = folder / "operator.yml"
        self.manifest.write_bytes(schema.content(schema.OPERATORS["kubeflow.org/v2beta1 MPIJob"]))
        self.book.write_text(PLAYBOOK)

    def __call__(self, state: str, *arguments: str) -> Outcome:
        variables: dict[str, Any] = {
            "mpi_operator_state": state,
            "mpi_operator_url": self.manifest.as_uri(),
            "mpi_operator_kubeconfig": self.place.lab.environment["KUBECONFIG"],
        }
        where = ("-i", "localhost,", "-c", "local", "-e", json.dumps(variables))
        return self.place.ansible.playbook(self.book, *where, *arguments, timeout=600)

    def done(self, state: str, *arguments: str) -> int:
        """Run it, which must go well; how many tasks changed something."""
        ran = self(state, *arguments)
        assert ran.rc == 0, ran.out[-4000:]
        return ran.changes["localhost"]

    def take_away(self, cluster: Cluster) -> None:
        """Delete the operator and the right that the role adds, whoever made them."""
        cluster.kubectl("delete", "--filename", str(self.manifest), "--ignore-not-found", "--wait")
        cluster.kubectl("delete", "clusterroles,clusterrolebindings", "mpi-operator-resumes", "--ignore-not-found")

    def refused(self, *arguments: str) -> str:
        """Remove the operator, which must be refused; return the refusal."""
        ran = self("absent", *arguments)
        message = " ".join(ran.out.split())
        assert ran.rc != 0 and REFUSED in message, message[-4000:]
        return message.partition(REFUSED)[2]


@pytest.fixture
def cluster(members: Place) -> Cluster:
    return members.lab.kubernetes


@pytest.fixture
def role(members: Place, cluster: Cluster, jobs: Jobs, tmp_path: Path) -> Iterator[Role]:
    """The role, on a cluster without any operator; afterwards the operator is as the lab brought it."""
    made = Role(members, tmp_path)
    made.take_away(cluster)
    yield made
    made.take_away(cluster)
    cluster.kubectl("apply", "--server-side", "--filename", str(made.manifest))
    cluster.kubectl("--namespace", "mpi-operator", "rollout", "status", "deployment/mpi-operator", "--timeout=120s")


def test_removes_everything_that_the_role_created(role: Role, cluster: Cluster, jobs: Jobs) -> None:
    before = there(cluster)
    assert role.done("present") > 0
    assert {KIND, PLACE} <= there(cluster) - before
    assert role.done("present") == 0
    name = jobs.begin(mpijob("kept", 2, ["hostname"]))
    assert sorted(jobs.ended(name).split()) == ["kept-worker-0", "kept-worker-1"]
    made = there(cluster)
    assert role.refused().startswith("its removal would delete the MPIJobs kept.")
    assert there(cluster) == made
    jobs.remove(name)
    assert role.done("absent", "--check") > 0
    assert there(cluster) == made
    assert role.done("absent") > 0
    assert there(cluster) == before
    assert role.done("absent") == 0


def test_keeps_a_foreign_operator(role: Role, cluster: Cluster) -> None:
    cluster.kubectl("apply", "--server-side", "--filename", str(role.manifest))
    made = there(cluster)
    result = role.refused()
    assert "was created or changed by kubectl, not only by this role" in result
    assert there(cluster) == made
    # The same values, applied once more: both managers own them now.
    assert role.done("present") > 0
    assert "was created or changed by dml.vsphere, kubectl, not only by this role" in role.refused()
    assert made <= there(cluster)


def test_keeps_existing_definitions_and_a_shared_namespace(role: Role, cluster: Cluster) -> None:
    before = there(cluster)
    (kind,) = (
        one for one in yaml.safe_load_all(role.manifest.read_text()) if one["kind"] == "CustomResourceDefinition"
    )
    cluster.kubectl("apply", "--server-side", "--filename", "-", text=json.dumps(kind))
    role.done("present")
    cluster.kubectl("--namespace", "mpi-operator", "create", "configmap", "somebodys")
    ran = role("absent")
    message = " ".join(ran.out.split())
    assert ran.rc == 0, message[-4000:]
    assert (
        "CustomResourceDefinition mpijobs.kubeflow.org stays: it was created or changed by dml.vsphere, kubectl."
        in message
    )
    assert "Namespace mpi-operator stays: it contains somebodys." in message
    assert there(cluster) == before | {KIND, PLACE}
    assert cluster.get("configmaps", "--namespace", "mpi-operator", "somebodys")
