"""The Kubernetes cluster of one lab: starts it, applies the lab's manifests, and runs kubectl."""

from __future__ import annotations

import json
import os
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from http import HTTPStatus
from pathlib import Path
from typing import Any

from lab.kubernetes import binaries, control
from lab.kubernetes.built import Built
from lab.kubernetes.layout import Layout
from lab.kubernetes.pki import Authority
from lab.nodes.programs import LabError

MANIFESTS = Path(__file__).parent / "manifests"
BUILT, ADMIN = "built.json", "admin.conf"
READY_SECONDS, ANSWER_SECONDS = 120, 10
LOOK_SECONDS = 0.2


class Cluster:
    """A cluster with its files in one folder; nodes become members when they boot."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.kubeconfig = folder / ADMIN

    def prepare(self, built: Built) -> None:
        """Make the certificate authority, and record the build results for other processes of the lab."""
        Authority(self.folder).create()
        built.write(self.folder / BUILT)

    @property
    def built(self) -> Built:
        """Return the recorded build results."""
        return Built.read(self.folder / BUILT)

    def start(self, lab: str, subnet: str, operator: bool) -> None:
        """Start the control plane in the lab's namespace, and apply the manifests."""
        where = Layout.of(subnet)
        control.connect(lab, where)
        control.prepare(self.folder, where)
        programs, running = control.programs(self.built.programs, self.folder, where), control.Control(lab, self.folder)
        for program in programs:
            if program.first:
                running.start(program)
        running.until(self.answers, "the API server answers")
        for program in programs:
            if not program.first:
                running.start(program)
        for manifest in [MANIFESTS / "access.yaml", MANIFESTS / "devices.yaml", *self._operators(operator)]:
            self.kubectl("apply", "--server-side", "--filename", str(manifest))
        running.until(self._has_accounts, "pods can be made")

    def answers(self) -> bool:
        """Return whether the API server is ready."""
        try:
            return self._read("/readyz") == b"ok"
        except OSError:
            return False

    def kubectl(self, *arguments: str, text: str | None = None) -> str:
        """Run kubectl and return its output, or raise LabError if it fails."""
        done = self._run(*arguments, text=text)
        if done.returncode:
            raise LabError(f"kubectl {' '.join(arguments)[:200]} failed: {done.stderr.strip()[-800:]}")
        return done.stdout

    def get(self, *arguments: str) -> dict[str, Any]:
        """Return an object, or a list of objects."""
        return dict(json.loads(self.kubectl("get", "--output", "json", *arguments)))

    def wait_for(self, names: Sequence[str], seconds: float = READY_SECONDS) -> None:
        """Return when the given nodes are ready and offer their devices."""
        deadline = time.monotonic() + seconds
        while missing := sorted({*names} - self.ready()):
            if time.monotonic() > deadline:
                raise LabError(f"Nodes not ready within {seconds} s: {', '.join(missing)}. See kubectl describe nodes.")
            time.sleep(LOOK_SECONDS)

    def ready(self) -> set[str]:
        """Return the nodes that are ready and offer their devices."""
        nodes = json.loads(self._read("/api/v1/nodes"))["items"]
        return {node["metadata"]["name"] for node in nodes if _is_ready(node)}

    @property
    def command(self) -> list[str]:
        """Return the kubectl command line for the cluster's administrator."""
        return [str(self.built.programs / "kubectl"), f"--kubeconfig={self.kubeconfig}"]

    @property
    def environment(self) -> dict[str, str]:
        """Return the variables for kubectl and the kubernetes.core collection, or {} if there is no cluster."""
        if not self.kubeconfig.exists():
            return {}
        config = str(self.kubeconfig)
        variables = {"KUBECONFIG": config, "K8S_AUTH_KUBECONFIG": config, "LAB_KUBECTL": self.command[0]}
        # By default, kubectl keeps its discovery cache in the home folder, where it outlives the lab.
        return {**variables, "KUBECACHEDIR": str(self.folder / "kubectl")}

    def _run(self, *arguments: str, text: str | None = None) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "NO_PROXY": "*", **self.environment}
        return subprocess.run(
            [*self.command, *arguments], input=text or "", capture_output=True, text=True, env=environment, check=False
        )

    def _operators(self, desired: bool) -> list[Path]:
        return [self.built.programs / binaries.MANIFEST] if desired else []

    def _has_accounts(self) -> bool:
        try:
            return bool(self._read("/api/v1/namespaces/default/serviceaccounts/default"))
        except urllib.error.HTTPError as error:
            if error.code == HTTPStatus.NOT_FOUND:
                return False
            raise

    def _read(self, path: str) -> bytes:
        """Return an answer of the API server: called many times a second, this is much cheaper than kubectl."""
        server = json.loads(self.kubeconfig.read_text())["clusters"][0]["cluster"]["server"]
        context = ssl.create_default_context(cafile=self.folder / "ca.crt")
        context.load_cert_chain(self.folder / f"{control.SELF}.crt", self.folder / f"{control.SELF}.key")
        direct = urllib.request.build_opener(
            urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context)
        )
        with direct.open(f"{server}{path}", timeout=ANSWER_SECONDS) as answer:
            return bytes(answer.read())


def _is_ready(node: dict[str, Any]) -> bool:
    status = node["status"]
    ready = any(entry["type"] == "Ready" and entry["status"] == "True" for entry in status.get("conditions", ()))
    return ready and status["allocatable"].get("nvidia.com/gpu", "0") != "0"
