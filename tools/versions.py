# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Which version of vSphere knows what, from pyVmomi's own type tables: ``python tools/versions.py`` writes it down.

The simulator refuses what its version does not know by the table ``since.txt``; the README says from which version on
what works by ``FEATURES``.
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
README = ROOT / "README.md"
BEGIN, END = "<!-- written by tools/versions.py -->\n", "<!-- end -->\n"
# The simulator can be no older: what every version since then knows is not listed.
OLDEST, NEWEST = "7.0.2.0", "9.0.0.0"
RELEASES = {
    "7.0.2": "7.0 U2",
    "7.0.3": "7.0 U3",
    "8.0.0": "8.0",
    "8.0.1": "8.0 U1",
    "8.0.2": "8.0 U2",
    "8.0.3": "8.0 U3",
    "9.0.0": "9.0",
}
HEAD = """\
# What vSphere knows only since a version after {oldest}, from the type tables of pyVmomi; written by tools/versions.py.
# A line is a version and a property of a data object (Type.property), or a method (Type.Method()).
# A line with a version alone: clients may speak it, newest first.
"""


@dataclass(frozen=True)
class Feature:
    """Something that works from a version on: in words, what it needs of the API, and what happens before."""

    words: str
    needs: str
    before: str


FEATURES = (
    Feature(
        "`vmotion`, `vmotion_info`, `vmotion_plan`: the server's own estimates of a vGPU's stun",
        "VirtualMachineVgpuProfileInfo.stunTimeEstimates",
        "reckoned from the size of the vGPU and the bandwidth",
    ),
    Feature(
        "`worker_vm`: groups of linked devices, such as vGPUs with NVLink (`device_group`)",
        "VirtualMachineConfigSpec.deviceGroups",
        "refused before the first write",
    ),
    Feature(
        "`preflight`, `esxi_info`: clusters that a configuration profile manages",
        "ComputeResource.configManagerEnabled",
        "vCenter has none (null)",
    ),
    Feature(
        "`esxi_graphics`: vGPUs of mixed sizes on one GPU (`vgpu_mode`), and MIG as the host reports it",
        "HostGraphicsInfo.vgpuMode",
        "`vgpu_mode` is refused before the first write; MIG is unknown (null)",
    ),
)


def _known(version: str) -> str:
    """The id of a version of vim25, such as 8.0.2.0; empty for other name spaces and for builds without a number."""
    number = VmomiSupport.versionIdMap.get(version, "")
    return number if VmomiSupport.nsMap.get(version) == "vim25" and number.replace(".", "").isdigit() else ""


@cache
def versions() -> dict[str, str]:
    """The versions of vim25 by their ids."""
    return {number: version for version in VmomiSupport.nsMap if (number := _known(version))}


def numbers(version: str) -> tuple[int, ...]:
    """A version id to compare."""
    return tuple(int(part) for part in version.split("."))


def _since(version: str) -> str:
    """The id of a version that the oldest simulated one does not include; else empty."""
    return "" if VmomiSupport.IsChildVersion(versions()[OLDEST], version) else _known(version)


def _types(names: Any) -> Iterator[Any]:
    for name in sorted(names):
        if name.split(".")[0] in ("vim", "vmodl"):
            yield VmomiSupport.GetVmodlType(name)


@cache
def since() -> dict[str, str]:
    """By property and method: the version from which on vSphere knows it, where that is after the oldest one."""
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
    """The methods of a type and of what it extends."""
    return [
        method for one in kind.__mro__ if hasattr(one, "_methodInfo") for method in vars(one)["_methodInfo"].values()
    ]


def table() -> str:
    """The content of ``since.txt``."""
    spoken = sorted((numbers(one), one) for one in versions() if numbers(one) <= numbers(NEWEST))
    lines = [one for _number, one in reversed(spoken)]
    lines += sorted(f"{number} {name}" for name, number in since().items())
    return HEAD.format(oldest=OLDEST) + "\n".join(lines) + "\n"


def release(number: str) -> str:
    """A version as people call it; a build of a release counts as the next one that everybody got."""
    return next((name for base, name in RELEASES.items() if numbers(number)[:3] == numbers(base)), number)


def features() -> str:
    """The table of the README."""
    rows = [f"| {one.words} | {release(since()[one.needs])} | {one.before} |" for one in FEATURES]
    return "\n".join(("| What | From vSphere | Before |", "|---|---|---|", *rows)) + "\n"


def document() -> str:
    """The README with its table anew."""
    text = README.read_text()
    head, rest = text.split(BEGIN)
    return head + BEGIN + features() + END + rest.split(END, 1)[1]


if __name__ == "__main__":
    TABLE.write_text(table())
    README.write_text(document())
