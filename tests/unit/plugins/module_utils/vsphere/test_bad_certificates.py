"""Bad certificates over SOAP and REST, directly and through a proxy: refused before a password is sent, with advice."""

from __future__ import annotations

import hashlib
import ssl
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from plugins.module_utils.errors import CollectionError, Refused
from plugins.module_utils.vsphere import rest, session
from tests.fakes.certificates import Authority
from tests.fakes.odd_server import OddServer, http
from tests.fakes.proxy import Proxy

# Each certificate, the reported error, and the remedy.
BAD = {
    "expired": ("certificate has expired", "renew it, or pin it"),
    "early": ("certificate is not yet valid", "compare the clocks"),
    "elsewhere": ("IP address mismatch", "connect with an address in the certificate"),
    "unknown": ("unable to get local issuer certificate", "name its authority in ca_path"),
}
Certificates = dict[str, Path]


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def certificates(authority: Authority, tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return {
        "good": authority.server("good"),
        "expired": authority.server("expired", begins=-20, ends=-2),
        "early": authority.server("early", begins=2),
        "elsewhere": authority.server("elsewhere", address="192.0.2.1"),
        "unknown": Authority(tmp_path_factory.mktemp("others"), "others").server("unknown"),
    }


@pytest.fixture(params=[False, True], ids=["direct", "proxy"])
def proxy(request: pytest.FixtureRequest) -> Iterator[Proxy | None]:
    if not request.param:
        yield None
        return
    with Proxy() as running:
        yield running


@pytest.fixture(params=["soap", "rest"])
def connect(request: pytest.FixtureRequest, authority: Authority, proxy: Proxy | None) -> Any:
    """Logs in by one of the two ways."""

    def run(server: OddServer, **options: Any) -> None:
        params = {"hostname": "127.0.0.1", "port": server.port, "username": "u", "password": "p", "timeout": 60}
        checks = {"validate_certs": True, "ca_path": str(authority.ca_path)}
        params |= {**checks, "proxy": proxy and proxy.address, **options}
        try:
            if request.param == "soap":
                with session.session(params):
                    return
            server.odd = {"versions": http("201 Created", '"token"'), "unknown": http("201 Created", '"token"')}
            rest.Rest(SimpleNamespace(server="vc", params=params, api_version=(8, 0, 3), exchange=None)).log_in()  # type: ignore[arg-type]
        finally:
            assert proxy is None or proxy.through

    return run


def fingerprint(pem: Path) -> str:
    der = ssl.PEM_cert_to_DER_cert(pem.read_text().split("-----BEGIN PRIVATE")[0])
    return hashlib.sha256(der).hexdigest()


@pytest.mark.parametrize("name", BAD)
def test_a_bad_certificate_is_refused(connect: Any, certificates: Certificates, name: str) -> None:
    with OddServer(certificates[name]) as server, pytest.raises(Refused) as refused:
        connect(server)
    reported, advice = BAD[name]
    assert "could not trust its certificate" in str(refused.value)
    assert reported in refused.value.reason and advice in refused.value.remedy
    assert server.requests == []


@pytest.mark.parametrize(
    ("weak", "reported"),
    [
        ({"has_identifiers": False}, "Missing Authority Key Identifier"),
        ({"is_critical": False}, "Basic Constraints of CA cert not marked critical"),
    ],
)
def test_python_3_13_refuses_authorities_violating_rfc_5280(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, weak: dict[str, bool], reported: str
) -> None:
    usual = ssl.create_default_context

    def strict(**options: Any) -> ssl.SSLContext:
        made = usual(**options)
        made.verify_flags |= ssl.VERIFY_X509_STRICT
        return made

    monkeypatch.setattr(ssl, "create_default_context", strict)
    authority = Authority(tmp_path, **weak)
    certificate = authority.server("weak")
    connection = {"hostname": "127.0.0.1", "username": "u", "password": "p", "timeout": 60, "proxy": None}
    with OddServer(certificate) as server:
        params = {**connection, "port": server.port, "validate_certs": True, "ca_path": str(authority.ca_path)}
        with pytest.raises(Refused) as refused, session.session(params):
            pass
        assert server.requests == []
        with session.session({**params, "tls_fingerprint": fingerprint(certificate)}):
            pass
    assert refused.value.reason == reported
    assert "ca_path" in refused.value.remedy and "tls_fingerprint" in refused.value.remedy


@pytest.mark.parametrize("name", ["good", *BAD])
def test_refuses_another_certificate_than_the_pinned_one(connect: Any, certificates: Certificates, name: str) -> None:
    with OddServer(certificates[name]) as server, pytest.raises(Refused, match="set tls_fingerprint again"):
        connect(server, tls_fingerprint="00" * 32, validate_certs=False)
    assert server.requests == []


@pytest.mark.parametrize("name", ["good", *BAD])
def test_accepts_the_pinned_certificate(connect: Any, certificates: Certificates, name: str) -> None:
    with OddServer(certificates[name]) as server:
        connect(server, tls_fingerprint=fingerprint(certificates[name]))
    assert server.requests


def test_accepts_a_good_certificate(connect: Any, certificates: Certificates) -> None:
    with OddServer(certificates["good"]) as server:
        connect(server)
    assert server.requests


@pytest.mark.parametrize("pinned", [False, True])
@pytest.mark.parametrize("name", BAD)
def test_refuses_a_certificate_that_changes_during_a_session(
    authority: Authority, certificates: Certificates, name: str, *, pinned: bool
) -> None:
    pin = fingerprint(certificates["good"]) if pinned else None
    checks = {"validate_certs": True, "ca_path": str(authority.ca_path), "tls_fingerprint": pin}
    with OddServer(certificates["good"]) as server:
        params = {"hostname": "127.0.0.1", "port": server.port, "username": "u", "password": "p", "timeout": 60}

        def ask_again() -> None:
            with session.session({**params, **checks, "proxy": None}) as opened:
                server.swap(certificates[name])
                opened.stub.DropConnections()
                opened.content.sessionManager.Logout()

        with pytest.raises(CollectionError, match="could not trust its certificate") as refused:
            ask_again()
    assert "logout" not in server.requests
    assert BAD[name][1] in str(refused.value) or pinned
