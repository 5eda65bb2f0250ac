"""The roles compile Horovod with a later PyTorch and a patch, verify both and train."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from lab.simulator import ROOT
from tests.lab.benchmark import NAMES, Cluster
from tests.lab.conftest import computers
from tests.lab.images import FILES
from tests.lab.training.test_benchmark import check_equal, check_steps, options

pytestmark = pytest.mark.slow
STEPS = 15


def stack(name: str) -> dict[str, Any]:
    return dict(yaml.safe_load((ROOT / "stacks" / f"{name}.yml").read_text()))


def own(folder: Path) -> Path:
    """The Horovod of lab-cpu, with the PyTorch and the patch of horovod_pytorch.yml."""
    made, pair = stack("lab-cpu"), yaml.safe_load(Path(__file__).with_name("horovod_pytorch.yml").read_text())
    switches = {"HOROVOD_WITH_PYTORCH": "1", "HOROVOD_WITHOUT_TENSORFLOW": "1"}
    without = ("HOROVOD_WITH_TENSORFLOW", "HOROVOD_WITHOUT_PYTORCH")
    kept = {key: value for key, value in made["horovod"]["build_environment"].items() if key not in without}
    made["name"] = "horovod-pytorch"
    # Nothing but a GPU would use the CUDA of this build.
    made["framework"] = {**pair["framework"], "cuda": None}
    made["horovod"]["patches"] = pair["patches"]
    made["horovod"]["build_environment"] = {**kept, **switches}
    path = folder / "horovod-pytorch.yml"
    path.write_text(yaml.safe_dump(made))
    return path


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Two nodes with that stack, whose packages lie where an earlier run has left them."""
    folder, venv = tmp_path_factory.mktemp("horovod"), FILES / "pytorch-horovod"
    venv.mkdir(parents=True, exist_ok=True)
    with computers(folder, "torchnodes", f"{venv}:/opt/dml/horovod:rw") as made:
        made.build(str(own(folder)))
        yield made


def test_a_build_suffix_does_not_make_another_version(nodes: Cluster) -> None:
    facts = [json.loads(nodes.inside(name, "cat /etc/ansible/facts.d/dml_horovod.fact")) for name in NAMES]
    assert facts[0] == facts[1]
    assert (facts[0]["proven"], facts[0]["sum"], facts[0]["framework"]) == (True, 3.0, "pytorch")
    assert facts[0]["framework_version"].partition("+")[0] == "2.13.0"


def test_it_trains_by_horovod(nodes: Cluster) -> None:
    _result, result = nodes.train("horovod-pytorch", **options("--steps", STEPS, "--evaluate-every", STEPS))
    assert (result["asked"]["framework"], result["proof"]["transport"]) == ("pytorch", "tcp")
    check_steps(nodes, "horovod-pytorch", 1, STEPS)
    check_equal(nodes, "horovod-pytorch")
