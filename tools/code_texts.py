"""Reads the texts that an expression of the code can have, as Markdown; a part known only in a run is in capitals."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path

MOST = 8
UNNAMED = "..."
_COLLECTION = "ansible_collections.dml.vsphere."
_SPECIAL = re.compile(r"([\\`*_\[\]<>{}|$#~])")
_DEEPEST = 4
# Names that are too general for a placeholder, in whose place the name before them is used.
_GENERAL = {"name", "target", "text", "_name", "id"}


class Known(ast.Constant):
    """A text that is Markdown already."""


class Scope(dict[str, list[ast.expr]]):
    """The expressions that each name can have, and the functions of the module."""

    functions: dict[str, ast.FunctionDef]

    def with_names(self, more: dict[str, list[ast.expr]]) -> Scope:
        """Return the scope with more names."""
        found = Scope({**self, **more})
        found.functions = self.functions
        return found


@cache
def parsed(path: Path) -> ast.Module:
    """Return the syntax tree of a file."""
    return ast.parse(path.read_text())


def module_scope(tree: ast.Module, path: Path | None = None) -> Scope:
    """Return the constants of a module, those that it imports, the attributes of its classes, and its functions."""
    scope = Scope()
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and path and (source := _source(node, path)):
            imported = module_scope(parsed(source))
            for alias in node.names:
                if found := imported.get(alias.name):
                    scope[alias.asname or alias.name] = found
    scope.update(_assigned(tree.body))
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            for name, values in _assigned(node.body).items():
                scope.setdefault(f"self.{name}", []).extend(values)
    scope.functions = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    return scope


def function_scope(function: ast.AST, module: Scope) -> Scope:
    """Return the scope of a function; its own names hide those of the module."""
    inner = _assigned(ast.walk(function))
    hidden: dict[str, list[ast.expr]] = {name: [] for name in parameters(function)}
    return module.with_names({**hidden, **inner})


def parameters(function: ast.AST) -> list[str]:
    """Return the names of the parameters of a function."""
    if not isinstance(function, ast.FunctionDef):
        return []
    return [each.arg for each in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)]


def _source(node: ast.ImportFrom, path: Path) -> Path | None:
    module = node.module or ""
    if node.level:
        base = path.parents[node.level - 1]
    elif module.startswith(_COLLECTION):
        base, module = path.parents[len(path.parts) - path.parts.index("plugins") - 1], module[len(_COLLECTION) :]
    else:
        return None
    file = base / f"{module.replace('.', '/')}.py"
    return file if file.is_file() else None


def _assigned(nodes: Iterable[ast.AST]) -> dict[str, list[ast.expr]]:
    scope: dict[str, list[ast.expr]] = {}
    for node in nodes:
        if isinstance(node, ast.AnnAssign) and node.value is not None and isinstance(node.target, ast.Name):
            scope.setdefault(node.target.id, []).append(node.value)
        elif isinstance(node, ast.Assign):
            for name, value in itertools.chain.from_iterable(_pairs(target, node.value) for target in node.targets):
                scope.setdefault(name, []).append(value)
    return scope


def _pairs(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(target, ast.Name):
        yield target.id, value
    elif isinstance(target, ast.Tuple):
        values = value.elts if isinstance(value, ast.Tuple) else list(_members(value, len(target.elts)))
        for name, each in zip(target.elts, values, strict=False):
            if isinstance(name, ast.Name):
                yield name.id, each


def _members(value: ast.expr, count: int) -> Iterator[ast.expr]:
    """Yield the expressions of a choice between two tuples."""
    if isinstance(value, ast.IfExp) and isinstance(value.body, ast.Tuple) and isinstance(value.orelse, ast.Tuple):
        for place in range(count):
            yield ast.IfExp(test=value.test, body=value.body.elts[place], orelse=value.orelse.elts[place])


def texts(node: ast.expr, scope: Scope, depth: int = 0) -> list[str]:
    """Return the texts that an expression can have, as Markdown."""
    if isinstance(node, ast.Constant):
        return [str(node.value) if isinstance(node, Known) else escape(str(node.value))]
    if isinstance(node, ast.FormattedValue):
        return texts(node.value, scope, depth)
    if listed := _list(node, scope):
        return [escape(listed)]
    if parts := _parts(node, scope):
        return _joined([texts(part, scope, depth) for part in parts])
    if depth < _DEEPEST and (found := _chosen(node, scope, depth + 1)):
        return list(dict.fromkeys(placeholder(_name(node)) if text == UNNAMED else text for text in found))[:MOST]
    return [placeholder(_name(node))]


def _chosen(node: ast.expr, scope: Scope, depth: int) -> list[str]:
    """Return the texts of the expressions of which one is the value."""
    if isinstance(node, ast.IfExp):
        return [text for each in (node.body, node.orelse) for text in texts(each, scope, depth)]
    if isinstance(node, ast.Name):
        return [text for each in scope.get(node.id, []) for text in texts(each, scope, depth)]
    if isinstance(node, ast.Attribute) and _is_self(node.value):
        return [text for each in scope.get(f"self.{node.attr}", []) for text in texts(each, scope, depth)]
    if isinstance(node, ast.Call) and (function := scope.functions.get(_called(node))):
        inner = function_scope(function, scope)
        returned = [each.value for each in ast.walk(function) if isinstance(each, ast.Return) and each.value]
        if any(is_text(each, inner) for each in returned):
            return [text for each in returned for text in texts(each, inner, depth)]
    return []


def _is_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "self"


def _called(node: ast.Call) -> str:
    if isinstance(node.func, ast.Name):
        return node.func.id
    return node.func.attr if isinstance(node.func, ast.Attribute) and _is_self(node.func.value) else ""


def is_text(node: ast.expr, scope: Scope, depth: int = 0) -> bool:
    """Return whether an expression is made from a text of the code."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str)
    if isinstance(node, ast.BinOp):
        return is_text(node.left, scope, depth) or is_text(node.right, scope, depth)
    if isinstance(node, ast.IfExp):
        return is_text(node.body, scope, depth) or is_text(node.orelse, scope, depth)
    if isinstance(node, ast.Name) and depth < _DEEPEST:
        return any(is_text(each, scope, depth + 1) for each in scope.get(node.id, []))
    return isinstance(node, ast.JoinedStr)


def _parts(node: ast.expr, scope: Scope) -> Sequence[ast.expr]:
    """Return the expressions whose texts are joined; a sum of numbers is not a text."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add) and is_text(node, scope):
        return [node.left, node.right]
    return node.values if isinstance(node, ast.JoinedStr) else []


def _list(node: ast.expr, scope: Scope) -> str:
    """Return the text of constants that are joined, such as ``", ".join(NAMES)``."""
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "join"):
        return ""
    between, items = node.func.value, _items(node.args[0], scope)
    return str(between.value).join(items) if isinstance(between, ast.Constant) and len(items) <= MOST else ""


def _items(node: ast.expr, scope: Scope) -> list[str]:
    if isinstance(node, ast.Name) and len(scope.get(node.id, [])) == 1:
        return _items(scope[node.id][0], scope)
    if isinstance(node, ast.Dict):
        return _strings([key for key in node.keys if key])
    if isinstance(node, (ast.Tuple, ast.List)):
        return _strings(node.elts)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "values":
        (found,) = scope.get(_name(node.func.value), [None])[:1] or [None]
        return _strings(found.values) if isinstance(found, ast.Dict) else []
    if isinstance(node, ast.GeneratorExp) and isinstance(node.elt, ast.JoinedStr) and not node.generators[0].ifs:
        return [
            "".join(_with(part, item) for part in node.elt.values) for item in _items(node.generators[0].iter, scope)
        ]
    return []


def _strings(nodes: Iterable[ast.expr]) -> list[str]:
    return [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]


def _with(part: ast.expr, item: str) -> str:
    return str(part.value) if isinstance(part, ast.Constant) else item


def _joined(parts: Iterable[list[str]]) -> list[str]:
    return ["".join(pieces) for pieces in itertools.islice(itertools.product(*parts), MOST)]


def _name(node: ast.expr) -> str:
    """Return a name for the value of an expression."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        before = _name(node.value)
        return before if node.attr in _GENERAL and before not in ("self", "") else node.attr
    if isinstance(node, ast.Subscript):
        constant = node.slice.value if isinstance(node.slice, ast.Constant) else ""
        return constant if isinstance(constant, str) and constant not in {*_GENERAL, ""} else _name(node.value)
    return next(filter(None, map(_name, _named(node))), "")


def _named(node: ast.expr) -> Iterator[ast.expr]:
    """Yield the parts of an expression that may give it a name."""
    if isinstance(node, (ast.GeneratorExp, ast.ListComp, ast.SetComp)):
        yield from (node.elt, node.generators[0].iter)
    elif isinstance(node, ast.BinOp):
        yield from (node.left, node.right)
    elif isinstance(node, ast.Call):
        yield node.args[0] if node.args else node.func


def placeholder(name: str) -> str:
    """Return a name in capitals, in the place of a text that is known only in a run."""
    words = escape(name.strip("_").replace("_", " ").upper())
    return words if re.search("[A-Z]", words) else UNNAMED


def escape(text: str) -> str:
    """Return a text as Markdown that shows it unchanged."""
    return _SPECIAL.sub(r"\\\1", text)
