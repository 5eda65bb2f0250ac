"""The command of an observation runs without a shell and without the vCenter account; a signal ends an observation."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from plugins.plugin_utils.interruption import ended_by_signal
from plugins.plugin_utils.trial_site import post, run_command

WRITE = "import json, os, sys; json.dump([sys.argv[1:], sys.stdin.read(), dict(os.environ)], open(sys.argv[1], 'w'))"


def test_command_receives_arguments_and_text_unchanged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VMWARE_PASSWORD", "secret")
    out, word = str(tmp_path / "out"), "$(touch /tmp/x); `id` *"
    assert run_command((sys.executable, "-c", WRITE, out, word), "{}\n", 60.0) == {"rc": 0}
    words, text, environment = json.loads(Path(out).read_text())
    assert (words, text) == ([out, word], "{}\n")
    assert (
        not [name for name in environment if name.startswith("VMWARE_")] and environment["PATH"] == os.environ["PATH"]
    )


@pytest.mark.parametrize(
    ("words", "seconds", "rc", "reason"),
    [
        ((sys.executable, "-c", "import sys; sys.exit('no route')"), 60.0, 1, "the command ended with 1: no route"),
        ((sys.executable, "-c", "import time; time.sleep(60)"), 0.5, None, "could not finish the command: it ran for"),
        (("/nowhere/notify",), 60.0, None, "could not run the command: No such file or directory"),
    ],
)
def test_failed_command_reports_the_reason(words: tuple[str, ...], seconds: float, rc: int | None, reason: str) -> None:
    result = run_command(words, "{}", seconds)
    assert result["rc"] == rc and reason in result["msg"] and result["msg"].startswith(words[0])


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_requests_the_end_of_an_observation(number: signal.Signals) -> None:
    requested: list[bool] = []
    former = signal.getsignal(number)
    with ended_by_signal(lambda: requested.append(True)):
        os.kill(os.getpid(), number)
        os.kill(os.getpid(), number)
    assert requested == [True, True] and signal.getsignal(number) == former


class Webhook(BaseHTTPRequestHandler):
    """Keeps what it receives, and answers with the status in its path."""

    received: list[tuple[str, bytes]]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.received.append((str(self.headers["Content-Type"]), body))
        self.send_response(int(self.path[1:]))
        self.end_headers()

    def log_message(self, *_arguments: object) -> None:
        """Write nothing."""


@pytest.mark.parametrize(("status", "reason"), [(204, ""), (500, "it answered with the HTTP status 500")])
def test_a_webhook_gets_the_text_as_json(status: int, reason: str) -> None:
    received: list[tuple[str, bytes]] = []
    with HTTPServer(("127.0.0.1", 0), type("Kept", (Webhook,), {"received": received})) as server:
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        result = post(f"http://127.0.0.1:{server.server_port}/{status}", '{"event": "start"}', 20.0)
        thread.join()
    assert received == [("application/json", b'{"event": "start"}')]
    assert result.get("msg", "") == "" if not reason else reason in result["msg"]


@pytest.mark.parametrize(
    ("url", "reason"),
    [("file:///etc/passwd", "it is not a URL of http or https"), ("http://127.0.0.1:1/", "could not post to it: ")],
)
def test_reports_why_a_webhook_cannot_be_reached(url: str, reason: str) -> None:
    assert reason in post(url, "{}", 5.0)["msg"]


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:1/hooks/s3cret",
        "http://user:s3cret@127.0.0.1:1/",
        "http://user:s3cret@127.0.0.1:port/",
        "http://[s3cret/hooks",
        "http://127.0.0.1:1/hooks?token=s3cret\n",
        "ftp://user:s3cret@127.0.0.1/s3cret",
    ],
)
def test_the_token_of_a_webhook_is_never_shown(url: str) -> None:
    message = post(url, "{}", 5.0)["msg"]
    assert "could not post to it: " in message and "s3cret" not in message


@pytest.mark.parametrize("answer", [b"HTTP/1.1 500 s3cret\r\n\r\n", b"s3cret s3cret\r\n\r\n"])
def test_does_not_show_the_answer_of_a_webhook(answer: bytes) -> None:
    with answering(lambda connection: connection.sendall(answer)) as port:
        message = post(f"http://127.0.0.1:{port}/s3cret", "{}", 20.0)["msg"]
    assert "could not post to it: it" in message and "s3cret" not in message


def test_a_webhook_that_answers_slowly_has_a_deadline() -> None:
    ended = threading.Event()

    def trickle(connection: socket.socket) -> None:
        while not ended.wait(0.1):
            connection.sendall(b"H")

    with answering(trickle) as port:
        began = time.monotonic()
        message = post(f"http://127.0.0.1:{port}/", "{}", 1.0)["msg"]
        lasted = time.monotonic() - began
        ended.set()
    assert "it did not answer within 1 s" in message and lasted < 10


@contextmanager
def answering(answer: Callable[[socket.socket], None]) -> Iterator[int]:
    """Answer one connection in a thread, and yield the port."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _address = server.accept()
            with connection, suppress(OSError):
                connection.recv(1 << 16)
                answer(connection)

        thread = threading.Thread(target=serve)
        thread.start()
        yield server.getsockname()[1]
        thread.join()


def test_timed_out_command_ends_with_its_children(tmp_path: Path) -> None:
    script = f"sleep 600 & echo $! > {tmp_path}/child; wait"

    result = run_command(("sh", "-c", script), "{}", 2.0)

    child = Path("/proc") / (tmp_path / "child").read_text().strip()
    deadline = time.monotonic() + 30.0
    while child.exists() and "Z" not in (child / "stat").read_text().split()[2] and time.monotonic() < deadline:
        time.sleep(0.05)
    assert "it ran for 2 s" in result["msg"]
    assert not child.exists() or (child / "stat").read_text().split()[2] == "Z"
