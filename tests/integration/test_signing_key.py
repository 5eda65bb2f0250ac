"""Files with which someone tries to have a key trusted that no one pinned, given to the real GnuPG and the real apt."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from plugins.module_utils.errors import Refused
from plugins.module_utils.guests.signing_key import SigningKey
from tests.integration.ansible import Ansible, Outcome

BEGIN, END = b"-----BEGIN PGP PUBLIC KEY BLOCK-----", b"-----END PGP PUBLIC KEY BLOCK-----"


@dataclass(frozen=True)
class Keys:
    """A home of GnuPG with two keys: the pinned one, and one of someone else."""

    home: Path
    pinned: str
    forged: str

    def gpg(self, *arguments: str, given: bytes = b"") -> bytes:
        command = ["gpg", "--homedir", str(self.home), "--quiet", "--no-tty", *arguments]
        return subprocess.run(command, input=given, capture_output=True, check=True, timeout=60).stdout

    def public(self, fingerprint: str) -> bytes:
        return self.gpg("--armor", "--export", fingerprint)

    def binary(self, fingerprint: str) -> bytes:
        return self.gpg("--export", fingerprint)

    def secret(self, fingerprint: str) -> bytes:
        return self.gpg(
            "--batch", "--pinentry-mode", "loopback", "--passphrase", "", "--export-secret-keys", fingerprint
        )

    def field(self, fingerprint: str, kind: str, column: int) -> str:
        rows = self.gpg("--with-colons", "--with-keygrip", "--list-keys", fingerprint).decode().splitlines()
        return next(row.split(":")[column] for row in rows if row.startswith(kind))

    def adopt(self) -> None:
        """Make the pinned key a subkey of the forged one: same numbers, same time, so the same fingerprint."""
        made = self.field(self.pinned, "pub", 5)
        answers = ["addkey", "13", self.field(self.pinned, "grp", 9), "S", "Q", "0", "save"]
        command = ("--expert", "--faked-system-time", f"{made}!", "--command-fd", "0", "--edit-key", self.forged)
        self.gpg(*command, given="".join(f"{answer}\n" for answer in answers).encode())


def made(home: Path) -> Keys:
    home.mkdir(mode=0o700)
    keys, prints = Keys(home, "", ""), []
    # GnuPG gives no key a subkey that is older than itself, so the forged one is a day older. The clock stands still,
    # because a second between a key and its signature changes the time of the subkey.
    for name, moment in (("forged", "20260101T000000!"), ("pinned", "20260102T000000!")):
        when = ("--faked-system-time", moment)
        keys.gpg("--batch", *when, "--passphrase", "", "--quick-gen-key", name, "ed25519", "sign", "never")
        prints.append(keys.field(name, "fpr", 9))
    return Keys(home, *reversed(prints))


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Keys]:
    # In the root of the test's folder: the path of an agent's socket has 107 characters at most.
    keys = made(tmp_path_factory.mktemp("k") / "h")
    yield keys
    subprocess.run(["gpgconf", "--homedir", str(keys.home), "--kill", "all"], check=True, timeout=60)


@pytest.fixture
def here(tmp_path: Path) -> Ansible:
    return Ansible({}, tmp_path)


def install(here: Ansible, keys: Keys, content: bytes, *, fingerprint: str = "", check: bool = False) -> Outcome:
    source = here.folder / "downloaded"
    source.write_bytes(content)
    path = here.folder / "trusted.asc"
    options = {"source": str(source), "path": str(path), "fingerprint": fingerprint or keys.pinned}
    return here.module("signing_key", check=check, **options)


def trusted(here: Ansible, keys: Keys) -> list[str]:
    """Every key and subkey in the installed file, as GnuPG lists it however apt might read it."""
    listed = keys.gpg("--with-colons", "--show-keys", given=(here.folder / "trusted.asc").read_bytes())
    return [row.split(":")[9] for row in listed.decode().splitlines() if row.startswith("fpr")]


def headed(block: bytes, header: bytes) -> bytes:
    return block.replace(b"PGP PUBLIC KEY BLOCK", header)


ATTACKS = {
    "another header": lambda k: headed(k.public(k.forged), b"PGP ARMORED FILE") + k.public(k.pinned),
    "a secret key": lambda k: k.secret(k.forged) + k.public(k.pinned),
    "a header for secrets": lambda k: headed(k.public(k.forged), b"PGP PRIVATE KEY BLOCK") + k.public(k.pinned),
    "a message": lambda k: headed(k.public(k.forged), b"PGP MESSAGE") + k.public(k.pinned),
    "a second key behind it": lambda k: k.public(k.pinned) + k.public(k.forged),
    "a second key before it": lambda k: k.public(k.forged) + k.public(k.pinned),
    "both in one block": lambda k: k.gpg("--armor", "--export", k.pinned, k.forged),
    "binary, one behind the other": lambda k: k.binary(k.pinned) + k.binary(k.forged),
    "binary before armored": lambda k: k.binary(k.forged) + k.public(k.pinned),
    "armored before binary": lambda k: k.public(k.pinned) + k.binary(k.forged),
    "packets of both mixed": lambda k: k.binary(k.pinned)[:-1] + k.binary(k.forged) + k.binary(k.pinned)[-1:],
    "text around it": lambda k: b"Key of the repository:\n" + k.public(k.pinned) + b"\n" + k.public(k.forged),
    "an armor in a comment": lambda k: k.public(k.pinned).replace(
        BEGIN, BEGIN + b"\nComment: " + k.public(k.forged).replace(b"\n", b" ")
    ),
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_never_installs_a_key_except_the_pinned_one(here: Ansible, keys: Keys, attack: str) -> None:
    outcome = install(here, keys, ATTACKS[attack](keys))
    if outcome.rc == 0:
        assert trusted(here, keys) == [keys.pinned]
    else:
        assert outcome.msg.startswith(f"{here.folder}/trusted.asc: could not install the key: {here.folder}/downloaded")
        assert not (here.folder / "trusted.asc").exists()


def test_refuses_a_key_with_the_pinned_subkey(here: Ansible, tmp_path_factory: pytest.TempPathFactory) -> None:
    keys = made(tmp_path_factory.mktemp("a") / "h")
    try:
        pinned = keys.public(keys.pinned)
        keys.adopt()
        adopting = keys.public(keys.forged)
        assert keys.pinned in keys.gpg("--with-colons", "--show-keys", given=adopting).decode()
        outcome = install(here, keys, adopting)
        assert outcome.msg == (
            f"{here.folder}/trusted.asc: could not install the key: {here.folder}/downloaded contains the key "
            f"{keys.forged}, not {keys.pinned}; compare the address and the fingerprint"
        )
        assert install(here, keys, adopting + pinned).rc == 1
        assert not (here.folder / "trusted.asc").exists()
    finally:
        subprocess.run(["gpgconf", "--homedir", str(keys.home), "--kill", "all"], check=True, timeout=60)


@pytest.mark.parametrize("content", [b"", b"<html>404 Not Found</html>", BEGIN + b"\n\n!!!\n" + END])
def test_quotes_gnupg_for_a_file_without_key(here: Ansible, keys: Keys, content: bytes) -> None:
    outcome = install(here, keys, content)
    assert f"could not install the key: {here.folder}/downloaded contains no OpenPGP key (gpg: " in outcome.msg
    assert "gpg: no valid OpenPGP data found." in outcome.msg
    assert outcome.msg.endswith(f"not {keys.pinned}; compare the address and the fingerprint")


@pytest.mark.parametrize("fingerprint", ["x", "BF863CC", "A4B469963BF863CC", "forged", "--list-keys", "A" * 41])
def test_accepts_only_a_complete_fingerprint(here: Ansible, keys: Keys, fingerprint: str) -> None:
    outcome = install(here, keys, keys.public(keys.forged), fingerprint=fingerprint)
    assert outcome.msg == (
        f"{here.folder}/trusted.asc: could not install the key: {fingerprint.upper()} is not a fingerprint; "
        "give its 40 or 64 hexadecimal digits"
    )


def test_installs_the_pinned_key_once_in_any_form(here: Ansible, keys: Keys) -> None:
    path = here.folder / "trusted.asc"
    spaced = " ".join(keys.pinned[at : at + 4] for at in range(0, 40, 4)).lower()
    assert install(here, keys, keys.public(keys.pinned), check=True).changed
    assert not path.exists()
    assert install(here, keys, keys.public(keys.pinned), fingerprint=spaced).changed
    for content in (
        keys.public(keys.pinned),
        keys.binary(keys.pinned),
        keys.public(keys.pinned).replace(b"\n", b"\r\n"),
    ):
        assert not install(here, keys, content).changed
    path.chmod(0o666)
    assert install(here, keys, keys.public(keys.pinned)).changed
    assert path.stat().st_mode & 0o777 == 0o644
    assert [each.name for each in here.folder.iterdir()] == ["downloaded", "trusted.asc"]


def test_replaces_a_link_without_following_it(here: Ansible, keys: Keys) -> None:
    victim = here.folder / "victim"
    victim.write_text("precious")
    (here.folder / "trusted.asc").symlink_to(victim)
    assert install(here, keys, keys.public(keys.pinned)).changed
    assert victim.read_text() == "precious"
    assert trusted(here, keys) == [keys.pinned]


def test_names_the_package_for_nodes_without_gnupg(here: Ansible, keys: Keys, monkeypatch: pytest.MonkeyPatch) -> None:
    content = keys.public(keys.pinned)
    here.environment["PATH"] = str(here.folder)
    assert install(here, keys, content).msg.endswith(
        "this node has no GnuPG; install the package gpg (Debian, Ubuntu) or gnupg2 (Rocky)"
    )


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(noise=st.binary(max_size=64), cut=st.integers(0, 200))
def test_survives_arbitrary_bytes_in_the_key_file(here: Ansible, keys: Keys, noise: bytes, cut: int) -> None:
    source, content = here.folder / "noise", keys.binary(keys.pinned)
    key = SigningKey({"source": source, "path": here.folder / "never", "fingerprint": keys.pinned})
    source.write_bytes(content[:cut] + noise + content[cut:])
    try:
        plan = key.plan(key.read())
    except Refused:
        return
    key.apply(plan)
    listed = keys.gpg("--with-colons", "--show-keys", given=(here.folder / "never").read_bytes()).decode()
    assert [row.split(":")[9] for row in listed.splitlines() if row.startswith("fpr")] == [keys.pinned]


def repository(folder: Path, keys: Keys, signer: str) -> Path:
    """An empty repository for apt that one of the keys has signed."""
    folder.mkdir()
    (folder / "Packages").write_bytes(b"")
    empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    (folder / "Release").write_text(f"Date: Thu, 01 Jan 2026 00:00:00 UTC\nSHA256:\n {empty} 0 Packages\n")
    keys.gpg("--batch", "-u", signer, "--clearsign", "-o", str(folder / "InRelease"), str(folder / "Release"))
    return folder


def apt_trusts(folder: Path, repository: Path, key: Path) -> bool:
    """Return whether apt, in its own folders, takes the repository as signed by the key."""
    for each in ("lists/partial", "cache/archives/partial", "parts", "trusted"):
        (folder / each).mkdir(parents=True, exist_ok=True)
    (folder / "list").write_text(f"deb [signed-by={key}] file:{repository} ./\n")
    places = {
        "Dir::Etc::SourceList": "list",
        "Dir::Etc::SourceParts": "parts",
        "Dir::Etc::Trusted": "none",
        "Dir::Etc::TrustedParts": "trusted",
        "Dir::State": ".",
        "Dir::State::status": "status",
        "Dir::Cache": "cache",
    }
    (folder / "status").touch()
    options = [f"-o{name}={folder / place}" for name, place in places.items()]
    command = ["apt-get", *options, f"-oAPT::Sandbox::User={os.environ.get('USER', 'root')}", "update"]
    ended = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=60, env={**os.environ, "LC_ALL": "C"}
    )
    output = ended.stdout + ended.stderr
    assert ended.returncode == 0 or "NO_PUBKEY" in output or "not signed" in output, output
    return ended.returncode == 0 and "W:" not in output


@pytest.mark.parametrize("attack", ["another header", "a second key before it"])
def test_apt_trusts_the_pinned_key_only(here: Ansible, keys: Keys, attack: str) -> None:
    content = ATTACKS[attack](keys)
    assert install(here, keys, content).rc == 0
    path, whole = here.folder / "trusted.asc", here.folder / "whole.asc"
    good = repository(here.folder / "good", keys, keys.pinned)
    bad = repository(here.folder / "bad", keys, keys.forged)
    assert apt_trusts(here.folder / "apt1", good, path)
    assert not apt_trusts(here.folder / "apt2", bad, path)
    # The attack is real: the file itself, as it was downloaded, has the forged key trusted.
    whole.write_bytes(content)
    assert apt_trusts(here.folder / "apt3", bad, whole)
