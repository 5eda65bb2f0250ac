"""Extracts from pyVmomi's type tables since which vSphere version things exist: ``python tools/versions.py``.

With the table ``since.txt``, the simulator rejects methods and properties that its version does not support. The table
from ``FEATURES`` in docs/reference.md shows the version that each feature needs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from pyVmomi import VmomiSupport

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "lab" / "vcenter" / "internal" / "versions" / "since.txt"
# The oldest version of the simulator: methods and properties of all later versions are not listed.
OLDEST, NEWEST = "8.0.2.0", "9.1.0.0"
RELEASES = {"8.0.2": "8.0 U2", "8.0.3": "8.0 U3", "9.0.0": "9.0", "9.1.0": "9.1"}
HEAD = """\
# Methods and properties that vSphere supports since a version after {oldest}, from the type tables of pyVmomi; written
# by tools/versions.py.
# A line is a version and a property of a data object (Type.property), or a method (Type.Method()).
# A line with only a version: clients may use it, newest first.
"""


@dataclass(frozen=True)
class Feature:
    """A feature with a description, the part of the API that it needs, and the behaviour on older versions."""

    words: str
    needs: str
    before: str


FEATURES = (
    Feature(
        "`worker_vm`, `vmotion_plan`, `cluster_info`, `preflight`: vCenter's count of vGPU slots, with reservations",
        "ServiceContent.directPathProfileManager",
        "counted by the vGPUs on each host and the names of their profiles",
    ),
    Feature(
        "`esxi_power`, `vmotion_plan`: evacuations that disturb no workload (`non_disruptive`)",
        "HostMaintenanceSpec.evacMode",
        "refused before the first write, also before the first move of a window",
    ),
    Feature(
        "`worker_vm`, `vmotion`, `gpu_usage`, `cluster_info`: the physical GPU of each vGPU, from bindings",
        "HostAssignableHardwareBinding.pciId",
        "from the virtual machines that the graphics driver lists for each GPU",
    ),
    Feature(
        "`esxi_info`: the mode of each GPU, and the modes that it could have (`direct_path`)",
        "HostPciPassthruInfo.directPathState",
        "not reported (null); `type`, `active_type` and `passthrough` are as before",
    ),
    Feature(
        "`esxi_graphics`: vGPUs of mixed sizes on one GPU (`vgpu_mode`), and the MIG mode that the host reports",
        "HostGraphicsInfo.vgpuMode",
        "`vgpu_mode` is refused before the first write; MIG is unknown (null)",
    ),
)


def _known(version: str) -> str:
    """Return the id of a vim25 version, such as 8.0.2.0, or "" for other namespaces and builds without a number."""
    number = VmomiSupport.versionIdMap.get(version, "")
    return number if VmomiSupport.nsMap.get(version) == "vim25" and number.replace(".", "").isdigit() else ""


@cache
def versions() -> dict[str, str]:
    """Return the versions of vim25 by their ids."""
    return {number: version for version in VmomiSupport.nsMap if (number := _known(version))}


def numbers(version: str) -> tuple[int, ...]:
    """Return a version id as numbers, for comparison."""
    return tuple(int(part) for part in version.split("."))


def _since(version: str) -> str:
    """Return the id of a version if the oldest simulated one does not include it, or ""."""
    return "" if VmomiSupport.IsChildVersion(versions()[OLDEST], version) else _known(version)


def _types(names: Any) -> Iterator[Any]:
    for name in sorted(names):
        if name.split(".")[0] in ("vim", "vmodl"):
            yield VmomiSupport.GetVmodlType(name)


@cache
def since() -> dict[str, str]:
    """Return the first version of each property and method that is newer than the oldest version."""
    found = dict[str, str]()
    for kind in _types(list(VmomiSupport._dataDefMap)):
        for prop in kind._propList:
            found[f"{kind._wsdlName}.{prop.name}"] = _since(prop.version) or _since(kind._version)
    for kind in _types(list(VmomiSupport._managedDefMap)):
        for prop in kind._propList:
            found[f"{kind._wsdlName}.{prop.name}"] = _since(prop.version)
        for method in _methods(kind):
            found[f"{kind._wsdlName}.{method.wsdlName}()"] = _since(method.version)
    return {name: number for name, number in found.items() if number and numbers(number) <= numbers(NEWEST)}


def _methods(kind: Any) -> list[Any]:
    """Return the methods of a type and of its base types."""
    return [
        method for base in kind.__mro__ if hasattr(base, "_methodInfo") for method in vars(base)["_methodInfo"].values()
    ]


def table() -> str:
    """Return the content of ``since.txt``."""
    supported = sorted((numbers(version), version) for version in versions() if numbers(version) <= numbers(NEWEST))
    lines = [version for _number, version in reversed(supported)]
    lines += sorted(f"{number} {name}" for name, number in since().items())
    return HEAD.format(oldest=OLDEST) + "\n".join(lines) + "\n"


def release(number: str) -> str:
    """Return the release name of a version; an internal build counts as the next public release."""
    return next((name for base, name in RELEASES.items() if numbers(number)[:3] == numbers(base)), number)


def features() -> str:
    """Return the table of the page."""
    rows = [f"| {entry.words} | {release(since()[entry.needs])} | {entry.before} |" for entry in FEATURES]
    return "\n".join(("| Feature | From vSphere | Before |", "|---|---|---|", *rows)) + "\n"


if __name__ == "__main__":
    TABLE.write_text(table())
