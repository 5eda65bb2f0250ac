# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The mutants of a Python file: one small change each, such as ``<`` for ``<=``, that some test should notice.

Not changed are annotations, decorators, docstrings and the words of f-strings, which are sentences for people.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import CodeType
from typing import Any, NamedTuple

COMPARED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
COMPUTED: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult, ast.Pow: ast.Mult, ast.LShift: ast.RShift, ast.RShift: ast.LShift,
    ast.BitOr: ast.BitAnd, ast.BitAnd: ast.BitOr, ast.BitXor: ast.BitOr,
}  # fmt: skip
CALLED = {"min": "max", "max": "min", "any": "all", "all": "any", "sorted": "list", "bisect_left": "bisect_right",
          "bisect_right": "bisect_left"}  # fmt: skip
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class Key(NamedTuple):
    """The mutant in words that stay when lines above it come and go."""

    file: str
    where: str
    line: str
    was: str
    becomes: str

    def __str__(self) -> str:
        return f"{self.file}: {self.where}: {self.was}  ->  {self.becomes}   in   {self.line}"


@dataclass(frozen=True)
class Mutant:
    """A changed file: which change, the first line of the function that it is in, and the code to be run."""

    key: Key
    function: int | None
    code: CodeType


@dataclass(frozen=True)
class _Place:
    """A node that can be replaced: where it hangs, and in which function."""

    parent: ast.AST
    name: str
    index: int | None
    where: str
    function: int | None

    @property
    def node(self) -> Any:
        """What hangs there now."""
        held = getattr(self.parent, self.name)
        return held if self.index is None else held[self.index]

    def put(self, node: ast.AST) -> None:
        """Hang another there."""
        if self.index is None:
            setattr(self.parent, self.name, node)
        else:
            getattr(self.parent, self.name)[self.index] = node


def mutants_of(file: str, source: str) -> Iterator[Mutant]:
    """All mutants of a file."""
    tree, lines = ast.parse(source), source.splitlines()
    for place in _places(tree, "module", None):
        node = place.node
        for other in _others(node):
            ast.copy_location(other, node)
            key = Key(file, place.where, lines[node.lineno - 1].strip(), _text(node), _text(other))
            place.put(other)
            code = compile(ast.fix_missing_locations(tree), str(Path(file).resolve()), "exec")
            place.put(node)
            yield Mutant(key, place.function, code)


def _places(node: ast.AST, where: str, function: int | None) -> Iterator[_Place]:
    outer = function
    if isinstance(node, FUNCTIONS) and function is None:
        # Coverage knows a function by its first line, which is that of its decorators.
        function = min([node.lineno, *(one.lineno for one in node.decorator_list)])
    if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
        where = node.name if where == "module" else f"{where}.{node.name}"
    for name, value in ast.iter_fields(node):
        if name in _unchanged(node):
            continue
        # What an argument has by default is made where the function is defined.
        made_in = outer if name == "args" and isinstance(node, FUNCTIONS) else function
        for index, child in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if isinstance(child, ast.AST) and not _is_left_alone(child):
                if isinstance(child, (ast.expr, ast.stmt)):
                    yield _Place(node, name, index, where, made_in)
                yield from _places(child, where, made_in)


def _unchanged(node: ast.AST) -> tuple[str, ...]:
    """The parts of a node that nothing at run time depends on."""
    if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
        return ("decorator_list", "returns", "bases", "keywords")
    return ("annotation",) if isinstance(node, (ast.arg, ast.AnnAssign)) else ()


def _is_left_alone(node: ast.AST) -> bool:
    """Imports, sentences, docstrings, and names for types."""
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    if isinstance(node, ast.Assign):
        target = node.targets[0]
        is_alias = isinstance(node.value, ast.Subscript) and isinstance(node.value.value, ast.Name)
        return isinstance(target, ast.Name) and (target.id == "__all__" or (is_alias and target.id.istitle()))
    return isinstance(node, (ast.Import, ast.ImportFrom, ast.JoinedStr))


def _others(node: ast.AST) -> Iterator[ast.AST]:
    """What a node may become."""
    for kind, others in CHANGES.items():
        if isinstance(node, kind):
            yield from others(node)


def _comparisons(node: ast.Compare) -> Iterator[ast.AST]:
    for index, operator in enumerate(node.ops):
        operators = [*node.ops[:index], COMPARED[type(operator)](), *node.ops[index + 1 :]]
        yield ast.Compare(node.left, operators, node.comparators)


def _and_or(node: ast.BoolOp) -> Iterator[ast.AST]:
    yield ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)


def _signs(node: ast.UnaryOp) -> Iterator[ast.AST]:
    if isinstance(node.op, (ast.Not, ast.USub)):
        yield node.operand


def _sums(node: ast.BinOp) -> Iterator[ast.AST]:
    yield ast.BinOp(node.left, COMPUTED[type(node.op)](), node.right)


def _choices(node: ast.IfExp) -> Iterator[ast.AST]:
    yield ast.IfExp(_not(node.test), node.body, node.orelse)


def _calls(node: ast.Call) -> Iterator[ast.AST]:
    if isinstance(node.func, ast.Name) and node.func.id in CALLED:
        yield ast.Call(ast.Name(CALLED[node.func.id], ast.Load()), node.args, _fitting(node))


def _statements(node: ast.stmt) -> Iterator[ast.AST]:
    if isinstance(node, (ast.If, ast.While)):
        yield type(node)(_not(node.test), node.body, node.orelse)
    elif isinstance(node, ast.AugAssign):
        yield ast.AugAssign(node.target, COMPUTED[type(node.op)](), node.value)
    elif isinstance(node, ast.Return) and _says_more_than_none(node.value):
        yield ast.Return(ast.Constant(None))
    elif isinstance(node, (ast.Expr, ast.Raise)):
        yield ast.Pass()
    elif isinstance(node, (ast.Continue, ast.Break)):
        yield ast.Break() if isinstance(node, ast.Continue) else ast.Continue()


def _says_more_than_none(value: ast.expr | None) -> bool:
    """Whether None would differ: comparisons and constants have mutants of their own."""
    return value is not None and not isinstance(value, (ast.Compare, ast.BoolOp, ast.UnaryOp, ast.Constant))


def _constants(node: ast.Constant) -> Iterator[ast.AST]:
    value = node.value
    if isinstance(value, bool):
        yield ast.Constant(not value)
    elif isinstance(value, (int, float)):
        yield ast.Constant(value + 1)
    elif isinstance(value, str):
        yield ast.Constant(f"XX{value}XX")
    elif isinstance(value, bytes):
        yield ast.Constant(b"XX" + value)


def _fitting(node: ast.Call) -> list[ast.keyword]:
    """The arguments by name that the other function takes too."""
    is_sorted = isinstance(node.func, ast.Name) and node.func.id == "sorted"
    return [] if is_sorted else node.keywords


def _without_conditions(node: Any) -> Iterator[ast.AST]:
    for index, part in enumerate(node.generators):
        for left in range(len(part.ifs)):
            kept = [*part.ifs[:left], *part.ifs[left + 1 :]]
            other = copy.copy(node)
            changed = ast.comprehension(part.target, part.iter, kept, part.is_async)
            other.generators = [*node.generators[:index], changed, *node.generators[index + 1 :]]
            yield other


def _not(test: ast.expr) -> ast.expr:
    return (
        test.operand if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not) else ast.UnaryOp(ast.Not(), test)
    )


def _text(node: ast.AST) -> str:
    """The node as it is written, in one line."""
    shown = node
    if isinstance(node, (ast.If, ast.While)):
        shown = ast.Expr(node.test)
    return " ".join(ast.unparse(ast.fix_missing_locations(copy.deepcopy(shown))).split())


CHANGES: dict[Any, Callable[[Any], Iterator[ast.AST]]] = {
    ast.stmt: _statements,
    ast.Compare: _comparisons,
    ast.BoolOp: _and_or,
    ast.UnaryOp: _signs,
    ast.BinOp: _sums,
    ast.IfExp: _choices,
    ast.Constant: _constants,
    ast.Call: _calls,
    (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp): _without_conditions,
}
