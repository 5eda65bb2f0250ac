# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The client of the simulator's control interface."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from lab.simulator import Control


class Answering(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'{"RelocateVM_Task": 1}')

    def log_message(self, *_words: object) -> None:
        return


def test_a_proxy_of_the_environment_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with HTTPServer(("127.0.0.1", 0), Answering) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
            assert Control(f"http://127.0.0.1:{server.server_port}", 10).calls() == {"RelocateVM_Task": 1}
        finally:
            server.shutdown()
