"""Runs the tests that a change since the last full run can affect: ``python -m tools.quick [OPTION OF PYTEST ...]``.

A test file depends on what it imports, on what it and its processes opened in that run (lab/bytecode/opened.py), and on
what these import in turn. Without that record, and on CI, all tests run. Not recorded: what a program opens that is not
Python's or does not run below Ansible in a test, and files of which a test only asks whether they exist. A new file
therefore selects the tests that listed its folder or opened its neighbours.
"""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parent.parent
STAGES = ("tests/unit", "tests/integration")
# All tests depend on these files.
SHARED = {"ansible.cfg", "constraints.txt", "lab/bytecode/opened.py", "pyproject.toml", "requirements-dev.txt"}
NONE_COLLECTED = 5  # pytest's answer if all selected tests are slow
Edges = Mapping[str, set[str]]


def _git(*words: str) -> list[str]:
    done = subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True, text=True)
    return [line for line in done.stdout.split("\0") if line]


def changes_since(commit: str) -> tuple[set[str], set[str]]:
    """Return the files of the working tree that differ from a commit, and those of them that are new or gone."""
    words = _git("diff", "--name-status", "--no-renames", "-z", commit)
    states = dict.fromkeys(_git("ls-files", "-z", "--others", "--exclude-standard"), "A")
    states |= dict(zip(words[1::2], words[::2]))
    return set(states), {path for path, state in states.items() if state in "AD"}


def imported(path: str, text: str, known: set[str]) -> set[str]:
    """Return the files of the checkout that a file imports, anywhere in it."""
    package, names = path.removesuffix(".py").split("/")[:-1], list[str]()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*above, *([node.module] if node.module else [])])
            names += [module, *(f"{module}.{alias.name}" for alias in node.names)]
    places = [name.removeprefix("ansible_collections.dml.vsphere.").replace(".", "/") for name in names]
    return {path for place in places for path in (f"{place}.py", f"{place}/__init__.py") if path in known}


def reached(path: str, edges: Edges) -> set[str]:
    """Return the file and all that it depends on."""
    found, open_ends = {path}, [path]
    while open_ends:
        new = edges.get(open_ends.pop(), set()) - found
        found |= new
        open_ends += new
    return found


def touched(changed: set[str], moved: set[str], edges: Edges) -> set[str]:
    """Return what a test that the changes affect depends on: files, listed folders, and folders with all below them."""
    found = {"**", *changed, *(f"{above}/**" for path in changed for above in PurePosixPath(path).parents)}
    found |= {f"{PurePosixPath(path).parent}/" for path in moved}
    every = {path for paths in edges.values() for path in paths if not path.endswith(("/", "*"))}
    for path in moved - every:
        above = () if path.endswith(".py") else PurePosixPath(path).parents[:-1]
        found |= next(filter(None, ({each for each in every if each.startswith(f"{one}/")} for one in above)), set())
    return found


def selected(stage: str) -> Iterator[str]:
    """Yield the test files that changes affect or that did not pass in the last full run, or the stage for all."""
    try:
        table = json.loads((ROOT / ".cache" / "opened" / f"{PurePosixPath(stage).name}.json").read_text())
        changed, moved = changes_since(table["commit"])
    except (FileNotFoundError, subprocess.CalledProcessError):  # no run, or its commit was replaced
        table, changed, moved = {}, SHARED, set()
    if changed & SHARED or os.environ.get("CI"):
        yield stage
        return
    present = {*_git("ls-files", "-z"), *changed}
    edges = {reader: set(paths) for reader, paths in table["opened"].items()}
    for path in present:
        if path.endswith(".py") and (ROOT / path).is_file():
            edges.setdefault(path, set()).update(imported(path, (ROOT / path).read_text(), present))
            edges[path] |= {f"{folder}/conftest.py" for folder in PurePosixPath(path).parents} & present
    affecting = touched(changed, moved, edges)
    for test in sorted(str(path.relative_to(ROOT)) for path in (ROOT / stage).rglob("test_*.py")):
        if test not in table["opened"] or not affecting.isdisjoint(reached(test, edges)):
            yield test


def main(options: list[str]) -> int:
    tests = [test for stage in STAGES for test in selected(stage)]
    print(f"Tests to run: {' '.join(tests) or 'none, no test opened a file that changed'}", flush=True)
    if not tests:
        return 0
    code = subprocess.run([sys.executable, "-m", "pytest", *options, *tests], cwd=ROOT, check=False).returncode
    return 0 if code == NONE_COLLECTED else code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
