"""An API server of Kubernetes over HTTP, for tests: it answers reads from given objects, and keeps what is applied.

An applied object is merged into the existing one, as server-side apply does for one field manager; a dry run answers
the same and keeps nothing. Further checks of the real server are missing: the lab's Kubernetes is the real one.
"""

from __future__ import annotations

import copy
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import yaml

TOKEN = "a-token-of-a-test"
MADE = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
NAMESPACE = "/api/v1/namespaces/NAME"
VERBS = ["create", "delete", "get", "list", "patch", "update", "watch"]
Answer = tuple[int, Any]


def _kind(name: str, kind: str, namespaced: bool = True) -> dict[str, Any]:
    return {"name": name, "singularName": kind.lower(), "kind": kind, "namespaced": namespaced, "verbs": VERBS}


CORE = [_kind("pods", "Pod"), _kind("secrets", "Secret"), _kind("configmaps", "ConfigMap"), _kind("events", "Event")]
CORE += [_kind("nodes", "Node", namespaced=False), _kind("namespaces", "Namespace", namespaced=False)]
GROUPS = {"/apis/kubeflow.org/v2beta1": [_kind("mpijobs", "MPIJob")]}
GROUPS["/apis/trainer.kubeflow.org/v1alpha1"] = [
    _kind("trainjobs", "TrainJob"),
    _kind("trainingruntimes", "TrainingRuntime"),
]
GROUPS["/apis/kueue.x-k8s.io/v1beta2"] = [
    _kind("clusterqueues", "ClusterQueue", namespaced=False),
    _kind("localqueues", "LocalQueue"),
    _kind("workloads", "Workload"),
]


class Cluster:
    """The content: by path a text, an object, a list of objects, or the code and message of an error.

    ``forbidden`` are beginnings of paths.

    ``written`` are the paths of all writes that were kept; ``operator`` is called after each of them.
    """

    def __init__(self, answers: Mapping[str, Any], forbidden: tuple[str, ...] = ()) -> None:
        self.answers, self.forbidden = {**_discovery(), **answers}, forbidden
        self.requests: list[str] = []
        self.written: list[str] = []
        self.operator: Callable[[Cluster], None] = lambda _cluster: None

    def get(self, path: str) -> Answer:
        """Status and body, as the API words them."""
        self.requests.append(path)
        if self.forbidden and path.startswith(self.forbidden):
            return _status(403, f'User "dml" cannot read {path}')
        found = self._object(path)
        if isinstance(found, tuple):
            return _status(*found)
        if found is None and not self._is_namespace(path):
            return _status(404, "not found")
        found = {} if found is None else found
        version = path.partition("/namespaces/")[0].split("/")
        listed = {"kind": "List", "apiVersion": "/".join(version[2:4] if version[1] == "apis" else version[2:3])}
        return 200, {**listed, "items": found} if isinstance(found, list) else found

    def refusal(self, path: str, container: str) -> Answer | None:
        """Return the refusal of a log of a pod with several containers, none of which was named."""
        pod = self._object(path.removesuffix("/log")) if path.endswith("/log") else None
        names = [each["name"] for each in pod["spec"].get("containers", ())] if pod else []
        if len(names) < 2 or container:
            return None
        return _status(400, f"a container name must be specified for pod {path}, choose one of: {names}")

    def _object(self, path: str) -> Any:
        """Return what is at a path, also an object of a list; None without one."""
        folder, _slash, name = path.rpartition("/")
        listed = self.answers.get(folder)
        named = (one for one in listed if one["metadata"]["name"] == name) if isinstance(listed, list) else ()
        return self.answers.get(path, next(iter(named), None))

    def _keep(self, path: str, new: dict[str, Any]) -> None:
        folder, old = path.rpartition("/")[0], self._object(path)
        if path not in self.answers and old is not None:
            self.answers[folder] = [new if one is old else one for one in self.answers[folder]]
        else:
            self.answers[path] = new

    def _is_namespace(self, path: str) -> bool:
        """A namespace is there if anything is in it."""
        return path.count("/") == NAMESPACE.count("/") and any(one.startswith(f"{path}/") for one in self.answers)

    def apply(self, path: str, given: dict[str, Any], dry: bool) -> Answer:
        """Merge an object into what is there."""
        made = {"metadata": {"uid": f"uid-of-{path}", "resourceVersion": "0", "creationTimestamp": MADE}}
        old = self._object(path) or made
        new = merged(old, given)
        if new != old and not dry:
            new["metadata"]["resourceVersion"] = str(len(self.written) + 1)
            self._keep(path, new)
            self.written.append(path)
            self.operator(self)
        return 200, new

    def delete(self, path: str, dry: bool, body: bytes) -> Answer:
        """Remove an object, but no TrainJob in the foreground: Trainer makes its JobSet again."""
        if path not in self.answers:
            return _status(404, "not found")
        is_kept = "/trainjobs/" in path and b"Foreground" in body
        found = self.answers[path] if dry or is_kept else self.answers.pop(path)
        if not dry:
            self.written.append(path)
            self.operator(self)
        return 200, found


@contextmanager
def served(cluster: Cluster, folder: Path) -> Iterator[str]:
    """The path of a kubeconfig for the cluster while it is served."""
    handler = type("Handler", (_Handler,), {"cluster": cluster})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield str(_kubeconfig(folder, server.server_address[1]))
        finally:
            server.shutdown()
            thread.join()


class _Handler(BaseHTTPRequestHandler):
    cluster: Cluster

    def do_GET(self) -> None:
        container = parse_qs(urlsplit(self.path).query).get("container", [""])[0]
        self._answer(lambda path, _dry, _body: self.cluster.refusal(path, container) or self.cluster.get(path))

    def do_PATCH(self) -> None:
        self._answer(lambda path, dry, body: self.cluster.apply(path, yaml.safe_load(body), dry))

    def do_DELETE(self) -> None:
        self._answer(self.cluster.delete)

    def _answer(self, make: Callable[[str, bool, bytes], Answer]) -> None:
        where = urlsplit(self.path)
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        is_known = self.headers.get("authorization") == f"Bearer {TOKEN}"
        status, reported = (
            make(where.path, "dryRun" in parse_qs(where.query), body) if is_known else _status(401, "who?")
        )
        text = (reported if isinstance(reported, str) else json.dumps(reported)).encode()
        self.send_response(status)
        self.send_header("content-type", "text/plain" if isinstance(reported, str) else "application/json")
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_words: object) -> None:
        """Say nothing."""


def _discovery() -> dict[str, Any]:
    """Return what a client asks first: the version, and which kinds of objects there are."""
    found: dict[str, Any] = {
        "/version": {"major": "1", "minor": "35", "gitVersion": "v1.35.4"},
        "/api": {"kind": "APIVersions", "versions": ["v1"]},
        "/api/v1": {"kind": "APIResourceList", "groupVersion": "v1", "resources": CORE},
    }
    versions: dict[str, list[dict[str, str]]] = {}
    for path, resources in GROUPS.items():
        _empty, _apis, group, version = path.split("/")
        found[path] = {"kind": "APIResourceList", "groupVersion": f"{group}/{version}", "resources": resources}
        versions.setdefault(group, []).append({"groupVersion": f"{group}/{version}", "version": version})
    groups = [
        {"name": group, "versions": reported, "preferredVersion": reported[0]} for group, reported in versions.items()
    ]
    return {**found, "/apis": {"kind": "APIGroupList", "groups": groups}}


def merged(old: Any, given: Any) -> Any:
    """Return an object with other fields in it, as after a JSON merge patch: those that are None are removed."""
    if not isinstance(given, dict):
        return copy.deepcopy(given)
    old = old if isinstance(old, dict) else {}
    new = {**copy.deepcopy(old), **{key: merged(old.get(key), value) for key, value in given.items()}}
    return {key: value for key, value in new.items() if value is not None}


def _status(code: int, message: str) -> Answer:
    return code, {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message, "code": code}


def _kubeconfig(folder: Path, port: int) -> Path:
    path = folder / "kubeconfig"
    reported = {
        "clusters": [{"name": "one", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
        "users": [{"name": "dml", "user": {"token": TOKEN}}],
        "contexts": [{"name": "here", "context": {"cluster": "one", "user": "dml"}}],
        "current-context": "here",
    }
    path.write_text(yaml.safe_dump(reported))
    return path
