"""The software of a host without a server: esxcli software vib, with an image that waits for the next boot."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from plugins.module_utils.errors import Failed
from tests.fakes.esxi import FakeHost

DRIVER = "NVD-AIE_ESXi_8.0.0_Driver"
OLD, NEW = "550.54.16-1OEM.800.1.0.20613240", "550.90.05-1OEM.800.1.0.20613240"
DEPOT = "http://depot.lab/NVD-AIE-800_550.90.05.zip"


class FakeVibs:
    """One depot with one VIB; takes the place of a host's esxcli."""

    def __init__(self, host: FakeHost, running: dict[str, str] | None = None, *, live: bool = False) -> None:
        self.host, self.running, self.live = host, dict(running or {}), live
        self.pending: dict[str, str] = {}
        self.depots: dict[str, tuple[str, str]] = {DEPOT: (DRIVER, NEW)}
        self.refusal = ""
        self.requests: list[tuple[str, dict[str, Any]]] = []
        host.__dict__["esxcli"] = self
        host.has(configManager__imageConfigManager=SimpleNamespace(QueryHostAcceptanceLevel=lambda: "partner"))

    def rows(self, command: str, **options: Any) -> list[dict[str, Any]]:
        if command != "software vib list":
            return [self._run(command, **options)]
        image = self.pending if options.get("rebootingimage") else self.running
        return [{"Name": name, "Version": version, "Vendor": "NVIDIA"} for name, version in image.items()]

    def _run(self, command: str, *, tried: str = "", patience: int = 0, **options: Any) -> dict[str, Any]:
        dry = options.pop("dryrun", False)
        self.requests.append((command, {**options, "patience": patience, "dryrun": dry}))
        if not dry and not self.host.write(command, options):
            return {}
        return self._change(command, tried, options, dry)

    def boot(self) -> None:
        """Run the image that waited."""
        self.running, self.pending = self.pending or self.running, {}

    def _change(self, command: str, tried: str, options: dict[str, Any], dry: bool) -> dict[str, Any]:
        if self.refusal:
            raise Failed(self.host.name, tried, f"esxcli said {self.refusal}")
        image = dict(self.pending or self.running)
        if command == "software vib install":
            place = options.get("depot") or options["viburl"]
            if place not in self.depots:
                raise Failed(
                    self.host.name, tried, f"esxcli said [MetadataDownloadError] Could not download from {place}"
                )
            name, version = self.depots[place]
            removed = [_id(name, image[name])] if name in image else []
            image[name], installed = version, [_id(name, version)]
        else:
            name = options["vibname"]
            if name not in image:
                raise Failed(self.host.name, tried, f"esxcli said [NoMatchError] id={name}")
            removed, installed = [_id(name, image.pop(name))], []
        if not dry:
            self.running, self.pending = (image, {}) if self.live else (self.running, image)
        return {"RebootRequired": str(not self.live).lower(), "VIBsInstalled": installed, "VIBsRemoved": removed}


def _id(name: str, version: str) -> str:
    return f"NVIDIA_bootbank_{name}_{version}"
