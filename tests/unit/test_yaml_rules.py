# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Roles and playbooks keep the rules of YAML, and each rule sees what breaks it."""

from __future__ import annotations

from pathlib import Path

import pytest

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
LONG = " + ".join(["value"] * 26)
# rule, file, what it holds instead, words of the sentence that must come
BREACHES = [
    (
        "no_host_chooses_among_included_files",
        TASKS,
        "- name: Go\n  ansible.builtin.include_tasks: a.yml\n  loop: [1]\n  when: [a, inventory_hostname in item]\n",
        "'Go' includes in turn what depends on the host",
    ),
    ("short_expressions", VARS, f'a: "{{{{ {LONG} }}}}"\n', "205 characters in one expression"),
    ("short_expressions", VARS, f"a:\n  - b: >-\n      x {{{{ {LONG} }}}} y\n", "205 characters"),
    ("short_expressions", TASKS, f"- name: Go\n  when: [{LONG}]\n", "205 characters"),
    ("short_expressions", TASKS, f"- name: Go\n  block:\n    - name: On\n      until: {LONG}\n", "205 characters"),
    (
        "short_expressions",
        "roles/thing/templates/thing.j2",
        f"{{% if {LONG} %}}x{{% endif %}}",
        "in one expression: if value",
    ),
    ("short_expressions", "playbooks/thing.yml", f"- vars:\n    a: '{{{{ {LONG} }}}}'\n", "playbooks/thing.yml: 205"),
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
        "no_composed_sentences",
        TASKS,
        "- name: Go\n  fail:\n    msg: \"It {{ 'is not as it was' if a else 'is' }}.\"\n",
        "a sentence in an expression: is not as it was",
    ),
    ("no_composed_sentences", VARS, "a: \"{{ ['The node has no card.'] if a else [] }}\"\n", "The node has no card."),
    (
        "no_composed_sentences",
        VARS,
        'a: [{b: "The node {{ n }} has no such card."}]\n',
        "a sentence in a variable: The node",
    ),
    (
        "no_composed_sentences",
        TASKS,
        '- name: Go\n  vars:\n    a: "{{ n }} has no such card."\n',
        "in a variable: has no such",
    ),
    (
        "no_composed_sentences",
        TASKS,
        '- name: Go\n  rescue:\n    - name: Keep\n      ansible.builtin.set_fact: {a: "{{ n }} has no such card."}\n',
        "in a variable: has no such card.",
    ),
    (
        "no_state_in_facts",
        TASKS,
        "- name: Go\n  always: [{name: Keep, ansible.builtin.set_fact: {a: 1}}]\n",
        "'Keep' sets a",
    ),
    (
        "no_file_that_includes_itself",
        TASKS,
        "- name: Go\n  ansible.builtin.include_tasks: main.yml\n  when: a\n",
        "'Go' includes its own file",
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
    ("names_without_pronouns", TASKS, "- name: Show it\n", "the name 'Show it' has a pronoun"),
    ("names_without_pronouns", TASKS, "- name: Go\n  block:\n    - name: Forget them\n", "the name 'Forget them'"),
    (
        "names_without_pronouns",
        "playbooks/thing.yml",
        "- tasks:\n    - name: Keep what they reported\n",
        "'Keep what they reported'",
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
def test_roles_and_playbooks_keep(rule: yaml_rules.Rule, files: Files) -> None:
    assert list(rule(files)) == []


def test_the_rules_look_at_something(files: Files) -> None:
    names = {file.name for file in files.all}
    assert {"playbooks/guests.yml", "roles/openmpi/vars/main.yml", "roles/openmpi/templates/hostfile.j2"} <= names


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_files_that_keep_all_rules_pass(rule: yaml_rules.Rule, tmp_path: Path) -> None:
    assert list(rule(build(tmp_path, GOOD))) == []


@pytest.mark.parametrize(("rule", "file", "text", "words"), BREACHES)
def test_a_breach_is_seen(rule: str, file: str, text: str, words: str, tmp_path: Path) -> None:
    breaches = list(getattr(yaml_rules, rule)(build(tmp_path, {**GOOD, file: text})))
    assert len(breaches) == 1
    assert words in breaches[0]


def test_every_rule_has_a_breach() -> None:
    assert {rule for rule, *_rest in BREACHES} == {rule.__name__ for rule in RULES}
