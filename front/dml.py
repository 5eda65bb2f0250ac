# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Short commands for the playbooks that train: each prints the playbook that it runs, and becomes it.

The words after -- are the command of the ranks, or of exec, without any quoting. Options that are not listed here are
variables of the playbooks: -e NAME=VALUE.
"""

from __future__ import annotations

import argparse
import configparser
import json
import os
import shlex
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

RESULTS = Path("reports", "runs")
CONFIGURATIONS = ("ansible.cfg", "~/.ansible.cfg", "/etc/ansible/ansible.cfg")
NO_INVENTORY = (
    "dml: could not find the workers: neither DML_INVENTORY nor -i names an inventory. Set it once, such as "
    "export DML_INVENTORY=~/cluster/inventory; step 7 of docs/cluster.md makes the inventory."
)
NO_ANSIBLE = "dml: could not find ansible-playbook: install ansible-core, or add its folder to PATH."
# The commands that take the name of a run, which shells complete.
OF_A_RUN = ("logs", "stop", "resume", "repeat", "fetch", "compare", "exec")
COMPLETIONS = {
    "bash": "complete -o default -C 'dml __complete' dml",
    "zsh": "autoload -U +X bashcompinit && bashcompinit && complete -o default -C 'dml __complete' dml",
    "fish": "complete -c dml -a '(dml __complete dml (commandline -ct) (commandline -poc)[-1])'",
}
# Words that Ansible would take for templates.
TEMPLATES = ("{{", "{%", "{#")


def common() -> argparse.ArgumentParser:
    """Return the parser of the options that all commands have; they are those of ansible-playbook."""
    made = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    made.add_argument("-i", "--inventory", action="append", help="inventory; by default DML_INVENTORY")
    made.add_argument("-e", "--extra-vars", action="append", default=[], help="variables of the playbook")
    made.add_argument("-l", "--limit", help="hosts to which the playbook is limited")
    made.add_argument("-C", "--check", action="store_true", help="show what would happen, and change nothing")
    made.add_argument("-v", "--verbose", action="count", default=0, help="more output of Ansible")
    made.add_argument("-K", "--ask-become-pass", action="store_true", help="ask for the password of sudo")
    made.add_argument("-J", "--ask-vault-password", action="store_true", help="ask for the password of the vault")
    return made


def parser() -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    top = argparse.ArgumentParser("dml", description="Trains on the workers of a cluster.", allow_abbrev=False)
    commands, options = top.add_subparsers(dest="command", required=True, metavar="COMMAND"), common()

    def add(name: str, text: str, *names: str) -> argparse.ArgumentParser:
        made = commands.add_parser(name, help=text, parents=[options], allow_abbrev=False)
        for each in names:
            made.add_argument(each)
        return made

    train = add("train", "train the program of this folder; its command follows --, or is in dml.yml")
    train.add_argument("folder", nargs="?", default=".", help="folder of the program, by default this one")
    resume = add("resume", "continue a run from its newest checkpoint", "name")
    repeat = add("repeat", "run the same code, packages, data and command again", "name")
    for each in (train, resume, repeat):
        each.add_argument("-n", "--nodes", help="number of workers, or their names with commas")
        each.add_argument("--name", dest="new_name", help="name of the new run")
    logs = add("logs", "show the end of the output of a run", "name")
    logs.add_argument("-f", "--follow", action="store_true", help="follow the run to its end")
    fetch = add("fetch", "bring the outputs of a run, or one file or folder of it", "name")
    fetch.add_argument("path", nargs="?")
    execute = add("exec", "run the command after -- in the folder and environment of a run", "name")
    for each in (logs, fetch, add("stop", "stop a run", "name"), execute):
        each.add_argument("--user", help="who started it, if users of different workers chose the same name")
    add("runs", "list the runs")
    add("compare", "compare two runs", "name", "other")
    completion = commands.add_parser("completion", help="print the line that completes dml")
    completion.add_argument("shell", choices=COMPLETIONS)
    return top


def request(given: argparse.Namespace, command: list[str]) -> tuple[str, dict[str, Any]]:
    """Return the playbook of a command and its variables."""
    name = {"training_name": getattr(given, "name", None), "training_started_by": getattr(given, "user", None)}
    new = {"training_name": getattr(given, "new_name", None), "training_nodes": getattr(given, "nodes", None)}
    requests: dict[str, Callable[[], tuple[str, dict[str, Any]]]] = {
        "train": lambda: ("train", {"training_folder": given.folder, **new, "training_command": command}),
        "resume": lambda: ("train", {"training_resume": given.name, **new}),
        "repeat": lambda: ("train", {"training_repeat": given.name, **new}),
        "logs": lambda: ("train", {**name, "training_show": "log"}) if given.follow else ("logs", name),
        "stop": lambda: ("stop", name),
        "fetch": lambda: ("fetch", {**name, "training_fetch": given.path}),
        "runs": lambda: ("runs", {}),
        "compare": lambda: ("runs", {"training_compare": f"{given.name},{given.other}"}),
        "exec": lambda: ("exec", {**name, "training_exec": command}),
    }
    playbook, variables = requests[given.command]()
    return playbook, {key: value for key, value in variables.items() if value}


def playbook_words(given: argparse.Namespace, command: list[str]) -> list[str]:
    """Return the words of ansible-playbook for a command."""
    playbook, variables = request(given, command)
    words = ["ansible-playbook"]
    for path in given.inventory or filter(None, os.environ.get("DML_INVENTORY", "").split(os.pathsep)):
        words += ["-i", path]
    words.append(f"dml.vsphere.{playbook}")
    words += ["-e", extra(variables)] if variables else []
    for each in given.extra_vars:
        words += ["-e", each]
    words += ["--limit", given.limit] if given.limit else []
    words += ["--check"] * given.check + ["--ask-become-pass"] * given.ask_become_pass
    words += ["--ask-vault-password"] * given.ask_vault_password
    return [*words, *([f"-{'v' * given.verbose}"] if given.verbose else [])]


def extra(value: Any) -> str:
    """Return a value as JSON; words that look like templates become YAML that Ansible does not template."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)}: {extra(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(extra, value)) + "]"
    # YAML does not join the two halves with which JSON escapes a character beyond 16 bits, such as an emoji.
    quoted = "".join(sign if sign > "\uffff" else json.dumps(sign)[1:-1] for sign in value)
    return f'{"!unsafe " if any(mark in value for mark in TEMPLATES) else ""}"{quoted}"'


def has_inventory() -> bool:
    """Return whether Ansible knows an inventory without -i."""
    if os.environ.get("DML_INVENTORY") or os.environ.get("ANSIBLE_INVENTORY") or Path("/etc/ansible/hosts").exists():
        return True
    paths = (os.environ.get("ANSIBLE_CONFIG", ""), *CONFIGURATIONS)
    found = next((path for path in (Path(each).expanduser() for each in paths if each) if path.is_file()), None)
    configuration = configparser.ConfigParser(interpolation=None, strict=False)
    configuration.read(found or [])
    return configuration.has_option("defaults", "inventory")


def completions(words: list[str]) -> list[str]:
    """Return the words that complete a line: shells give the command, its current word, and the one before."""
    current, before = [*words, "", "", ""][1:3]
    if before == "dml":
        found = ["train", "runs", *OF_A_RUN, "completion"]
    elif before in OF_A_RUN:
        found = sorted(path.parent.name for path in RESULTS.glob("*/manifest.json"))
    else:
        found = list(COMPLETIONS) if before == "completion" else []
    return [word for word in found if word.startswith(current)]


def main(words: list[str]) -> int:
    """Run a command; the process becomes the playbook."""
    if words[:1] == ["__complete"]:
        print("\n".join(completions(words[1:])))
        return 0
    at = words.index("--") if "--" in words else len(words)
    given, command = parser().parse_args(words[:at]), words[at + 1 :]
    if given.command == "completion":
        print(COMPLETIONS[given.shell])
        return 0
    if bool(command) != (given.command == "exec") and given.command != "train":
        parser().error(f"{given.command} needs a command after --" if not command else f"{given.command} takes none")
    program = shutil.which("ansible-playbook")
    if not program or not (given.inventory or has_inventory()):
        print(NO_INVENTORY if program else NO_ANSIBLE, file=sys.stderr)
        return 2
    playbook = playbook_words(given, command)
    print(shlex.join(playbook), file=sys.stderr, flush=True)
    # A task makes one connection instead of five; ansible_pipelining in the inventory wins.
    return os.execve(program, playbook, {"ANSIBLE_PIPELINING": "True", **os.environ})  # noqa: S606 - no shell runs it


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
