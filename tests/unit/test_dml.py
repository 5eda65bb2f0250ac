"""The command dml: each of its commands is one command of ansible-playbook."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
import yaml
from ansible.parsing.dataloader import DataLoader

from front import dml

ROOT = Path(__file__).parents[2]


def run(*words: str) -> tuple[str, dict[str, object], list[str]]:
    """Return the playbook, its variables and the other words of a command that ansible-playbook would get."""
    at = words.index("--") if "--" in words else len(words)
    given = dml.parser().parse_args(list(words[:at]))
    name, *rest = dml.playbook_words(given, list(words[at + 1 :]))
    assert name == "ansible-playbook"
    playbook = next(word for word in rest if word.startswith("dml.vsphere."))
    texts = [text for option, text in pairwise(rest) if option == "-e" and text.startswith("{")]
    others = [word for word in rest if word != playbook and word not in texts]
    variables = DataLoader().load(texts[0]) if texts else {}
    return playbook.removeprefix("dml.vsphere."), variables, others


@pytest.mark.parametrize(
    ("words", "playbook", "variables"),
    [
        ("train", "train", {"training_folder": "."}),
        (
            "train ~/mine -n 2 --name one -- python -m litwave fit --lr=1",
            "train",
            {
                "training_folder": "~/mine",
                "training_nodes": "2",
                "training_name": "one",
                "training_command": ["python", "-m", "litwave", "fit", "--lr=1"],
            },
        ),
        (
            "resume one -n w1,w2 --name two",
            "train",
            {"training_resume": "one", "training_nodes": "w1,w2", "training_name": "two"},
        ),
        ("repeat one", "train", {"training_repeat": "one"}),
        ("logs one", "logs", {"training_name": "one"}),
        ("logs -f one", "train", {"training_name": "one", "training_show": "log"}),
        ("stop one --user anna", "stop", {"training_name": "one", "training_started_by": "anna"}),
        ("fetch one", "fetch", {"training_name": "one"}),
        ("fetch one outputs/last.ckpt", "fetch", {"training_name": "one", "training_fetch": "outputs/last.ckpt"}),
        ("runs", "runs", {}),
        ("compare one two", "runs", {"training_compare": "one,two"}),
        ("exec one -- nvidia-smi -L", "exec", {"training_name": "one", "training_exec": ["nvidia-smi", "-L"]}),
    ],
)
def test_each_command_is_one_playbook(
    monkeypatch: pytest.MonkeyPatch, words: str, playbook: str, variables: dict[str, object]
) -> None:
    monkeypatch.setenv("DML_INVENTORY", "/a:/b")

    assert run(*words.split()) == (playbook, variables, ["-i", "/a", "-i", "/b", *(["-e"] if variables else [])])
    assert (ROOT / "playbooks" / f"{playbook}.yml").is_file()


def test_words_after_two_dashes_stay_as_they_are() -> None:
    command = ["python", "-c", "print('{{ a }} {% b %} {# c #} $HOME \\n \"é\"')", "--check", "--", "a  b", ""]

    assert run("train", "-i", "x", "--", *command)[1]["training_command"] == command


def test_ansible_takes_no_word_for_a_template() -> None:
    words = ["print('{{ 1 + 1 }}')", "{% b", "{# c"]
    given = dml.extra({"training_command": words})
    command = ["ansible", "localhost", "-i", "localhost,", "-c", "local", "-m", "debug", "-a", "var=training_command"]

    shown = subprocess.run([*command, "-e", given], check=False, capture_output=True, text=True)

    assert shown.returncode == 0 and yaml.safe_load(shown.stdout.partition("=>")[2]) == {"training_command": words}


def test_ansible_reads_an_emoji_beside_a_template() -> None:
    words = ["{{ prompt }}", '\U0001f680 \u00e9 \u2028 " \\ud83d']
    given = dml.extra({"training_command": words})

    assert yaml.safe_load(given.replace("!unsafe ", "")) == {"training_command": words}


def test_options_of_ansible_follow_the_variables() -> None:
    words = ["stop", "one", "-i", "x", "-e", "a=b", "-e", "@file", "-l", "w1", "--check", "-vvv", "-K", "-J"]
    expected = "-i x -e -e a=b -e @file --limit w1 --check --ask-become-pass --ask-vault-password -vvv"

    assert run(*words)[2] == expected.split()


@pytest.mark.parametrize(
    ("content", "is_known"), [("[defaults]\ninventory = x\n", True), ("[defaults]\nforks = 9\n", False), ("", False)]
)
def test_inventory_of_ansible_is_known(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, content: str, *, is_known: bool
) -> None:
    for name in ("DML_INVENTORY", "ANSIBLE_INVENTORY"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "ansible.cfg").write_text(content)
    monkeypatch.setenv("ANSIBLE_CONFIG", str(tmp_path / "ansible.cfg"))

    assert dml.has_inventory() is is_known


def test_missing_inventory_or_command_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(dml, "has_inventory", lambda: False)
    assert dml.main(["runs"]) == 2 and "export DML_INVENTORY=" in capsys.readouterr().err
    for words in (["exec", "one"], ["logs", "one", "--", "ls"]):
        with pytest.raises(SystemExit):
            dml.main(words)
    assert "logs takes none" in capsys.readouterr().err


@pytest.mark.parametrize(("given", "used"), [({}, "True"), ({"ANSIBLE_PIPELINING": "False"}, "False")])
def test_front_pipelines_unless_the_user_decided(tmp_path: Path, given: dict[str, str], used: str) -> None:
    (tmp_path / "ansible-playbook").write_text('#!/bin/sh\necho "$ANSIBLE_PIPELINING $2"\n')
    (tmp_path / "ansible-playbook").chmod(0o755)
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}", **given}
    words = [sys.executable, str(ROOT / "front" / "dml.py"), "runs", "-i", "hosts.yml"]

    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=True)

    assert done.stdout == f"{used} hosts.yml\n"


def test_bash_completes_commands_and_names(tmp_path: Path) -> None:
    for name in ("nightly-1", "nightly-2", "other"):
        (tmp_path / "reports" / "runs" / name).mkdir(parents=True)
        (tmp_path / "reports" / "runs" / name / "manifest.json").touch()
    (tmp_path / "dml").symlink_to(ROOT / "front" / "dml")
    script = f"""PATH={shlex.quote(str(tmp_path))}:$PATH; eval "$(dml completion bash)"
    complete -p dml; dml __complete dml re dml; dml __complete dml nig logs; dml __complete dml '' --name"""

    done = subprocess.run(["bash", "-ec", script], cwd=tmp_path, capture_output=True, text=True, check=True)

    assert done.stdout.split("\n")[1:] == ["resume", "repeat", "nightly-1", "nightly-2", "", ""]


def test_front_is_small() -> None:
    assert len((ROOT / "front" / "dml.py").read_text().splitlines()) <= 250
