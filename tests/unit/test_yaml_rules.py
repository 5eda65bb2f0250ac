"""Roles and playbooks keep the rules of YAML, and each rule sees what breaks it."""

from __future__ import annotations

from pathlib import Path

import pytest

from plugins.plugin_utils import facts
from tests.rules import yaml_rules
from tests.rules.yaml_rules import RULES, Files

ROOT = Path(__file__).parents[2]
TASKS, VARS = "roles/thing/tasks/main.yml", "roles/thing/vars/main.yml"
# Files that keep every rule.
GOOD = {
    TASKS: "- name: Show the plan\n  ansible.builtin.debug:\n    msg: The plan of {{ cluster }} has {{ n }} steps.\n",
    VARS: "__thing_words: \"{{ {'a': {'b': 1}} | combine(more) }}\"\n__thing_text: Nothing is put into this text.\n",
    "roles/thing/templates/thing.j2": "# {{ ansible_managed }}\n{% if a %}\n{{ a }}\n{% endif %}\n",
    "playbooks/thing.yml": "- name: Do the work\n  hosts: all\n  tasks: [{name: Read the state, ping: }]\n",
}
# rule, file, what it holds instead, words of the sentence that must come
BREACHES = [
    (
        "nothing_of_root_where_others_write",
        VARS,
        "__thing_lock: /run/lock/dml-thing\n",
        "/run/lock belongs to everybody",
    ),
    (
        "nothing_of_root_where_others_write",
        TASKS,
        "- name: Go\n  ansible.builtin.shell:\n    cmd: date > /tmp/thing\n",
        "/tmp belongs to everybody",
    ),
    (
        "nothing_of_root_where_others_write",
        "roles/thing/templates/thing.j2",
        "ExecStart=/bin/date --file=/var/tmp/thing\n",
        "/var/tmp belongs to everybody",
    ),
    (
        "nothing_of_root_where_others_write",
        TASKS,
        "- name: Go\n  ansible.builtin.copy:\n    dest: '{{ user.home }}/.profile'\n    content: x\n",
        "'Go' works in a home, and not as its user",
    ),
    (
        "no_state_in_facts",
        TASKS,
        "- name: Go\n  always: [{name: Keep, ansible.builtin.set_fact: {a: 1}}]\n",
        "'Keep' sets a",
    ),
    (
        "kubernetes_without_account",
        TASKS,
        "- name: Go\n  kubernetes.core.k8s: {src: a.yml}\n",
        "'Go' passes the vCenter account",
    ),
    (
        "nodes_choose_no_place",
        TASKS,
        '- name: Go\n  become_user: "{{ ansible_facts.user_id }}"\n',
        "'Go' has a become_user from ansible_facts.user_id",
    ),
]


def build(root: Path, files: dict[str, str]) -> Files:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return Files(root)


@pytest.fixture(scope="module")
def files() -> Files:
    return Files(ROOT)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_roles_and_playbooks_keep_the_rule(rule: yaml_rules.Rule, files: Files) -> None:
    assert list(rule(files)) == []


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_files_that_keep_all_rules_pass(rule: yaml_rules.Rule, tmp_path: Path) -> None:
    assert list(rule(build(tmp_path, GOOD))) == []


@pytest.mark.parametrize(("rule", "file", "text", "words"), BREACHES)
def test_rule_detects_a_breach(rule: str, file: str, text: str, words: str, tmp_path: Path) -> None:
    breaches = list(getattr(yaml_rules, rule)(build(tmp_path, {**GOOD, file: text})))
    assert len(breaches) == 1
    assert words in breaches[0]


def test_no_fact_has_the_name_of_a_result() -> None:
    documents = [file.document for file in Files(ROOT).all if file.path.suffix == ".yml"]
    named = {str(task["register"]) for each in documents for task in yaml_rules.tasks_of(each) if task.get("register")}

    assert {name for name in named if not name.startswith("__")} | {"guest_stack"} == facts.REGISTERED
