"""The checkout keeps the rules of the house, and each rule sees what breaks it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.rules import architecture, rooms
from tests.rules.architecture import COPYRIGHT, RULES, Checkout
from tests.rules.rooms import module_utils_of
from tests.rules.unchecked_types import functions_of, unchecked

ROOT = Path(__file__).parents[2]
LINT_IMPORTS, RUFF = (str(Path(sys.executable).with_name(name)) for name in ("lint-imports", "ruff"))
HEAD = f"{COPYRIGHT}\n# GNU General Public License v3.0+ (see LICENSE)\n"
UTILS = "plugins/module_utils"
MODULE = "plugins/modules/esxi_thing.py"
PURE = f"{UTILS}/hosts/preflight/sums.py"
THING = '''DOCUMENTATION = r"""
extends_documentation_fragment: [dml.vsphere.connection, dml.vsphere.attributes]
"""
EXAMPLES = r"""
- dml.vsphere.esxi_thing:
"""
RETURN = r"""
state: {}
"""
from ansible.module_utils.basic import AnsibleModule
from ..module_utils import runner
from ..module_utils.hosts import thing
'''
# A small house that keeps every rule.
GOOD = {
    MODULE: THING,
    f"{UTILS}/errors.py": "",
    f"{UTILS}/plan.py": "",
    f"{UTILS}/runner.py": "from . import errors\ndef gate(m):\n    return m.check_mode or m.exit_json()\n",
    f"{UTILS}/hosts/thing.py": "import time\nfrom .preflight import sums\nfrom ..vsphere import session\n",
    f"{UTILS}/hosts/preflight/sums.py": "import math\nfrom ...core import findings\n",
    f"{UTILS}/core/findings.py": "import math\n",
    f"{UTILS}/moves/plan/plan.py": "from . import search\n",
    f"{UTILS}/moves/plan/search.py": "import math\n",
    f"{UTILS}/vsphere/session.py": "from pyVmomi import vim\nfrom ..errors import Error\n",
    "meta/runtime.yml": "action_groups: {vsphere: [esxi_thing]}\n",
    "tests/unit/test_thing.py": "NAME = 'dml.vsphere.esxi_thing'\n",
}
# The share of functions whose signature has a value that mypy does not check, such as an object of pyVmomi.
MOST_UNCHECKED = 0.32
LONG = "def long():\n" + "    pass\n" * 30
# rule, file, what it holds instead, words of the sentence that must come
BREACHES = [
    ("pure_files", PURE, "import time\n", "a pure file imports time"),
    ("pure_files", PURE, "def f():\n    import urllib.request\n", "a pure file imports urllib"),
    ("pure_files", PURE, "from .. import thing\n", "a pure file imports hosts/thing, which is not pure"),
    ("pure_files", PURE, "from ..thing import one\n", "a pure file imports hosts/thing, which is not pure"),
    ("pure_files", PURE, f"import {UTILS.replace('/', '.')}.runner\n", "imports runner, which is not pure"),
    (
        "on_the_controller",
        "plugins/action/move.py",
        "from ansible_collections.dml.vsphere.plugins.module_utils.vsphere.session import session\n",
        "action imports vsphere/session",
    ),
    (
        "on_the_controller",
        "plugins/filter/a.py",
        "from ..module_utils.hosts import thing\n",
        "filter imports hosts/thing",
    ),
    ("in_its_package", f"{UTILS}/moves/plan_large.py", "", "plan_large.py belongs in moves/plan"),
    ("in_its_package", f"{UTILS}/moves/plan.py", "", "plan.py belongs in moves/plan"),
    ("distinct_names", f"{UTILS}/core/session.py", "", "vsphere/session.py has the name of"),
    ("foreign_imports", f"{UTILS}/hosts/thing.py", "from pyVmomi import vim\n", "hosts imports pyVmomi"),
    ("foreign_imports", MODULE, "def f():\n    import pyVim.connect\n", "modules imports pyVim"),
    ("foreign_imports", PURE, "import yaml\n", "hosts imports yaml"),
    ("foreign_imports", PURE, "from ansible.errors import AnsibleError\n", "hosts imports ansible"),
    ("one_gate", MODULE, THING + "def body(m):\n    return m.check_mode\n", "check_mode outside"),
    ("one_gate", f"{UTILS}/hosts/thing.py", "x = getattr(y, 'check_mode')\n", "check_mode by name"),
    ("one_gate", "plugins/plugin_utils/move.py", "def f(task):\n    return task.check_mode\n", "check_mode outside"),
    ("one_gate", MODULE, THING + "def body(m):\n    m.exit_json()\n", "exit_json outside"),
    ("one_gate", f"{UTILS}/vsphere/session.py", "def f(m):\n    m.fail_json(msg='')\n", "fail_json outside"),
    ("action_group", "meta/runtime.yml", "action_groups: {vsphere: []}\n", "esxi_thing is missing"),
    (
        "action_group",
        "meta/runtime.yml",
        "action_groups: {vsphere: [esxi_thing, gone]}\n",
        "gone, which is not a vSphere module",
    ),
    ("documented", MODULE, THING.replace("RETURN", "OTHER"), "lacks RETURN"),
    ("documented", MODULE, THING.replace("- dml.vsphere.esxi_thing:", ""), "lacks EXAMPLES"),
    ("documented", MODULE, THING.replace("- dml.vsphere.esxi_thing:", "- debug:"), "no example of itself"),
    ("documented", MODULE, THING.replace("dml.vsphere.attributes", "dml.vsphere.hosts"), "its attributes"),
    ("tested", "tests/unit/test_thing.py", "# esxi_thing\nNAME = 'esxi_things'\n", "named by no test"),
    ("findings_tested", PURE, "x = Finding(STOP, 'rare', 'a', 'b')\n", "no test names the finding rare"),
    ("findings_tested", PURE, "def f():\n    yield NOTE, 'rare', 'b'\n", "no test names the finding rare"),
    ("short_functions", PURE, LONG, "long has 31 lines, 30"),
    ("short_functions", "lab/up.py", LONG, "long has 31 lines, 30"),
    (
        "short_functions",
        "tests/unit/test_thing.py",
        "class T:\n " + LONG.replace("\n    ", "\n     "),
        "long has 31 lines",
    ),
    ("short_functions", MODULE, THING + "def body():\n" + "    pass\n" * 15, "body has 16 lines, 15"),
    ("short_files", PURE, "x = 1\n" * 399, "sums.py has 401 lines"),
    ("short_files", "lab/up.py", "x = 1\n" * 399, "up.py has 401 lines"),
    ("replies_choose_nothing", PURE, "x = answer.get('reach')\n", "the way to a node comes from answer"),
    ("replies_choose_nothing", PURE, "x = found[node]['reach']\n", "the way to a node comes from found"),
    ("replies_choose_nothing", PURE, "task.become_user = job['user']\n", "sets the user of a module"),
    ("strings_name_modules", PURE, "calls.here('read_hang', {})\n", "read_hang is not a module"),
    ("strings_name_modules", PURE, "calls.on(node, 'dml.vsphere.gone', {})\n", "gone is not a module"),
    ("named", PURE, "x = [1 for _ in 'ab']\n", "_ is not allowed"),
    ("named", "lab/up.py", "x, _ = 1, 2\n", "_ is not allowed"),
]


def build(root: Path, files: dict[str, str]) -> Checkout:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(HEAD + text if name.endswith(".py") else text)
    return Checkout(root)


@pytest.fixture(scope="module")
def checkout() -> Checkout:
    return Checkout(ROOT)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_checkout_keeps_the_rule(rule: architecture.Rule, checkout: Checkout) -> None:
    assert list(rule(checkout)) == []


def test_rules_examine_at_least_one_file(checkout: Checkout) -> None:
    assert {source.room for source in checkout.plugins} >= {"runner", "plan", "errors", "core", "vsphere", "hosts"}
    assert {source.parts[0] for source in checkout.sources} >= {"plugins", "tests", "lab", "tools"}
    assert checkout.modules


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_small_checkout_that_keeps_all_rules_passes(rule: architecture.Rule, tmp_path: Path) -> None:
    assert list(rule(build(tmp_path, GOOD))) == []


@pytest.mark.parametrize(("rule", "file", "text", "words"), BREACHES)
def test_rule_detects_a_breach(rule: str, file: str, text: str, words: str, tmp_path: Path) -> None:
    breaches = list(getattr(architecture, rule)(build(tmp_path, {**GOOD, file: text})))
    assert len(breaches) == 1
    assert words in breaches[0]


def test_detects_a_file_without_licence(tmp_path: Path) -> None:
    house = build(tmp_path, GOOD)
    (tmp_path / MODULE).write_text(f"#!/usr/bin/python\n{COPYRIGHT}\n{THING}")
    (tmp_path / UTILS / "plan.py").write_text('"""Ours."""\n')
    assert len(list(architecture.licensed(house))) == 1


def test_documentation_blocks_do_not_count_as_lines(tmp_path: Path) -> None:
    long = THING.replace("state: {}", "state: {}\n" * 400)
    assert list(architecture.short_files(build(tmp_path, {**GOOD, MODULE: long}))) == []


def test_ruff_refuses_newer_python_in_worker_code() -> None:
    command = [RUFF, "check", "--config", str(ROOT / "pyproject.toml"), "--stdin-filename"]
    for name, is_refused in ((f"{UTILS}/training/guest/job.py", True), ("tools/build.py", False)):
        file, code = str(ROOT / name), "try:\n    pass\nexcept* OSError:\n    pass\n"
        done = subprocess.run([*command, file, "-"], input=code, capture_output=True, text=True, check=False)
        assert ("Cannot use `except*` on Python 3.8" in done.stdout) is is_refused, done.stdout


def test_every_rule_has_a_breach() -> None:
    assert {rule for rule, *_rest in BREACHES} | {"licensed"} == {rule.__name__ for rule in RULES}


def test_share_of_unchecked_signatures_does_not_grow(checkout: Checkout) -> None:
    functions = sum(len(functions_of(source)) for source in checkout.plugins)
    assert len(unchecked(checkout.plugins)) / functions <= MOST_UNCHECKED


def test_names_that_stand_for_any_are_unchecked(tmp_path: Path) -> None:
    aliases = "from typing import Any, Mapping\nState = Mapping[str, Any]\nStates = list[State]\n"
    takes = "from ..core import findings\nfrom ..core.findings import States\n"
    takes += "def one(it: States): ...\ndef other() -> findings.State: ...\ndef checked(it: object) -> str: ...\n"
    checkout = build(tmp_path, {f"{UTILS}/core/findings.py": aliases, f"{UTILS}/hosts/thing.py": takes})

    found = unchecked(checkout.plugins)

    assert [place.split()[1] for place in found] == ["one", "other"]


def test_files_declared_pure_or_impure_exist(checkout: Checkout) -> None:
    files = {"/".join(module_utils_of(source.parts)) for source in checkout.plugins} - {""}
    assert set(rooms.IMPURE) <= files
    assert [pattern for pattern in rooms.PURE if not any(rooms.matches(pattern, file) for file in files)] == []


@pytest.mark.parametrize(
    ("file", "text", "words"),
    [
        (
            "vsphere/tasks.py",
            "from ..hosts import profile_parts",
            "plugins.module_utils.vsphere is not allowed to import",
        ),
        ("hosts/thing.py", "from . import profile_parts", "No cycles are allowed"),
    ],
)
def test_import_linter_reports_an_upward_import(file: str, text: str, words: str, tmp_path: Path) -> None:
    """The contracts are in pyproject.toml; `make lint` holds the checkout to them."""
    shutil.copytree(ROOT / UTILS, tmp_path / UTILS, ignore=shutil.ignore_patterns("__pycache__"))
    with (tmp_path / UTILS / file).open("a") as changed:
        changed.write(f"\n{text}\n")
    with (tmp_path / UTILS / "hosts/profile_parts.py").open("a") as changed:
        changed.write("\nfrom . import thing\n" if file == "hosts/thing.py" else "")
    command = [LINT_IMPORTS, "--no-cache", "--config", str(ROOT / "pyproject.toml")]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert words in done.stdout
