"""The programs that run a command, and mpirun, in a container: options, environment, signals and quotes."""

from __future__ import annotations

import json
import os
import pwd
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from tests import rendering
from tests.integration.killing import wait_for
from tests.reuse import reused

FILES = Path(__file__).parents[3] / "roles" / "training_image" / "files"
SETTINGS: dict[str, Any] = {
    "engine": "podman",
    "id": "abc123",
    "mpirun": "mpirun",
    "shell": "ssh -o BatchMode=yes",
    "folders": ["/var/lib/dml"],
    "volumes": ["/data:/data:ro"],
    "ulimits": {"memlock": -1},
    "gpus": "",
    "arguments": ["--cgroupns=private"],
}
KEYS = "/run/dml/ssh/1001"
USER = ("dml", 1001, 1002, "/home/dml")


def program(name: str) -> Any:
    loader = SourceFileLoader(name.replace("-", "_"), str(FILES / name))
    spec = spec_from_loader(loader.name, loader)
    assert spec is not None
    module = module_from_spec(spec)
    loader.exec_module(module)
    return module


def command(folder: str = "/", there: Any = lambda _path: True, **settings: Any) -> list[str]:
    return list(program("dml-container").command({**SETTINGS, **settings}, ["id"], USER, folder, KEYS, there))


def test_container_shares_processes_and_rights_of_its_user() -> None:
    result = command()
    assert result[1:4] == ["run", "--rm", "--pull=never"] and result[0].rpartition("/")[2] == "podman"
    assert {"--network=host", "--ipc=host", "--pid=host", "--uts=host", "--user=1001:1002"} <= set(result)
    assert {"--security-opt=no-new-privileges", "--ulimit=memlock=-1", "--device=/dev/infiniband"} <= set(result)
    assert "--privileged" not in result
    assert result[-3:] == ["--cgroupns=private", "abc123", "id"]


def test_omits_files_missing_on_the_node() -> None:
    result = command(there=lambda path: path == "/etc/passwd")
    assert [word for word in result if word.startswith(("--volume", "--device"))] == [
        "--volume=/etc/passwd:/etc/passwd:ro",
        f"--volume={KEYS}:/home/dml/.ssh:ro",
        "--volume=/data:/data:ro",
    ]


def test_never_searches_the_engine_on_the_user_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake(tmp_path, "exit 0").rename(tmp_path / "podman")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert not command()[0].startswith(str(tmp_path))


@pytest.fixture
def home() -> Iterator[Path]:
    """A folder that other users may enter, unlike those of pytest."""
    with TemporaryDirectory() as made:
        Path(made).chmod(0o755)
        yield Path(made)


def owner(home: Path) -> tuple[str, int, int, str]:
    """A user without privileges: another one if the tests run as root."""
    uid, gid = os.getuid() or 65534, os.getgid() or 65534
    return pwd.getpwuid(uid).pw_name, uid, gid, str(home)


def test_linked_ssh_folder_reveals_no_private_file(home: Path) -> None:
    closed = home / "closed"
    (closed / "keys").mkdir(parents=True)
    (closed / "keys" / "id").write_text("secret")
    (home / ".ssh").symlink_to(closed / "keys")
    closed.chmod(0)
    copy = Path(program("dml-container").copied_keys(owner(home), str(home / "copies")))
    closed.chmod(0o700)
    assert list(copy.iterdir()) == []


def test_the_keys_are_copied_and_follow_their_originals(home: Path) -> None:
    keys = home / ".ssh"
    keys.mkdir()
    for name in ("id", "old"):
        (keys / name).write_text(name)
        (keys / name).chmod(0o600)
        os.chown(keys / name, *owner(home)[1:3])
    module = program("dml-container")
    copy = Path(module.copied_keys(owner(home), str(home / "copies")))
    assert {each.name: each.read_text() for each in copy.iterdir()} == {"id": "id", "old": "old"}
    (keys / "old").unlink()
    module.copied_keys(owner(home), str(home / "copies"))
    assert [(each.name, each.stat().st_mode & 0o777, each.stat().st_uid) for each in copy.iterdir()] == [
        ("id", 0o600, owner(home)[1])
    ]


@pytest.mark.parametrize(
    ("folder", "expected"),
    [
        ("/var/lib/dml/runs/x", "/var/lib/dml/runs/x"),
        ("/var/lib/dmlx", "/"),
        ("/root", "/"),
        ("/var/lib/dml", "/var/lib/dml"),
    ],
)
def test_command_starts_in_a_folder_of_the_container(folder: str, expected: str) -> None:
    assert f"--workdir={expected}" in command(folder)


@pytest.mark.parametrize(("gpus", "word"), [("runtime", "--runtime=nvidia"), ("cdi", "--device=nvidia.com/gpu=all")])
def test_gpus_come_by_the_runtime_or_by_cdi(gpus: str, word: str) -> None:
    assert word in command(gpus=gpus)
    assert word not in command()


def test_container_gets_only_the_variables_of_mpirun() -> None:
    environment = {"TOKEN": "it's\na secret", "OMPI_MCA_pml": "ob1", "PATH": "/own", "OTHER": "1", "-x": "2"}
    result = program("dml-mpirun").exported(["-x", "TOKEN", "-x", "GONE", "python", "PATH"], environment)
    output = subprocess.run(
        ["/bin/sh", "-c", result + 'printf %s "$TOKEN"'], capture_output=True, text=True, check=True, env={}
    )
    assert output.stdout == "it's\na secret"
    assert [line.split("=")[0] for line in result.splitlines() if line.startswith("export")] == [
        "export OMPI_MCA_pml",
        "export TOKEN",
    ]


def fake(folder: Path, text: str) -> Path:
    """A program that stands for another one."""
    path = folder / "fake"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def started(folder: Path, mpirun: str, container: str = 'exec "$@"') -> subprocess.Popen[str]:
    """Start dml-mpirun on a node on which commands run outside any container."""
    (folder / "container.json").write_text(json.dumps({**SETTINGS, "mpirun": mpirun}))
    text = (FILES / "dml-mpirun").read_text().replace("/opt/dml/bin/dml-container", str(fake(folder, container)))
    (folder / "mpirun.py").write_text(text.replace("/etc/dml/container.json", str(folder / "container.json")))
    words = [
        sys.executable,
        str(folder / "mpirun.py"),
        "-x",
        "TOKEN",
        "-c",
        'echo $TOKEN; trap "exit 7" TERM; while :; do sleep 0.1; done',
    ]
    return subprocess.Popen(words, cwd=folder, env={**os.environ, "TOKEN": "secret"}, stdout=subprocess.PIPE, text=True)


def test_signal_reaches_mpirun_and_returns_its_code(tmp_path: Path) -> None:
    shell = tmp_path / "mpirun"
    shell.write_text('#!/bin/sh\nshift 2\nexec /bin/sh "$@"\n')
    shell.chmod(0o755)
    running = started(tmp_path, str(shell))
    assert running.stdout is not None
    assert running.stdout.readline() == "secret\n"
    assert list(tmp_path.glob("container-*/environment")) == []
    deadline = time.monotonic() + 20
    running.send_signal(signal.SIGTERM)
    assert running.wait(deadline - time.monotonic()) == 7
    assert list(tmp_path.glob("container-*")) == []


def test_late_signal_spares_a_process_with_reused_pid(tmp_path: Path) -> None:
    """The client of a container engine may outlive mpirun."""
    running = started(tmp_path, "echo", container='"$@"; exec sleep 3')
    assert running.stdout is not None
    assert "TOKEN" in running.stdout.readline()
    (noted,) = tmp_path.glob("container-*/pid")
    pid = int(noted.read_text().split()[0])
    wait_for(lambda: not Path(f"/proc/{pid}").exists())
    with reused(pid) as other:
        running.send_signal(signal.SIGTERM)
        assert running.wait(60) == 0
        assert other.poll() is None


def test_daemon_command_keeps_its_quotes(tmp_path: Path) -> None:
    ssh = fake(
        tmp_path, f'shift; echo "$1" | sed s,/opt/dml/bin/dml-container,, > {tmp_path}/far; exec /bin/sh {tmp_path}/far'
    )
    requested = """A="it's $((1+1))" ; export A ; printf '%s|' "$A" "two words" """
    words = [str(FILES / "dml-shell"), "w2", requested]
    done = subprocess.run(
        words, capture_output=True, text=True, check=True, env={"DML_SHELL": str(ssh), "PATH": os.environ["PATH"]}
    )
    assert done.stdout == "it's 2|two words|"


def test_refuses_a_patch_without_effect(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "CMakeLists.txt").write_text("set(CXX_STANDARD 14)\n")
    one = {"name": "cxx-17", "files": ["*/CMakeLists.txt"], "find": "CXX_STANDARD 14", "replace": "CXX_STANDARD 17"}
    (tmp_path / "patches.json").write_text(json.dumps([one]))
    words = [sys.executable, str(FILES / "patch.py"), str(tmp_path / "patches.json"), str(tmp_path)]
    assert subprocess.run(words, check=False).returncode == 0
    assert (tmp_path / "a" / "CMakeLists.txt").read_text() == "set(CXX_STANDARD 17)\n"
    again = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (again.returncode, again.stderr) == (1, "The patch cxx-17 changes nothing in the source.\n")


def test_prints_versions_as_one_line_of_json() -> None:
    done = subprocess.run([sys.executable, str(FILES / "versions.py")], capture_output=True, text=True, check=True)
    result = json.loads(done.stdout.partition("versions ")[2])
    assert result["executable"] == sys.executable
    assert {"tensorflow", "pytorch", "horovod", "nccl", "missing", "faults"} <= set(result)


def test_only_half_installed_horovod_is_a_fault(tmp_path: Path) -> None:
    def faults() -> list[str]:
        environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
        words = [sys.executable, str(FILES / "versions.py")]
        output = subprocess.run(words, capture_output=True, text=True, check=True, env=environment).stdout
        return list(json.loads(output.partition("versions ")[2])["faults"])

    assert faults() == []
    (tmp_path / "horovod").mkdir()
    (tmp_path / "horovod" / "__init__.py").write_text("__version__ = '0.28.1'")
    assert faults() == ["horovod.torch does not load: No module named 'horovod.torch'"]


@pytest.mark.parametrize(
    ("desired", "rank"),
    [
        ({}, ["hello.py", "libmpi.so.40"]),
        ({"framework": "tensorflow", "horovod": "0.16.4"}, ["allreduce.py", "tensorflow"]),
        ({"framework": "pytorch", "horovod": "0.28.1"}, ["allreduce.py", "pytorch"]),
        ({"framework": "pytorch", "horovod": ""}, ["dml_torchrun.py", "allreduce_pytorch.py"]),
        ({"framework": "pytorch"}, ["dml_torchrun.py", "allreduce_pytorch.py"]),
        ({"framework": "tensorflow"}, ["hello.py", "libmpi.so.40"]),
    ],
)
def test_proof_rank_checks_the_contents_of_the_image(desired: dict[str, str], rank: list[str]) -> None:
    by = rendering.value("training_image", "__training_image_by", training_image_wanted=desired)
    words = rendering.value("training_image", "__training_image_ranks", training_image_wanted=desired)[by]
    assert [one.rpartition("/")[2] for one in words] == rank
    brought = rendering.value("training_image", "__training_image_proofs", role_path="/roles/training_image")
    assert {one for one in rank if one.endswith(".py")} <= {one.rpartition("/")[2] for one in brought}
