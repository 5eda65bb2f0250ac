"""The files around a release: they name what exists, and derived files are current."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement

from tools import build, release, sbom

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
GITHUB = ROOT / ".github"
WORKFLOWS = sorted((GITHUB / "workflows").glob("*.yml"))
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
MATRIX = "${{ matrix.target }}"
VERSION = yaml.safe_load((ROOT / "galaxy.yml").read_text())["version"]


def steps(workflow: Path) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Return each step of a workflow with its job."""
    jobs = yaml.safe_load(workflow.read_text())["jobs"].values()
    return [(job, step) for job in jobs for step in job["steps"]]


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_calls_targets_of_make_that_exist(workflow: Path) -> None:
    called = set[str]()
    for job, step in steps(workflow):
        for words in re.findall(r"^make (.*)$", step.get("run", ""), re.MULTILINE):
            matrix = job.get("strategy", {}).get("matrix", {})
            called |= set(matrix["target"] if words == MATRIX else words.split())
    assert called and called - TARGETS == set()


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_keeps_no_credentials_and_reads_only(workflow: Path) -> None:
    document = yaml.safe_load(workflow.read_text())
    assert document["permissions"] == {"contents": "read"}
    checkouts = [step for _job, step in steps(workflow) if step.get("uses", "").startswith("actions/checkout@")]
    assert checkouts and all(step["with"] == {"persist-credentials": False} for step in checkouts)
    assert all("timeout-minutes" in job for job in document["jobs"].values())


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_names_each_action_with_its_commit(workflow: Path) -> None:
    used = re.findall(r"uses: (.*)", workflow.read_text())

    assert used and [each for each in used if not re.fullmatch(r"[\w/-]+@[0-9a-f]{40}  # v\d+\.\d+\.\d+", each)] == []


def test_writing_job_runs_only_gh_and_attests_provenance() -> None:
    writing = [
        job for path in WORKFLOWS for job, _step in steps(path) if "write" in job.get("permissions", {}).values()
    ]
    commands = [step["run"] for job in writing for step in job["steps"] if "run" in step]
    used = {step["uses"].partition("@")[0] for job in writing for step in job["steps"] if "uses" in step}

    assert commands and all(command.startswith("gh release create ") for command in commands)
    assert used == {"actions/download-artifact", "actions/attest-build-provenance"}


def test_job_with_secret_runs_after_release_without_installing() -> None:
    jobs = yaml.safe_load((GITHUB / "workflows" / "release.yml").read_text())["jobs"].values()
    (publishing,) = [job for job in jobs if "secrets." in json.dumps(job)]
    steps_of = publishing["steps"]

    assert (publishing["needs"], publishing["environment"]) == ("release", "galaxy")
    assert [step["uses"].partition("@")[0] for step in steps_of if "uses" in step] == ["actions/download-artifact"]
    (command,) = [step["run"] for step in steps_of if "run" in step]
    assert command.splitlines()[1].startswith("curl --fail-with-body ") and "${{" not in command


def test_ci_runs_each_supported_ansible_core() -> None:
    matrices = [job.get("strategy", {}).get("matrix", {}) for job, _step in steps(GITHUB / "workflows" / "ci.yml")]
    tested = {each["core"] for matrix in matrices for each in matrix.get("include", ())}
    for target in {name for matrix in matrices for name in matrix.get("target", ())} - {"devel"}:
        text = (ROOT / f"requirements-{target}.txt").read_text()
        (pin,) = re.findall(r"^ansible-core==(\d+\.\d+)", text, re.MULTILINE)
        tested.add(pin)
    supported = re.findall(r"^\| (2\.\d+) \|", (ROOT / "README.md").read_text(), re.MULTILINE)

    assert len(supported) >= 4 and set(supported) == tested


def test_only_files_that_git_tracks_are_built(tmp_path: Path) -> None:
    checkout, built = tmp_path / "checkout", tmp_path / "built"
    (checkout / "recording").mkdir(parents=True)
    for name in ("galaxy.yml", "hosts.yml", "id_ed25519", "recording/site.json", "removed.py"):
        (checkout / name).touch()
    subprocess.run(["git", "init", "-q", str(checkout)], check=True)
    subprocess.run(["git", "-C", str(checkout), "add", "galaxy.yml", "removed.py"], check=True)
    (checkout / "removed.py").unlink()

    build.copy_tracked(checkout, built)

    assert [path.name for path in built.iterdir()] == ["galaxy.yml"]


@pytest.mark.parametrize("name", release.PLACES)
def test_the_version_is_that_of_galaxy_yml(name: str) -> None:
    found = re.findall(release.PLACES[name], (ROOT / name).read_text())
    assert found and set(found) == {VERSION}


def test_each_licence_has_its_text() -> None:
    notes = tomllib.loads((ROOT / "REUSE.toml").read_text())["annotations"]
    assert notes[0]["path"] == "**" and all(note["SPDX-FileCopyrightText"] for note in notes)
    texts = {path.stem: path.read_text() for path in (ROOT / "LICENSES").iterdir()}
    assert {note["SPDX-License-Identifier"] for note in notes} == set(texts)
    assert texts["GPL-3.0-or-later"] == (ROOT / "LICENSE").read_text()
    paths = [path for note in notes for path in ([note["path"]] if isinstance(note["path"], str) else note["path"])]
    assert [path for path in paths if not list(ROOT.glob(path))] == []


def test_third_party_recordings_have_their_licence() -> None:
    notes = tomllib.loads((ROOT / "REUSE.toml").read_text())["annotations"]
    apache = [path for note in notes if note["SPDX-License-Identifier"] == "Apache-2.0" for path in note["path"]]
    index = yaml.safe_load((ROOT / "tests" / "fixtures" / "recorded" / "index.yml").read_text())
    files = [name for entry in index if entry["licence"] == "Apache-2.0" for name in entry["files"]]
    folders = {f"tests/fixtures/recorded/{name.split('/')[0]}/**" for name in files}
    assert folders and folders <= set(apache)


def test_the_bill_of_materials_has_each_pin() -> None:
    bill = sbom.document()
    refs = [part["bom-ref"] for part in bill["components"]]
    assert refs == sorted(set(refs)) and bill["bomFormat"] == "CycloneDX"
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pins = [Requirement(line) for line in lines if line and not line.startswith("#")]
    assert {f"pkg:pypi/{each.name.lower()}@{str(each.specifier).removeprefix('==')}" for each in pins} <= set(refs)
    assert "pkg:golang/github.com/vmware/govmomi@v0.56.0" in refs
    required = {part["name"] for part in bill["components"] if part["scope"] == "required"}
    assert required == {"pyvmomi", "community.general", "kubernetes.core"}
    assert bill["dependencies"][0]["ref"] == bill["metadata"]["component"]["bom-ref"]


def test_bill_of_materials_depends_only_on_the_pins(tmp_path: Path) -> None:
    for name in ("galaxy.yml", "requirements.txt", "constraints.txt", *sbom.GO_SUMS):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    assert sbom.text(tmp_path) == sbom.text() == json.dumps(sbom.document(), indent=2) + "\n"
    with (tmp_path / "constraints.txt").open("a") as file:
        file.write("another==1.0\n")
    changed = sbom.document(tmp_path)
    assert changed["serialNumber"] != sbom.document()["serialNumber"]
    assert "pkg:pypi/another@1.0" in {part["bom-ref"] for part in changed["components"]}


def test_the_execution_environment_has_a_containerfile(tmp_path: Path) -> None:
    (tmp_path / "build").mkdir()
    (tmp_path / "build" / f"dml-vsphere-{VERSION}.tar.gz").touch()
    shutil.copy(ROOT / "execution-environment.yml", tmp_path)
    command = [str(BIN / "ansible-builder"), "create", "--context", "context", "--output-filename", "Containerfile"]
    done = subprocess.run(command, cwd=tmp_path, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    text = (tmp_path / "context" / "Containerfile").read_text()
    assert "quay.io/fedora/fedora:43" in text and "ansible-galaxy collection install" in text
    assert (tmp_path / "context" / "_build" / "dist" / f"dml-vsphere-{VERSION}.tar.gz").is_file()
    requires = yaml.safe_load((ROOT / "meta" / "runtime.yml").read_text())["requires_ansible"]
    core = yaml.safe_load((ROOT / "execution-environment.yml").read_text())["dependencies"]["ansible_core"]
    assert Requirement(core["package_pip"]).specifier.contains(f"{requires.removeprefix('>=')}")


@pytest.mark.parametrize("version", ["", "1", "1.2", "01.2.3", "1.2.3-beta", "v1.2.3"])
def test_a_release_needs_a_version(version: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert release.main([version]) == 1
    assert "is not a version such as 1.2.3" in capsys.readouterr().err


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the files that a release changes, as a repository."""
    for name in (*release.PLACES, ".gitignore", "changelogs/config.yaml", "CHANGELOG.rst"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    fragment = tmp_path / "changelogs" / "fragments" / "one.yml"
    fragment.parent.mkdir()
    fragment.write_text("bugfixes:\n  - hosts - a change that this test makes.\n")
    for key, value in {"name": "release", "email": "release@example.com"}.items():
        monkeypatch.setenv(f"GIT_AUTHOR_{key.upper()}", value)
        monkeypatch.setenv(f"GIT_COMMITTER_{key.upper()}", value)
    for command in ("init --quiet", "add --all", "commit --quiet --message files"):
        subprocess.run(["git", *command.split()], cwd=tmp_path, check=True)
    monkeypatch.setattr(release, "ROOT", tmp_path)
    monkeypatch.setattr(release.build, "build", lambda folder: [folder / "dml-vsphere-7.8.9.tar.gz"])
    monkeypatch.setenv("PATH", f"{BIN}:/usr/bin:/bin")
    return tmp_path


def test_a_release_is_one_commit_and_a_tag(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert release.main(["7.8.9"]) == 0, capsys.readouterr().err
    assert "build/dml-vsphere-7.8.9.tar.gz" in capsys.readouterr().out
    for name, pattern in release.PLACES.items():
        assert set(re.findall(pattern, (checkout / name).read_text())) == {"7.8.9"}
    assert "v7.8.9" in (checkout / "CHANGELOG.rst").read_text()
    assert "a change that this test makes" in (checkout / "CHANGELOG.rst").read_text()
    assert list((checkout / "changelogs" / "fragments").glob("*.yml")) == []
    kept = subprocess.run(["git", "ls-files", "changelogs"], cwd=checkout, check=True, capture_output=True, text=True)
    assert kept.stdout.split() == ["changelogs/changelog.yaml", "changelogs/config.yaml"], "nor what antsibull caches"
    seen = subprocess.run(
        ["git", "describe", "--exact-match"], cwd=checkout, check=True, capture_output=True, text=True
    )
    assert seen.stdout.strip() == "7.8.9"
    assert subprocess.run(["git", "status", "--porcelain"], cwd=checkout, check=True, capture_output=True).stdout == b""
    assert release.main(["7.8.9"]) == 1 and "the tag 7.8.9 exists" in capsys.readouterr().err
    assert release.main(["7.9.0"]) == 1 and "changelogs/fragments is empty" in capsys.readouterr().err


def test_refuses_to_release_uncommitted_changes(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (checkout / "README.md").write_text("changed")
    assert release.main(["7.8.9"]) == 1 and "the checkout has changes" in capsys.readouterr().err
