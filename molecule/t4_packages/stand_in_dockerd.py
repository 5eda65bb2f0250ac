# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A stand-in for the Docker daemon: it reads the settings, and does not start if Docker would reject them."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
from pathlib import Path

KNOWN = {"runtimes", "default-runtime", "registry-mirrors", "log-driver", "live-restore", "data-root"}
PLACE, PID = Path("/etc/docker/daemon.json"), Path("/run/docker.pid")

settings = json.loads(PLACE.read_text()) if PLACE.exists() else {}
unknown = ", ".join(sorted(set(settings) - KNOWN))
if unknown:
    sys.exit(f"unable to configure the Docker daemon with file {PLACE}: unknown keys: {unknown}")
runtimes = {name: {"path": one["path"]} for name, one in settings.get("runtimes", {}).items()}
info = {
    "ServerVersion": "VERSION",
    "Runtimes": {**runtimes, "runc": {"path": "runc"}},
    "DefaultRuntime": settings.get("default-runtime", "runc"),
    "RegistryConfig": {"Mirrors": [one.rstrip("/") + "/" for one in settings.get("registry-mirrors", [])]},
    "LiveRestoreEnabled": settings.get("live-restore", False),
    "LoggingDriver": settings.get("log-driver", "json-file"),
}
Path("/run/docker.info").write_text(json.dumps(info))
PID.write_text(str(os.getpid()))
with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ready:
    address = os.environ["NOTIFY_SOCKET"]
    ready.sendto(b"READY=1", "\0" + address[1:] if address.startswith("@") else address)
signal.sigwait([signal.SIGTERM])
PID.unlink()
