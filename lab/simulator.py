"""Starts, controls and stops the simulated data centre."""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
BINARY = ROOT / ".cache" / "vcenter"
# In PYTHONPATH, it keeps modules of playbooks compiled.
BYTECODE = ROOT / "lab" / "bytecode"
DATACENTRES = ROOT / "lab" / "vcenter" / "datacentres"
USERNAME = "administrator@vsphere.local"
# Ansible masks the password in each text of a result, so it must not be a part of a name or a word.
PASSWORD = "Zq7vKx4mTw9hRb2n"
START_SECONDS = 60
# The simulator is on this machine, which the proxies of the environment cannot reach.
_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class Control:
    """The control interface of a running simulator."""

    def __init__(self, address: str, seconds: float = 30) -> None:
        self.address, self.seconds = address, seconds

    def ask(self, verb: str, path: str, body: Any = None) -> Any:
        """Send one request to the control interface and return its JSON answer."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.address}{path}", data=data, method=verb)
        try:
            with _DIRECT.open(request, timeout=self.seconds) as answer:
                text = answer.read().decode()
        except urllib.error.HTTPError as error:
            raise RuntimeError(f"{verb} {path}: {error.code} {error.read().decode().strip()}") from error
        return json.loads(text) if text.strip() else None

    def writes(self) -> list[dict[str, Any]]:
        """Return every mutating call since the log was cleared."""
        return self.ask("GET", "/writes") or []

    def clear(self) -> None:
        """Clear the logs of calls and writes."""
        self.ask("DELETE", "/writes")
        self.ask("DELETE", "/calls")

    def calls(self) -> dict[str, int]:
        """Return how often each SOAP method was called since the counters were cleared."""
        return self.ask("GET", "/calls") or {}

    def callers(self) -> dict[str, dict[str, int]]:
        """Return the calls of each client since the start, by the client's user agent."""
        return self.ask("GET", "/callers") or {}

    def exchanges(self) -> list[dict[str, Any]]:
        """Return each call of the REST API and its answer."""
        return self.ask("GET", "/exchanges") or []

    def violations(self) -> list[dict[str, str]]:
        """Return each transition that broke a rule of the simulator, with the rule."""
        return self.ask("GET", "/violations") or []

    def fault(self, method: str, kind: str = "fault", **more: Any) -> None:
        """Make the next call of a method misbehave."""
        self.ask("POST", "/faults", {"method": method, "kind": kind, **more})

    def heal(self) -> None:
        """Remove all planned faults."""
        self.ask("DELETE", "/faults")

    def restart(self, seconds: float) -> None:
        """Restart vCenter, which refuses connections for some seconds; its sessions and tasks are gone afterwards."""
        self.ask("POST", "/restart", {"seconds": seconds})

    def let_pass(self, seconds: float) -> None:
        """Let time pass at once in the data centre: what waits for it by then ends, such as a boot or a move."""
        self.ask("POST", "/clock", {"seconds": seconds})

    def set_host(self, name: str, **state: Any) -> None:
        """Change the state of a simulated host from outside."""
        self.ask("PATCH", f"/hosts/{name}", state)

    def set_cluster(self, name: str, **state: Any) -> None:
        """Change the state of a simulated cluster from outside."""
        self.ask("PATCH", f"/clusters/{name}", state)


class Centre(Control):
    """A running simulated data centre, described by the facts that it wrote."""

    password = PASSWORD

    def __init__(self, facts: dict[str, Any]) -> None:
        super().__init__(facts["control"])
        self.facts = facts

    @property
    def environment(self) -> dict[str, str]:
        """Return the VMWARE_* variables for this server."""
        return {**environment(self.facts), "VMWARE_PASSWORD": self.password}

    @property
    def connection(self) -> dict[str, Any]:
        """Return the connection options for the modules."""
        return {
            "hostname": self.facts["hostname"],
            "port": self.facts["port"],
            "username": USERNAME,
            "password": self.password,
            "ca_path": self.facts["ca_file"],
        }


class Simulator(Centre):
    """A running simulator process, and a context manager that stops it."""

    def __init__(
        self,
        datacentre: Path | str = DATACENTRES / "lab.yml",
        *options: str,
        folder: Path | None = None,
        start_seconds: float = START_SECONDS,
        password: str = PASSWORD,
    ) -> None:
        if not BINARY.exists():
            raise FileNotFoundError(f"{BINARY} does not exist: make setup builds it")
        self.password = password
        self.folder = Path(tempfile.mkdtemp(prefix="dml-vcenter-")) if folder is None else folder
        self.folder.mkdir(parents=True, exist_ok=True)
        ready = self.folder / "ready.json"
        ready.unlink(missing_ok=True)
        command = [str(BINARY), f"--datacentre={datacentre}", f"--username={USERNAME}", f"--password={password}"]
        command += [f"--certs={self.folder}", f"--ready={ready}", *options]
        self.log = self.folder / "vcenter.log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True
            )
        super().__init__(self._wait(ready, start_seconds))

    def _wait(self, ready: Path, seconds: float) -> dict[str, Any]:
        deadline = time.monotonic() + seconds
        while not ready.exists():
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.stop()
                raise RuntimeError(f"The simulator did not start:\n{self.log.read_text()}")
            time.sleep(0.02)
        return dict(json.loads(ready.read_text()))

    def stop(self) -> None:
        """End the process."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()

    def __enter__(self) -> Simulator:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.stop()


def add_site(parser: argparse.ArgumentParser) -> None:
    """Add the options that override the description of the data centre."""
    parser.add_argument("--release", help="release of vSphere, such as 8.0 U2")
    parser.add_argument("--encryption", choices=("on", "off"), help="whether migrations are encrypted")


def site_options(arguments: argparse.Namespace) -> list[str]:
    """Return the simulator's options for the given command-line arguments."""
    return [f"--{name}={value}" for name in ("release", "encryption") if (value := getattr(arguments, name))]


def environment(facts: dict[str, Any]) -> dict[str, str]:
    """Return the VMWARE_* variables for the server that wrote these facts."""
    return {
        "VMWARE_HOST": str(facts["hostname"]),
        "VMWARE_PORT": str(facts["port"]),
        "VMWARE_USER": USERNAME,
        "VMWARE_PASSWORD": PASSWORD,
        "VMWARE_CA_PATH": str(facts["ca_file"]),
        "LAB_CONTROL": str(facts["control"]),
    }


def alive(pid: int) -> bool:
    """Return whether a process is still running."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", maxsplit=1)[-1].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"
