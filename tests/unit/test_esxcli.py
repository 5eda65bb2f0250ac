"""Every esxcli call of the collection agrees with a dump of the command descriptions of ESXi 8.0.1.

The dump is in govmomi's sources (simulator/esx/type_info.go, Apache-2.0), which the simulator is built with.
tests/unproven_esxcli.yml lists the calls that the dump lacks, with the reason.
"""

from __future__ import annotations

import ast
import re
import subprocess
from functools import cache
from pathlib import Path

import pytest
import yaml

from plugins.module_utils.hosts.module_privileges import TABLE

ROOT = Path(__file__).resolve().parents[2]
UNPROVEN: dict[str, str] = yaml.safe_load((ROOT / "tests" / "unproven_esxcli.yml").read_text())
# For each command, the given arguments, and the fields of the answer that are read.
CALLS: dict[str, tuple[set[str], set[str]]] = {
    "network diag ping": ({"count", "df", "host", "interface", "size"}, {"Summary", "Transmitted", "Recieved"}),
    "network nic dcb status get": ({"nicname"}, set()),
    "network nic stats get": ({"nicname"}, set()),
    "rdma device stats get": ({"device"}, set()),
    "software vib install": (
        {"depot", "dryrun", "maintenancemode", "viburl"},
        {"RebootRequired", "VIBsInstalled", "VIBsRemoved"},
    ),
    "software vib list": ({"rebootingimage"}, {"Name", "Version", "Vendor", "AcceptanceLevel"}),
    "system module parameters list": ({"module"}, {"Name"}),
    "software vib remove": (
        {"dryrun", "maintenancemode", "vibname"},
        {"RebootRequired", "VIBsInstalled", "VIBsRemoved"},
    ),
}
# The description of esxcli: the dump lacks this command, because it consists of such descriptions.
OF_ITSELF = {"vim CLIInfo FetchCLIInfo"}


@cache
def dump() -> tuple[dict[str, set[str]], dict[str, set[str]]]:
    """By command: its arguments; by command: the fields of all that it answers with."""
    folder = subprocess.run(
        ["go", "list", "-m", "-f", "{{.Dir}}", "github.com/vmware/govmomi"],
        cwd=ROOT / "lab" / "vcenter", capture_output=True, text=True, check=True,
    ).stdout.strip()  # fmt: skip
    managed, _colon, data = (Path(folder) / "simulator" / "esx" / "type_info.go").read_text().partition("DataTypeInfo:")
    commands, fields = dict[str, set[str]](), dict[str, set[str]]()
    for kind, inside in _blocks(managed, 3):
        for method, within in _blocks(inside, 5):
            commands[_words(f"{kind}.{method}")] = {name for name, _rest in _blocks(within, 7)}
    for kind, inside in _blocks(data, 3):
        command = _words(kind.rpartition(".")[0])
        fields.setdefault(command, set()).update(name for name, _rest in _blocks(inside, 5))
    return commands, fields


def _blocks(text: str, depth: int) -> list[tuple[str, str]]:
    """The named records at a depth of the dump, each with the text up to the next one."""
    found = list(re.finditer(rf'^\t{{{depth}}}Name:\s+"([^"]+)"', text, re.MULTILINE))
    ends = [one.start() for one in found[1:]] + [len(text)][: len(found)]
    return [(one[1], text[one.end() : end]) for one, end in zip(found, ends, strict=True)]


def _words(dotted: str) -> str:
    return dotted.removeprefix("vim.EsxCLI.").replace(".", " ")


def test_reads_commands_and_fields_from_the_dump() -> None:
    commands, fields = dump()
    assert commands["software vib get"] == {"rebootingimage", "vibname"}
    assert commands["hardware clock get"] == set()
    assert {"ID", "InstallDate"} <= fields["software vib list"] and "RebootRequired" not in fields["software vib list"]


def test_lists_every_call_of_the_modules() -> None:
    called = {
        call.removeprefix("esxcli ") for calls in TABLE.by_module.values() for call in calls if call[:6] == "esxcli"
    }
    assert called - OF_ITSELF == set(CALLS)


@pytest.mark.parametrize("command", CALLS)
def test_call_matches_a_real_host_or_is_unproven(command: str) -> None:
    (arguments, taken), (commands, fields) = CALLS[command], dump()
    assert (command in commands) is (command not in UNPROVEN), "listed as unproven exactly where the dump lacks it"
    if command in UNPROVEN:
        return
    assert arguments <= commands[command]
    assert taken <= fields[command]


def test_list_agrees_with_the_sources() -> None:
    constants, keywords = set[str](), set[str]()
    for path in (ROOT / "plugins" / "module_utils").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                constants.add(node.value)
            elif isinstance(node, ast.keyword) and node.arg:
                keywords.add(node.arg)
    for command, (arguments, taken) in CALLS.items():
        assert arguments <= constants | keywords, command
        assert taken <= constants, command


def test_lists_only_called_commands_as_unproven() -> None:
    assert set(UNPROVEN) <= set(CALLS)
