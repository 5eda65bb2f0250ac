# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Returns the page of all errors and findings with their remedies, from the sentences in the code.

A part of a sentence that is known only in a run, such as the name of a host, is in capitals. ``make docs`` adds the
page to the documentation site.
"""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import yaml

ROOT = Path(__file__).resolve().parent.parent
ERRORS = {"Refused", "Failed", "NotFound", "Unreachable", "TimedOut", "StillDiffers", "Abandoned"}
# The place of the text in the arguments of a finding.
FINDINGS = {"Finding": 3, "finding": 2}
TOPICS = {
    "site": "Discovery, acceptance and recordings",
    "cluster": "vCenter and clusters",
    "vsphere": "Connection to vCenter",
    "fabric": "RDMA network",
    "hosts": "ESXi hosts",
    "maintenance": "Maintenance, locks and reboots",
    "workers": "Workers",
    "guests": "Guests",
    "training": "Training",
    "kubernetes": "Kubernetes",
    "vmotion": "vMotion",
    "continuity": "Verdicts",
    "usage": "GPU usage",
    "pages": "Reports",
    "core": "Options",
    "playbooks": "Playbooks and roles",
    "plugins": "Other plugins",
}
HEAD = """# Troubleshooting by error text

Search for words of the message: each error and each finding of the collection is on this page, with its remedy. Names
of the site are in capitals here. [Faults during host preparation](docs/faults.md) describes the state of the hosts
after each fault.
"""
_SPECIAL = re.compile(r"([\\`*_\[\]<>{}|$#~])")
_MOST = 8
_DEEPEST = 4
# Names that are too general for a placeholder, in whose place the name before them is used.
_GENERAL = {"name", "target", "text", "_name", "id"}
Scope = dict[str, list[ast.expr]]


class Sentence(NamedTuple):
    """A message as Markdown, its remedy, and its topic."""

    topic: str
    message: str
    remedy: str


def page(root: Path = ROOT) -> str:
    """Return the page as Markdown."""
    found = sorted(set(sentences(root)))
    parts = [HEAD]
    for topic, title in TOPICS.items():
        rows = [_row(one) for one in found if one.topic == topic and _has_words(one.message)]
        parts += [f"## {title}\n", *rows] if rows else []
    return "\n".join(parts)


def _row(one: Sentence) -> str:
    remedy = one.remedy if re.search("[a-z]{3}", one.remedy) else "The message contains the remedy."
    return f"{one.message}\n: {remedy}\n"


def _has_words(text: str) -> bool:
    """Return whether a text is more than names that are known only in a run."""
    return re.search(r"\b[a-z]{2,} [a-z]{2,}", text.replace("could not", "")) is not None


def sentences(root: Path = ROOT) -> Iterator[Sentence]:
    """Yield the sentences of the plugins, the roles and the playbooks."""
    for path in sorted((root / "plugins").rglob("*.py")):
        yield from _of_python(path.read_text(), _topic(path.relative_to(root)))
    for folder in ("playbooks", "roles"):
        for path in sorted((root / folder).rglob("*.yml")):
            yield from _of_yaml(yaml.safe_load(path.read_text()))


def _topic(path: Path) -> str:
    room = path.parts[2] if len(path.parts) > 3 and path.parts[1] == "module_utils" else "plugins"
    return room if room in TOPICS else "plugins"


def _of_yaml(document: object) -> Iterator[Sentence]:
    if isinstance(document, dict):
        message = document.get("fail_msg")
        if isinstance(message, str) and not message.strip().startswith("{{ _"):
            named = re.sub(
                r"\{\{\s*([\w.]+)[^}]*\}\}", lambda found: _placeholder(found[1].split(".")[-1]), escape(message)
            )
            if re.search("[a-z]{3} [a-z]", named):
                yield Sentence("playbooks", " ".join(named.split()), "")
        for below in document.values():
            yield from _of_yaml(below)
    elif isinstance(document, list):
        for below in document:
            yield from _of_yaml(below)


def _of_python(text: str, topic: str) -> Iterator[Sentence]:
    tree = ast.parse(text)
    for function in ast.walk(tree):
        if isinstance(function, (ast.FunctionDef, ast.Module)):
            scope = _scope(function)
            for call in _calls(function):
                for message, remedy in _messages(call, scope):
                    yield Sentence(topic, message, remedy)


def _scope(function: ast.AST) -> Scope:
    """Return the expressions that are assigned to each name in a function."""
    scope: Scope = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                pairs = [(target, node.value)]
                if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                    pairs = list(zip(target.elts, node.value.elts, strict=False))
                for name, value in pairs:
                    if isinstance(name, ast.Name):
                        scope.setdefault(name.id, []).append(value)
    return scope


def _calls(function: ast.AST) -> Iterator[ast.Call]:
    """Yield the calls of a function, without those of functions in it; of a module, none of its functions."""
    for child in ast.iter_child_nodes(function):
        if not isinstance(child, (ast.FunctionDef, ast.ClassDef)):
            if isinstance(child, ast.Call):
                yield child
            yield from _calls(child)


def _messages(call: ast.Call, scope: Scope) -> Iterator[tuple[str, str]]:
    name = getattr(call.func, "id", getattr(call.func, "attr", ""))
    if name in ERRORS and len(call.args) >= 3:
        parts = [texts(argument, scope) for argument in call.args[:4]]
        for target, tried, reported in itertools.islice(itertools.product(*parts[:3]), _MOST):
            for remedy in (parts[3] if len(parts) > 3 else [""])[:_MOST]:
                yield f"{target}: could not {tried}: {reported}", _sentence(remedy)
    elif name in FINDINGS and len(call.args) > FINDINGS[name]:
        for text in texts(call.args[FINDINGS[name]], scope)[:_MOST]:
            message, _semicolon, remedy = text.rpartition("; ")
            yield (message or remedy), (_sentence(remedy) if message else "")


def texts(node: ast.expr, scope: Scope, depth: int = 0) -> list[str]:
    """Return the texts that an expression can have, as Markdown."""
    if isinstance(node, ast.Constant):
        return [escape(str(node.value))]
    if isinstance(node, ast.FormattedValue):
        return texts(node.value, scope, depth)
    if parts := _parts(node):
        return _joined([texts(part, scope, depth) for part in parts])
    if (choices := _choices(node, scope)) and depth < _DEEPEST:
        return [text for choice in choices for text in texts(choice, scope, depth + 1)][:_MOST]
    return [_placeholder(_name(node))]


def _parts(node: ast.expr) -> list[ast.expr]:
    """Return the expressions whose texts are joined."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return [node.left, node.right]
    return node.values if isinstance(node, ast.JoinedStr) else []


def _choices(node: ast.expr, scope: Scope) -> list[ast.expr]:
    """Return the expressions of which one is the text."""
    if isinstance(node, ast.IfExp):
        return [node.body, node.orelse]
    return scope.get(node.id, []) if isinstance(node, ast.Name) else []


def _joined(parts: Iterable[list[str]]) -> list[str]:
    return ["".join(pieces) for pieces in itertools.islice(itertools.product(*parts), _MOST)]


def _name(node: ast.expr) -> str:
    """Return a name for the value of an expression."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        before = _name(node.value)
        return before if node.attr in _GENERAL and before not in ("self", "") else node.attr
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        return str(node.slice.value) if str(node.slice.value) not in _GENERAL else _name(node.value)
    if isinstance(node, ast.Call) and node.args:
        return _name(node.args[0])
    return ""


def _placeholder(name: str) -> str:
    words = escape(name.strip("_").replace("_", " ").upper())
    return words if re.search("[A-Z]", words) else "..."


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:].rstrip('.')}." if text else ""


def escape(text: str) -> str:
    """Return a text as Markdown that shows it unchanged."""
    return _SPECIAL.sub(r"\\\1", text)
