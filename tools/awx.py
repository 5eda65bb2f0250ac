# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Returns the files of docs/awx: a project of AWX, with a playbook for each job template, and the file for awx import.

The questions of the surveys are the options of each playbook, and those options of its roles that are one value, with
the types and descriptions of the argument specs. They have no defaults: AWX passes each default as an extra variable,
which would override the inventory.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parent.parent
FOLDER = "docs/awx"
HEAD = """---
# The objects of AWX for the playbooks of this collection: awx --conf.format yaml import < awx.yml. Replace the image of
# the execution environment and the address of the project first. tools/awx.py writes this file.
"""
# awx import finds an object by its natural key: the fields that name it, and its type.
ORGANIZATION = {"name": "Default", "type": "organization"}
ENVIRONMENT = {"name": "dml.vsphere", "type": "execution_environment"}
PROJECT = {"organization": ORGANIZATION, "name": "dml.vsphere", "type": "project"}
INVENTORY = {"organization": ORGANIZATION, "name": "dml.vsphere", "type": "inventory"}
SOURCES = ("hosts.yml", "workers.yml")
# AWX brings this type. Its password has no place in a file, so that a person creates the credential.
CREDENTIAL = {
    "organization": ORGANIZATION,
    "name": "vcenter",
    "credential_type": {"name": "VMware vCenter", "kind": "cloud", "type": "credential_type"},
    "type": "credential",
}
# Each playbook for operators, with the roles whose options its survey offers, or ROLE.OPTION.
TEMPLATES = {
    "acceptance": (),
    "preflight": ("preflight",),
    "site": ("esxi_host",),
    "fabric": ("fabric",),
    "hosts": ("esxi_host",),
    "workers": ("worker",),
    "guests": (),
    "train": ("training",),
    "runs": (),
    "stop": ("training.training_name",),
    "fabric_check": (),
    "scaling": (),
    "vmotion_test": ("vmotion_test",),
    "window": (),
    "audit": ("audit",),
    "evidence": ("evidence",),
    "rollback": ("rollback",),
    "teardown": ("teardown",),
}
TYPES = {"str": "text", "path": "text", "int": "integer", "float": "float", "bool": "multiplechoice"}
# The short options of the playbooks, which have no argument spec.
SHORT: dict[str, tuple[str, str]] = {
    "accept_other_jobs": ("bool", "Whether workers of other training jobs may move, without a verdict on these jobs."),
    "allow_moves": ("bool", "Whether running workers may be moved to make room for others."),
    "canary": ("str", "A host to change first, alone; the run ends after it."),
    "confirm": ("bool", "Whether to remove the listed objects."),
    "continue_after_canary": ("bool", "Whether the run continues after the canary."),
    "force_unlock": ("bool", "Whether to take over the lock of another run that has ended."),
    "guests": ("str", "The hosts of the playbook, true for all workers."),
    "interrupt_training": ("bool", "Whether a running training job may be stopped."),
    "max_out_of_service": ("int", "The number of hosts that may be out of service at once."),
    "power_cycle": ("bool", "Whether running workers may be shut down for a change."),
    "power_off": ("bool", "Whether virtual machines that cannot be moved may be shut down."),
    "stack": ("str", "The stack of the guests, with all versions."),
    "under_training": ("bool", "Whether hosts are changed around a running job."),
    "unreachable_is_idle": ("bool", "Whether running workers whose training jobs cannot be read count as idle."),
    "window_action": (
        "str",
        "status shows the window; pause, resume and end steer it before its next host.",
    ),
}
Question = dict[str, Any]


class _Indented(yaml.SafeDumper):
    """Indents the entries of a list, as yamllint requires."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, indentless and flow)

    def ignore_aliases(self, _data: Any) -> bool:
        """Write an object wherever it is used."""
        return True


def files() -> dict[str, Callable[[], str]]:
    """Return the files of the folder by their paths."""
    playbooks = {f"{FOLDER}/{name}.yml": partial(_playbook, name) for name in TEMPLATES}
    return {f"{FOLDER}/awx.yml": text, **playbooks}


def text() -> str:
    """Return the file for awx import."""
    return HEAD + yaml.dump(objects(), Dumper=_Indented, sort_keys=False, width=120)


def objects() -> dict[str, list[dict[str, Any]]]:
    """Return the objects of AWX by their resource, as awx export writes them."""
    return {
        "execution_environments": [
            {"name": ENVIRONMENT["name"], "image": "registry.example.com/dml-vsphere-ee", "natural_key": ENVIRONMENT}
        ],
        "projects": [
            {
                "name": PROJECT["name"],
                "organization": ORGANIZATION,
                "scm_type": "git",
                "scm_url": "https://git.example.com/dml.git",
                "default_environment": ENVIRONMENT,
                "natural_key": PROJECT,
            }
        ],
        "inventory": [{"name": INVENTORY["name"], "organization": ORGANIZATION, "natural_key": INVENTORY}],
        "inventory_sources": [_source(path) for path in SOURCES],
        "job_templates": [_template(playbook, sources) for playbook, sources in TEMPLATES.items()],
    }


def _playbook(name: str) -> str:
    return f"---\n- name: Run the playbook of the collection\n  import_playbook: dml.vsphere.{name}\n"


def _source(path: str) -> dict[str, Any]:
    """Return a file of the project that AWX reads into the inventory before each job."""
    return {
        "name": path,
        "inventory": INVENTORY,
        "source": "scm",
        "source_project": PROJECT,
        "source_path": path,
        "execution_environment": ENVIRONMENT,
        "overwrite": True,
        "overwrite_vars": True,
        "update_on_launch": True,
        "natural_key": {"organization": ORGANIZATION, "name": path, "inventory": INVENTORY, "type": "inventory_source"},
        **({"related": {"credentials": [CREDENTIAL]}} if path == "workers.yml" else {}),
    }


def _template(playbook: str, sources: tuple[str, ...]) -> dict[str, Any]:
    questions = [*_short(playbook), *(question for source in sources for question in _of_role(*source.split(".")))]
    survey = {"name": "", "description": "", "spec": questions}
    name = f"dml.vsphere {playbook}"
    return {
        "name": name,
        "description": _title(playbook),
        "job_type": "run",
        "inventory": INVENTORY,
        "project": PROJECT,
        "playbook": f"{playbook}.yml",
        "execution_environment": ENVIRONMENT,
        "ask_job_type_on_launch": True,
        "ask_limit_on_launch": True,
        "ask_diff_mode_on_launch": True,
        "survey_enabled": bool(questions),
        "natural_key": {"organization": ORGANIZATION, "name": name, "type": "job_template"},
        "related": {"credentials": [CREDENTIAL], **({"survey_spec": survey} if questions else {})},
    }


def _title(playbook: str) -> str:
    """Return the purpose of a playbook from the reference."""
    reference = (ROOT / "docs" / "reference.md").read_text().split("| Role |")[0]
    (row,) = re.findall(rf"^\| `dml\.vsphere\.{playbook}` \| (.+?) \|$", reference, re.MULTILINE)
    return re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", row).replace("`", "")


def _short(playbook: str) -> Iterator[Question]:
    """Yield the questions about the short options of a playbook and of those that it imports."""
    known = yaml.safe_load((ROOT / "playbooks" / "vars" / "options.yml").read_text())["playbook_options"]
    parts = [playbook, *known[playbook].get("parts", [])]
    for name in sorted({name for part in parts for name in known[part].get("options", [])}):
        kind, description = SHORT[name]
        yield _question(name, {"type": kind, "description": description})


def _of_role(role: str, option: str = "") -> Iterator[Question]:
    """Yield the questions about the options of a role that are one value; the others belong in the inventory."""
    specs = yaml.safe_load((ROOT / "roles" / role / "meta" / "argument_specs.yml").read_text())
    for name, spec in specs["argument_specs"]["main"].get("options", {}).items():
        if option not in ("", name):
            continue
        if spec.get("type", "str") in TYPES and not _has_other_source(role, name, spec):
            yield _question(name, spec)


def _has_other_source(role: str, name: str, spec: dict[str, Any]) -> bool:
    """Return whether the inventory or a short option of the playbook sets the value."""
    return "{{" in str(spec.get("default", "")) or name.removeprefix(f"{role}_") in SHORT


def _question(name: str, spec: dict[str, Any]) -> Question:
    words = spec.get("description", "")
    described = " ".join((" ".join(words) if isinstance(words, list) else words).split())
    kind = "multiplechoice" if "choices" in spec else TYPES[spec.get("type", "str")]
    choices = spec.get("choices") or (["true", "false"] if kind == "multiplechoice" else [])
    return {
        "question_name": name,
        "question_description": re.sub(r"[A-Z]+\(([^)]*)\)", r"\1", described),
        "variable": name,
        "type": kind,
        "required": bool(spec.get("required")),
        **({"choices": [str(choice) for choice in choices]} if choices else {}),
        **({"min": 0, "max": 2**31 - 1} if kind in ("integer", "float") else {}),
    }
