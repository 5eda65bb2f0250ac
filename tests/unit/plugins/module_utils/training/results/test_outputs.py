"""The outputs of a run come from a node in one stream, once, and a node cannot write anywhere else."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import Any

import pytest

from plugins.module_utils.errors import CollectionError, Failed, Refused
from plugins.module_utils.training.results.outputs import Outputs, copy_growing_outputs, copy_growing_path, copy_outputs
from tests.fakes.calling import here


def outputs(tmp_path: Path, **changes: Any) -> Outputs:
    """Return the subject, with this machine as the node."""
    paths = {"folder": str(tmp_path / "there" / "it's"), "dest": str(tmp_path / "here")}
    return Outputs({"node": "w1", "reach": ["sh", "-c"], "limit": 1, **paths, **changes})


@pytest.fixture
def there(tmp_path: Path) -> Path:
    made = tmp_path / "there" / "it's"
    (made / "deep").mkdir(parents=True)
    (made / "model.pt").write_bytes(b"weights")
    (made / "deep" / "two words\n").write_bytes(b"")
    (made / "link").symlink_to("/etc/passwd")
    return made


def converge(subject: Outputs) -> list[str]:
    plan = subject.plan(subject.read())
    if plan.due:
        subject.apply(plan)
        assert not subject.plan(subject.read()).due
    return sorted(change.key for change in plan.due)


def test_new_and_changed_files_are_copied_once(tmp_path: Path, there: Path) -> None:
    assert converge(outputs(tmp_path)) == ["deep/two words\n", "model.pt"]
    assert (tmp_path / "here" / "model.pt").read_bytes() == b"weights"
    assert not converge(outputs(tmp_path))
    (there / "model.pt").write_bytes(b"longer weights")
    (tmp_path / "here" / "mine").touch()
    assert converge(outputs(tmp_path)) == ["model.pt"]
    assert sorted(path.name for path in (tmp_path / "here").iterdir()) == ["deep", "mine", "model.pt"]


@pytest.mark.usefixtures("there")
def test_removes_files_of_killed_copies_only(tmp_path: Path) -> None:
    for name in (".dml-left", ".dml-busy"):
        (tmp_path / "here" / name / "deep").mkdir(parents=True)
        (tmp_path / "here" / name / "deep" / "model.pt").write_bytes(b"half")
    lock = os.open(tmp_path / "here" / ".dml-busy", os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    converge(outputs(tmp_path))
    os.close(lock)
    assert sorted(path.name for path in (tmp_path / "here").iterdir()) == [".dml-busy", "deep", "model.pt"]


@pytest.mark.usefixtures("there")
def test_copies_outputs_over_a_connection_that_changes_users(tmp_path: Path) -> None:
    """As ssh runs ``sudo -u USER`` and the words after it: a program, not a word of the shell."""
    reach = ["sh", "-c", 'eval "env -u NOTHING $0"']
    assert converge(outputs(tmp_path, reach=reach)) == ["deep/two words\n", "model.pt"]


def test_reports_a_run_directory_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(Failed, match=r"could not list the outputs: .*there"):
        outputs(tmp_path).read()


def test_leaves_oversized_outputs_on_the_node(tmp_path: Path, there: Path) -> None:
    (there / "model.pt").write_bytes(b"0" * 1_000_001)
    with pytest.raises(
        Refused, match=r"w1:.*it's: could not copy the outputs: they have 1\.0 MB, more than 1 MB; they"
    ):
        converge(outputs(tmp_path))


@pytest.mark.parametrize(
    ("program", "cause"),
    [
        ("echo no route >&2; exit 255", "could not list the outputs: no route"),
        (r"printf '1 1 ../out\0'", r"could not list the outputs: the node sent '1 1 \.\./out'"),
        ("exit 3", "could not list the outputs: exit code 3"),
        ("echo Welcome", r"could not list the outputs: the node sent 'Welcome\\n'"),
        ("printf 'x 1 a\\0'", "could not list the outputs: the node sent"),
    ],
)
def test_names_a_node_that_cannot_list_files(tmp_path: Path, program: str, cause: str) -> None:
    with pytest.raises(Failed, match=cause):
        outputs(tmp_path, reach=["sh", "-c", program]).read()


@pytest.mark.usefixtures("there")
def test_refuses_files_that_the_node_did_not_list(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("x")
    sent = f'case $0 in *find*) exec sh -c "$0";; esac; cat > /dev/null; exec tar -C {tmp_path} -cf - out'
    with pytest.raises(CollectionError, match="the node sent out, which is not one of its outputs"):
        converge(outputs(tmp_path, reach=["sh", "-c", sent]))
    assert not (tmp_path / "here").exists()


@pytest.mark.parametrize(
    ("path", "names"), [("deep", ["deep/two words\n"]), ("model.pt", ["model.pt"]), ("deep/two words\n", None)]
)
def test_copies_one_file_or_folder(tmp_path: Path, there: Path, path: str, names: list[str] | None) -> None:
    folder, name = (there, path) if names else (there / "deep", "two words\n")
    options = {"node": "w1", "reach": ["sh", "-c", 'eval "$0"'], "limit": 1, "dest": str(tmp_path / "here")}

    copied = here(copy_growing_path, **options, folder=str(folder), path=name)

    assert copied["names"] == (names or [name])
    assert [each for each in copied["names"] if not (tmp_path / "here" / each).is_file()] == []
    missing = here(copy_growing_path, **options, folder=str(there), path="none")
    assert missing["failed"] and "No such file" in missing["msg"]


@pytest.mark.usefixtures("there")
def test_a_connection_that_ends_is_named(tmp_path: Path) -> None:
    sent = 'case $0 in *find*) exec sh -c "$0";; esac; echo gone >&2; exit 255'
    with pytest.raises(Failed, match="could not copy the outputs: gone; copy them manually"):
        converge(outputs(tmp_path, reach=["sh", "-c", sent]))


def test_copies_outputs_while_the_running_job_writes_them(tmp_path: Path, there: Path) -> None:
    """tar reports a file that changes while it is read."""
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "tar").write_text(f'#!/bin/sh\n/bin/tar "$@"; echo more >>"{there}/model.pt"; exit 1\n')
    (tools / "tar").chmod(0o755)
    options = {"node": "w1", "reach": ["sh", "-c", f'PATH={tools}:$PATH; eval "$0"'], "limit": 1}
    paths = {"folder": str(there), "dest": str(tmp_path / "here")}

    assert here(copy_growing_outputs, **options, **paths)["changed"]

    assert (tmp_path / "here" / "model.pt").read_bytes() == b"weights"
    assert here(copy_growing_outputs, **options, **paths)["changed"]
    assert (tmp_path / "here" / "model.pt").read_bytes() == b"weightsmore\n"
    failed = here(copy_outputs, **options, **paths)
    assert failed["failed"] and "could not copy the outputs" in failed["msg"]
