"""The plays of all playbooks: their connection, their hosts, their variables, and their conditions."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from plugins.doc_fragments.connection import ModuleDocFragment
from plugins.module_utils.core.run_request import CLUSTERS, LOCALHOST, WORKERS, Known, unknown_variables
from plugins.module_utils.core.variable_types import wrong_types
from plugins.module_utils.workers.existing_workers import ExistingWorker
from tests.rendering import rendered, truth
from tests.rules.yaml_rules import Files, expressions, tasks_of

ROOT = Path(__file__).parents[2]
PLAYBOOKS = sorted((ROOT / "playbooks").glob("*.yml"))
CONNECTION = ROOT / "playbooks" / "vars" / "connection.yml"


def test_connection_passes_every_option_and_omits_unset_ones() -> None:
    given = yaml.safe_load(CONNECTION.read_text())["vsphere_connection"]
    options = yaml.safe_load(ModuleDocFragment.DOCUMENTATION)["options"]
    ca_path = given.pop("ca_path")
    assert "vsphere_ca_path | default(omit)" in ca_path and "| map('realpath')" in ca_path
    for option, variable in (("username", "VMWARE_USER"), ("password", "VMWARE_PASSWORD")):
        login = f"lookup('dml.vsphere.login', '{variable}')"
        assert given.pop(option) == f"{{{{ vsphere_{option} | default('', true) or {login} or omit }}}}"
        del options[option]
    names = {option: option if option == "vcenter_uuid" else f"vsphere_{option}" for option in options}
    assert given == {
        option: f"{{{{ {name} | default(omit) }}}}" for option, name in names.items() if option != "ca_path"
    }


@pytest.mark.parametrize("playbook", PLAYBOOKS, ids=lambda playbook: playbook.name)
def test_play_names_the_connection_without_repeating_it(playbook: Path) -> None:
    plays: list[dict[str, Any]] = [play for play in yaml.safe_load(playbook.read_text()) if "hosts" in play]
    defaults = [play["module_defaults"] for play in plays if "module_defaults" in play]
    assert all(given == {"group/dml.vsphere.vsphere": "{{ vsphere_connection }}"} for given in defaults)
    assert all(play["vars_files"] == ["vars/connection.yml"] for play in plays if "module_defaults" in play)
    on_clusters = [play for play in plays if "clusters" in play["hosts"] and play.get("roles")]
    assert all("module_defaults" in play for play in on_clusters)


@cache
def known() -> Known:
    """Return the names that the lookup run_request accepts."""
    table = yaml.safe_load((ROOT / "playbooks" / "vars" / "options.yml").read_text())["playbook_options"]
    return Known(
        {path.parent.name: defaults(path.parent) | specified(path) for path in SPECS}, table, table["site"]["parts"]
    )


SPECS = sorted((ROOT / "roles").glob("*/meta"))


def test_accepts_the_variables_of_the_inventory_plugin() -> None:
    variables = set(ExistingWorker.__annotations__) - {"name"}
    assert "vm_built" in variables
    assert unknown_variables(known(), variables) == []


def test_accepts_variables_of_other_software() -> None:
    assert unknown_variables(known(), ["vm_size", "guest_os_family", "stack_name", "record_ttl", "account_owner"]) == []


@cache
def specified(meta: Path) -> set[str]:
    """Return the options of a role."""
    specs = meta / "argument_specs.yml"
    entries = yaml.safe_load(specs.read_text())["argument_specs"].values() if specs.exists() else []
    return {name for entry in entries for name in entry.get("options", {})}


@cache
def defaults(role: Path) -> set[str]:
    """Return the variables that have a default in a role."""
    path = role / "defaults" / "main.yml"
    return set(yaml.safe_load(path.read_text()) or {}) if path.exists() else set()


def conditions(data: Any) -> Iterator[str]:
    """Yield each condition and each host pattern in plays and tasks."""
    if isinstance(data, list):
        for entry in data:
            yield from conditions(entry)
    elif isinstance(data, dict):
        for key, value in data.items():
            if key in ("when", "hosts"):
                yield from map(str, value if isinstance(value, list) else [value])
            else:
                yield from conditions(value)


@pytest.mark.parametrize("playbook", PLAYBOOKS, ids=lambda playbook: playbook.name)
def test_every_play_checks_the_request_under_its_tag(playbook: Path) -> None:
    name = playbook.stem
    plays = [play for play in yaml.safe_load(playbook.read_text()) if "hosts" in play]
    if name == "site":
        assert [play["hosts"] for play in plays] == ["clusters"], "it only reads the inventory again"
        return
    patterns = {
        f"query('dml.vsphere.run_request', '{name}', hosts='{hosts}'" for hosts in (CLUSTERS, WORKERS, LOCALHOST)
    }
    assert plays and all(play["tags"] == [name] for play in plays)
    assert all(any(query in play["hosts"] for query in patterns) for play in plays)
    on_hosts = LOCALHOST not in plays[0]["hosts"]
    assert ("tasks/variables.yml" in playbook.read_text()) == on_hosts
    tags = set(re.findall(r"^ +tags: \[(\w+)\]", playbook.read_text(), re.MULTILINE)) - {"always"}
    untold = sorted(tags - known().tags(name))
    assert untold == [], f"add the tags {untold} of {name} to playbooks/vars/options.yml"
    assert tags == known().tags(name), f"remove tags of {name} from playbooks/vars/options.yml"


@pytest.mark.parametrize("playbook", PLAYBOOKS, ids=lambda playbook: playbook.name)
def test_every_variable_that_a_playbook_reads_is_known(playbook: Path) -> None:
    play_variables = {"after_fabric", "after_hosts", "hostvars", "vmotion_test_started"}
    named = set(re.findall(r"(?<![\w.\'])([a-z]\w+) \| default\(", playbook.read_text())) - play_variables
    assert named - known().variables - known().options(playbook.stem) == set()


def test_playbook_reads_all_its_options_and_tags() -> None:
    for name, entry in known().playbooks.items():
        text = (ROOT / "playbooks" / f"{name}.yml").read_text().replace("hosts='workers'", "guests")
        for tasks in ("training.yml", "training_of_cluster.yml"):
            text += (ROOT / "playbooks" / "tasks" / tasks).read_text() if f"tasks/{tasks}" in text else ""
        assert [option for option in entry.get("options", ()) if not re.search(rf"\b{option}\b", text)] == [], name


@pytest.mark.parametrize("playbook", PLAYBOOKS, ids=lambda playbook: playbook.name)
def test_passed_on_options_cannot_be_outranked(playbook: Path) -> None:
    """A role option on the command line outranks the playbook's value, which alone its checks read."""
    plays = [play for play in yaml.safe_load(playbook.read_text()) if "hosts" in play]
    options = "|".join(known().options(playbook.stem)) or "(?!)"
    passed = re.compile(rf"\{{\{{ ({options}) \| default\([^()]*\) \}}\}}")
    set_by_playbook = {
        name: found[1]
        for play in plays
        for role in play.get("roles", ())
        for name, value in role.get("vars", {}).items()
        if (found := passed.fullmatch(str(value)))
    }

    assert known().passed_on(playbook.stem) == set_by_playbook or playbook.stem == "site"


@pytest.mark.parametrize("playbook", PLAYBOOKS, ids=lambda playbook: playbook.name)
def test_no_condition_tests_a_variable_with_role_defaults(playbook: Path) -> None:
    of_roles = {name for path in SPECS for name in defaults(path.parent)}
    tested = {
        name
        for condition in conditions(yaml.safe_load(playbook.read_text()))
        for name in re.findall(r"(?<![\w.])(\w+) is (?:not )?defined", condition)
    }
    assert tested & of_roles == set(), "read hostvars[inventory_hostname], which has no defaults of roles"


def test_preloaded_filters_exist_in_one_file_each() -> None:
    lookup = (ROOT / "plugins" / "lookup" / "run_request.py").read_text()
    (names,) = re.findall(r"^OFTEN_USED = (\(.*\))$", lookup, re.MULTILINE)
    files = {path: path.read_text() for path in (ROOT / "plugins" / "filter").glob("*.py")}
    found = [[path.name for path, text in files.items() if f'"{name}":' in text] for name in ast.literal_eval(names)]
    assert found == [["guests.py"], ["training.py"]]


def playbook_types() -> dict[str, Any]:
    """Return the types of the variables of playbooks."""
    return dict(yaml.safe_load((ROOT / "playbooks" / "vars" / "options.yml").read_text())["playbook_types"])


@cache
def typed() -> dict[str, Any]:
    """Return each variable with its specification, but those that take any value."""
    entries = [
        entry.get("options", {})
        for path in SPECS
        for entry in yaml.safe_load((path / "argument_specs.yml").read_text())["argument_specs"].values()
    ]
    return {
        name: spec for entry in (playbook_types(), *entries) for name, spec in entry.items() if spec["type"] != "raw"
    }


# Values that a variable of this type cannot have.
WRONG: dict[str, list[Any]] = {
    "str": [["x"], {"x": "y"}],
    "path": [["x"], {"x": "y"}],
    "int": ["seven", ["x"], {"x": "y"}, False],
    "float": ["seven", ["x"], {"x": "y"}, False],
    "bool": ["perhaps", ["x"], {"x": "y"}, 7],
    "list": ["x y", {"x": "y"}, 7, False],
    "dict": ["x y", ["x"], 7, False],
}


@pytest.mark.parametrize("name", typed())
def test_wrong_type_error_names_the_variable(name: str) -> None:
    spec = typed()[name]
    required = [None] if spec.get("default") is not None or spec.get("required") else []
    for value in [*WRONG[spec["type"]], *required]:
        (sentence,) = wrong_types({name: spec}, {name: value})
        assert sentence.startswith(f"the variable {name} ")


def test_playbook_types_cover_only_variables_without_role() -> None:
    of_roles = {name for names in known().roles.values() for name in names}
    of_playbooks = known().variables - of_roles | known().all_options
    assert set(playbook_types()) - of_playbooks == set()
    made = {name for name in of_playbooks if name.startswith(("vm_", "guest_")) or "acceptance_canary_" in name}
    facts = {
        "acceptance_seen",
        "conformance_seen",
        "depot_folder",
        "discover_existing",
        "discover_found",
        "discover_path",
        "record_answer",
        "record_folder",
    }
    untyped = of_playbooks - set(playbook_types()) - made - facts - {"record_made", "vsphere_connection", "guests"}
    assert untyped == set(), "add their types to playbooks/vars/options.yml"


@pytest.mark.parametrize("playbook", PLAYBOOKS, ids=lambda playbook: playbook.name)
def test_condition_accepts_true_from_the_command_line(playbook: Path) -> None:
    """A value of ``-e NAME=true`` is text, which Ansible refuses as a condition."""
    truths = "|".join(name for name, option in playbook_types().items() if option["type"] == "bool")
    bare = rf"^ *when: .*\b(?:{truths}) \| default\([a-z]+\)(?! \| bool| is truthy)"
    assert re.findall(bare, playbook.read_text(), re.MULTILINE) == [], "convert it with bool"


@pytest.mark.parametrize("playbook", PLAYBOOKS, ids=lambda playbook: playbook.name)
def test_variables_are_checked_before_a_task_reads_them(playbook: Path) -> None:
    plays = [play for play in yaml.safe_load(playbook.read_text()) if "tasks/variables.yml" in str(play)]
    for play in plays:
        first = (play.get("pre_tasks") or play["tasks"])[0]
        assert first["ansible.builtin.import_tasks"] == "tasks/variables.yml"


def test_result_with_fixed_change_is_never_read() -> None:
    """The result of a task with changed_when: false says that nothing changed, whatever its module answered."""
    files = Files(ROOT).all
    tasks = [task for file in files if file.path.suffix == ".yml" for task in tasks_of(file.document)]
    fixed = {task["register"] for task in tasks if task.get("register") and task.get("changed_when") is False}
    use = re.compile(rf"\b({'|'.join(fixed)})(\.changed\b| is (not )?changed\b)")

    assert [file.name for file in files if use.search(file.path.read_text())] == []


@pytest.mark.parametrize("differs", [True, False])
def test_canary_keeps_its_value(differs: bool) -> None:
    (block,) = yaml.safe_load((ROOT / "playbooks" / "tasks" / "canary.yml").read_text())
    # The module answers whether the option differs from 0; changed_when fixes the sum of all hosts.
    seen = {"changed": False, "hosts": [{"changed": differs, "state": {}}]}

    assert int(rendered(block["vars"]["canary_value"], acceptance_canary_seen=seen)) == int(differs)


def test_canary_that_ignores_its_change_fails() -> None:
    (block,) = yaml.safe_load((ROOT / "playbooks" / "tasks" / "canary.yml").read_text())
    (check,) = [task for task in block["block"] if task.get("register") == "acceptance_canary_back"]
    back = {"changed": False, "hosts": [{"changed": True}]}

    assert rendered("{{ " + check["failed_when"] + " }}", acceptance_canary_back=back)


@pytest.mark.parametrize("playbook", PLAYBOOKS, ids=lambda playbook: playbook.name)
def test_switches_of_playbooks_that_are_texts_are_switches(playbook: Path) -> None:
    types = yaml.safe_load((ROOT / "playbooks" / "vars" / "options.yml").read_text())["playbook_types"]
    names = "|".join(name for name, spec in types.items() if spec["type"] == "bool")
    bare = re.compile(rf"\b({names})\b(?!\s*(\|\s*default\(.*\)\s*)?\|\s*bool\b| is (not )?defined)", re.DOTALL)
    handed_on = re.compile(r"\w+( \| default\(\w+\))?")
    document = yaml.safe_load(playbook.read_text())

    assert [one for one in expressions(document) if bare.search(one) and not handed_on.fullmatch(one.strip())] == []


@pytest.mark.parametrize("cards", [1, 2])
def test_preflight_reads_the_protocol_of_several_cards(cards: int) -> None:
    (play,) = yaml.safe_load((ROOT / "playbooks" / "preflight.yml").read_text())
    nics = [{"portgroup": f"rdma-{number}", "protocol": "rocev1"} for number in range(cards)]
    protocol = play["roles"][0]["vars"]["preflight_rdma_protocol"]

    assert rendered(protocol, worker_defaults={"rdma_nics": nics}) == "rocev1"


@pytest.mark.parametrize(
    ("first", "second", "refused"),
    [
        ({"stack": "a100"}, {"stack": "t4"}, ["stack"]),
        ({"stack_inputs": {"driver": {"url": "https://x/1.run"}}}, {"stack_inputs": {}}, ["stack_inputs"]),
        ({"guest_containers": True, "guest_image": "true"}, {"guest_containers": "true"}, ["guest_image"]),
        ({"stack": "t4", "guest_image": False, "stack_mirror": ""}, {"stack": "t4", "stack_bases": {}}, []),
    ],
)
def test_guests_refuses_workers_with_different_stacks(
    first: dict[str, Any], second: dict[str, Any], refused: list[str]
) -> None:
    """All roles get their variables from the stack of the first worker."""
    pre_tasks = yaml.safe_load((ROOT / "playbooks" / "guests.yml").read_text())[0]["pre_tasks"]
    (task,) = [task for task in pre_tasks if "different stacks" in task["name"]]
    names = {"ansible_play_hosts": ["w1", "w2"], "hostvars": {"w1": first, "w2": second}}
    condition = task["ansible.builtin.assert"]["that"]

    differing = [each["name"] for each in task["loop"] if not truth(condition, **names, item=each)]

    assert differing == refused


@pytest.mark.parametrize(("unfinished", "starts"), [("", True), ("reports/vmotion_test/gpu-20260101T120000Z", False)])
def test_vmotion_test_starts_a_job_despite_limit(unfinished: str, starts: bool) -> None:
    """A cluster outside the limit has no plan."""
    plays = yaml.safe_load((ROOT / "playbooks" / "vmotion_test.yml").read_text())
    (start,) = [task for play in plays for task in play.get("tasks", ()) if task["name"] == "Start the job"]
    (condition,) = [each for each in start["when"] if "unfinished" in each]
    hosts = {"gpu": {"__vmotion_test_planned": {"changed": False, "unfinished": unfinished}}, "another": {}}

    assert truth(condition, groups={"clusters": list(hosts)}, hostvars=hosts) is starts
