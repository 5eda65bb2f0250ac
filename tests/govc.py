"""VMware's client govc, with which tests read what our modules wrote."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from typing import Any

from lab.simulator import ROOT, Centre

GOVC = ROOT / ".cache" / "govc"
SECONDS = 60


def govc(centre: Centre, *words: str) -> Any:
    """Return the JSON answer of a command."""
    return json.loads(output(centre, *words))


def objects(centre: Centre, kind: str, *properties: str) -> dict[str, dict[str, Any]]:
    """Return properties of all objects of a kind, by the object's name: ``m`` is machines, ``h`` hosts."""
    text = output(centre, "collect", "-json", "-type", kind, "/", "name", *properties)
    changes = [{change["name"]: change["val"] for change in entry["changeSet"]} for entry in _documents(text)]
    return {change["name"]: change for change in changes}


def vibs(centre: Centre, host: str, *options: str) -> dict[str, str]:
    """Return the versions of a host's VIBs by name."""
    answer = govc(centre, "host.esxcli", "-json", "-host", host, "software", "vib", "list", *options)
    return {row["Name"][0]: row["Version"][0] for row in answer["values"] or []}


def _documents(text: str) -> Iterator[dict[str, Any]]:
    decoder = json.JSONDecoder()
    while text := text.strip():
        document, end = decoder.raw_decode(text)
        yield document
        text = text[end:]


def output(centre: Centre, *words: str) -> str:
    address = f"{centre.facts['hostname']}:{centre.facts['port']}"
    user, password = centre.environment["VMWARE_USER"], centre.environment["VMWARE_PASSWORD"]
    environment = {**os.environ, "GOVC_URL": f"https://{address}/sdk", "GOVC_USERNAME": user, "GOVC_PASSWORD": password}
    environment["GOVC_TLS_CA_CERTS"] = centre.facts["ca_file"]
    done = subprocess.run(
        [str(GOVC), *words], env=environment, capture_output=True, text=True, check=False, timeout=SECONDS
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
