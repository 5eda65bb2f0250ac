"""The functions whose signature has a value that mypy does not check: Any, or a name that stands for it."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from functools import cache

from tests.rules.architecture import Source

Function = ast.FunctionDef | ast.AsyncFunctionDef
Reference = tuple[str, ...]


def functions_of(source: Source) -> list[Function]:
    return [node for node in source.nodes if isinstance(node, Function)]


def unchecked(sources: Sequence[Source]) -> list[str]:
    """Return the place of each of these functions."""
    stands_for = {
        (*source.parts, target.id): set(_references(source, node.value))
        for source in sources
        for node in source.tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, (ast.Name, ast.Attribute, ast.Subscript))
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    loose, size = {("typing", "Any")}, 0
    while len(loose) > size:
        size = len(loose)
        loose |= {name for name, references in stands_for.items() if references & loose}
    return [
        f"{source.where(function)} {function.name}"
        for source in sources
        for function in functions_of(source)
        if any(loose.intersection(_references(source, each)) for each in _annotations(function))
    ]


def _annotations(function: Function) -> Iterator[ast.expr]:
    own = function.args
    every = (*own.posonlyargs, *own.args, *own.kwonlyargs, own.vararg, own.kwarg)
    yield from (each.annotation for each in every if each and each.annotation)
    yield from [function.returns] if function.returns else []


@cache
def _imported(source: Source) -> dict[str, Reference]:
    return {name[-1]: name for _node, name in source.imports()}


def _references(source: Source, expression: ast.expr) -> Iterator[Reference]:
    """Yield the full names to which an expression refers."""
    known = _imported(source)
    for node in ast.walk(expression):
        if isinstance(node, ast.Name):
            yield known.get(node.id, (*source.parts, node.id))
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            yield (*known.get(node.value.id, ()), node.attr)
