# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Writes the tables of docs/simulator.md from the comments of lab/vcenter: ``python tools/simulator.py``.

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
DOCUMENT = ROOT / "docs" / "simulator.md"
BEGIN, END = "<!-- written by tools/simulator.py -->\n", "<!-- end -->\n"

KINDS = ("VMware", "Ours")
SOURCE = re.compile(rf"({'|'.join(KINDS)}): (\S.*)")
COMMENT = re.compile(r"\t*// ?(.*)")
LOCKS = re.compile(r" The caller holds the [^.]*lock\.")
STRUCT = re.compile(r"^type (\w+) struct \{\n\t\*?(?:simulator|mo)\.(\w+)", re.MULTILINE)
COMMAND = re.compile(r'"([a-zA-Z.]+)":\s+\{[^{}]*(?:\{[^{}]*\}[^{}]*)?Run: s?h?\.?(\w+)')


@dataclass(frozen=True)
class Declaration:
    """A declaration of Go with the paragraphs of its comment."""

    package: str
    code: str
    comment: tuple[str, ...]

    @property
    def name(self) -> str:
        """The name of the function, variable or constant."""
        found = re.match(r"func (?:\([^)]*\) )?(\w+)|(?:var |const |\t)(\w+)", self.code)
        return next(filter(None, found.groups())) if found else ""

    @property
    def sources(self) -> list[tuple[str, str]]:
        """The sources of the behaviour, by kind."""
        return [(found[1], found[2]) for line in self.comment if (found := SOURCE.fullmatch(line))]

    @property
    def text(self) -> str:
        """The comment without sources, without the name that it begins with and without notes for programmers."""
        words = " ".join(line for line in self.comment if not SOURCE.fullmatch(line))
        return LOCKS.sub("", words.removeprefix(f"{self.name} "))

    @property
    def method(self) -> str | None:
        """The vSphere method that a function answers, None for other declarations."""
        if not re.match(r"func \([^)]*\) [A-Z].*\bsoap\.HasFault \{", self.code):
            return None
        request = re.search(r"\*types\.(\w+)", self.code)
        return request[1] if request else self.name

    @property
    def receiver(self) -> str:
        """The type of a method, "" of a function."""
        found = re.match(r"func \(\w* ?\*?(\w+)\)", self.code)
        return found[1] if found else ""


def paragraphs(lines: Iterable[str]) -> tuple[str, ...]:
    """The text of a comment and each of its sources, one line each."""
    merged: list[str] = []
    for line in lines:
        if merged and not SOURCE.match(line):
            merged[-1] += f" {line}"
        else:
            merged.append(line)
    return tuple(merged)


def declarations(package: str, text: str) -> list[Declaration]:
    """The functions of a file, and all other declarations that have a comment."""
    found, comment = [], []
    lines = text.splitlines()
    for number, line in enumerate(lines):
        if said := COMMENT.fullmatch(line):
            comment.append(said[1])
            continue
        if line.startswith("func ") or (comment and line.startswith(("var ", "const ", "\t"))):
            end = next(index for index in range(number, len(lines)) if not lines[index].endswith(("(", ",")))
            code = " ".join([line, *(each.strip() for each in lines[number + 1 : end + 1])])
            found.append(Declaration(package, code, paragraphs(comment)))
        comment = []
    return found


@cache
def files() -> list[Path]:
    """The files of the simulator, without tests."""
    return sorted(path for path in CODE.rglob("*.go") if not path.name.endswith("_test.go"))


def unexplained(all_of_them: Iterable[Declaration]) -> list[str]:
    """The functions that answer a call or a command and do not say where their behaviour comes from."""
    missing = []
    for one in all_of_them:
        command = "*esxcli.Response, *esxcli.Error)" in one.code and one.name in commands(one.package)
        rest = one.package == "lifecycle" and "http.ResponseWriter" in one.code and one.receiver
        if (one.method or command or rest) and not one.sources:
            missing.append(f"{one.package}: {one.name}")
    return missing


def everything() -> list[Declaration]:
    """The declarations of the whole simulator."""
    return [one for path in files() for one in declarations(package_of(path), path.read_text())]


def package_of(path: Path) -> str:
    return path.parent.relative_to(CODE).as_posix()


@cache
def commands(package: str) -> dict[str, str]:
    """The esxcli commands of a package by the function that answers them."""
    by_function: dict[str, str] = {}
    for path in files():
        if package_of(path) == package:
            for command, function in COMMAND.findall(path.read_text()):
                name = "esxcli " + command.replace(".", " ")
                by_function[function] = f"{by_function[function]}`, `{name}" if function in by_function else name
    return by_function


@cache
def objects(package: str) -> dict[str, str]:
    """The vSphere object of each type of a package that answers the calls to one."""
    return dict(pair for path in files() if package_of(path) == package for pair in STRUCT.findall(path.read_text()))


@cache
def opening(package: str) -> tuple[str, str]:
    """What a package is, and what vcsim does of its subject."""
    for path in files():
        if package_of(path) != package:
            continue
        said = re.match(r"((?://.*\n)+)package ", path.read_text())
        if said:
            words = re.sub(r"\n?// ?", " ", said[1]).split("vcsim:")
            subject = re.sub(r"^\s*Package \w+ (?:is |has )?", "", words[0]).strip()
            return subject[0].upper() + subject[1:], " ".join(words[1].split()) if len(words) > 1 else ""
    return "", ""


def row(one: Declaration, commands_of: dict[str, str], object_of: dict[str, str]) -> str:
    """The line of a table about one behaviour."""
    name = commands_of.get(one.name) or one.name
    if one.method:
        name = f"{object_of.get(one.receiver, one.receiver)}.{one.method}"
    sources = "<br>".join(f"**{kind}**: {text}" for kind, text in one.sources)
    return f"| `{name}` | {one.text.replace('|', chr(92) + '|')} | {sources.replace('|', chr(92) + '|')} |"


def tables() -> str:
    """One table for each package that has behaviours."""
    behaviours = [one for one in everything() if one.sources]
    lines = []
    for package in sorted({one.package for one in behaviours}):
        subject, stock = opening(package)
        lines += [f"### {package}", "", f"{subject}", f"vcsim: {stock}", ""]
        lines += ["| Call or rule | Behaviour | Where it comes from |", "|---|---|---|"]
        names = commands(package), objects(package)
        lines += [row(one, *names) for one in behaviours if one.package == package]
        lines.append("")
    return "\n".join(lines)


def written(text: str) -> str:
    """The document with its tables as they should be."""
    head, rest = text.split(BEGIN)
    return f"{head}{BEGIN}\n{tables()}\n{END}{rest.split(END)[1]}"


if __name__ == "__main__":
    DOCUMENT.write_text(written(DOCUMENT.read_text()))
