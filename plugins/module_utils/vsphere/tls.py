"""TLS contexts: checked against authorities by default, or pinned to one certificate on every connection."""

from __future__ import annotations

import hashlib
import hmac
import ssl

from ..errors import Refused

# The errors of OpenSSL about a certificate (x509_vfy.h), and the remedies; all others mean an unknown authority.
_REMEDIES = {
    9: "it is not valid yet: compare the clocks of the server and of this machine",
    10: "renew it, or pin it with tls_fingerprint",
    62: "connect with a name in the certificate, or pin it with tls_fingerprint",
    64: "connect with an address in the certificate, or pin it with tls_fingerprint",
}
# Rules of RFC 5280 that only Python 3.13 and later check, such as a missing key identifier.
_STRICT = range(80, 94)
_STRICT_REMEDY = (
    "Python 3.13 and later require key identifiers and critical basic constraints (RFC 5280): name an authority that "
    "has them in ca_path and renew the server's certificate with it, or pin the certificate with tls_fingerprint"
)
_AUTHORITY = "name its authority in ca_path, or pin it with tls_fingerprint"


class WrongFingerprint(ssl.SSLError):
    """The server showed a certificate other than the pinned one."""


def context(*, validate: bool, ca_path: str | None, fingerprint: str | None) -> ssl.SSLContext:
    """Return the context for every connection of a session; a fingerprint replaces the authorities."""
    if fingerprint:
        return _pinned(normalised(fingerprint))
    if not validate:
        return _unchecked()
    try:
        return ssl.create_default_context(cafile=ca_path or None)
    except OSError as error:
        raise Refused(
            str(ca_path), "load the certificate authorities", str(error), "name a PEM file in ca_path"
        ) from error


def explained(error: ssl.SSLError) -> tuple[str, str]:
    """Return why a certificate is not trusted, and the remedy."""
    if isinstance(error, ssl.SSLCertVerificationError):
        other = _STRICT_REMEDY if error.verify_code in _STRICT else _AUTHORITY
        return error.verify_message, _REMEDIES.get(error.verify_code, other)
    return str(error.args[0]), "if the certificate was renewed, set tls_fingerprint again"


def normalised(fingerprint: str) -> str:
    """Return the 64 hexadecimal digits of a SHA-256, with or without separators."""
    digits = fingerprint.lower().removeprefix("sha256:").replace(":", "").replace(" ", "")
    if len(digits) != 64 or not set(digits) <= set("0123456789abcdef"):
        raise Refused(
            "tls_fingerprint",
            "read it",
            f"{fingerprint!r} is not a SHA-256 of 64 hexadecimal digits",
            "take it from: openssl x509 -noout -fingerprint -sha256",
        )
    return digits


def _unchecked() -> ssl.SSLContext:
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.check_hostname = False
    made.verify_mode = ssl.CERT_NONE
    return made


def _pinned(desired: str) -> ssl.SSLContext:
    """Check the thumbprint at the socket, because not every version of pyVmomi checks it."""

    class PinnedSocket(ssl.SSLSocket):
        def do_handshake(self, block: bool = False) -> None:
            super().do_handshake(block)
            shown = hashlib.sha256(self.getpeercert(binary_form=True) or b"").hexdigest()
            if not hmac.compare_digest(shown, desired):
                self.close()
                raise WrongFingerprint(f"its certificate's SHA-256 is {shown}, not {desired}")

    made = _unchecked()
    made.sslsocket_class = PinnedSocket
    return made
