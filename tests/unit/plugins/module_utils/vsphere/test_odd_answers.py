"""A server that misbehaves at any stage of connecting: one sentence with the right advice, in time."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from plugins.module_utils import runner
from plugins.module_utils.vsphere import properties, route, session
from plugins.module_utils.vsphere.sdk import vim
from tests.fakes.certificates import Authority
from tests.fakes.module import FakeModule
from tests.fakes.odd_server import DRIP, DROP, RIGHT, SILENT, OddServer, fault, http, soap

# A busy machine may take its time over what is answered; what is not answered is waited for no longer than need be.
TIMEOUT, SHORT = 60, 1
# Seconds: a call that hangs would hang indefinitely.
PATIENCE = 30

WAY = "check hostname, port and proxy"
STARTS = "its services are starting or overloaded: wait and run again"
NO_VCENTER = "check that hostname and port are those of a vCenter"
AGAIN = "run again"
NO_PERMISSION = '<object type="Folder">group-d1</object><privilegeId>System.View</privilegeId>'

WRONG: dict[str, tuple[bytes | str, str]] = {
    "silent": (SILENT, "did not answer within 1 s"),
    "drop": (DROP, "the connection broke"),
    "drip": (DRIP, "did not answer within"),
    "garbage": (b"\x00\x01\x02 no HTTP \r\n\r\n", "the connection broke"),
    "half a status line": (b"HTTP/1.", "the connection broke"),
    "half the headers": (b"HTTP/1.1 200 OK\r\nContent-Le", ""),
    "nothing in it": (http("200 OK"), "answer is not one of vSphere"),
    "a page": (http("200 OK", "<html>Welcome</html>", "Content-Type: text/html"), "answer is not one of vSphere"),
    "no XML": (http("200 OK", "&&& <<<"), "answer is not one of vSphere"),
    "404": (http("404 Not Found", "nothing here"), "404 Not Found"),
    "401": (http("401 Unauthorized"), "401 Unauthorized"),
    "302": (http("302 Found", "", "Location: https://other.example/"), "302 Found"),
    "502": (http("502 Bad Gateway"), "502 Bad Gateway"),
    "503": (http("503 Service Unavailable", "no healthy upstream"), "503 Service Unavailable"),
    "500 without a fault": (http("500 Internal Server Error", "<html>oops</html>"), ""),
    "malformed gzip": (http("200 OK", "plain", "Content-Encoding: gzip"), "answer is not one of vSphere"),
}
SOAP = ("content", "login", "view", "read")
FAULTS: dict[str, bytes] = {
    "a session that ended": fault("NotAuthenticated", "The session is not authenticated."),
    "a missing privilege": fault("NoPermission", "Permission to perform this operation was denied.", NO_PERMISSION),
    "an unknown fault": fault("VeryNewFault", "something new"),
    "a fault of the host": fault("HostCommunication", "Unable to communicate with the remote host"),
    "an answer of another type": http("200 OK", soap("<XResponse><returnval>a</returnval></XResponse>")),
    "a body without an answer": http("200 OK", soap(""), "Content-Type: text/xml"),
}


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def certificate(authority: Authority) -> Path:
    return authority.server("vcenter")


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(route, "TRICKLE", 2)


@pytest.fixture
def serve(certificate: Path) -> Iterator[Any]:
    """Return a function that starts a server with the given misbehaviour."""
    servers: list[OddServer] = []

    def start(odd: dict[str, bytes | str], pem: Path | None = certificate) -> OddServer:
        servers.append(OddServer(pem, odd))
        return servers[-1]

    yield start
    for server in servers:
        server.__exit__()


def connection(server: OddServer, authority: Authority, **more: Any) -> dict[str, Any]:
    account = {"username": "administrator", "password": "sécret-word"}
    timeout = SHORT if {SILENT, DRIP} & set(server.odd.values()) else TIMEOUT
    where = {"hostname": "127.0.0.1", "port": server.port, "timeout": timeout, "proxy": None}
    return {**account, **where, "validate_certs": True, "ca_path": str(authority.ca_path), **more}


def ended(params: dict[str, Any]) -> tuple[str, str]:
    """How a module ends that lists the hosts: its way, and its sentence."""
    module = FakeModule()

    def body() -> dict[str, Any]:
        with session.session(params) as opened:
            return {"hosts": properties.find_all(opened, vim.HostSystem, ["name"])}

    began = time.monotonic()
    runner.run(module, body)
    assert time.monotonic() - began < PATIENCE
    ((way, result),) = module.ended
    return way, str(result.get("msg", ""))


def assert_one_sentence(msg: str, *, advises: bool = True) -> None:
    assert "\n" not in msg and "Traceback" not in msg and "(vmodl." not in msg and "(vim." not in msg, msg
    assert msg.count(": could not ") == 1, msg
    assert "sécret-word" not in msg and len(msg) < 400, msg
    assert msg.isprintable() and ("; " in msg or not advises), msg


def test_a_correct_server_lists_its_hosts(serve: Any, authority: Authority) -> None:
    server = serve({})
    assert ended(connection(server, authority)) == ("exit", "")
    assert server.requests[-1] == "logout"


@pytest.mark.parametrize("answer", [SILENT, DROP, b"SSH-2.0-OpenSSH_9.6\r\n", http("400 Bad Request")])
@pytest.mark.parametrize("stage", ["accept", "handshake"])
def test_reports_a_server_without_tls(serve: Any, authority: Authority, stage: str, answer: bytes | str) -> None:
    way, msg = ended(connection(serve({stage: answer}), authority))
    assert way == "fail"
    assert_one_sentence(msg)
    assert "could not connect" in msg and WAY in msg
    assert ("did not answer within 1 s" in msg) == (answer == SILENT)


@pytest.mark.parametrize("stage", ["versions", *SOAP])
@pytest.mark.parametrize("name", WRONG)
def test_reports_an_unexpected_answer(serve: Any, authority: Authority, name: str, stage: str) -> None:
    answer, reported = WRONG[name]
    way, msg = ended(connection(serve({stage: answer}), authority))
    assert way == "fail"
    assert_one_sentence(msg)
    assert reported in msg
    if name == "503":
        assert STARTS in msg
    if name in ("404", "302", "a page") and stage == "versions":
        assert NO_VCENTER in msg


@pytest.mark.parametrize(
    ("name", "stage"),
    # A list of hosts may be empty, and then its answer is.
    [(name, stage) for name in FAULTS for stage in SOAP if stage != "read" or FAULTS[name].startswith(b"HTTP/1.1 500")],
)
def test_reports_a_fault_of_the_server(serve: Any, authority: Authority, name: str, stage: str) -> None:
    way, msg = ended(connection(serve({stage: FAULTS[name]}), authority))
    assert way == "fail"
    # An error behind the server is in the server's words, and the collection has no better remedy.
    assert_one_sentence(msg, advises="fault of the host" not in name and "unknown" not in name)
    if name == "a session that ended":
        assert AGAIN in msg
    if name == "a missing privilege":
        assert "System.View" in msg and "group-d1" in msg and "give administrator that privilege" in msg


@pytest.mark.parametrize("answer", [SILENT, DROP, http("503 Service Unavailable"), fault("NotAuthenticated"), b"\x00"])
def test_a_logout_that_fails_changes_nothing(serve: Any, authority: Authority, answer: bytes | str) -> None:
    assert ended(connection(serve({"logout": answer}), authority)) == ("exit", "")


@pytest.mark.parametrize("answer", [SILENT, DROP, http("503 Service Unavailable"), fault("ManagedObjectNotFound")])
def test_failed_cleanup_does_not_hide_the_first_error(serve: Any, authority: Authority, answer: bytes | str) -> None:
    server = serve({"read": fault("HostCommunication", "the first error"), "destroy": answer})
    way, msg = ended(connection(server, authority))
    assert way == "fail" and "the first error" in msg
    assert_one_sentence(msg, advises=False)


@pytest.mark.parametrize(
    "versions",
    [
        RIGHT["versions"].replace('version="1.0"><', 'version="7.0"><'),
        RIGHT["versions"].replace("8.0.3.0", "99.0").replace("7.0", "98.0"),
        "<namespaces/>",
        RIGHT["versions"][:120],
        "<!DOCTYPE a [<!ENTITY b 'c'>]><namespaces version='1.0'>&b;</namespaces>",
    ],
)
def test_reports_unknown_versions(serve: Any, authority: Authority, versions: str) -> None:
    way, msg = ended(connection(serve({"versions": http("200 OK", versions)}), authority))
    assert way == "fail"
    assert_one_sentence(msg)


def test_a_version_list_without_an_end_is_cut(serve: Any, authority: Authority) -> None:
    endless = http("200 OK", "<namespaces>" + "x" * 3_000_000)
    way, msg = ended(connection(serve({"versions": endless}), authority))
    assert way == "fail"
    assert_one_sentence(msg)
