"""Templates in names, marks, addresses, records and logs: no playbook evaluates one, whatever it shows.

`make oldest` and `make newest` run these tests with other versions of ansible-core.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.integration import hostile
from tests.integration.ansible import Ansible, AnsibleFor, Start
from tests.integration.hostile import Hostile, template
from tests.integration.rolling import LAB
from tests.integration.training import Playbook
from tests.unit.plugins.modules.test_continuity_verdict import folder

__all__ = ["folder"]  # a fixture

WORKERS = "inventories/lab/workers.yml"


@pytest.fixture
def centre(start: Start, ansible_for: AnsibleFor) -> Hostile:
    return hostile.begin(start, ansible_for)


def flat(text: str) -> str:
    """The output without its line breaks and quotes."""
    return " ".join(text.replace("'", "").replace('"', "").split())


def shown(place: str) -> str:
    """The template of a place, as flat output shows it."""
    return flat(template(place))


def test_never_templates_values_of_the_inventory(centre: Hostile, tmp_path: Path) -> None:
    done = centre.ansible.playbook(hostile.play(tmp_path), "-i", WORKERS)
    assert done.rc == 0, done.out
    assert centre.evaluated() == []
    result = flat(done.out)
    assert f"The worker {shown('name')} is left out of the inventory: {shown('name')} contains a template" in result
    assert f"The worker worker01 is left out of the inventory: {shown('role')} contains a template" in result
    assert "worker02 worker02" in result, "an invalid address is not its address"
    assert shown("address") not in result


# The output of a playbook must hold these, so that it did show the hostile texts.
PLAYBOOKS = {
    "audit": "stranger",
    "evidence": "",
    "fabric": "host",
    "hosts": "host",
    "preflight": "host",
    "teardown": "name",
    "vmotion_test": "host",
    "workers": "host",
}


@pytest.mark.slow
def test_no_playbook_evaluates_what_it_shows(centre: Hostile, tmp_path: Path) -> None:
    centre.ansible.environment["DML_EVIDENCE_DIR"] = str(tmp_path / "evidence")
    given = json.dumps({"audit_dir": str(tmp_path / "audit"), "vmotion_test_dir": str(tmp_path / "tests")})
    for name, place in PLAYBOOKS.items():
        done = centre.ansible.playbook(f"playbooks/{name}.yml", *LAB, "--check", "--diff", "-vv", "-e", given)
        assert not place or shown(place) in flat(done.out), f"{name} does not show the {place}: {done.out}"
        assert centre.evaluated() == [], name
    kept = centre.ansible.playbook("playbooks/evidence.yml", *LAB)
    assert kept.rc == 0, kept.out
    (file,) = (tmp_path / "evidence").glob("gpu-*.json")
    assert template("host") in [one["host"] for one in json.loads(file.read_text())["hosts"]]
    back = centre.ansible.playbook("playbooks/rollback.yml", *LAB, "--check", "-e", f"rollback_evidence={file}")
    assert back.rc == 0 and shown("host") in flat(back.out), back.out
    assert centre.evaluated() == []


@pytest.mark.slow
def test_never_templates_the_output_of_a_job(tmp_path: Path) -> None:
    """The job's words, in its log and in its error, are shown by the playbook that ran it."""
    ran = Playbook(tmp_path, {hostile.VARIABLE: str(tmp_path / "canary")})
    script = tmp_path / "says.py"
    script.write_text(f"print({template('log')!r}, flush=True)\nraise RuntimeError({template('error')!r})\n")
    done = ran.run(training_command=[sys.executable, "-u", str(script)], training_name="one")
    assert done.returncode != 0
    assert shown("error") in flat(done.stdout), done.stdout
    assert list(tmp_path.glob("canary.*")) == []


@pytest.mark.slow
def test_never_templates_stored_runs_and_tests(tmp_path: Path, folder: Path) -> None:
    """Results of runs and the facts of a test, as someone else may have written them."""
    ansible = Ansible({hostile.VARIABLE: str(tmp_path / "canary")}, tmp_path)
    (tmp_path / "runs").mkdir()
    run = {"nodes": 2, "gpus": 2, "images_per_sec": 9.0, "transport": template("transport")}
    (tmp_path / "runs" / "one.json").write_text(json.dumps({**run, "name": template("run")}))
    given = {"report_results": str(tmp_path / "runs"), "report_dir": str(tmp_path / "report")}
    done = ansible.playbook("playbooks/report.yml", "-v", "-e", json.dumps(given))
    assert done.rc == 0, done.out
    assert shown("run") in flat(done.out)
    facts = folder / "facts.json"
    facts.write_text(facts.read_text().replace("esx3", template("target")))
    done = ansible.playbook("playbooks/judge.yml", "-v", "-e", f"folder={folder}")
    assert done.rc == 0, done.out
    assert shown("target") in flat(done.out)
    assert list(tmp_path.glob("canary.*")) == []
