"""playbooks/train.yml with a folder whose dml.yml says how to run it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import yaml

from tests.integration.ansible import Ansible
from tests.integration.training import Playbook

SETTINGS = {
    "command": "python train.py --nodes {nodes} --ranks={ranks} --data {data} --from {resume} -r={resume}",
    "nodes": 2,
    "outputs": "out",
    "data": "../rows.csv",
    "environment": {"SEED": 7},
    "environment_from": ".env",
}
TRAIN = """
import json, os, sys
import dml_records
records = dml_records.start()
for number in range(3):
    records.step(images=8, loss=1.0)
mine = {name: os.environ.get(name)[::-1] for name in ("SEED", "TOKEN")}
os.makedirs("out", exist_ok=True)
with open(f"out/seen{records.rank}.json", "w") as file:
    json.dump([sys.argv[1:], mine, sorted(os.listdir("."))], file)
"""


def folder_with(path: Path, settings: object) -> Path:
    path.mkdir()
    (path / "dml.yml").write_text(yaml.safe_dump(settings))
    (path / "train.py").write_text(TRAIN)
    (path / ".env").write_text("TOKEN=s3cret-of-anna\n")
    (path.parent / "rows.csv").write_text("1 2 3")
    return path


@pytest.mark.slow
def test_folder_trains_as_its_file_describes(tmp_path: Path) -> None:
    playbook, folder = Playbook(tmp_path), folder_with(tmp_path / "mine", SETTINGS)
    command = playbook.command(training_folder=str(folder), training_python=sys.executable, training_name="one")
    given = json.loads(command.pop())
    del given["training_command"]
    command.append(json.dumps({**given, "training_environment": {"SEED": "8"}}))

    ran = playbook.ansible.run([*command, "-vvv"], timeout=600)

    assert ran.returncode == 0, ran.stdout
    seen = [json.loads(path.read_text()) for path in sorted((tmp_path / "results/one/outputs").glob("seen*"))]
    (data,) = (tmp_path / "library" / "data").glob("*/rows.csv")
    assert [each[0] for each in seen] == [["--nodes", "2", "--ranks=2", "--data", str(data)]] * 2
    assert seen[0][1] == {"SEED": "8", "TOKEN": "s3cret-of-anna"[::-1]}, "-e wins, and the file has the others"
    assert set(seen[0][2]) == {"out", "train.py"}, "neither dml.yml nor .env is copied"
    kept = [path for path in tmp_path.glob("results/**/*") if path.is_file() and b"s3cret" in path.read_bytes()]
    assert (kept, "s3cret" in ran.stdout) == ([], False)


def test_refuses_all_faults_before_any_contact(tmp_path: Path) -> None:
    """Both hosts do not exist: a run that reaches them ends with another sentence."""
    inventory, folder = tmp_path / "hosts.yml", folder_with(tmp_path / "mine", {"command": "python tran.py {data}"})
    (folder / "id_rsa").touch()
    inventory.write_text(yaml.safe_dump({"workers": {"hosts": {"w1.invalid": {}, "w2.invalid": {}}}}))
    arguments = ["-i", str(inventory), "-e", f"training_folder={folder} training_name=a/b training_folder_limit=0"]

    done = Ansible({}, tmp_path).playbook("playbooks/train.yml", *arguments)
    (folder / "dml.yml").write_text("nodes: 3\n")
    many = Ansible({}, tmp_path).playbook("playbooks/train.yml", *arguments)

    text = " ".join(done.out.split())
    for sentence in (
        "'a/b' is not a file name",
        "more than 0 MB",
        "id_rsa (its name)",
        "it has {data}, and",
        "tran.py:",
    ):
        assert sentence in text, done.out
    assert done.rc != 0 and "nreachable" not in text.replace("unreachable=0", "")
    assert "training_nodes is 3: could not choose the nodes: this play has 2: w1.invalid" in " ".join(many.out.split())
