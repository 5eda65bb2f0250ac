# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""An API server of Kubernetes that answers reads from given objects over HTTP, with the errors of a real one."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import yaml

TOKEN = "a-token-of-a-test"


class Cluster:
    """What is there: by path a text, an object, or a list of objects. ``forbidden`` are beginnings of paths."""

    def __init__(self, answers: Mapping[str, Any], forbidden: tuple[str, ...] = ()) -> None:
        self.answers, self.forbidden = dict(answers), forbidden
        self.asked: list[str] = []

    def answer(self, path: str) -> tuple[int, bytes]:
        """Status and body, as the API words them."""
        if path.startswith(self.forbidden) and self.forbidden:
            return 403, json.dumps(
                {"kind": "Status", "message": f'User "dml" cannot read {path}', "code": 403}
            ).encode()
        if path not in self.answers:
            return 404, json.dumps({"kind": "Status", "message": "not found", "code": 404}).encode()
        found = self.answers[path]
        if isinstance(found, str):
            return 200, found.encode()
        return 200, json.dumps({"items": found} if isinstance(found, list) else found).encode()


@contextmanager
def served(cluster: Cluster, folder: Path) -> Iterator[str]:
    """The path of a kubeconfig for the cluster while it is served."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            cluster.asked.append(path)
            is_known = self.headers.get("authorization") == f"Bearer {TOKEN}"
            status, text = cluster.answer(path) if is_known else (401, b'{"message": "Unauthorized"}')
            self.send_response(status)
            self.send_header("content-length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_words: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield str(_kubeconfig(folder, server.server_address[1]))
        finally:
            server.shutdown()
            thread.join()


def _kubeconfig(folder: Path, port: int) -> Path:
    path = folder / "kubeconfig"
    told = {
        "clusters": [{"name": "one", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
        "users": [{"name": "dml", "user": {"token": TOKEN}}],
        "contexts": [{"name": "here", "context": {"cluster": "one", "user": "dml"}}],
        "current-context": "here",
    }
    path.write_text(yaml.safe_dump(told))
    return path
