"""Writes the bill of materials as CycloneDX JSON: ``python -m tools.sbom FILE``.

It lists what the collection needs at run time, with lower bounds, and the exact versions with which it is developed and
tested: the Python packages of constraints.txt and the Go modules of the go.sum files. The same checkout gives the same
bytes.
"""

from __future__ import annotations

import json
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parent.parent
GO_SUMS = ("lab/govc/go.sum", "lab/kubernetes/go.sum", "lab/kubernetes/trainer/go.sum", "lab/vcenter/go.sum")
Component = dict[str, Any]


def document(root: Path = ROOT) -> dict[str, Any]:
    """Return the bill of materials."""
    galaxy = yaml.safe_load((root / "galaxy.yml").read_text())
    parts = sorted([*_runtime(root, galaxy), *_python(root), *_go(root)], key=lambda part: str(part["bom-ref"]))
    text = json.dumps([galaxy["version"], parts])
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, text)}",
        "version": 1,
        "metadata": {"component": _collection(galaxy)},
        "components": parts,
        "dependencies": [
            {
                "ref": _collection(galaxy)["bom-ref"],
                "dependsOn": [part["bom-ref"] for part in parts if part["scope"] == "required"],
            }
        ],
    }


def text(root: Path = ROOT) -> str:
    """Return the bill of materials as a text."""
    return json.dumps(document(root), indent=2) + "\n"


def _collection(galaxy: dict[str, Any]) -> Component:
    name, version = f"{galaxy['namespace']}.{galaxy['name']}", str(galaxy["version"])
    return {
        "type": "library",
        "bom-ref": f"pkg:generic/{name}@{version}",
        "name": name,
        "version": version,
        "description": galaxy["description"],
        "purl": f"pkg:generic/{name}@{version}",
        "licenses": [{"license": {"id": each}} for each in galaxy["license"]],
    }


def _runtime(root: Path, galaxy: dict[str, Any]) -> Iterator[Component]:
    """Yield what users install: their versions are theirs, so that only the lower bound is known."""
    for each in _requirements(root / "requirements.txt"):
        yield _part(f"pkg:pypi/{each.name.lower()}", each.name, "", "required", range=str(each.specifier))
    for name, bound in galaxy["dependencies"].items():
        yield _part(f"pkg:generic/{name}", name, "", "required", range=bound, kind="Ansible collection")


def _python(root: Path) -> Iterator[Component]:
    for each in _requirements(root / "constraints.txt"):
        (version,) = [one.version for one in each.specifier]
        marker = {"marker": str(each.marker)} if each.marker else {}
        yield _part(f"pkg:pypi/{each.name.lower()}@{version}", each.name, version, "excluded", **marker)


def _go(root: Path) -> Iterator[Component]:
    """Yield the modules of which go.sum has the content; a module with only its go.mod is not compiled."""
    lines = sorted({line for path in GO_SUMS for line in (root / path).read_text().splitlines()})
    for name, version, digest in map(str.split, lines):
        if not version.endswith("/go.mod"):
            yield _part(f"pkg:golang/{name.lower()}@{version}", name, version, "excluded", sum=digest)


def _part(ref: str, name: str, version: str, scope: str, **properties: str) -> Component:
    known = [{"name": f"dml:{key}", "value": value} for key, value in properties.items()]
    return {
        "type": "library",
        "bom-ref": ref,
        "name": name,
        **({"version": version} if version else {}),
        "scope": scope,
        "purl": ref,
        **({"properties": known} if known else {}),
    }


def _requirements(path: Path) -> list[Requirement]:
    lines = (line.split("#")[0].strip() for line in path.read_text().splitlines())
    return [Requirement(line) for line in lines if line]


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(text())
