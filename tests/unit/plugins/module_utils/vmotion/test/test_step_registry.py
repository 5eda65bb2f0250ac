# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A step of a vMotion test is one object: each table is derived from the registry, and no other file lists steps."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from plugins.module_utils.vmotion.test import next_step as driver
from plugins.module_utils.vmotion.test.step import Due, EntryKind, ModuleCall, Phase, Step, in_order
from plugins.module_utils.vmotion.test.step_registry import STEPS, Registry
from tests.fakes.trial import Killed, World

ROOT = Path(__file__).parents[6]
ROOM = ROOT / "plugins" / "module_utils" / "vmotion" / "test"
NAMES = {step.name for step in STEPS}
each_step = pytest.mark.parametrize("step", STEPS, ids=lambda step: step.name)


def defined() -> Iterator[tuple[str, Step]]:
    """Yield each step that a file of the folder defines, with its name in the registry."""
    for path in sorted((ROOM / "steps").glob("*.py")):
        module = importlib.import_module(f"plugins.module_utils.vmotion.test.steps.{path.stem}")
        yield from ((f"{path.stem}.{name}", value) for name, value in vars(module).items() if isinstance(value, Step))


def test_the_registry_has_every_step() -> None:
    missing = [name for name, step in defined() if step not in STEPS]
    assert missing == [], f"add {', '.join(missing)} to STEPS in vmotion/test/step_registry.py"
    assert len(NAMES) == len(STEPS) == len(list(defined())), "two steps have the same name"


@each_step
def test_a_step_is_complete(step: Step) -> None:
    phases = [due.phase for due in step.due]
    assert len(set(phases)) == len(phases) > 0, "a step has at least one phase, and one condition for each"
    for due in step.due:
        others = {other.name for other in STEPS if other.due_in(due.phase)}
        assert set(due.after) <= others - {step.name}, f"'after' names a step that has no {due.phase}"
    assert step.name in [kind.name for kind in step.kinds], "a kind of entries has the name of the step"


def test_one_step_defines_the_effect_of_a_kind_of_entries() -> None:
    kinds = [kind.name for step in STEPS for kind in step.kinds]
    assert sorted(kinds) == sorted(set(kinds))


def test_an_order_that_contradicts_itself_is_refused() -> None:
    first = Step("a", "a", (Due(Phase.OPENING, lambda _state: True, after=("b",)),))
    second = Step("b", "b", (Due(Phase.OPENING, lambda _state: True, after=("a",)),))
    with pytest.raises(ValueError, match=r"satisfies 'after' of a, b"):
        in_order((first, second), Phase.OPENING)


def literals(tree: ast.AST) -> Iterator[set[str]]:
    """Yield the words of each literal collection, comparison and match in a file."""
    kinds = (ast.Dict, ast.Set, ast.List, ast.Tuple, ast.Compare, ast.Call, ast.Match)
    for node in ast.walk(tree):
        if isinstance(node, kinds):
            keys = node.keys if isinstance(node, ast.Dict) else list(ast.iter_child_nodes(node))
            inside = [key for key in keys if key is not None]
            yield {word.value for word in inside if isinstance(word, ast.Constant) and isinstance(word.value, str)}


@pytest.mark.parametrize(
    "path",
    [*ROOM.glob("*.py"), *(ROOT / "plugins" / "plugin_utils").glob("*.py"), ROOT / "tests" / "fakes" / "trial.py"],
    ids=lambda path: path.name,
)
def test_no_other_file_has_a_table_of_steps(path: Path) -> None:
    tables = [words & NAMES for words in literals(ast.parse(path.read_text())) if len(words & NAMES) > 2]
    assert tables == [], "what a step does belongs in its file in vmotion/test/steps"


def test_a_step_that_only_the_registry_has_is_done_shown_written_and_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    """This step reads the cluster before the job is measured, and again for each controller."""
    new = Step(
        name="census",
        title="counts the machines of the cluster",
        due=(Due(Phase.OPENING, lambda state: "census" not in state.lately and not state.round, after=("warm",)),),
        action=lambda state, _controller: ModuleCall("cluster_info", {"cluster": state.cluster}),
        entries=lambda result, _state, _controller: [("census", {"ha": result["cluster"]["ha"]["enabled"]})],
        kinds=(EntryKind("census", messages=lambda entry, _state: [f"HA: {entry['ha']}"]),),
        is_repeated=True,
    )
    monkeypatch.setattr(driver, "REGISTRY", Registry((*STEPS, new)))
    world = World()
    with pytest.raises(Killed):
        world.carry_out(entries=10)
    state = world.carry_out()
    written = [entry for entry in world.journal if entry["entry"] == "census"]
    assert [entry["ha"] for entry in written] == [True, True], "once for each controller"
    assert driver.kind_of("census").messages(written[0], state) == ["HA: True"]
    assert [move["worker"] for move in state.moves] == ["w1", "w2"]
    assert state.end is not None
