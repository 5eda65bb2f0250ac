"""An authority of a test, and the good and bad certificates that it gives to servers."""

from __future__ import annotations

import datetime
import ipaddress
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

DAY = datetime.timedelta(days=1)
_USES: tuple[str, ...] = ("digital_signature", "content_commitment", "key_encipherment", "data_encipherment")
_USES += ("key_agreement", "key_cert_sign", "crl_sign", "encipher_only", "decipher_only")
_AUTHORITY_USAGE = x509.KeyUsage(**{use: use in {"key_cert_sign", "crl_sign"} for use in _USES})


class Authority:
    """Issues certificates into a folder; ``ca_path`` is its own certificate.

    Python 3.13 rejects certificates without key identifiers, and authorities whose basic constraints are not critical.
    """

    def __init__(
        self, folder: Path, name: str = "authority", *, has_identifiers: bool = True, is_critical: bool = True
    ) -> None:
        self._has_identifiers = has_identifiers
        self._folder, self._name = folder, x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self._key = ec.generate_private_key(ec.SECP256R1())
        self.ca_path = folder / f"{name}.pem"
        own = self._build(self._name, self._key, -1, 30).add_extension(x509.BasicConstraints(True, None), is_critical)
        own = own.add_extension(_AUTHORITY_USAGE, critical=True)
        self.ca_path.write_bytes(_pem(own.sign(self._key, hashes.SHA256())))

    def server(self, name: str, address: str = "127.0.0.1", *, begins: int = -1, ends: int = 30) -> Path:
        """A file with certificate and key of a server, valid between two days counted from now."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        named = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(address))])
        certificate = self._build(subject, key, begins, ends).add_extension(named, False)
        path = self._folder / f"{name}.pem"
        path.write_bytes(_pem(certificate.sign(self._key, hashes.SHA256())) + _secret(key))
        return path

    def _build(
        self, subject: x509.Name, key: ec.EllipticCurvePrivateKey, begins: int, ends: int
    ) -> x509.CertificateBuilder:
        now = datetime.datetime.now(datetime.UTC)
        builder = x509.CertificateBuilder().subject_name(subject).issuer_name(self._name)
        builder = builder.public_key(key.public_key()).serial_number(x509.random_serial_number())
        builder = builder.not_valid_before(now + begins * DAY).not_valid_after(now + ends * DAY)
        if not self._has_identifiers:
            return builder
        own = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        return builder.add_extension(own, critical=False).add_extension(issuer, critical=False)


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _secret(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
