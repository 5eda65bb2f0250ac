# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The checkout keeps the rules of the house, and each rule sees what breaks it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import architecture
from tests.architecture import COPYRIGHT, RULES, Checkout

ROOT = Path(__file__).parents[2]
HEAD = f"{COPYRIGHT}\n# GNU General Public License v3.0+ (see LICENSE)\n"
UTILS = "plugins/module_utils"
MODULE = "plugins/modules/esxi_thing.py"
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
from ..module_utils.esxi import thing
'''
# A small house that keeps every rule.
GOOD = {
    MODULE: THING,
    f"{UTILS}/errors.py": "",
    f"{UTILS}/plan.py": "",
    f"{UTILS}/runner.py": "from . import errors\ndef gate(m):\n    return m.check_mode or m.exit_json()\n",
    f"{UTILS}/esxi/thing.py": "from ..logic import sums\nfrom ..vsphere import session\n",
    f"{UTILS}/logic/sums.py": "import math\n",
    f"{UTILS}/logic/moves/plan.py": "from . import search\n",
    f"{UTILS}/logic/moves/search.py": "import math\n",
    f"{UTILS}/vsphere/session.py": "from pyVmomi import vim\nfrom ..errors import Error\n",
    "meta/runtime.yml": "action_groups: {vsphere: [esxi_thing]}\n",
    "tests/unit/test_thing.py": "NAME = 'dml.vsphere.esxi_thing'\n",
}
LONG = "def long():\n" + "    pass\n" * 30
# rule, file, what it holds instead, words of the sentence that must come
BREACHES = [
    ("arrows", f"{UTILS}/vsphere/session.py", "from ..esxi import thing\n", "vsphere imports esxi"),
    ("arrows", f"{UTILS}/vsphere/session.py", "def f():\n    from ..esxi.thing import x\n", "vsphere imports esxi"),
    ("arrows", f"{UTILS}/logic/sums.py", "import plugins.module_utils.plan\n", "logic imports plan"),
    ("arrows", f"{UTILS}/runner.py", "from .vsphere import session\n", "runner imports vsphere"),
    ("arrows", f"{UTILS}/guest/job.py", "from ..vsphere import session\n", "guest imports vsphere"),
    ("arrows", f"{UTILS}/esxi/thing.py", "from .. import runner\n", "esxi imports runner"),
    (
        "arrows",
        "plugins/action/move.py",
        "from ansible_collections.dml.vsphere.plugins.module_utils.vsphere.session import session\n",
        "action imports vsphere",
    ),
    ("arrows", "plugins/action/move.py", "from ..module_utils.esxi import thing\n", "action imports esxi"),
    ("arrows", f"{UTILS}/helpers.py", "", "a room that no rule knows"),
    ("arrows", f"{UTILS}/logic/moves/plan.py", "from ..stack import fit\n", "logic/moves imports logic/stack"),
    ("arrows", f"{UTILS}/logic/moves/plan.py", "from ..sums import one\n", "logic/moves imports logic"),
    ("arrows", f"{UTILS}/logic/moves/plan.py", "from ...pages import junit\n", "logic/moves imports pages"),
    ("circles", f"{UTILS}/vsphere/session.py", "from . import session\n", "session.py imports itself"),
    (
        "circles",
        f"{UTILS}/esxi/thing.py",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from .thing import Thing\n",
        "esxi/thing.py imports itself over",
    ),
    ("in_its_package", f"{UTILS}/logic/moves_large.py", "", "moves_large.py belongs into logic/moves"),
    ("in_its_package", f"{UTILS}/logic/moves.py", "", "moves.py belongs into logic/moves"),
    ("foreign_imports", f"{UTILS}/esxi/thing.py", "from pyVmomi import vim\n", "esxi imports pyVmomi"),
    ("foreign_imports", MODULE, "def f():\n    import pyVim.connect\n", "modules imports pyVim"),
    ("foreign_imports", f"{UTILS}/logic/sums.py", "import yaml\n", "logic imports yaml"),
    ("foreign_imports", f"{UTILS}/logic/sums.py", "from ansible.errors import AnsibleError\n", "logic imports ansible"),
    ("one_gate", MODULE, THING + "def body(m):\n    return m.check_mode\n", "check_mode outside"),
    ("one_gate", f"{UTILS}/esxi/thing.py", "x = getattr(y, 'check_mode')\n", "check_mode by name"),
    ("one_gate", "plugins/action/move.py", "def f(task):\n    return task.check_mode\n", "check_mode outside"),
    ("one_gate", MODULE, THING + "def body(m):\n    m.exit_json()\n", "exit_json outside"),
    ("one_gate", f"{UTILS}/vsphere/session.py", "def f(m):\n    m.fail_json(msg='')\n", "fail_json outside"),
    ("old_python", f"{UTILS}/logic/sums.py", "match x:\n    case 1: pass\n", "Pattern matching"),
    ("old_python", f"{UTILS}/logic/moves/plan.py", "match x:\n    case 1: pass\n", "Pattern matching"),
    ("old_python", f"{UTILS}/watch/link.py", "match x:\n    case 1: pass\n", "Pattern matching"),
    ("old_python", f"{UTILS}/guest/job.py", "try: pass\nexcept* OSError: pass\n", "Exception groups"),
    ("action_group", "meta/runtime.yml", "action_groups: {vsphere: []}\n", "esxi_thing is missing"),
    ("action_group", "meta/runtime.yml", "action_groups: {vsphere: [esxi_thing, gone]}\n", "gone, which is no module"),
    ("documented", MODULE, THING.replace("RETURN", "OTHER"), "lacks RETURN"),
    ("documented", MODULE, THING.replace("- dml.vsphere.esxi_thing:", ""), "lacks EXAMPLES"),
    ("documented", MODULE, THING.replace("- dml.vsphere.esxi_thing:", "- debug:"), "no example of itself"),
    ("documented", MODULE, THING.replace("dml.vsphere.attributes", "dml.vsphere.hosts"), "its attributes"),
    ("tested", "tests/unit/test_thing.py", "# esxi_thing\nNAME = 'esxi_things'\n", "named by no test"),
    ("short_functions", f"{UTILS}/logic/sums.py", LONG, "long has 31 lines, 30"),
    ("short_functions", "lab/up.py", LONG, "long has 31 lines, 30"),
    (
        "short_functions",
        "tests/unit/test_thing.py",
        "class T:\n " + LONG.replace("\n    ", "\n     "),
        "long has 31 lines",
    ),
    ("short_functions", MODULE, THING + "def body():\n" + "    pass\n" * 15, "body has 16 lines, 15"),
    ("short_files", f"{UTILS}/logic/sums.py", "x = 1\n" * 299, "sums.py has 301 lines"),
    ("short_files", "lab/up.py", "x = 1\n" * 299, "up.py has 301 lines"),
    ("named", f"{UTILS}/logic/sums.py", "x = [1 for _ in 'ab']\n", "_ is no name"),
    ("named", "lab/up.py", "x, _ = 1, 2\n", "_ is no name"),
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
def test_the_checkout_keeps(rule: architecture.Rule, checkout: Checkout) -> None:
    assert list(rule(checkout)) == []


def test_the_rules_look_at_something(checkout: Checkout) -> None:
    assert {source.room for source in checkout.plugins} >= {"runner", "plan", "errors", "logic", "vsphere", "esxi"}
    assert {source.parts[0] for source in checkout.sources} >= {"plugins", "tests", "lab", "tools"}
    assert checkout.modules


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_a_small_house_that_keeps_all_rules_passes(rule: architecture.Rule, tmp_path: Path) -> None:
    assert list(rule(build(tmp_path, GOOD))) == []


@pytest.mark.parametrize(("rule", "file", "text", "words"), BREACHES)
def test_a_breach_is_seen(rule: str, file: str, text: str, words: str, tmp_path: Path) -> None:
    breaches = list(getattr(architecture, rule)(build(tmp_path, {**GOOD, file: text})))
    assert len(breaches) == 1
    assert words in breaches[0]


def test_a_file_without_its_licence_is_seen(tmp_path: Path) -> None:
    house = build(tmp_path, GOOD)
    (tmp_path / MODULE).write_text(f"#!/usr/bin/python\n{COPYRIGHT}\n{THING}")
    (tmp_path / UTILS / "plan.py").write_text('"""Ours."""\n')
    assert len(list(architecture.licensed(house))) == 2


def test_documentation_blocks_do_not_count_as_lines(tmp_path: Path) -> None:
    long = THING.replace("state: {}", "state: {}\n" * 400)
    assert list(architecture.short_files(build(tmp_path, {**GOOD, MODULE: long}))) == []


def test_every_rule_has_a_breach() -> None:
    assert {rule for rule, *_rest in BREACHES} | {"licensed"} == {rule.__name__ for rule in RULES}


def test_each_file_of_a_circle_is_named(tmp_path: Path) -> None:
    back = {f"{UTILS}/logic/moves/search.py": "def f():\n    from .plan import g\n"}
    found = list(architecture.circles(build(tmp_path, {**GOOD, **back})))
    assert [line.split(" imports", 1)[0] for line in found] == [
        f"{UTILS}/logic/moves/plan.py",
        f"{UTILS}/logic/moves/search.py",
    ]
