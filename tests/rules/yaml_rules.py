"""The rules of roles and playbooks, read from their YAML and templates: each rule yields a sentence for each breach."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml
from jinja2 import Environment

FOLDERS = ("roles", "playbooks")
# Keywords whose text is an expression without braces.
BARE = {"when", "that", "until", "failed_when", "changed_when"}
# Where and as whom a task runs, and the variables that may say so: a program has checked those of a job.
PLACES = ("become_user", "delegate_to", "remote_user", "connection", "port")
CHECKED = frozenset({"inventory_hostname", "node_user", "training_user", "audit_slurm"})
EXPRESSION, NAME = re.compile(r"\{\{(.*?)\}\}", re.DOTALL), re.compile(r"[A-Za-z_][\w.]*")
BLOCKS = ("block", "rescue", "always")
PLAY_PARTS = ("pre_tasks", "tasks", "post_tasks", "handlers")
# Folders in which every user of a node may make files and links, and homes of users.
EVERYBODYS = re.compile(r"(?<![\w.])(?:/tmp|/var/tmp|/dev/shm|/run/lock|/var/lock|/run/user)(?![\w.-])")
HOME = re.compile(r"/home/|\bhome\s*\}\}/|~/|\$HOME")
# The loader in C, if PyYAML has it, is five times as fast.
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
LEXER = Environment(autoescape=True)
ENDS = {"variable_begin": "variable_end", "block_begin": "block_end"}


# The files that may set facts, each because other hosts read the fact or because it is computed once for all of them.
FACTS = {
    "playbooks/guests.yml": "the stack is read once, and its variables are options of the roles on each node",
    "roles/horovod/tasks/wheel.yml": "nodes with the same recipe find each other in hostvars",
    "roles/node/tasks/user.yml": "the peers read the address and the keys of a node in hostvars",
    "roles/packages/tasks/apt.yml": "the lists of packages are updated once in a run",
    "roles/rdma/tasks/ring.yml": "the ring of nodes is computed once for all of them",
}


class File:
    """One file of YAML or one template."""

    def __init__(self, root: Path, path: Path) -> None:
        self.path, self.name = path, path.relative_to(root).as_posix()

    @cached_property
    def document(self) -> Any:
        """Return the content of a YAML file, or the text of a template."""
        text = self.path.read_text(encoding="utf-8")
        return yaml.load(text, Loader=LOADER) if self.path.suffix == ".yml" else text


class Files:
    """The files that the rules check."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @cached_property
    def all(self) -> list[File]:
        paths = [path for folder in FOLDERS for path in sorted((self.root / folder).rglob("*"))]
        return [File(self.root, path) for path in paths if path.suffix in {".yml", ".j2"}]


def expressions(value: Any, bare: bool = False) -> Iterator[str]:
    """Yield every Jinja expression and statement below a value, as folded YAML gives it."""
    if isinstance(value, dict):
        for key, below in value.items():
            yield from expressions(below, key in BARE)
    elif isinstance(value, list):
        for below in value:
            yield from expressions(below, bare)
    elif isinstance(value, str):
        yield from [value] if bare else _inside(value) if "{" in value else []


def _inside(text: str) -> Iterator[str]:
    """The expressions and statements of a text, without their braces."""
    parts: list[str] | None = None
    for _line, kind, token in LEXER.lex(text):
        if kind in ENDS:
            parts = []
        elif kind in ENDS.values() and parts is not None:
            yield "".join(parts).strip()
            parts = None
        elif parts is not None:
            parts.append(token)


def tasks_of(document: Any) -> Iterator[dict[str, Any]]:
    """Yield every task and play of a file, also those in blocks."""
    for task in document if isinstance(document, list) else []:
        if isinstance(task, dict):
            yield task
            for part in (*BLOCKS, *PLAY_PARTS):
                yield from tasks_of(task.get(part))


def nothing_of_root_where_others_write(files: Files) -> Iterator[str]:
    """No role uses a folder that every user of a node may write, and only the user works in a user's home."""
    for file in files.all:
        texts = file.document if isinstance(file.document, list) else [file.document]
        for text in _texts(texts):
            yield from (f"{file.name}: {place} belongs to everybody" for place in EVERYBODYS.findall(text))
        for task, users in _with_users(file.document, ()):
            if any(HOME.search(text) for text in _texts(_own(task))) and not any(users):
                yield f"{file.name}: {task.get('name')!r} works in a home, and not as its user"


def _texts(value: Any) -> Iterator[str]:
    """Yield every text below a value."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for below in value:
            yield from _texts(below)
    elif isinstance(value, str):
        yield value


def _with_users(document: Any, users: tuple[str, ...]) -> Iterator[tuple[dict[str, Any], tuple[str, ...]]]:
    """Yield every task with the users of the task and of the blocks around it."""
    for task in document if isinstance(document, list) else []:
        if isinstance(task, dict):
            as_whom = (*users, str(task.get("become_user", "")))
            yield task, as_whom
            for part in BLOCKS:
                yield from _with_users(task.get(part), as_whom)


def _own(task: dict[str, Any]) -> list[Any]:
    """Return the options of the module of a task; conditions, names and blocks do not concern files."""
    return [value for key, value in task.items() if "." in key and key != "ansible.builtin.set_fact"]


def kubernetes_without_account(files: Files) -> Iterator[str]:
    """A kubeconfig may name a program: the modules of kubernetes.core start it without the vCenter account."""
    for file in files.all:
        for task in tasks_of(file.document):
            hidden = task.get("environment") or {}
            if any(str(key).startswith("kubernetes.core.") for key in task) and hidden.get("VMWARE_PASSWORD") != "":
                yield f"{file.name}: {task.get('name')!r} passes the vCenter account to programs of the kubeconfig"


def no_state_in_facts(files: Files) -> Iterator[str]:
    """No task keeps state in a fact: order and state belong in a program, decisions in a module."""
    for file in files.all:
        for task in tasks_of(file.document):
            if "ansible.builtin.set_fact" in task and file.name not in FACTS:
                yield f"{file.name}: {task.get('name')!r} sets a fact"


def nodes_choose_no_place(files: Files) -> Iterator[str]:
    """The user and the place of a task come from the inventory or from a program that checks them, not from a node."""
    for file in files.all:
        for task in tasks_of(file.document):
            for key in PLACES:
                names = set(NAME.findall(re.sub(r"'[^']*'", "", " ".join(EXPRESSION.findall(str(task.get(key, "")))))))
                for name in sorted(names - CHECKED - {"default", "or"}):
                    yield f"{file.name}: {task.get('name')!r} has a {key} from {name}"


Rule = Callable[[Files], Iterator[str]]
RULES: tuple[Rule, ...] = (
    nothing_of_root_where_others_write,
    no_state_in_facts,
    kubernetes_without_account,
    nodes_choose_no_place,
)
