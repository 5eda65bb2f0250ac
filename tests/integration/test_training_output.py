"""playbooks/train.yml with tf_cnn_benchmarks: a pinned archive, recorded by what it prints, judged by its total."""

from __future__ import annotations

import hashlib
import json
import tarfile
from pathlib import Path

import pytest

from plugins.module_utils.training.output.log import parse
from tests.integration.training import Playbook

LOG = Path(__file__).parents[1] / "fixtures" / "tf_cnn_benchmarks-trivial-4ranks.log"
# Prints what a rank of the real one printed in the log; argv ends with the log.
SCRIPT = r"""
import os, re, sys
rank = os.environ["OMPI_COMM_WORLD_RANK"]
assert sys.argv[1:3] == ["--variable_update=horovod", "--display_every=1"], sys.argv
tag = r"\[\d+,(\d+)\]<stdout>:"
pieces = re.split(tag, open(sys.argv[-1]).read())
for number, text in zip(pieces[1::2], pieces[2::2]):
    if number == rank:
        print(text, end="")
"""


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """Return what the archive of a commit looks like."""
    script = tmp_path / "benchmarks-0123" / "scripts" / "tf_cnn_benchmarks" / "tf_cnn_benchmarks.py"
    script.parent.mkdir(parents=True)
    script.write_text(SCRIPT)
    path = tmp_path / "0123.tar.gz"
    with tarfile.open(path, "w:gz") as made:
        made.add(tmp_path / "benchmarks-0123", "benchmarks-0123")
    return path


@pytest.mark.slow
def test_records_tf_cnn_benchmarks_from_its_output(tmp_path: Path, archive: Path) -> None:
    playbook = Playbook(tmp_path)
    options = {"training_command": [], "training_framework": "tf_cnn_benchmarks", "training_options": [str(LOG)]}
    options |= {"training_python": playbook.ansible.environment["ANSIBLE_PYTHON_INTERPRETER"]}
    unpinned = playbook.run(training_name="unpinned", **options)
    assert unpinned.returncode != 0
    assert "set training_tf_cnn_url to its URL" in " ".join(unpinned.stdout.split())

    options["training_tf_cnn_url"] = archive.as_uri()
    options["training_tf_cnn_sha256"] = hashlib.sha256(archive.read_bytes()).hexdigest()
    ran = playbook.run(training_name="one", **options)
    assert ran.returncode == 0, ran.stdout
    result, log = playbook.result("one"), parse(LOG.read_text())
    assert result["images_per_sec"] == pytest.approx(log.totals[0])
    assert result["job"]["script_sha256"] == hashlib.sha256(SCRIPT.encode()).hexdigest()
    records = [json.loads(line) for line in Path(result["records"]).read_text().splitlines()]
    for rank in range(4):
        mine = [(one["step"], one["images_per_sec"], one["loss"]) for one in records if one["rank"] == rank]
        assert mine == [(one.step, one.images_per_sec, one.loss) for one in log.steps if one.rank == rank]
        assert mine
    assert all(one["pid"] and one["start"] and one["seen"] >= one["t"] - 1 for one in records)
