"""Write all text that is derived from the parts of a host's profile: ``python tools/subjects.py``.

This is the list of parts, and the head of the RETURN of each subject's module. For tools/generated.py, it returns the
table of settings that a rollback restores, and the tables of privileges.
"""

from __future__ import annotations

import ast
import importlib
import re
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

SUBJECTS = ROOT / "plugins" / "module_utils" / "hosts"
PROFILE_PARTS = SUBJECTS / "profile_parts.py"
MODULES = ROOT / "plugins" / "modules"
UNIT_TESTS = ROOT / "tests" / "unit" / "plugins" / "module_utils" / "hosts"
# Files with classes that have the methods of a subject, but are not a part of a host's profile: the contract, the
# profile, and the image of a cluster with its depot and hosts.
NO_PART = {"part", "profile", "cluster_image", "host_image", "image_work"}
RETURN_BEGIN, RETURN_STATE = 'RETURN = r"""\n', "    state:"
RETURN_HEAD = """\
needs:
  description: The needs of the hosts until the change takes effect on all of them.
  returned: success
  type: list
  elements: str
  sample: [reboot]
hosts:
  description: One entry for each host.
  returned: always
  type: list
  elements: dict
  contains:
    host: {description: The name of the host., type: str}
    changed: {description: Whether the host was changed., type: bool}
    needs: {description: The needs of the host until the change takes effect., type: list, elements: str}
    reboots: {description: The number of boots until then., type: int}
    why: {description: The reasons for these needs., type: list, elements: str}
    unmet: {description: The reasons why the change cannot be made now., type: list, elements: str}
    warnings: {description: Settings that work but are unwise., type: list, elements: str}
"""


def profile_parts() -> str:
    """Return the list of parts with all sibling files that have a PART, in alphabetical order."""
    names = with_part()
    text = PROFILE_PARTS.read_text()
    imported = re.sub(r"^from \. import .*$", f"from . import {', '.join(names)}", text, flags=re.MULTILINE)
    return re.sub(r"(?<= in \()[^)]*", ", ".join(names), imported)


def with_part() -> list[str]:
    """Return the names of the files that have a PART."""
    return sorted(path.stem for path in SUBJECTS.glob("*.py") if _has_part(path))


def _has_part(path: Path) -> bool:
    nodes = ast.parse(path.read_text()).body
    targets = [target for node in nodes if isinstance(node, ast.Assign) for target in node.targets]
    return any(isinstance(target, ast.Name) and target.id == "PART" for target in targets)


def lacking() -> list[str]:
    """Return a sentence for each file that a subject lacks; the texts are written only if there is none."""
    table = importlib.import_module("plugins.module_utils.hosts.privileges.privilege_table")
    known = {**table.CALLS, **{call: needs for part in parts().values() for call, needs in part.needs.items()}}
    sentences = [f"{name}.py has a subject: add its PART" for name in sorted(with_subject() - set(with_part()))]
    for name, part in parts().items():
        needed = (MODULES / f"{part.module}.py", UNIT_TESTS / f"test_{name}.py")
        missing = [path.relative_to(ROOT).as_posix() for path in needed if not path.exists()]
        sentences += [f"{name}.py has a PART: write {path}" for path in missing]
        unknown = [call for call in part.calls if call not in known]
        sentences += [f"{name}.py: add the privileges of {call} to needs of its PART" for call in unknown]
    return sentences


def with_subject() -> set[str]:
    """Return the names of the files with a class that has the methods of a subject, if they may have a PART."""
    return {path.stem for path in SUBJECTS.glob("*.py") if path.stem not in NO_PART and _has_subject(path)}


def _has_subject(path: Path) -> bool:
    classes = [node for node in ast.parse(path.read_text()).body if isinstance(node, ast.ClassDef)]
    methods = [{method.name for method in node.body if isinstance(method, ast.FunctionDef)} for node in classes]
    return any({"read", "apply"} <= names for names in methods)


def parts() -> dict[str, Any]:
    """Return each PART by the name of its file, also those that are not in the list yet."""
    return {name: importlib.import_module(f"plugins.module_utils.hosts.{name}").PART for name in with_part()}


def restored() -> str:
    """Return the table of the settings that a rollback restores."""
    parts = importlib.import_module("plugins.module_utils.hosts.profile_parts").PARTS
    rows = [
        "| Name of the change | Restored |",
        "|---|---|",
        *(f"| `{part.key}` | {part.restores} |" for part in parts),
    ]
    return "\n".join(rows)


def privileges() -> str:
    """Return both tables of privileges with their headings: by privilege, and by module with its calls."""
    table = importlib.import_module("plugins.module_utils.hosts.module_privileges").TABLE
    known = table.rows()
    lines = ["### By privilege", "", "| Privilege | On | Modules | Source |", "|---|---|---|---|"]
    lines.append(
        "| `System.Anonymous`, `System.View`, `System.Read` | each object | all, to read | every role has them |"
    )
    for privilege, on in sorted({row[:2] for row in known}):
        mine = [row for row in known if row[:2] == (privilege, on)]
        names = ", ".join(f"`{name}`" for name in sorted({row[2] for row in mine}))
        lines.append(f"| `{privilege}` | {on} | {names} | {', '.join(sorted({row[4] for row in mine}))} |")
    lines += ["", "### By module", "", "| Module | Call | Privilege | On |", "|---|---|---|---|"]
    for module in sorted(table.modules()):
        if not table.calls_of(module):
            lines.append(f"| `{module}` | reads only | only those of every role | |")
        for call in table.calls_of(module):
            needs = table.needs_of(call, module)
            lines.append(
                f"| `{module}` | `{call}` | {', '.join(f'`{need.privilege}`' for need in needs)} "
                f"| {', '.join(dict.fromkeys(need.on for need in needs))} |"
            )
    return "\n".join(lines)


def returned(module: Path) -> str:
    """Return the module of a subject with the keys of RETURN that all of them have before "state"."""
    head, rest = module.read_text().split(RETURN_BEGIN)
    return f"{head}{RETURN_BEGIN}{RETURN_HEAD}{RETURN_STATE}{rest.split(RETURN_STATE, maxsplit=1)[1]}"


def _modules() -> list[Path]:
    return [path for path in sorted(MODULES.glob("esxi_*.py")) if "subject_module" in path.read_text()]


# The list of parts is first, because the others are derived from it.
WRITTEN: dict[Path, Callable[[], str]] = {
    PROFILE_PARTS: profile_parts,
    **{module: partial(returned, module) for module in _modules()},
}

if __name__ == "__main__":
    if sentences := lacking():
        sys.exit("\n".join(sentences))
    for file, made in WRITTEN.items():
        file.write_text(made())
