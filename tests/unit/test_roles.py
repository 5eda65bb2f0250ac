"""Every role says what it takes, in its defaults and in its argument specification alike."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import yaml

from plugins.module_utils.hosts.change_hosts import HostChangeOptions
from plugins.module_utils.hosts.rollout import RolloutOptions

ROOT = Path(__file__).parents[2]
ROLES = sorted(path for path in (ROOT / "roles").iterdir() if path.is_dir())
LONGEST_MAIN = 40
# The paths on nodes.
ON_NODES = {
    "alone_folder",
    "cuda_home",
    "horovod_mpi_bin",
    "horovod_python",
    "horovod_venv",
    "python_environment_folder",
    "python_environment_python",
    "pytorch_mpi_bin",
    "pytorch_python",
    "pytorch_venv",
    "training_sysfs",
    "vmotion_test_records",
    "vmotion_test_run_dir",
}
# Too common a name to be searched for, and a role whose program reads its options.
NOT_SEARCHED = {"folder"}
WITH_PROGRAM = ROOT / "roles" / "training"
# With a path of its user, so that it does not depend on the folder in which a module starts.
RESOLVED = re.compile(r"expandvars\b.*\bexpanduser\b.*\brealpath\b")
VARIABLE = re.compile(r"[a-z_][a-z0-9_]*")
TYPED = {"bool", "dict", "float", "int"}
CONVERSIONS = {"bool": (bool,), "int": (int,), "float": (int, float), "list": (list,), "dict": (dict,)}


def load(path: Path) -> Any:
    return yaml.safe_load(path.read_text())


def is_template(value: Any) -> bool:
    return isinstance(value, str) and "{{" in value


def defaults_of(role: Path) -> dict[str, Any]:
    return dict(load(role / "defaults" / "main.yml") or {})


def options_of(role: Path) -> dict[str, Any]:
    return dict(load(role / "meta" / "argument_specs.yml")["argument_specs"]["main"]["options"])


def set_by(tasks: Any) -> Iterator[str]:
    """The variables that tasks register, set or loop with, in blocks too."""
    for task in tasks or []:
        yield from (name for name in [task.get("register"), task.get("loop_control", {}).get("loop_var")] if name)
        yield from task.get("ansible.builtin.set_fact", {})
        if "ansible.builtin.include_role" not in task:
            yield from task.get("vars", {})
        for part in ("block", "rescue", "always"):
            yield from set_by(task.get(part))


def variables_of(role: Path) -> set[str]:
    """Return the variables that the role's task files set."""
    return {name for path in (role / "tasks").rglob("*.yml") for name in set_by(load(path))}


def strangers(role: str, names: set[str]) -> list[str]:
    """Return the names that start neither with the name of the role nor with ansible_."""
    return sorted(name for name in names if not name.startswith((f"{role}_", f"__{role}_", "ansible_")))


def controller_paths() -> set[str]:
    """Return the variables with a path on the controller."""
    specs = [options_of(role) for role in ROLES if role != WITH_PROGRAM]
    specs.append(load(ROOT / "playbooks" / "vars" / "options.yml")["playbook_types"])
    return (
        {name for spec in specs for name, option in spec.items() if option["type"] == "path"} - ON_NODES - NOT_SEARCHED
    )


def unresolved(text: str, paths: set[str]) -> list[str]:
    """Return the lines that use a path of the user and neither resolve it nor set another such variable to it."""
    used = re.compile(rf"\{{\{{.*\b({'|'.join(sorted(paths))})\b.*\}}\}}")
    lines = [line.strip() for line in re.sub(r">-\n\s+|\s*\n\s+(?=\|)", " ", text).splitlines()]
    wrong = [line for line in lines if used.search(line) and not RESOLVED.search(line)]
    return [line for line in wrong if line.partition(":")[0] not in paths]


@pytest.fixture(params=ROLES, ids=lambda role: role.name)
def role(request: pytest.FixtureRequest) -> Path:
    return Path(request.param)


def test_each_role_has_its_files(role: Path) -> None:
    files = ("README.md", "defaults/main.yml", "meta/argument_specs.yml", "meta/main.yml", "tasks/main.yml")
    assert [f"write roles/{role.name}/{file}" for file in files if not (role / file).exists()] == []


def test_defaults_and_argument_specification_name_the_same_options(role: Path) -> None:
    required = {name for name, option in options_of(role).items() if option.get("required")}
    assert set(defaults_of(role)) == set(options_of(role)) - required


def test_defaults_and_argument_specification_give_the_same_values(role: Path) -> None:
    options = {name: option for name, option in options_of(role).items() if not option.get("required")}
    # The tools for documentation take a template for no number, dictionary or truth: words name that default.
    defaults = defaults_of(role)
    typed = {name for name, option in options.items() if TYPED & {option["type"], option.get("elements")}}
    reported = {name for name in typed if is_template(defaults[name])}
    assert [name for name in reported if "default" in options[name]] == []
    assert [name for name in reported if "default" not in str(options[name]["description"]).lower()] == []
    given = {name: option.get("default") for name, option in options.items() if name not in reported}
    assert given == {name: value for name, value in defaults.items() if name not in reported}


def test_only_the_argument_specification_describes_options(role: Path) -> None:
    lines = (role / "defaults" / "main.yml").read_text().splitlines()
    assert [line for line in lines if line.lstrip().startswith("#")] == []


def test_defaults_have_the_specified_type(role: Path) -> None:
    defaults, wrong = defaults_of(role), []
    for name, option in options_of(role).items():
        value = defaults.get(name)
        kinds = CONVERSIONS.get(option["type"], (str,))
        if value is not None and not is_template(value) and type(value) not in kinds:
            wrong.append(f"{name} is {option['type']}, its default {value!r} is not")
    assert wrong == []


def test_every_option_is_described(role: Path) -> None:
    assert [name for name, option in options_of(role).items() if not option.get("description")] == []


def test_variables_begin_with_the_name_of_their_role(role: Path) -> None:
    assert strangers(role.name, set(defaults_of(role))) == []
    assert strangers(role.name, variables_of(role)) == []


def test_the_main_file_is_a_table_of_contents(role: Path) -> None:
    assert len((role / "tasks" / "main.yml").read_text().splitlines()) <= LONGEST_MAIN


# The rooms of programs that do not have the name of their role.
ROOM_OF_PROGRAMS = {"vmotion_test": "trials"}
ACTION_OF_PROGRAMS = {"vmotion_test": "trial"}
# The options of roles that an action takes by the names of the fields of its options.
FIELDS = {"esxi_host": {each.name for kind in (RolloutOptions, HostChangeOptions) for each in fields(kind)}}


def used_by_programs(role: Path, tasks: str) -> set[str]:
    """Return the options that the programs of a role read, without its prefix, from the options of the action."""
    if not re.search(rf"dml\.vsphere\.program:\n +name: {role.name}", tasks):
        return set()
    room = ROOM_OF_PROGRAMS.get(role.name, role.name.partition("_")[0])
    rooms = [*(ROOT / "plugins" / "module_utils" / room).rglob("*.py"), *(ROOT / "plugins").rglob("*_backend.py")]
    files = [*rooms, *(ROOT / "plugins" / "plugin_utils").glob(f"{role.name}_*.py")]
    files += (ROOT / "plugins" / "plugin_utils").glob(f"{ACTION_OF_PROGRAMS.get(role.name)}.py")
    words = {word for path in files for word in re.findall(r'"(\w+)"', path.read_text())}
    # Measurements of pairs have options with a common prefix.
    return {f"{role.name}_{word}" for word in words} | {f"{role.name}_fabric_{word}" for word in words}


def used_by_action(role: Path, tasks: str) -> set[str]:
    """Return the options that the action of a role reads if its task asks for those of the role, without its prefix."""
    if "of_role: true" not in tasks:
        return set()
    actions = set(re.findall(r"dml\.vsphere\.(\w+): \{of_role: true", tasks))
    texts = ((ROOT / "plugins" / "action" / f"{action}.py").read_text() for action in actions)
    words = {word for text in texts for word in re.findall(r'given\["(\w+)"\]', text)} | FIELDS.get(role.name, set())
    return {f"{role.name}_{word}" for word in words}


def test_every_default_has_a_use(role: Path) -> None:
    files = (path for kind in ("tasks", "templates", "vars") for path in (role / kind).rglob("*") if path.is_file())
    texts = "\n".join(path.read_text() for path in files)
    used = set(VARIABLE.findall(texts)) | used_by_programs(role, texts) | used_by_action(role, texts)
    unused = sorted(set(defaults_of(role)) - used)
    assert [f"roles/{role.name}: use {name} in a task or remove it from the defaults" for name in unused] == []


def test_no_default_is_inside_the_collection(role: Path) -> None:
    """`ansible-galaxy collection install --force` replaces the collection, and with it what a run wrote there."""
    inside = [name for name, value in defaults_of(role).items() if re.search(r"playbook_dir|role_path", str(value))]
    assert inside == [], "give it a relative default"


def test_user_paths_start_in_the_users_directory() -> None:
    """A module starts in the folder of its playbook, which may be the installed collection."""
    paths = controller_paths()
    folders = [*(path / kind for path in ROLES for kind in ("tasks", "vars")), ROOT / "playbooks"]
    files = sorted(path for folder in folders for path in folder.rglob("*.yml"))

    wrong = [f"{path.relative_to(ROOT)}: {line}" for path in files for line in unresolved(path.read_text(), paths)]

    assert {"evidence_dir", "discover_file", "vsphere_ca_path", "report_dir", "mpijob_kubeconfig"} <= paths
    assert wrong == [], "resolve it with: | expandvars | expanduser | realpath"


@pytest.mark.parametrize(
    ("line", "is_wrong"),
    [
        ('dest: "{{ evidence_dir }}/{{ name }}.json"', True),
        ('path: "{{ evidence_dir | default(omit) }}"', True),
        ('path: "{{ evidence_dir | realpath }}"', True),
        ('path: "{{ evidence_dir | expandvars | expanduser | realpath }}"', False),
        ('evidence_dir: "{{ evidence_dir }}"', False),
        ("when: evidence_dir | length > 0", False),
        ('path: "{{ __evidence_dir }}"', False),
        ('__evidence_dir: "{{ evidence_dir }}"', True),
    ],
)
def test_finds_an_unresolved_path(line: str, *, is_wrong: bool) -> None:
    assert bool(unresolved(f"    {line}\n", {"evidence_dir"})) is is_wrong


def test_no_path_depends_on_the_pwd_variable() -> None:
    """Programs that a service or sudo starts have no PWD, or that of another folder."""
    files = [path for folder in ("roles", "playbooks") for path in sorted((ROOT / folder).rglob("*.yml"))]
    assert [path for path in files if "'PWD'" in path.read_text()] == []


def test_default_with_dirname_resolves_the_path(role: Path) -> None:
    """The parent of the relative path `runs` is an empty text."""
    beside = {name: str(value) for name, value in defaults_of(role).items() if "dirname" in str(value)}
    assert [name for name, value in beside.items() if not RESOLVED.search(value)] == []


def test_finds_a_foreign_variable(tmp_path: Path) -> None:
    (tmp_path / "tasks").mkdir()
    (tmp_path / "tasks" / "main.yml").write_text(
        "- block:\n    - {name: A, register: other_answer}\n    - {name: B, register: __thing_answer}\n"
        "  always:\n    - {name: C, vars: {stray: 1}, loop_control: {loop_var: item_of_thing}}\n"
    )
    assert strangers("thing", variables_of(tmp_path)) == ["item_of_thing", "other_answer", "stray"]
