"""Returns the tables of docs/simulator.md, from comments in lab/vcenter.

A behaviour is a declaration whose comment ends in lines ``VMware: SOURCE`` or ``Ours: REASON``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CODE = ROOT / "lab" / "vcenter" / "internal"

KINDS = ("VMware", "Ours")
SOURCE = re.compile(rf"({'|'.join(KINDS)}): (\S.*)")
COMMENT = re.compile(r"\t*// ?(.*)")
LOCKS = re.compile(r" The caller holds the [^.]*lock\.")
STRUCT = re.compile(r"^type (\w+) struct \{\n\t\*?(?:simulator|mo)\.(\w+)", re.MULTILINE)
COMMAND = re.compile(r'"([a-zA-Z.]+)":\s+\{[^{}]*(?:\{[^{}]*\}[^{}]*)?Run: s?h?\.?(\w+)')


@dataclass(frozen=True)
class Declaration:
    """A Go declaration with the paragraphs of its comment."""

    package: str
    code: str
    comment: tuple[str, ...]

    @property
    def name(self) -> str:
        """Return the name of the function, variable or constant."""
        found = re.match(r"func (?:\([^)]*\) )?(\w+)|(?:var |const |\t)(\w+)", self.code)
        return next(filter(None, found.groups())) if found else ""

    @property
    def sources(self) -> list[tuple[str, str]]:
        """Return the sources of the behaviour, each with its kind."""
        return [(found[1], found[2]) for line in self.comment if (found := SOURCE.fullmatch(line))]

    @property
    def text(self) -> str:
        """Return the comment without sources, without the leading name and without notes for programmers."""
        words = " ".join(line for line in self.comment if not SOURCE.fullmatch(line))
        return LOCKS.sub("", words.removeprefix(f"{self.name} "))

    @property
    def method(self) -> str | None:
        """Return the vSphere method that a function answers, or None for other declarations."""
        if not re.match(r"func \([^)]*\) [A-Z].*\bsoap\.HasFault \{", self.code):
            return None
        request = re.search(r"\*types\.(\w+)", self.code)
        return request[1] if request else self.name

    @property
    def receiver(self) -> str:
        """Return the receiver type of a method, or "" for a function."""
        found = re.match(r"func \(\w* ?\*?(\w+)\)", self.code)
        return found[1] if found else ""


def paragraphs(lines: Iterable[str]) -> tuple[str, ...]:
    """Return the text of a comment and each of its sources, one line each."""
    merged: list[str] = []
    for line in lines:
        if merged and not SOURCE.match(line):
            merged[-1] += f" {line}"
        else:
            merged.append(line)
    return tuple(merged)


def declarations(package: str, text: str) -> list[Declaration]:
    """Return the functions of a file, and all other declarations that have a comment."""
    found, comment = [], []
    lines = text.splitlines()
    for number, line in enumerate(lines):
        if match := COMMENT.fullmatch(line):
            comment.append(match[1])
            continue
        if line.startswith("func ") or (comment and line.startswith(("var ", "const ", "\t"))):
            end = next(index for index in range(number, len(lines)) if not lines[index].endswith(("(", ",")))
            code = " ".join([line, *(rest.strip() for rest in lines[number + 1 : end + 1])])
            found.append(Declaration(package, code, paragraphs(comment)))
        comment = []
    return found


@cache
def files() -> list[Path]:
    """Return the files of the simulator, without tests."""
    return sorted(path for path in CODE.rglob("*.go") if not path.name.endswith("_test.go"))


def everything() -> list[Declaration]:
    """Return the declarations of all packages of the simulator."""
    return [entry for path in files() for entry in declarations(package_of(path), path.read_text())]


def package_of(path: Path) -> str:
    return path.parent.relative_to(CODE).as_posix()


@cache
def commands(package: str) -> dict[str, str]:
    """Return the esxcli commands of a package, by the function that answers them."""
    by_function: dict[str, str] = {}
    for path in files():
        if package_of(path) == package:
            for command, function in COMMAND.findall(path.read_text()):
                name = "esxcli " + command.replace(".", " ")
                by_function[function] = f"{by_function[function]}`, `{name}" if function in by_function else name
    return by_function


@cache
def objects(package: str) -> dict[str, str]:
    """Return the vSphere object for each type of a package that answers its calls."""
    return dict(pair for path in files() if package_of(path) == package for pair in STRUCT.findall(path.read_text()))


@cache
def opening(package: str) -> tuple[str, str]:
    """Return a description of a package, and what vcsim supports of its subject."""
    for path in files():
        if package_of(path) != package:
            continue
        comment = re.match(r"((?://.*\n)+)package ", path.read_text())
        if comment:
            words = re.sub(r"\n?// ?", " ", comment[1]).split("vcsim:")
            subject = re.sub(r"^\s*Package \w+ (?:is |has |simulates )?", "", words[0]).strip()
            return subject[0].upper() + subject[1:], " ".join(words[1].split()) if len(words) > 1 else ""
    return "", ""


def row(behaviour: Declaration, commands_of: dict[str, str], object_of: dict[str, str]) -> str:
    """Return the table row for a behaviour."""
    name = commands_of.get(behaviour.name) or behaviour.name
    if behaviour.method:
        name = f"{object_of.get(behaviour.receiver, behaviour.receiver)}.{behaviour.method}"
    sources = "<br>".join(f"**{kind}**: {text}" for kind, text in behaviour.sources)
    return f"| `{name}` | {behaviour.text.replace('|', chr(92) + '|')} | {sources.replace('|', chr(92) + '|')} |"


def tables() -> str:
    """Return one table for each package that has behaviours."""
    behaviours = [entry for entry in everything() if entry.sources]
    lines = []
    for package in sorted({behaviour.package for behaviour in behaviours}):
        subject, stock = opening(package)
        lines += [f"### {package}", "", f"{subject}", f"vcsim: {stock}", ""]
        lines += ["| Call or rule | Behaviour | Source |", "|---|---|---|"]
        names = commands(package), objects(package)
        lines += [row(behaviour, *names) for behaviour in behaviours if behaviour.package == package]
        lines.append("")
    return "\n".join(lines)
