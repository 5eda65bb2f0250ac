"""No child process of a module that does not connect to vCenter gets the vCenter account."""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from plugins.module_utils import runner
from plugins.module_utils.training.guest.environment import Environment
from plugins.module_utils.training.results.outputs import copy_outputs
from plugins.module_utils.watch.node_programs import read_gpus, read_guests
from plugins.modules import mpijob_info, signing_key, training_job
from plugins.plugin_utils.world import start_watch
from tests.fakes.calling import here
from tests.lab.places import until
from tests.rules.architecture import Checkout, Source

from .test_continuity_verdict import call

ACCOUNT = {"VMWARE_HOST": "vc", "VMWARE_USER": "somebody", "VMWARE_PASSWORD": "hush-hush", "VMWARE_NEW": "x"}
STARTS = ("subprocess.", "os.exec", "os.posix_spawn", "os.system")
ROOT = Path(__file__).parents[4]
# Programs that run alone on a node; what starts them hides the account.
ON_A_NODE = ("gpu_program", "guest_program", "hang_program", "records_program", "supervisor", "transport_program")


@pytest.fixture
def spy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a program that writes down its environment and fails."""
    for name, value in ACCOUNT.items():
        monkeypatch.setenv(name, value)
    program = tmp_path / "bin" / "gpg"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\nenv >> '{tmp_path}/ran'\nexit 1\n")
    program.chmod(0o755)
    return program


def written(path: Path) -> str:
    return path.read_text() if path.exists() else ""


def kubeconfig(folder: Path, spy: Path) -> str:
    plugin = {"apiVersion": "client.authentication.k8s.io/v1", "command": str(spy), "interactiveMode": "Never"}
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:9"}}],
        "users": [{"name": "u", "user": {"exec": plugin}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
    }
    (folder / "kubeconfig").write_text(yaml.safe_dump(content))
    return str(folder / "kubeconfig")


def run_watch(folder: Path, spy: Path) -> Any:
    nodes = [{"name": "n", "reach": [str(spy)]}]
    paths = {"records": str(folder / "records"), "stop": str(folder / "stop"), "folder": str(folder)}
    return start_watch({"nodes": nodes, "silence": 2.0, **paths})


def run_environment(folder: Path, spy: Path) -> Any:
    params = {"python": str(spy), "store": str(folder / "store"), "folder": str(folder)}
    more = {"requirements": "rich", "name": "requirements.txt", "code": "", "timeout": 60}
    return runner.outcome(lambda: runner.converge_one(runner.OfProgram(), Environment({**params, **more})))


def run_outputs(folder: Path, spy: Path) -> Any:
    return here(copy_outputs, limit=1, node="n", reach=[str(spy)], folder="/x", dest=str(folder / "here"))


def run_guest_info(folder: Path, spy: Path) -> Any:
    return here(read_guests, nodes=[{"name": "n", "reach": [str(spy)]}], folder=str(folder))


def run_gpus(folder: Path, spy: Path) -> Any:
    return here(read_gpus, nodes=[{"name": "n", "reach": [str(spy)]}])


def run_signing_key(folder: Path, spy: Path) -> Any:
    os.environ["PATH"] = f"{spy.parent}:{os.environ['PATH']}"
    (folder / "key").write_text("x")
    return call(signing_key, source=str(folder / "key"), fingerprint="A" * 40, path=str(folder / "to"))


def run_mpijob_info(folder: Path, spy: Path) -> Any:
    return call(mpijob_info, name="one", kubeconfig=kubeconfig(folder, spy))


def run_job(folder: Path, spy: Path) -> Any:
    options = {
        "mpirun": str(spy),
        "hosts": [{"name": "localhost", "slots": 1}],
        "ranks": 1,
        "remote_python": sys.executable,
    }
    return call(training_job, run_dir=str(folder / "run"), command=["x"], **options)


@pytest.mark.parametrize(
    "run",
    [run_watch, run_environment, run_outputs, run_guest_info, run_gpus, run_signing_key, run_mpijob_info, run_job],
    ids=lambda run: run.__name__,
)
def test_child_process_receives_no_vcenter_account(
    run: Any, tmp_path: Path, spy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", os.environ["PATH"])

    answer = run(tmp_path, spy)

    # A job starts in the background.
    until(lambda: "PATH=" in written(tmp_path / "ran"), f"the program wrote its environment: {answer}", 10)
    ran = written(tmp_path / "ran")
    assert "VMWARE_" not in ran


def inheriting(source: Source) -> Iterator[str]:
    """Yield each start of a child process that inherits the environment."""
    for node in ast.walk(source.tree):
        is_start = isinstance(node, ast.Call) and ast.unparse(node.func).startswith(STARTS)
        if is_start and "env" not in [keyword.arg for keyword in getattr(node, "keywords", [])]:
            yield source.where(node)


def test_plugins_pass_an_explicit_environment_to_child_processes(tmp_path: Path) -> None:
    sources = [source for source in Checkout(ROOT).plugins if source.parts[-1] not in ON_A_NODE]
    (tmp_path / "one.py").write_text("import subprocess\nsubprocess.run(['id'])\n")

    found = [where for source in sources for where in inheriting(source)]

    assert found == []
    assert list(inheriting(Source(tmp_path, tmp_path / "one.py"))) == ["one.py:2"]
