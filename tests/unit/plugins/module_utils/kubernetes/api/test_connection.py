"""Reads from an API server that is silent, disconnects or is another server: one sentence each, within a time."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from plugins.module_utils.errors import CollectionError, Failed, Refused, Unreachable
from plugins.module_utils.kubernetes.api import connection

CONFIG: dict[str, Any] = {
    "current-context": "here",
    "contexts": [{"name": "here", "context": {"cluster": "one", "user": "me"}}],
    "clusters": [{"name": "one", "cluster": {"server": "http://127.0.0.1:1"}}],
    "users": [{"name": "me", "user": {}}],
}


@contextmanager
def answering(answer: bytes, drips: bool = False) -> Iterator[str]:
    """Yield the address of a server that sends one answer to all requests, then drips or ends; empty: silent."""
    held: list[socket.socket] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    peer, _address = server.accept()
                except OSError:
                    return
                held.append(peer)
                if answer:
                    peer.recv(65536)
                    peer.sendall(answer)
                    if drips:
                        drip(peer)
                    with suppress(OSError):
                        peer.shutdown(socket.SHUT_RDWR)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.getsockname()[1]}"
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join()
            for peer in held:
                peer.close()


def drip(peer: socket.socket) -> None:
    """Send byte by byte until the client disconnects."""
    pause = threading.Event()
    with suppress(OSError):
        while not pause.wait(0.02):
            peer.sendall(b"x")


def connected(folder: Path, address: str) -> connection.Api:
    file = folder / "kubeconfig"
    file.write_text(json.dumps({**CONFIG, "clusters": [{"name": "one", "cluster": {"server": address}}]}))
    return connection.Api(str(file), None)


def http(body: str, status: str = "200 OK", longer: int = 0) -> bytes:
    length = len(body.encode()) + longer
    return f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}".encode()


def test_gives_up_on_a_server_that_never_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "TIMEOUT_SECONDS", 1)
    with answering(b"") as address:
        began = time.monotonic()
        with pytest.raises(Unreachable, match=r"could not read /api/v1/nodes: .*timed out"):
            connected(tmp_path, address).get("/api/v1/nodes")
    # Each request is repeated once; the rest is a margin for a loaded machine.
    assert time.monotonic() - began < 20 * (1 + connection.REPEATS)


@pytest.mark.parametrize(
    "begin",
    [
        b"HTTP/1.1 200 OK\r\nX-Slow: ",
        http("{", longer=10**6),
        http("{", "403 Forbidden", longer=10**6),
        b'HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{"kind": "',
    ],
    ids=["in the headers", "in the body", "in a refusal", "in a body without a length"],
)
def test_cuts_off_an_answer_that_is_too_slow(begin: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "WHOLE_SECONDS", 1)
    with answering(begin, drips=True) as address:
        began = time.monotonic()
        with pytest.raises(Unreachable, match=r"could not read /api/v1/nodes: it did not answer within 1 s"):
            connected(tmp_path, address).get("/api/v1/nodes")
    assert time.monotonic() - began < 20


def test_a_timeout_does_not_shorten_the_next_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "WHOLE_SECONDS", 1)
    with answering(http("{", longer=10**6), drips=True) as address:
        server = connected(tmp_path, address)
        for _question in range(2):
            with pytest.raises(Unreachable, match="within 1 s"):
                server.get("/api/v1/nodes")
    with answering(http("{}")) as address:
        server = connected(tmp_path, address)
        assert [server.get("/api/v1/nodes") for _question in range(2)] == [{}, {}]


@pytest.mark.parametrize(
    ("answer", "kind", "words"),
    [
        (http("null"), Failed, "not a Kubernetes object"),
        (http("[1]"), Failed, "not a Kubernetes object"),
        (http("<html>"), Failed, "not a Kubernetes object"),
        (http("[" * 99999), Failed, "not a Kubernetes object"),
        (http('{"items": {"a": 1}}'), Failed, "not a list of objects"),
        (http('{"items": ["a"]}'), Failed, "not a list of objects"),
        (http("<html>", "503 Service Unavailable"), Failed, "Service Unavailable"),
        (
            http('{"message": "nodes is forbidden"}', "403 Forbidden"),
            Failed,
            "nodes is forbidden; check the permissions",
        ),
        (http("{}", longer=9), Unreachable, "could not read /api/v1/nodes: "),
        (b"SSH-2.0-OpenSSH_9.2\r\n", Unreachable, "could not read /api/v1/nodes: "),
    ],
)
def test_reports_a_malformed_answer_on_a_single_line(
    answer: bytes, kind: type[CollectionError], words: str, tmp_path: Path
) -> None:
    with answering(answer) as address, pytest.raises(kind) as raised:
        connected(tmp_path, address).items("/api/v1/nodes")
    assert words in str(raised.value) and "\n" not in str(raised.value)


def test_a_missing_object_returns_none(tmp_path: Path) -> None:
    with answering(http("{}", "404 Not Found")) as address:
        server = connected(tmp_path, address)
        assert (server.get("/api/v1/nodes"), server.items("/api/v1/nodes")) == (None, [])


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{oops",
        "a: b: c",
        json.dumps({**CONFIG, "contexts": None}),
        json.dumps({**CONFIG, "contexts": [{"name": "here", "context": None}]}),
        json.dumps({**CONFIG, "clusters": [{"name": "one", "cluster": []}]}),
        json.dumps(
            {**CONFIG, "clusters": [{"name": "one", "cluster": {"certificate-authority-data": "%", "server": "x"}}]}
        ),
    ],
)
def test_refuses_a_malformed_kubeconfig_on_a_single_line(text: str, tmp_path: Path) -> None:
    file = tmp_path / "kubeconfig"
    file.write_text(text)
    with pytest.raises(CollectionError) as raised:
        connection.Api(str(file), None).get("/api/v1/nodes")
    assert "could not read" in str(raised.value) and "\n" not in str(raised.value)


def test_a_kubeconfig_that_is_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="read how to reach Kubernetes"):
        connection.Api(str(tmp_path), None)
