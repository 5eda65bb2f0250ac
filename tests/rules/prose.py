"""Prose of the checkout with its location: docstrings, comments, tasks, messages, documentation, Markdown and names."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import yaml

ROOT = Path(__file__).parents[2]
KINDS = ("docstring", "comment", "task", "message", "docs", "markdown", "name")
FOLDERS = (
    "front",
    "plugins",
    "roles",
    "playbooks",
    "molecule",
    "lab",
    "tests",
    "tools",
    "bench",
    "stacks",
    "inventories",
    "docs",
)
# Foreign text, and the files that quote the words which the lint refuses.
SKIPPED = re.compile(
    r"tests/fixtures/|tests/rules/language\.|tests/unit/test_language\.|CODE_OF_CONDUCT|docs/docsite/|(.*/)?[._]"
)
SUFFIXES = {".py", ".yml", ".yaml", ".go", ".md", ".sh", ".j2", ".toml", ".conf", ".service", ".cfg", ".rules", ""}
DOC_BLOCKS = {"DOCUMENTATION", "EXAMPLES", "RETURN"}
MESSAGES = {"msg", "fail_msg", "success_msg"}
DESCRIPTIONS = {"description", "short_description", "notes", "title"}
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
# Code in prose: `code`, ``code``, {{ expressions }}, {% statements %}, O(option) and the like.
CODE = re.compile(r"``[^`]+``|`[^`]+`|\{\{.*?\}\}|\{%.*?%\}|\b[COVEMPR]\([^)]*\)", re.DOTALL)
# A key of YAML, as in `begun: {type: bool}`.
KEY = re.compile(r"\b[a-z][a-z0-9_]*:(?=\s)")
FENCE = re.compile(r"^ *(```|~~~).*?^ *\1 *$", re.DOTALL | re.MULTILINE)
WORDS = re.compile(r"(?:[A-Za-z'{}]+[,;:]? ){3}[A-Za-z]")


class Prose(NamedTuple):
    """A text as it is written in a file; line breaks are kept so that a match has a line."""

    path: str
    line: int
    kind: str
    text: str


def files(paths: list[Path]) -> Iterator[Path]:
    """Yield the files below the paths that contain prose."""
    for path in paths or [ROOT / name for name in FOLDERS] + [path for path in ROOT.iterdir() if path.is_file()]:
        for file in [path] if path.is_file() else sorted(path.rglob("*")):
            name = file.relative_to(ROOT).as_posix()
            if file.suffix in SUFFIXES and not SKIPPED.match(name) and file.is_file():
                yield file


def read(file: Path) -> Iterator[Prose]:
    """Yield the prose of one file, without the code in it."""
    name, source = file.relative_to(ROOT).as_posix(), file.read_text(encoding="utf-8", errors="replace")
    if not file.suffix and file.name != "Makefile" and not source.startswith("#!"):
        return
    parts = {".py": of_python, ".go": of_go, ".md": of_markdown, ".yml": of_yaml, ".yaml": of_yaml}
    for line, kind, text in parts.get(file.suffix, of_shell)(source):
        without = CODE.sub(blank, text)
        yield Prose(name, line, kind, KEY.sub("`:", without) if kind == "docs" else without)


def blank(code: re.Match[str]) -> str:
    return "`" + "\n" * code[0].count("\n") + "`"


Part = tuple[int, str, str]


def of_python(source: str) -> Iterator[Part]:
    quoted = set[int]()
    tree = ast.parse(source)
    for node, kind, text in strings(tree):
        quoted.update(range(node.lineno, node.end_lineno or node.lineno))
        if kind:
            yield node.lineno, kind, text
    yield from comments(source, "#", quoted)
    yield 1, "name", names(tree)


def names(tree: ast.Module) -> str:
    """Return the names that are introduced in each line, as words; that of a test starts like a sentence."""
    lines: dict[int, str] = {}
    # The fields of a TypedDict are keys of data.
    every = list(ast.walk(tree))
    data = {id(part) for node in every if is_typed_dict(node) for part in ast.walk(node)}
    for node in every:
        name = introduced(node)
        if name and id(node) not in data:
            words = name.removeprefix("test_") if isinstance(node, ast.FunctionDef) else name
            text = " ".join(words.lower().split("_")).strip()
            start = text[:1].upper() if name.startswith("test_") else text[:1]
            line: int = node.lineno  # type: ignore[attr-defined]
            lines[line] = f"{lines.get(line, '')}{start}{text[1:]}. "
    return "\n".join(lines.get(line, "") for line in range(1, max(lines, default=0) + 1))


def is_typed_dict(node: ast.AST) -> bool:
    return isinstance(node, ast.ClassDef) and any(ast.unparse(base) == "TypedDict" for base in node.bases)


def introduced(node: ast.AST) -> str:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return node.name
    if isinstance(node, ast.arg):
        return node.arg
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        return node.id
    return node.attr if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) else ""


def strings(tree: ast.Module) -> Iterator[tuple[ast.expr, str, str]]:
    """Yield each string with its kind, which is empty for a string without a sentence, and its text."""
    known: dict[ast.AST, str] = {}
    for node in nodes(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node, known.get(node) or message(node.value), node.value
        elif isinstance(node, ast.JoinedStr):
            text = "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
            yield node, message(text), text
        elif isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            if node.body and isinstance(node.body[0], ast.Expr):
                known[node.body[0].value] = "docstring"
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            known[node.value] = "docs" if node.targets[0].id in DOC_BLOCKS else ""


def nodes(tree: ast.Module) -> Iterator[ast.AST]:
    """Yield each node before those below it, but not the parts of an f-string; twice as fast as ast.walk."""
    left: list[ast.AST] = [tree]
    while left:
        node = left.pop()
        yield node
        if isinstance(node, ast.JoinedStr):
            continue
        for value in node.__dict__.values():
            if isinstance(value, list):
                left.extend(child for child in value if isinstance(child, ast.AST))
            elif isinstance(value, ast.AST) and not isinstance(value, ast.Name | ast.expr_context):
                left.append(value)


def message(text: str) -> str:
    return "message" if WORDS.search(text) else ""


def comments(source: str, sign: str, quoted: set[int]) -> Iterator[Part]:
    """Yield each block of comment lines and each comment behind code."""
    block: list[str] = []
    number = 0
    for number, line in enumerate(source.splitlines(), 1):
        found = re.match(rf"\s*{sign}+(?: (.*)|$)", line) if sign in line and number not in quoted else None
        if found:
            block.append(found[1] or "")
            continue
        if block:
            yield number - len(block), "comment", "\n".join(block)
            block = []
        if sign in line and number not in quoted and (behind := re.search(rf"\S\s+{sign}+ ([^'\"]*)$", line)):
            yield number, "comment", behind[1]
    if block:
        yield number + 1 - len(block), "comment", "\n".join(block)


def of_shell(source: str) -> Iterator[Part]:
    return comments(source, "#", set())


def of_go(source: str) -> Iterator[Part]:
    return comments(source, "//", set())


def of_markdown(source: str) -> Iterator[Part]:
    yield 1, "markdown", FENCE.sub(lambda code: "\n" * code[0].count("\n"), source)


def of_yaml(source: str) -> Iterator[Part]:
    yield from comments(source, "#", set())
    for document in yaml.compose_all(source, Loader=LOADER):
        yield from scalars(document, "", source)


def scalars(node: yaml.Node | None, kind: str, source: str) -> Iterator[Part]:
    """Yield names of tasks, messages and descriptions as they are written."""
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield from scalars(value, kind_of(key.value, value), source)
    elif isinstance(node, yaml.SequenceNode):
        for value in node.value:
            yield from scalars(value, kind, source)
    elif kind and isinstance(node, yaml.ScalarNode):
        text = source[node.start_mark.index : node.end_mark.index]
        yield node.start_mark.line + 1, kind, re.sub(r"^([|>][-+]?|['\"])", "", text)


def kind_of(key: object, value: yaml.Node) -> str:
    if key in MESSAGES:
        return "message"
    if key in DESCRIPTIONS:
        return "docs"
    return "task" if key == "name" and isinstance(value, yaml.ScalarNode) and " " in value.value else ""
