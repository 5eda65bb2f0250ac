"""This machine's package sources for nodes: archives, certificates and indexes, read when a node boots."""

from __future__ import annotations

import configparser
import io
import os
import re
import shutil
import ssl
import subprocess
import sys
import urllib.parse
from pathlib import Path

from lab.nodes.programs import LabError, run

MIRROR = "LAB_MIRROR"  # a Debian archive, if this machine's sources have none for the suite
FORMAT = "$(REPO_URI)|$(RELEASE)|$(COMPONENT)|$(ORIGIN)"
HANDED_ON = re.compile(r'^(Acquire::(?:Check-Valid-Until|Check-Date|Retries|https?::Timeout) ".*";)$')
# pip has no command that prints its default.
PIPS_DEFAULT = "from pip._internal.models.index import PyPI; print(PyPI.simple_url)"
DEBIAN = ["main", "Debian"]
KINDS = ("", "updates", "security")
CERTIFICATES = "/etc/ssl/certs/dml-lab.crt"


def sources(suite: str) -> list[tuple[str, str, str]]:
    """Return the Debian archives for a suite that this machine uses: (URI, release, component)."""
    uri = os.environ.get(MIRROR)
    if uri:
        return [(uri, suite, "main")]
    lines = []
    if shutil.which("apt-get"):
        lines = run("apt-get", "indextargets", "--format", FORMAT, "Created-By: Packages").splitlines()
    targets = [line.split("|") for line in lines]
    here = [(uri, *release.partition("-")) for uri, release, *kind in targets if kind == DEBIAN]
    # An archive contains all supported releases at one address.
    found = {(uri, f"{suite}{dash}{kind}", "main") for uri, _name, dash, kind in here if kind in KINDS}
    return sorted(found)


def mirror(suite: str) -> str:
    """Return the archive that contains the suite itself."""
    for uri, release, _component in sources(suite):
        if release == suite:
            return uri
    raise LabError(
        f"No archive for Debian {suite} found: this machine's apt has none. Set {MIRROR} to the address of one."
    )


def indexes() -> list[str]:
    """Return the Python package indexes that this machine's pip uses."""
    listed = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=False
    )
    pairs = (line.partition("=") for line in listed.stdout.splitlines())
    config = {key.rpartition(".")[2]: value.strip("'\"").replace("\\n", " ") for key, _equals, value in pairs}
    first = config.get("index-url") or run(sys.executable, "-c", PIPS_DEFAULT).strip()
    return [first, *config.get("extra-index-url", "").split()]


def files(suite: str, proxy: str | None) -> dict[str, str]:
    """Return the package settings for a node, by path on the node; ``proxy`` is the lab's proxy to the outside."""
    if proxy is None:
        return {}
    bundle = _certificates()
    environment = {"http_proxy": proxy, "https_proxy": proxy, "no_proxy": "localhost,127.0.0.1"}
    if bundle:
        environment.update(dict.fromkeys(("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"), CERTIFICATES))
    archives = "".join(f"deb {uri} {release} {component}\n" for uri, release, component in sources(suite))
    return {
        "/etc/apt/sources.list.d/dml-lab.list": archives,
        "/etc/apt/apt.conf.d/90dml-lab": _apt(proxy, bool(bundle)),
        "/etc/pip.conf": _pip(proxy, bool(bundle)),
        "/etc/environment": "".join(f"{key}={value}\n" for key, value in environment.items()),
        **({CERTIFICATES: bundle} if bundle else {}),
    }


def _apt(proxy: str, certificates: bool) -> str:
    # Nodes need no translated descriptions of packages.
    lines = ['Acquire::Languages "none";', *(f'Acquire::{scheme}::Proxy "{proxy}";' for scheme in ("http", "https"))]
    if certificates:
        lines.append(f'Acquire::https::CAInfo "{CERTIFICATES}";')
    if shutil.which("apt-config"):
        lines += [line for line in run("apt-config", "dump").splitlines() if HANDED_ON.match(line)]
    return "\n".join([*lines, ""])


def _pip(proxy: str, certificates: bool) -> str:
    config = configparser.ConfigParser(interpolation=None)
    door = str(urllib.parse.urlsplit(proxy).hostname)
    config["global"] = {"proxy": proxy, "index-url": f"{proxy}/simple", "trusted-host": door}
    config["global"]["disable-pip-version-check"] = "true"
    if certificates:
        config["global"]["cert"] = CERTIFICATES
    text = io.StringIO()
    config.write(text)
    return text.getvalue()


def _certificates() -> str:
    """Return the certificate authorities that this machine trusts, including local ones."""
    for path in (
        os.environ.get("SSL_CERT_FILE"),
        ssl.get_default_verify_paths().cafile,
        "/etc/ssl/certs/ca-certificates.crt",
    ):
        if path and Path(path).is_file():
            return Path(path).read_text()
    return ""
