"""Returns the page of all errors and findings with their remedies, from the sentences in the code.

A part of a sentence that is known only in a run, such as the name of a host, is in capitals. ``make docs`` adds the
page to the documentation site.
"""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import yaml

from tools import code_texts
from tools.code_texts import MOST, Known, Scope, escape, placeholder, texts

ROOT = Path(__file__).resolve().parent.parent
ERRORS = {"Refused", "Failed", "NotFound", "Unreachable", "TimedOut", "StillDiffers", "Abandoned"}
# The place of the text in the arguments of a finding.
FINDINGS = {"Finding": 3, "finding": 2}
STOP, SEVERITIES = "STOP", {"STOP", "WARN", "NOTE"}
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
    "slurm": "Slurm",
    "vmotion": "vMotion",
    "continuity": "Verdicts",
    "usage": "GPU usage",
    "pages": "Reports",
    "core": "Options",
    "playbooks": "Playbooks and roles",
    "plugins": "Other plugins",
}
HEAD = """# Troubleshooting by error text

Each error and each finding of the collection is on this page, with its remedy. Leave out the names and numbers of your
site, which are in capitals here, and search for the words between them, such as *could not leave maintenance mode*.
[Faults during host preparation](docs/faults.md) describes the state of the hosts after each fault.
"""


class Raising(NamedTuple):
    """A function that raises an error about what its caller tries: places of its arguments, reason, and remedy."""

    target: int
    tried: int
    remedy: int
    reason: str
    otherwise: str


# A host knows its own name: must_answer has no argument for it.
NOWHERE = 99
REPORTED = (
    "remove the cause that the server reports, and run again; after NoPermission, give the account that privilege"
)
RAISING = {
    "translating_faults": Raising(0, 1, 2, "the server said FAULT", REPORTED),
    "Started": Raising(
        1,
        2,
        3,
        "the task did not end within SECONDS s",
        "it may still run: see Recent Tasks in the vSphere Client, and run again when it has ended",
    ),
    "go_on": Raising(0, 1, NOWHERE, "the ansible run that requested it has ended", "run again"),
    "must_answer": Raising(NOWHERE, 0, NOWHERE, "vCenter shows it as STATE", "bring it back and run again"),
}
# The functions that take what is tried by its name, with the object and the reason of their errors.
TRYING = {
    **dict.fromkeys(("get", "find", "send", "task"), ("SERVER", "the server said ANSWER")),
    **dict.fromkeys(("run", "rows"), ("HOST", "esxcli said FAULT")),
}
# The verbs with which a remedy begins in a message without a separate one in the code.
_REMEDY = re.compile(
    r"(?:^|[:;.] )((?:add|check|choose|correct|delete|disable|do not|give|install|let|list|name|raise|reboot|"
    r"remove|renew|run|see|set|start|turn|use|wait|write) .*)",
    re.IGNORECASE,
)
CAUSE = "Remove the cause that the message names, and run the same command again."
CONTINUES = "The run continues: this is a warning or a note."


class Sentence(NamedTuple):
    """A message as Markdown, its remedy, and its topic."""

    topic: str
    message: str
    remedy: str


@cache
def page(root: Path = ROOT) -> str:
    """Return the page as Markdown."""
    found: dict[str, dict[str, list[str]]] = {}
    for one in sorted(set(sentences(root))):
        if _has_words(one.message):
            found.setdefault(one.topic, {}).setdefault(one.message, []).append(one.remedy)
    parts = [HEAD]
    for topic, title in TOPICS.items():
        rows = [_row(message, remedies) for message, remedies in found.get(topic, {}).items()]
        parts += [f"## {title}\n", *rows] if rows else []
    return "\n".join(parts)


def _row(message: str, remedies: Iterable[str]) -> str:
    useful = [remedy for remedy in remedies if re.search("[a-z]{3}", remedy)]
    found = _REMEDY.search(message)
    written = [remedy for remedy in useful if remedy != CONTINUES] or [_sentence(found[1])] if found else useful
    return "\n".join([message, *(f": {remedy}" for remedy in written or [CAUSE]), ""])


def _has_words(text: str) -> bool:
    """Return whether a text is more than names that are known only in a run."""
    tried = text.partition("could not ")[2]
    own = re.search(r"\b[a-z]{2,} [a-z]{2,}", text.replace("could not", ""))
    return own is not None and not re.match("[A-Z. ]*:", tried) and not text.endswith(": ")


def sentences(root: Path = ROOT) -> Iterator[Sentence]:
    """Yield the sentences of the plugins, the roles and the playbooks."""
    for path in sorted((root / "plugins").rglob("*.py")):
        yield from of_python(code_texts.parsed(path), _topic(path.relative_to(root)), path)
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
                r"\{\{\s*([\w.]*)(?:[^}]|\}(?!\}))*\}\}", lambda found: placeholder(found[1].split(".")[-1]), message
            )
            if re.search("[a-z]{3} [a-z]", named):
                yield Sentence("playbooks", escape(" ".join(named.replace("\\", "").split())), "")
        for below in document.values():
            yield from _of_yaml(below)
    elif isinstance(document, list):
        for below in document:
            yield from _of_yaml(below)


def of_python(tree: ast.Module, topic: str, path: Path | None = None) -> Iterator[Sentence]:
    """Yield the sentences of a module of Python."""
    module = code_texts.module_scope(tree, path)
    for function in ast.walk(tree):
        if isinstance(function, (ast.FunctionDef, ast.Module)):
            for scope in _scopes(function, tree, module):
                for node in _nodes(function):
                    for message, remedy in _messages(node, scope):
                        yield Sentence(topic, message, remedy)


def _scopes(function: ast.FunctionDef | ast.Module, tree: ast.Module, module: Scope) -> Iterator[Scope]:
    """Yield the scope of a function for each of its calls in its module, which give its parameters their texts."""
    inner = code_texts.function_scope(function, module) if isinstance(function, ast.FunctionDef) else module
    names = code_texts.parameters(function)
    name = getattr(function, "name", "")
    calls = list(_calls_of(name, tree, module)) if name and "tried" in names else []
    for call, outer in calls:
        arguments = dict(zip([each for each in names if each != "self"], call.args, strict=False))
        arguments |= {each.arg: each.value for each in call.keywords if each.arg}
        bound: dict[str, list[ast.expr]] = {
            key: [Known(text) for text in texts(value, outer)] for key, value in arguments.items()
        }
        yield inner.with_names(bound)
    if not calls:
        yield inner


def _calls_of(name: str, tree: ast.Module, module: Scope) -> Iterator[tuple[ast.Call, Scope]]:
    for caller in ast.walk(tree):
        if isinstance(caller, ast.FunctionDef):
            for node in _nodes(caller):
                if isinstance(node, ast.Call) and _called(node) == name:
                    yield node, code_texts.function_scope(caller, module)


def _nodes(function: ast.AST) -> Iterator[ast.expr]:
    """Yield the calls and tuples of a function or a module, without those of the functions in it."""
    for child in ast.iter_child_nodes(function):
        if not isinstance(child, (ast.FunctionDef, ast.ClassDef)):
            if isinstance(child, (ast.Call, ast.Tuple)):
                yield child
            yield from _nodes(child)


def _messages(node: ast.expr, scope: Scope) -> Iterator[tuple[str, str]]:
    if isinstance(node, ast.Tuple):
        if len(node.elts) == 3 and getattr(node.elts[0], "id", "") in SEVERITIES:
            yield from _findings(node.elts[0], node.elts[2], scope)
    elif isinstance(node, ast.Call):
        name, arguments = _called(node), list(_arguments(node, scope))
        if name in ERRORS and len(arguments) >= 3:
            yield from _errors(arguments, scope)
        elif name in FINDINGS and len(arguments) > FINDINGS[name]:
            yield from _findings(arguments[0], arguments[FINDINGS[name]], scope)
        elif name in RAISING:
            yield from _errors(_raised(RAISING[name], arguments), scope, RAISING[name].otherwise)
        elif name in TRYING and (tried := [each.value for each in node.keywords if each.arg == "tried"]):
            remedies = [each.value for each in node.keywords if each.arg == "remedy"]
            target, reason = map(Known, TRYING[name])
            yield from _errors([target, *tried, reason, *remedies], scope, REPORTED)


def _called(call: ast.Call) -> str:
    return getattr(call.func, "id", getattr(call.func, "attr", ""))


def _arguments(call: ast.Call, scope: Scope) -> Iterator[ast.expr]:
    for argument in call.args:
        if isinstance(argument, ast.Starred) and isinstance(argument.value, ast.Attribute):
            for value in scope.get(f"self.{argument.value.attr}", [])[:1]:
                yield from value.elts if isinstance(value, ast.Tuple) else []
        else:
            yield argument


def _raised(one: Raising, arguments: list[ast.expr]) -> list[ast.expr]:
    """Return the arguments of the error that a function raises for its caller."""
    target, tried = ([*arguments[place:], Known("HOST")][0] for place in (one.target, one.tried))
    return [target, tried, Known(one.reason), *arguments[one.remedy :][:1]]


def _errors(arguments: list[ast.expr], scope: Scope, otherwise: str = "") -> Iterator[tuple[str, str]]:
    parts = [texts(argument, scope) for argument in arguments[:4]]
    for target, tried, reported in itertools.islice(itertools.product(*parts[:3]), MOST):
        for remedy in (parts[3] if len(parts) > 3 else [""])[:MOST]:
            yield f"{target}: could not {tried}: {reported}", _sentence(remedy or otherwise)


def _findings(severity: ast.expr, text: ast.expr, scope: Scope) -> Iterator[tuple[str, str]]:
    otherwise = "" if getattr(severity, "id", STOP) == STOP else CONTINUES
    for each in texts(text, scope)[:MOST]:
        message, _semicolon, remedy = each.rpartition("; ")
        yield (message or remedy), (_sentence(remedy) if message else otherwise)


def _sentence(text: str) -> str:
    first = text[:1] if text[1:2].isupper() else text[:1].upper()
    ended = text if text.endswith(code_texts.UNNAMED) else f"{text.rstrip('.')}."
    return first + ended[1:] if text else ""
