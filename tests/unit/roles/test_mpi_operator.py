"""The role mpi_operator, held against the manifest that the operator's project publishes."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from plugins.module_utils.kubernetes.preflight import ClusterObjects, MovedJob, findings
from tests import kubernetes_schema as schema

ROLE = Path(__file__).parents[3] / "roles" / "mpi_operator"
DEFAULTS = yaml.safe_load((ROLE / "defaults" / "main.yml").read_text())
VARS = yaml.safe_load((ROLE / "vars" / "main.yml").read_text())
MANIFEST = schema.documents("kubeflow.org/v2beta1 MPIJob")


def the(kind: str, name: str = "mpi-operator") -> dict[str, Any]:
    (found,) = (one for one in MANIFEST if one["kind"] == kind and one["metadata"]["name"] == name)
    return dict(found)


def test_role_pins_the_manifest_of_the_tests() -> None:
    known = next(entry for entry in schema.INDEX if entry["file"] == schema.OPERATORS["kubeflow.org/v2beta1 MPIJob"])
    assert DEFAULTS["mpi_operator_sha256"] == known["sha256"]
    version = re.search(r"v\d+\.\d+\.\d+", known["source"])
    assert version and f"/{version[0]}/deploy/v2beta1/mpi-operator.yaml" in DEFAULTS["mpi_operator_url"]


def test_grants_the_operator_the_right_its_manifest_lacks() -> None:
    role, binding = VARS["__mpi_operator_rights"]
    rules = [rule for rule in the("ClusterRole")["rules"] if "jobs/status" in rule["resources"]]
    assert not {"update", "*"} & {verb for rule in rules for verb in rule["verbs"]}
    assert role["rules"] == [{"apiGroups": ["batch"], "resources": ["jobs/status"], "verbs": ["update", "patch"]}]
    account = the("ServiceAccount")["metadata"]
    assert binding["subjects"] == [{"kind": "ServiceAccount", **{key: account[key] for key in ("name", "namespace")}}]
    assert binding["roleRef"]["name"] == role["metadata"]["name"]


@pytest.mark.parametrize("release", schema.RELEASES)
def test_kubernetes_knows_the_fields_that_the_role_adds(release: str) -> None:
    assert [schema.kubernetes_faults(one, release) for one in VARS["__mpi_operator_rights"]] == [[], []]


def test_finds_the_operator_by_its_deployment_label() -> None:
    assert the("Deployment")["metadata"]["labels"]["app"] == "mpi-operator"
    assert "label_selectors: [app=mpi-operator]" in (ROLE / "tasks" / "prove.yml").read_text()


def test_finds_the_operator_image_in_one_manifest_line() -> None:
    text = schema.content(schema.OPERATORS["kubeflow.org/v2beta1 MPIJob"]).decode()
    assert len(re.findall(VARS["__mpi_operator_own_image"], text)) == 1


def test_configuration_of_the_rdma_plugin_passes_preflight() -> None:
    vendors = DEFAULTS["mpi_operator_rdma_vendors"]
    result = json.dumps({"configList": [{"resourceName": "hca", "selectors": {"vendors": vendors}}]})
    config = {"metadata": {"name": "rdma-devices"}, "data": {"config.json": result}}
    assert findings(ClusterObjects("v1.35.4", [], config_maps=[config]), MovedJob([], 10, 300.0, has_pvrdma=True)) == []
