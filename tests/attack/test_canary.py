"""Canary secrets through every playbook at -vvvv: in no output, no file and no process list."""

from __future__ import annotations

import json
import secrets
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from tests.attack.canary import ProcessList, files_with, forms, processes_with, seen_in
from tests.attack.plays import PLAYS, Play, stage
from tests.integration.training import Playbook

# Names of what carries a session: where one stands, its token stands beside it.
SESSIONS = ("vmware_soap_session=", "vmware-api-session-id:", "vmware-api-session-id=")
# Unlike any other on this machine.
PASSWORD = f"canary {secrets.token_hex(6)} of 'vCenter'"
TOKEN = "canary/token+of='the job' 4711"
ENVIRONMENT = {"HUB_TOKEN": TOKEN}


def outside(folder: Path) -> list[Path]:
    """Where else a run may leave files: Ansible's folders."""
    return [folder, Path.home() / ".ansible" / "tmp"]


@pytest.mark.parametrize("play", PLAYS, ids=lambda play: play.name)
def test_the_password_and_sessions_are_shown_nowhere(play: Play, certs: Path, tmp_path: Path) -> None:
    """The password is given as a variable: in the environment every process of the user's would have it."""
    made = stage(play, certs, tmp_path, password=PASSWORD)
    try:
        made.prepare()
        given = tmp_path / "given.json"
        given.write_text(json.dumps({"vsphere_password": PASSWORD}))
        given.chmod(0o600)
        made.ansible.environment.pop("VMWARE_PASSWORD")
        with ProcessList([PASSWORD]) as shown:
            done = made.ansible.playbook(*made.command(60), "-vvvv", "-e", f"@{given}", timeout=900)
        assert done.rc == 0, done.out
        # The lab gives the simulator its password on the command line.
        assert {words for words in shown.seen.values() if "--datacentre=" not in words} == set()
        assert shown.looks > 0
        assert seen_in(done.out, [PASSWORD, *SESSIONS]) == []
        left = {path for path, _mode in files_with(outside(tmp_path), [PASSWORD, *SESSIONS])} - {given}
        assert left == set()
        # The test itself was started by no one who knew it.
        assert [words for _pid, words in processes_with([PASSWORD], "environ")] == []
    finally:
        made.close()


@pytest.fixture
def playbook(tmp_path: Path) -> Playbook:
    """Training whose ranks tell what they were given, and a token in their environment."""
    made = Playbook(tmp_path)
    made.nodes.script.write_text(
        "import os\nprint('the token is', os.environ['HUB_TOKEN'], flush=True)\n" + made.nodes.script.read_text()
    )
    return made


def with_token(playbook: Playbook, name: str, steps: int, **more: Any) -> tuple[list[str], Path]:
    """The command that trains with the token, which stands in a private file."""
    given = playbook.folder / "given.json"
    command = playbook.command(steps, 0.02, training_name=name, training_steps=steps, **more)
    variables = json.loads(command.pop())
    given.write_text(json.dumps({**variables, "training_environment": {**ENVIRONMENT, "ONE": 1}}))
    given.chmod(0o600)
    return [*command, f"@{given}", "-vvvv"], given


@pytest.mark.parametrize("ends", ["well", "badly"])
def test_a_token_of_the_job_is_shown_nowhere(playbook: Playbook, ends: str) -> None:
    """The ranks have it in their environment, which only their user may read; a rank that prints it is in the log."""
    command, given = with_token(playbook, "one", 40)
    if ends == "badly":
        script = playbook.nodes.script
        script.write_text(script.read_text() + "\nraise RuntimeError(os.environ['HUB_TOKEN'])\n")
    with ProcessList([TOKEN]) as shown:
        done = playbook.ansible.run(command, timeout=900)
    assert (done.returncode == 0) == (ends == "well"), done.stdout
    reached = "HUB_TOKEN" if ends == "well" else "RuntimeError: HIDDEN"
    assert reached in done.stdout, "the canary did not reach the place that is searched"
    assert seen_in(done.stdout, [TOKEN]) == []
    assert shown.seen == {}
    assert shown.looks > 0
    kept = {path: others for path, others in files_with(outside(playbook.folder), [TOKEN]) if path != given}
    run_dir = playbook.folder / "runs" / "one"
    assert {path for path in kept if run_dir not in path.parents and path != playbook.nodes.script} == set()
    assert {path for path, others in kept.items() if others} == set(), "others may read it"
    assert [words for _pid, words in processes_with([TOKEN], "environ")] == []


def test_the_search_finds_what_is_there(tmp_path: Path) -> None:
    """A search that finds nothing must be able to find something."""
    (tmp_path / "file").write_text(f"x {json.dumps(TOKEN)} y")
    (tmp_path / "file").chmod(0o644)
    assert list(files_with([tmp_path], [TOKEN])) == [(tmp_path / "file", 0o044)]
    for form in forms(TOKEN):
        assert seen_in(f"before{form}after", [TOKEN, "another"]) == [TOKEN]
    broken = TOKEN[:9] + "\n    " + TOKEN[9:]
    assert seen_in(broken, [TOKEN]) == [TOKEN]
    program = "import time; time.sleep(60)"
    with tempfile.TemporaryFile() as nothing, ProcessList([TOKEN]) as shown:
        running = subprocess.Popen([sys.executable, "-c", program, TOKEN], stdout=nothing)
        try:
            while not shown.seen:
                assert running.poll() is None
        finally:
            running.kill()
            running.wait()
    assert list(shown.seen) == [running.pid]
