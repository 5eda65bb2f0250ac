"""The rooms of plugins/module_utils: their floors (from pyproject.toml), and which of their files are pure."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path

PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"

# Pure files import pure files and the standard library without input and output. "*" stands for the files of a folder.
PURE = (
    *(
        "errors",
        "plan",
        "core/*",
        "continuity/*",
        "guests/*",
        "guests/stack/*",
        "kubernetes/*",
        "slurm/*",
        "pages/*",
        "usage/*",
    ),
    *("durable/calls", "durable/program"),
    *(
        "fabric/fabric_spec",
        "hosts/change_hosts",
        "hosts/driver_options",
        "hosts/image_plan",
        "hosts/pci_address",
        "hosts/roce_settings",
        "hosts/preflight/*",
        "hosts/privileges/*",
        "hosts/rollout",
    ),
    *("hosts/rollback/*", "maintenance/cluster_facts", "maintenance/evacuation"),
    *(
        "maintenance/rolling_change",
        "maintenance/service_options",
        "maintenance/stop_rules",
        "maintenance/window_limits",
        "maintenance/lock/lock_rules",
    ),
    *(
        "site/conformance/*",
        "site/discovery/*",
        "site/recording/free_text",
        "site/recording/pseudonyms",
        "training/programs/*",
        "training/runs/*",
        "training/transport/*",
    ),
    *(f"training/{room}/*" for room in ("ending", "launch", "output", "pairs", "running")),
    *(f"training/results/{one}" for one in ("attempts", "checkpoint", "manifest", "result")),
    *(f"training/results/{one}" for one in ("scaling", "timeline")),
    *("moves/checks/*", "moves/plan/*", "trials/checks/*"),
    *(f"watch/{one}" for one in ("curve", "hangs", "live_pace", "mpi_output")),
    *("trials/evidence/*", "watch/received_record", "watch/recorders", "watch/shown_lines"),
    *("jobs/*", "trials/programs/observe", "trials/programs/around_job", "trials/programs/test", "trials/steps/*"),
    *("vsphere/escaped_names", "vsphere/forms", "workers/worker_spec", "workers/capacity/host_capacity"),
    *("workers/capacity/pci_ids", "workers/capacity/running_vm", "workers/placement/*", "workers/rules/rule_options"),
)
# Files of these folders that read, write, or work on objects of the API.
IMPURE = (
    *("core/observer_clock", "core/regular_file", "core/whole_file", "guests/supervisor"),
    *("guests/file_ownership", "guests/signing_key", "hosts/rollback/ways"),
    *(
        "pages/followed_job",
        "pages/restart_section",
        "pages/training_page",
        "pages/written_report",
        "site/discovery/site_reader",
        "usage/gpu_usage",
    ),
)
# The standard library's input and output.
INPUT_OUTPUT = {
    *("concurrent", "fcntl", "http", "os", "pathlib", "queue", "selectors", "shutil", "signal", "socket", "ssl"),
    *("subprocess", "sys", "tarfile", "tempfile", "threading", "time", "urllib", "zipfile"),
}
# The packages outside the collection and the standard library that a room may import.
FOREIGN: dict[str, set[str]] = {
    "vsphere": {"pyVim", "pyVmomi", "ansible"},
    "kubernetes": {"kubernetes", "urllib3", "yaml", "ansible"},
    **{plugin: {"ansible"} for plugin in ("modules", "inventory", "action", "plugin_utils", "filter", "lookup")},
}


@cache
def floors() -> tuple[tuple[str, ...], ...]:
    """Return the rooms of each floor from top to bottom, as import-linter holds them."""
    contracts = tomllib.loads(PYPROJECT.read_text())["tool"]["importlinter"]["contracts"]
    layers = next(contract["layers"] for contract in contracts if contract["id"] == "floors")
    return tuple(tuple(layer.split(" | ")) for layer in layers)


@cache
def is_pure(file: str) -> bool:
    """Return whether a file of module_utils, such as "hosts/vib", is declared to be pure."""
    return file not in IMPURE and any(matches(pattern, file) for pattern in PURE)


def matches(pattern: str, file: str) -> bool:
    """Return whether a file fits a pattern of PURE; "*" stands for one file, not for a folder."""
    return re.fullmatch(re.escape(pattern).replace(r"\*", "[^/]+"), file) is not None


def module_utils_of(name: tuple[str, ...]) -> tuple[str, ...]:
    """Return the part of a dotted name below module_utils; empty for names outside it."""
    name = name[3:] if name[:3] == ("ansible_collections", "dml", "vsphere") else name
    return name[2:] if name[:2] == ("plugins", "module_utils") else ()


def room_of(name: tuple[str, ...]) -> str:
    """Return the room of a dotted name, or the plugin folder for other plugins; empty outside plugins."""
    inner = module_utils_of(name)
    return inner[0] if inner else name[1] if name[:1] == ("plugins",) and len(name) > 1 else ""
