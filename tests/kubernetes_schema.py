"""The schemas of the MPI Operator, of Trainer and of Kubernetes, read strictly: an unknown field is a fault."""

from __future__ import annotations

import lzma
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import yaml

FOLDER = Path(__file__).parent / "fixtures" / "kubernetes"
INDEX = yaml.safe_load((FOLDER / "index.yml").read_text())
OPERATORS = {
    "kubeflow.org/v2beta1 MPIJob": "mpi-operator-0.8.2.yaml.xz",
    "trainer.kubeflow.org/v1alpha1 TrainJob": "trainer-2.3.0-trainjobs.yaml.xz",
    "trainer.kubeflow.org/v1alpha1 TrainingRuntime": "trainer-2.3.0-trainingruntimes.yaml.xz",
}
# The oldest whose schema there is, the one of the lab, and the newest.
RELEASES = ("1.25", "1.35", "1.37")
_INT_OR_STRING = {"anyOf": [{"type": "integer"}, {"type": "string"}]}


def content(name: str) -> bytes:
    """Return a manifest as its project publishes it."""
    return lzma.decompress((FOLDER / name).read_bytes())


@cache
def documents(kind: str) -> list[dict[str, Any]]:
    """Return the objects of the operator's manifest."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return [one for one in yaml.load_all(content(OPERATORS[kind]), loader) if one]


def faults(manifest: dict[str, Any]) -> list[str]:
    """Return what the operator's schema says against a job or its runtime."""
    validator = jsonschema.Draft202012Validator(_schema(f"{manifest['apiVersion']} {manifest['kind']}"))
    return [f"{'.'.join(map(str, one.absolute_path))}: {one.message[:200]}" for one in validator.iter_errors(manifest)]


def kubernetes_faults(manifest: dict[str, Any], release: str) -> list[str]:
    """Return what the schema of a release of Kubernetes says against an object."""
    try:
        kubernetes_validate.validate(manifest, release, strict=True)
    except kubernetes_validate.ValidationError as error:
        return [f"{'.'.join(map(str, error.path))}: {error.message[:200]}"]
    return []


def pod_of(template: dict[str, Any]) -> dict[str, Any]:
    """Return a pod as Kubernetes makes it from a template."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "one", **template.get("metadata", {})},
        **{key: value for key, value in template.items() if key != "metadata"},
    }


@cache
def _schema(kind: str) -> dict[str, Any]:
    api, _blank, name = kind.rpartition("/")[2].partition(" ")
    definition = next(one for one in documents(kind) if one["kind"] == "CustomResourceDefinition")["spec"]
    version = next(one for one in definition["versions"] if one["name"] == api)
    schema: dict[str, Any] = _strict(version["schema"]["openAPIV3Schema"])
    schema["properties"].update(apiVersion={"type": "string"}, kind={"const": name}, metadata=_metadata())
    return schema


def _metadata() -> dict[str, Any]:
    texts = {"type": "object", "additionalProperties": {"type": "string"}}
    known = {"name": {"type": "string"}, "namespace": {"type": "string"}, "labels": texts, "annotations": texts}
    return {"type": "object", "properties": known, "additionalProperties": False, "required": ["name", "namespace"]}


def _strict(schema: Any) -> Any:
    """Return an OpenAPI schema as a JSON Schema that refuses unknown fields."""
    if not isinstance(schema, dict):
        return schema
    if schema.get("x-kubernetes-int-or-string"):
        return _INT_OR_STRING
    plain = ("type", "enum", "required", "minimum", "maximum", "pattern", "format", "minLength", "maxLength")
    found = {key: value for key, value in schema.items() if key in plain}
    if "properties" in schema:
        found["properties"] = {key: _strict(value) for key, value in schema["properties"].items()}
        found["additionalProperties"] = bool(schema.get("x-kubernetes-preserve-unknown-fields"))
    if "additionalProperties" in schema:
        found["additionalProperties"] = _strict(schema["additionalProperties"])
    if "items" in schema:
        found["items"] = _strict(schema["items"])
    return found
