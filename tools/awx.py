# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Returns docs/awx.yml, the job templates of AWX with their surveys.

The questions are the options of each playbook, and those options of its roles that are one value, with the types and
descriptions of the argument specs. They have no defaults: AWX passes each default as an extra variable, which would
override the inventory.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parent.parent
HEAD = """---
# The job templates of AWX for the playbooks of this collection, as arguments of awx.awx.job_template. docs/awx.md has a
# playbook that creates them. tools/awx.py writes it from the argument specs.
"""
# Each playbook for operators, with the roles whose options its survey offers. A run with check mode writes nothing.
TEMPLATES = {
    "acceptance": (),
    "preflight": ("preflight",),
    "site": ("esxi_host",),
    "fabric": ("fabric",),
    "hosts": ("esxi_host",),
    "workers": ("worker",),
    "guests": (),
    "train": ("training",),
    "fabric_check": (),
    "scaling": (),
    "vmotion_test": ("vmotion_test",),
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
}
Question = dict[str, Any]


class _Indented(yaml.SafeDumper):
    """Indents the entries of a list, as yamllint requires."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, indentless and flow)


def templates() -> list[dict[str, Any]]:
    """Return the job templates in the order of the table."""
    return [_template(playbook, roles) for playbook, roles in TEMPLATES.items()]


def text() -> str:
    """Return the file."""
    return HEAD + yaml.dump({"awx_job_templates": templates()}, Dumper=_Indented, sort_keys=False, width=120)


def _template(playbook: str, roles: tuple[str, ...]) -> dict[str, Any]:
    questions = [*_short(playbook), *(question for role in roles for question in _of_role(role))]
    survey = {"name": "", "description": "", "spec": questions}
    return {
        "name": f"dml.vsphere {playbook}",
        "description": _title(playbook),
        "playbook": f"{playbook}.yml",
        "job_type": "run",
        "ask_job_type_on_launch": True,
        "ask_limit_on_launch": True,
        "ask_diff_mode_on_launch": True,
        "survey_enabled": bool(questions),
        **({"survey_spec": survey} if questions else {}),
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


def _of_role(role: str) -> Iterator[Question]:
    """Yield the questions about the options of a role that are one value; the others belong in the inventory."""
    specs = yaml.safe_load((ROOT / "roles" / role / "meta" / "argument_specs.yml").read_text())
    for name, spec in specs["argument_specs"]["main"].get("options", {}).items():
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
