"""The rules of the house, read from the syntax trees of a checkout: each rule yields one sentence for each breach."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml

from tests.rules.rooms import FOREIGN, INPUT_OUTPUT, is_pure, module_utils_of, room_of

DOC_BLOCKS = ("DOCUMENTATION", "EXAMPLES", "RETURN")
SEVERITIES = ("STOP", "WARN", "NOTE")
MODULE_ENDS = {"exit_json", "fail_json"}
LONGEST_FUNCTION, LONGEST_BODY, LONGEST_FILE = 30, 15, 400
OUR_PYTHON = ("front", "plugins", "tests", "lab", "tools", "bench", "molecule", "roles")
COPYRIGHT = "# Copyright: (c) 2026, dml.vsphere contributors"
BECOMES = "plugins/plugin_utils/node_modules.py"
# The names of what the inventory says about nodes, and of the options of a function that gets it.
INVENTORY = {"node", "nodes", "run.nodes", "params"}
# The methods that run a module, and the place of its name among their arguments.
RUN_MODULES = {"here": 0, "there": 0, "planned": 0, "of_cluster": 0, "on_each": 0, "on": 1, "on_node": 2}
LICENCE = "# GNU General Public License v3.0+ "


class Source:
    """One Python file."""

    def __init__(self, root: Path, path: Path) -> None:
        self.path, self.name = path, path.relative_to(root).as_posix()
        self.text = path.read_text(encoding="utf-8")

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text, self.name)

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """Return all nodes of the tree: the search for them takes longer than most rules."""
        return list(ast.walk(self.tree))

    @cached_property
    def parts(self) -> tuple[str, ...]:
        """Return the dotted name of the file as Python sees it from the root."""
        return tuple(self.name.removesuffix(".py").split("/"))

    @cached_property
    def room(self) -> str:
        """Return the room of the file; empty outside plugins."""
        return room_of(self.parts)

    def where(self, node: Any) -> str:
        return f"{self.name}:{node.lineno}"

    def imports(self) -> Iterator[tuple[ast.stmt, tuple[str, ...]]]:
        """Yield every imported dotted name, with relative ones resolved."""
        for node in self.nodes:
            if isinstance(node, ast.Import):
                yield from ((node, tuple(alias.name.split("."))) for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                base = self.parts[: -node.level] if node.level else ()
                start = (*base, *(node.module.split(".") if node.module else ()))
                yield from ((node, (*start, alias.name)) for alias in node.names)


class Checkout:
    """The files that the rules check."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @cached_property
    def sources(self) -> list[Source]:
        """Return all Python files of the project."""
        folders = [self.root / name for name in OUR_PYTHON]
        return [Source(self.root, path) for folder in folders for path in sorted(folder.rglob("*.py"))]

    @cached_property
    def plugins(self) -> list[Source]:
        return [source for source in self.sources if source.parts[0] == "plugins"]

    @cached_property
    def modules(self) -> list[Source]:
        return [source for source in self.plugins if source.parts[1] == "modules"]

    @cached_property
    def grouped(self) -> set[str]:
        """The modules of the action group."""
        runtime = yaml.safe_load((self.root / "meta" / "runtime.yml").read_text())
        return set(runtime["action_groups"]["vsphere"])

    @cached_property
    def named_in_tests(self) -> set[str]:
        """Every word in the text constants and imports of unit and integration tests."""
        words: set[str] = set()
        for source in self.sources:
            if source.parts[0] == "tests" and source.parts[-1].startswith("test_"):
                texts = [node.value for node in source.nodes if isinstance(node, ast.Constant)]
                words.update(*(re.findall(r"\w+", text) for text in texts if isinstance(text, str)))
                words.update(*(name for _node, name in source.imports()))
        return words


def blocks_of(source: Source) -> dict[str, ast.Assign]:
    """The documentation blocks of a plugin, by name."""
    return {
        node.targets[0].id: node
        for node in source.tree.body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id in DOC_BLOCKS
    }


def length(node: Any) -> int:
    """The lines of a node."""
    return int(node.end_lineno - node.lineno + 1)


def pure_files(checkout: Checkout) -> Iterator[str]:
    """Pure files import pure files only, and no input and output of the standard library."""
    files = {"/".join(module_utils_of(source.parts)) for source in checkout.plugins} - {""}
    for source in checkout.plugins:
        if not is_pure("/".join(module_utils_of(source.parts))):
            continue
        for node, name in source.imports():
            if not name[0] or name[0] in INPUT_OUTPUT:
                yield f"{source.where(node)}: a pure file imports {name[0]}"
            inner = module_utils_of(name)
            yield from (
                f"{source.where(node)}: a pure file imports {target}, which is not pure"
                for target in ("/".join(inner), "/".join(inner[:-1]))
                if target in files and not is_pure(target)
            )


def on_the_controller(checkout: Checkout) -> Iterator[str]:
    """Filters, lookups and action plugins work on data: of module_utils they import pure files only."""
    files = {"/".join(module_utils_of(source.parts)) for source in checkout.plugins} - {""}
    for source in checkout.plugins:
        if source.room in ("filter", "lookup", "action"):
            for node, name in source.imports():
                inner = module_utils_of(name)
                for target in ("/".join(inner), "/".join(inner[:-1])):
                    if target in files and not is_pure(target):
                        yield f"{source.where(node)}: {source.room} imports {target}, which is not pure"


def in_its_package(checkout: Checkout) -> Iterator[str]:
    """A file with the name of a package beside it belongs in that package."""
    for source in checkout.plugins:
        for package in sorted(path.name for path in source.path.parent.iterdir() if path.is_dir()):
            if source.path.stem == package or source.path.stem.startswith(f"{package}_"):
                yield f"{source.name} belongs in {source.path.parent.name}/{package}"


def distinct_names(checkout: Checkout) -> Iterator[str]:
    """No two files of module_utils have the same name, except for the plan of any object and that of the moves."""
    first = {"__init__": "", "plan": ""}
    for source in (source for source in checkout.plugins if source.parts[1] == "module_utils"):
        if (other := first.setdefault(source.parts[-1], source.name)) not in ("", source.name):
            yield f"{source.name} has the name of {other}: give it another"


def foreign_imports(checkout: Checkout) -> Iterator[str]:
    """Only vsphere knows pyVmomi, only what talks to Ansible imports it, the rest lives on the standard library."""
    for source in checkout.plugins:
        allowed = {"ansible_collections", "plugins", "__future__", *FOREIGN.get(source.room, set())}
        for node, name in source.imports():
            if name[0] not in allowed and name[0] not in sys.stdlib_module_names:
                yield f"{source.where(node)}: {source.room} imports {name[0]}"


def one_gate(checkout: Checkout) -> Iterator[str]:
    """Only the runner reads check mode and ends modules; actions begin no program, or start a module, in check mode."""
    for source in checkout.plugins:
        if source.room in ("runner", "action"):
            continue
        frames = {inner for frame in action_frames(source) for inner in ast.walk(frame)}
        for node in source.nodes:
            if node in frames:
                continue
            if source.room == "plugin_utils" and isinstance(getattr(node, "ctx", None), ast.Store):
                continue
            if isinstance(node, ast.Attribute) and node.attr in {"check_mode", *MODULE_ENDS}:
                yield f"{source.where(node)}: {node.attr} outside the runner"
            elif isinstance(node, ast.Constant) and node.value in {"check_mode", "_ansible_check_mode", *MODULE_ENDS}:
                yield f"{source.where(node)}: {node.value} by name outside the runner"


def action_frames(source: Source) -> Iterator[ast.ClassDef]:
    """Return the classes of plugin_utils that are the frame of several actions."""
    classes = (node for node in source.nodes if isinstance(node, ast.ClassDef))
    for node in classes if source.room == "plugin_utils" else ():
        if "ActionBase" in map(ast.unparse, node.bases):
            yield node


def fragments_of(source: Source) -> list[str]:
    """Return the documentation fragments that a module extends."""
    node = blocks_of(source).get("DOCUMENTATION")
    text = ast.literal_eval(node.value) if node else ""
    return list((yaml.safe_load(text) or {}).get("extends_documentation_fragment", []))


def action_group(checkout: Checkout) -> Iterator[str]:
    """Every module that connects to vCenter is in the action group, and nothing else is."""
    modules = {source.parts[-1] for source in checkout.modules if "dml.vsphere.connection" in fragments_of(source)}
    yield from (f"{name} is missing in the action group of meta/runtime.yml" for name in modules - checkout.grouped)
    yield from (f"meta/runtime.yml names {name}, which is not a vSphere module" for name in checkout.grouped - modules)


def documented(checkout: Checkout) -> Iterator[str]:
    """Every module has its three blocks, its attributes, and an example of itself."""
    for source in checkout.modules:
        texts = {name: ast.literal_eval(node.value) for name, node in blocks_of(source).items()}
        missing = [name for name in DOC_BLOCKS if not texts.get(name, "").strip()]
        if missing:
            yield f"{source.name} lacks {', '.join(missing)}"
            continue
        if not {"dml.vsphere.attributes", "dml.vsphere.attributes.info"} & set(fragments_of(source)):
            yield f"{source.name} does not say its attributes"
        if f"dml.vsphere.{source.parts[-1]}:" not in texts["EXAMPLES"]:
            yield f"{source.name} has no example of itself"


def tested(checkout: Checkout) -> Iterator[str]:
    """Every module is named by a test."""
    for source in checkout.modules:
        if source.parts[-1] not in checkout.named_in_tests:
            yield f"{source.name} is named by no test: write one in tests/unit/plugins/modules or tests/integration"


def findings_tested(checkout: Checkout) -> Iterator[str]:
    """Every rule of a finding is named by a test."""
    for source in checkout.plugins:
        for node in source.nodes:
            rule = rule_of(node)
            if rule and rule not in checkout.named_in_tests:
                yield f"{source.where(node)}: no test names the finding {rule}: add one in which a check yields it"


def rule_of(node: ast.AST) -> str:
    """Return the rule that a finding, or a row for one, has after its severity; empty for other nodes."""
    values = list(node.elts) if isinstance(node, ast.Tuple) else []
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Finding":
        values = node.args
    is_finding = len(values) > 1 and isinstance(values[0], ast.Name) and values[0].id in SEVERITIES
    return str(values[1].value) if is_finding and isinstance(values[1], ast.Constant) else ""


def short_functions(checkout: Checkout) -> Iterator[str]:
    """No function is long, and a module's body is shorter still."""
    for source in checkout.sources:
        for node in source.nodes:
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                body = source.parts[:2] == ("plugins", "modules") and node.name == "body"
                most = LONGEST_BODY if body else LONGEST_FUNCTION
                if length(node) > most:
                    yield f"{source.where(node)}: {node.name} has {length(node)} lines, {most} are allowed"


def short_files(checkout: Checkout) -> Iterator[str]:
    """No file is long, documentation blocks not counted."""
    for source in checkout.sources:
        lines = len(source.text.splitlines()) - sum(length(node) for node in blocks_of(source).values())
        if lines > LONGEST_FILE:
            yield f"{source.name} has {lines} lines, {LONGEST_FILE} are allowed"


def named(checkout: Checkout) -> Iterator[str]:
    """No variable is called _, which ansible-test forbids: the name of an unused variable begins with _."""
    for source in checkout.sources:
        for node in source.nodes:
            if isinstance(node, ast.Name) and node.id == "_" and isinstance(node.ctx, ast.Store):
                yield f"{source.where(node)}: _ is not allowed, use _NAME"


def replies_choose_nothing(checkout: Checkout) -> Iterator[str]:
    """How a node is reached comes from the inventory, and only one place, which checks the name, sets a user."""
    for source in checkout.plugins:
        for node in source.nodes:
            sets = isinstance(node, ast.Attribute) and node.attr == "become_user" and isinstance(node.ctx, ast.Store)
            if sets and source.name != BECOMES:
                yield f"{source.where(node)}: only {BECOMES} sets the user of a module"
            of = _owner_of_reach(node)
            if of and re.split(r"\[|\.get", of)[0] not in INVENTORY:
                yield f"{source.where(node)}: the way to a node comes from {of}, not from the inventory"


def _owner_of_reach(node: ast.AST) -> str:
    """Return the expression whose key ``reach`` is read; empty for other nodes."""
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
        return ast.unparse(node.value) if ast.unparse(node.slice) == "'reach'" else ""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get":
        return ast.unparse(node.func.value) if node.args and ast.unparse(node.args[0]) == "'reach'" else ""
    return ""


def strings_name_modules(checkout: Checkout) -> Iterator[str]:
    """A string that a program runs names a module; a function of the collection is a typed method of the site."""
    modules = {source.parts[-1] for source in checkout.modules}
    for source in checkout.plugins:
        for node in source.nodes:
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                continue
            for given in node.args[RUN_MODULES.get(node.func.attr, len(node.args)) :][:1]:
                name = str(given.value).removeprefix("dml.vsphere.") if isinstance(given, ast.Constant) else "."
                if name and "." not in name and name not in modules:
                    yield f"{source.where(node)}: {name} is not a module; make it a typed method of the site"


def licensed(checkout: Checkout) -> Iterator[str]:
    """Every plugin of Ansible begins with its copyright and licence; REUSE.toml names those of all other files."""
    for source in checkout.plugins:
        lines = [line for line in source.text.splitlines() if not line.startswith("#!")][:2]
        is_plugin = bool(lines) and source.parts[1] != "module_utils"
        if is_plugin and not (lines[0] == COPYRIGHT and lines[-1].startswith(LICENCE)):
            yield f"{source.name} does not begin with its copyright and licence"


Rule = Callable[[Checkout], Iterator[str]]
RULES: tuple[Rule, ...] = (
    pure_files,
    on_the_controller,
    in_its_package,
    distinct_names,
    foreign_imports,
    one_gate,
    action_group,
    documented,
    tested,
    findings_tested,
    short_functions,
    short_files,
    named,
    replies_choose_nothing,
    strings_name_modules,
    licensed,
)
