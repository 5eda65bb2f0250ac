# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""One key that signs packages: GnuPG takes it out of a file by its fingerprint, and it alone is installed."""

from __future__ import annotations

import hashlib
import os
import re
import stat
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from typing import Any

from ..errors import Failed, Refused
from ..plan import Plan

FINGERPRINT = re.compile(r"[0-9A-F]{40}|[0-9A-F]{64}")
MODE = 0o644
GPG_SECONDS = 60
MISSING = "install the package gpg (Debian, Ubuntu) or gnupg2 (Rocky)"


class SigningKey:
    """The file of one key as a subject of the runner."""

    name = "signing key"

    def __init__(self, params: Mapping[str, Any]) -> None:
        self._source, self._path = str(params["source"]), str(params["path"])
        self._wanted = re.sub(r"\s", "", str(params["fingerprint"])).upper()
        self._key = b""
        self.target = self._path

    def read(self) -> dict[str, Any]:
        """Checksum and mode of the installed file; neither where there is none, or a link."""
        try:
            handle = os.open(self._path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError:
            return {"sha256": None, "mode": None}
        with open(handle, "rb") as file:
            mode = stat.S_IMODE(os.fstat(handle).st_mode)
            return {"sha256": hashlib.sha256(file.read()).hexdigest(), "mode": f"{mode:04o}"}

    def plan(self, state: Mapping[str, Any]) -> Plan:
        """Install the one key of the fingerprint, and no other key of the source."""
        self._key = self._alone()
        wanted = {"sha256": hashlib.sha256(self._key).hexdigest(), "mode": f"{MODE:04o}"}
        return Plan(before=dict(state), after=wanted)

    def apply(self, _plan: Plan) -> None:
        """Write the key, whole or not at all."""
        folder, name = os.path.split(self._path)
        try:
            handle, path = tempfile.mkstemp(prefix=f".{name}.", dir=folder)
            with open(handle, "wb") as file:
                os.fchmod(handle, MODE)
                file.write(self._key)
            os.replace(path, self._path)
        except OSError as error:
            raise Failed(self.target, "write the key", f"{error.filename}: {error.strerror}") from error

    def _alone(self) -> bytes:
        """The key as GnuPG exports it from a home of its own, after all of the source was imported there."""
        if not FINGERPRINT.fullmatch(self._wanted):
            raise self._refused(
                f"{self._wanted or 'nothing'} is no fingerprint", "give its 40 or 64 hexadecimal digits"
            )
        with tempfile.TemporaryDirectory(prefix="dml-gpg-") as home:
            imported = self._gpg(home, "--import", given=self._content())
            exported = self._gpg(home, "--armor", "--export", self._wanted).stdout
            # A subkey's fingerprint names its key too, and anybody can adopt a public key as a subkey of an own key.
            if list(_primary(self._gpg(home, "--with-colons", "--show-keys", given=exported))) == [self._wanted]:
                return exported
            there = " and ".join(_primary(self._gpg(home, "--with-colons", "--list-keys")))
        said = f"holds the key {there}" if there else f"holds no OpenPGP key ({_said(imported)})"
        raise self._refused(f"{self._source} {said}, not {self._wanted}", "compare the address and the fingerprint")

    def _content(self) -> bytes:
        try:
            with open(self._source, "rb") as file:
                return file.read()
        except OSError as error:
            raise self._refused(f"{self._source}: {error.strerror}") from error

    def _gpg(self, home: str, *arguments: str, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        # No settings of a user, no agent that stays behind, no question to a key server.
        alone = ("--batch", "--quiet", "--no-options", "--no-autostart", "--disable-dirmngr", "--homedir", home)
        environment = {**os.environ, "LC_ALL": "C", "GNUPGHOME": home}
        try:
            return subprocess.run(  # noqa: S603 # our own words and a fingerprint
                ["gpg", *alone, *arguments],  # noqa: S607 # where it lies is the node's business
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

    def _refused(self, said: str, remedy: str = "") -> Refused:
        return Refused(self.target, "install the key", said, remedy)


def _primary(listed: subprocess.CompletedProcess[bytes]) -> Iterator[str]:
    """The fingerprints of keys in a list of GnuPG, without those of their subkeys."""
    owner = ""
    for row in listed.stdout.decode("utf-8", "replace").splitlines():
        fields = row.split(":")
        if fields[0] == "fpr" and owner == "pub":
            yield fields[9]
        # A key's own row comes before the row of its fingerprint.
        owner = fields[0]


def _said(ended: subprocess.CompletedProcess[bytes]) -> str:
    said = ended.stderr.decode("utf-8", "replace").strip().splitlines()
    return " ".join(said) or "GnuPG said nothing"
