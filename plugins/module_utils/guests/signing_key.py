"""One package signing key: GnuPG extracts it from a file by its fingerprint, and only this key is installed."""

from __future__ import annotations

# pylint: disable=ansible-bad-function  # gpg gets its input as bytes
import hashlib
import os
import re
import stat
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from typing import Any

from ..core.child_environment import without_account
from ..errors import Failed, Refused, os_words
from ..plan import Plan

FINGERPRINT = re.compile(r"[0-9A-F]{40}|[0-9A-F]{64}")
MODE = 0o644
GPG_SECONDS = 60
MISSING = "install the package gpg (Debian, Ubuntu) or gnupg2 (Rocky)"


class SigningKey:
    """The file of one key as a subject of the runner."""

    name = "signing key"

    def __init__(self, params: Mapping[str, object]) -> None:
        self._source, self._path = str(params["source"]), str(params["path"])
        self._fingerprint = re.sub(r"\s", "", str(params["fingerprint"])).upper()
        self._key = b""
        self.target = self._path

    def read(self) -> dict[str, Any]:
        """Return checksum and mode of the installed file; None for both if it is missing or a link."""
        try:
            handle = os.open(self._path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError:
            return {"sha256": None, "mode": None}
        with open(handle, "rb") as file:
            mode = stat.S_IMODE(os.fstat(handle).st_mode)
            return {"sha256": hashlib.sha256(file.read()).hexdigest(), "mode": f"{mode:04o}"}

    def plan(self, state: Mapping[str, object]) -> Plan:
        """Plan to install only the key with the fingerprint."""
        self._key = self._only_key()
        desired = {"sha256": hashlib.sha256(self._key).hexdigest(), "mode": f"{MODE:04o}"}
        return Plan(before=dict(state), after=desired)

    def apply(self, _plan: Plan) -> None:
        folder, name = os.path.split(self._path)
        try:
            handle, path = tempfile.mkstemp(prefix=f".{name}.", dir=folder)
            with open(handle, "wb") as file:
                os.fchmod(handle, MODE)
                file.write(self._key)
            os.replace(path, self._path)
        except OSError as error:
            raise Failed(self.target, "write the key", os_words(error, folder)) from error

    def _only_key(self) -> bytes:
        """Return the key that GnuPG exports from a temporary home, after it imported the whole source there."""
        if not FINGERPRINT.fullmatch(self._fingerprint):
            raise self._refused(
                f"{self._fingerprint or 'nothing'} is not a fingerprint", "give its 40 or 64 hexadecimal digits"
            )
        with tempfile.TemporaryDirectory(prefix="dml-gpg-") as home:
            imported = self._gpg(home, "--import", given=self._content())
            exported = self._gpg(home, "--armor", "--export", self._fingerprint).stdout
            # A subkey's fingerprint selects its primary key too, and any key owner can add a public key as a subkey.
            if list(_primary(self._gpg(home, "--with-colons", "--show-keys", given=exported))) == [self._fingerprint]:
                return exported
            there = " and ".join(_primary(self._gpg(home, "--with-colons", "--list-keys")))
        reason = f"contains the key {there}" if there else f"contains no OpenPGP key ({_messages(imported)})"
        reason = f"{self._source} {reason}, not {self._fingerprint}"
        raise self._refused(reason, "compare the address and the fingerprint")

    def _content(self) -> bytes:
        try:
            with open(self._source, "rb") as file:
                return file.read()
        except OSError as error:
            raise self._refused(f"{self._source}: {error.strerror}") from error

    def _gpg(self, home: str, *arguments: str, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        # No user settings, no agent that keeps running, no request to a key server.
        isolated = ("--batch", "--quiet", "--no-options", "--no-autostart", "--disable-dirmngr", "--homedir", home)
        environment = {**without_account(os.environ), "LC_ALL": "C", "GNUPGHOME": home}
        try:
            return subprocess.run(  # noqa: S603 # constant options and a fingerprint
                ["gpg", *isolated, *arguments],  # noqa: S607 # the node determines its path
                input=given,
                capture_output=True,
                timeout=GPG_SECONDS,
                env=environment,
                check=False,
            )
        except FileNotFoundError as error:
            raise self._refused("this node has no GnuPG", MISSING) from error
        except subprocess.TimeoutExpired as error:
            raise Failed(self.target, "install the key", f"GnuPG did not end within {GPG_SECONDS} s") from error

    def _refused(self, reason: str, remedy: str = "") -> Refused:
        return Refused(self.target, "install the key", reason, remedy)


def _primary(listed: subprocess.CompletedProcess[bytes]) -> Iterator[str]:
    """Yield the fingerprints of the primary keys in GnuPG's list."""
    owner = ""
    for row in listed.stdout.decode("utf-8", "replace").splitlines():
        fields = row.split(":")
        if fields[0] == "fpr" and owner == "pub":
            yield fields[9]
        # The row of a key comes before the row of its fingerprint.
        owner = fields[0]


def _messages(ended: subprocess.CompletedProcess[bytes]) -> str:
    printed = ended.stderr.decode("utf-8", "replace").strip().splitlines()
    return " ".join(printed) or "GnuPG printed nothing"
