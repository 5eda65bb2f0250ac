"""The certificate authority of a lab, and its certificates and kubeconfigs."""

from __future__ import annotations

import base64
import datetime
import ipaddress
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

DAYS = 365
_USES: tuple[str, ...] = ("digital_signature", "content_commitment", "key_encipherment", "data_encipherment")
_USES += ("key_agreement", "key_cert_sign", "crl_sign", "encipher_only", "decipher_only")
_AUTHORITY_USAGE = x509.KeyUsage(**{use: use in {"key_cert_sign", "crl_sign"} for use in _USES})
MASTERS, NODES = "system:masters", "system:nodes"


@dataclass(frozen=True)
class Identity:
    """A certificate and its key, as PEM."""

    certificate: str
    key: str

    def write(self, folder: Path, name: str) -> None:
        """Write the certificate and its key to files."""
        (folder / f"{name}.crt").write_text(self.certificate)
        write_secret(folder / f"{name}.key", self.key)


class Authority:
    """The certificate authority of one lab, in a folder; every lab makes a new one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def create(self) -> None:
        """Make the authority, and the key that signs service account tokens."""
        self.folder.mkdir(parents=True, exist_ok=True)
        key, name = ec.generate_private_key(ec.SECP256R1()), _name("lab", ())
        builder = _builder(name, name, key, key.public_key())
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        builder = builder.add_extension(_AUTHORITY_USAGE, critical=True)
        Identity(_pem(builder.sign(key, hashes.SHA256())), _key_pem(key)).write(self.folder, "ca")
        accounts = ec.generate_private_key(ec.SECP256R1())
        write_secret(self.folder / "accounts.key", _key_pem(accounts))
        form = serialization.PublicFormat.SubjectPublicKeyInfo
        public = accounts.public_key().public_bytes(serialization.Encoding.PEM, form)
        (self.folder / "accounts.pub").write_bytes(public)

    @property
    def certificate(self) -> str:
        """Return the authority's certificate, which all programs trust."""
        return (self.folder / "ca.crt").read_text()

    def client(self, name: str, groups: Sequence[str] = ()) -> Identity:
        """Issue a client certificate with a user name and groups for the API server."""
        return self._issue(_name(name, groups), ExtendedKeyUsageOID.CLIENT_AUTH, ())

    def server(self, name: str, known_as: Sequence[str]) -> Identity:
        """Issue a server certificate for addresses and host names."""
        return self._issue(_name(name, ()), ExtendedKeyUsageOID.SERVER_AUTH, known_as)

    def kubeconfig(self, server: str, name: str, groups: Sequence[str] = ()) -> str:
        """Return a kubeconfig for a user, as JSON, which is valid YAML."""
        identity = self.client(name, groups)
        user = {"client-certificate-data": _base64(identity.certificate), "client-key-data": _base64(identity.key)}
        cluster = {"server": server, "certificate-authority-data": _base64(self.certificate)}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "lab", "cluster": cluster}],
            "users": [{"name": name, "user": user}],
            "contexts": [{"name": "lab", "context": {"cluster": "lab", "user": name}}],
            "current-context": "lab",
        }
        return json.dumps(config, indent=2) + "\n"

    def _issue(self, subject: x509.Name, usage: x509.ObjectIdentifier, known_as: Sequence[str]) -> Identity:
        authority = x509.load_pem_x509_certificate(self.certificate.encode())
        signer = serialization.load_pem_private_key((self.folder / "ca.key").read_bytes(), None)
        assert isinstance(signer, ec.EllipticCurvePrivateKey)
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _builder(subject, authority.subject, key, signer.public_key())
        builder = builder.add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        if known_as:
            builder = builder.add_extension(x509.SubjectAlternativeName([_known(name) for name in known_as]), False)
        return Identity(_pem(builder.sign(signer, hashes.SHA256())), _key_pem(key))


def write_secret(path: Path, text: str) -> None:
    """Write a file that only its owner may read."""
    path.touch(mode=0o600)
    path.write_text(text)


def _name(name: str, groups: Sequence[str]) -> x509.Name:
    organisations = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    return x509.Name([*organisations, x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, signer: ec.EllipticCurvePublicKey
) -> x509.CertificateBuilder:
    """Return a certificate to sign, with the key identifiers that Python 3.13 requires."""
    now = datetime.datetime.now(datetime.UTC)
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key.public_key())
    builder = builder.serial_number(x509.random_serial_number())
    hour, days = datetime.timedelta(hours=1), datetime.timedelta(days=DAYS)
    builder = builder.not_valid_before(now - hour).not_valid_after(now + days)
    own = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    issuer_key = x509.AuthorityKeyIdentifier.from_issuer_public_key(signer)
    return builder.add_extension(own, critical=False).add_extension(issuer_key, critical=False)


def _known(text: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(text))
    except ValueError:
        return x509.DNSName(text)


def _pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(serialization.Encoding.PEM).decode()


def _key_pem(key: ec.EllipticCurvePrivateKey) -> str:
    form, plain = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    return key.private_bytes(serialization.Encoding.PEM, form, plain).decode()


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
