"""A script written for torchrun gets the variables of torchrun, from those that mpirun sets."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from plugins.module_utils.training.runs import rank_words
from plugins.module_utils.training.runs.training_run import Prepared
from tests import rendering

FILES = Path(__file__).parents[3] / "roles" / "training" / "files"
# The first lines of any script for torchrun, as far as they need no PyTorch.
SCRIPT = """
import json, os, sys
import sibling
of_ranks = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")
of_nodes = ("GROUP_RANK", "GROUP_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
names = (*of_ranks, *of_nodes, "GLOO_SOCKET_IFNAME", "NCCL_DEBUG", "TORCHELASTIC_RUN_ID")
print(json.dumps([__name__, sibling.WORD, sys.argv[1:], {name: os.environ.get(name) for name in names}]))
"""
MPI = {
    "OMPI_COMM_WORLD_RANK": "5",
    "OMPI_COMM_WORLD_SIZE": "8",
    "OMPI_COMM_WORLD_LOCAL_RANK": "1",
    "OMPI_COMM_WORLD_LOCAL_SIZE": "2",
}


def run(folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """A rank of mpirun with these further variables."""
    (folder / "script.py").write_text(SCRIPT)
    (folder / "sibling.py").write_text("WORD = 'beside'")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("NCCL", "GLOO", "MASTER"))}
    words = [sys.executable, "-u", str(FILES / "dml_torchrun.py"), str(folder / "script.py"), "--lr", "0.1"]
    return subprocess.run(words, env={**environment, **variables}, capture_output=True, text=True, check=False)


def test_script_receives_its_rank_and_rendezvous_address(tmp_path: Path) -> None:
    done = run(tmp_path, **MPI, MASTER_ADDR="127.0.0.1", MASTER_PORT="29500")
    name, beside, arguments, result = json.loads(done.stdout)
    assert (name, beside, arguments) == ("__main__", "beside", ["--lr", "0.1"])
    assert result == {
        "RANK": "5",
        "WORLD_SIZE": "8",
        "LOCAL_RANK": "1",
        "LOCAL_WORLD_SIZE": "2",
        "GROUP_RANK": "2",
        "GROUP_WORLD_SIZE": "4",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": "29500",
        "GLOO_SOCKET_IFNAME": "lo",
        "NCCL_DEBUG": "INFO",
        "TORCHELASTIC_RUN_ID": "none",
    }


def test_the_variables_of_torchrun_stay_in_its_rank(tmp_path: Path) -> None:
    own = {"RANK": "3", "WORLD_SIZE": "4", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2", "GROUP_RANK": "1"}
    own = {**own, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29400"}

    done = run(tmp_path, **own, TORCHELASTIC_RUN_ID="none")

    result = json.loads(done.stdout)[3]
    assert {name: result[name] for name in own} == own
    assert (result["GLOO_SOCKET_IFNAME"], result["NCCL_DEBUG"]) == ("lo", "INFO")


def test_gloo_uses_interface_of_address_unless_user_chose(tmp_path: Path) -> None:
    """Gloo takes what the node's name resolves to, which is the loopback on Debian and Ubuntu."""
    route = subprocess.run(["ip", "-4", "-json", "address"], capture_output=True, text=True, check=True).stdout
    cards = [
        (one["ifname"], one["addr_info"][0]["local"])
        for one in json.loads(route)
        if one["addr_info"] and one["ifname"] != "lo"
    ]
    assert cards, "this machine has no network"
    for name, address in cards:
        result = json.loads(run(tmp_path, **MPI, MASTER_ADDR=address, MASTER_PORT="1").stdout)[3]
        assert result["GLOO_SOCKET_IFNAME"] == name
    own = {"GLOO_SOCKET_IFNAME": "mine0", "NCCL_DEBUG": "WARN"}
    result = json.loads(run(tmp_path, **MPI, **own, MASTER_ADDR=cards[0][1], MASTER_PORT="1").stdout)[3]
    assert {name: result[name] for name in own} == own


@pytest.mark.parametrize("address", ["no-such-host.invalid", "::1"])
def test_an_address_that_leads_nowhere_names_no_interface(tmp_path: Path, address: str) -> None:
    result = json.loads(run(tmp_path, **MPI, MASTER_ADDR=address, MASTER_PORT="1").stdout)[3]
    assert result["GLOO_SOCKET_IFNAME"] is None


@pytest.mark.parametrize(
    ("numbers", "node"),
    [
        ((5, 8, 1, 2), ("2", "4")),
        ((1, 2, 0, 1), ("1", "2")),
        ((2, 3, 0, 2), (None, None)),
        ((1, 4, 0, 2), (None, None)),
    ],
)
def test_rank_has_a_node_number_on_equal_nodes(
    tmp_path: Path, numbers: tuple[int, ...], node: tuple[str | None, ...]
) -> None:
    mpi = dict(zip(MPI, map(str, numbers)))
    result = json.loads(run(tmp_path, **mpi, MASTER_ADDR="127.0.0.1", MASTER_PORT="1").stdout)[3]
    assert (result["GROUP_RANK"], result["GROUP_WORLD_SIZE"]) == node


@pytest.mark.parametrize("lacking", [*MPI, "MASTER_ADDR"])
def test_names_what_is_missing(tmp_path: Path, lacking: str) -> None:
    reported = {**MPI, "MASTER_ADDR": "127.0.0.1"}
    del reported[lacking]
    done = run(tmp_path, **reported)
    assert done.returncode == 1
    assert done.stderr == f"dml_torchrun.py needs a rank of mpirun and MASTER_ADDR: {lacking} is missing\n"


@pytest.mark.parametrize(
    ("role", "variable"), [("pytorch", "__pytorch_programs"), ("training_image", "__training_image_proofs")]
)
def test_roles_copy_dml_torchrun_with_its_imports(role: str, variable: str) -> None:
    copied = [Path(path).stem for path in rendering.value(role, variable, role_path=f"/roles/{role}")]
    assert "dml_torchrun" in copied
    ours = {path.stem for path in FILES.glob("dml_*.py")}
    for name in ours.intersection(copied):
        imported = re.findall(r"^import (\w+)", (FILES / f"{name}.py").read_text(), re.MULTILINE)
        assert ours.intersection(imported) <= set(copied), f"{role} copies {name} without its imports"


@pytest.mark.parametrize(
    ("framework", "by", "program"),
    [
        ("pytorch_ddp", "auto", "/lib/dml_torchrun.py"),
        ("pytorch_ddp", "none", "/lib/dml_torchrun.py"),
        ("pytorch", "auto", "/lib/dml_steps.py"),
        ("tensorflow", "none", ""),
    ],
)
def test_pytorch_script_without_horovod_gets_the_variables(framework: str, by: str, program: str) -> None:
    options = {"framework": framework, "steps_by": by, "dir": "/lib", "command": ["python3", "train.py"], "folder": ""}
    options |= {"nodes": ["w1"], "ranks_per_node": 1}
    words = rank_words.rank_words(options, Prepared("/venv/bin/python", 29500)).words
    assert words == ["python3", *([program] if program else []), "train.py"]
