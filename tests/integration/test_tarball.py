"""The tarball as a user gets it: built, installed into an empty folder, read, and run from elsewhere."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from lab.simulator import ROOT
from tests.integration.installed import run
from tools import generated

# Other files in a checkout must not be shipped.
GROUPED = set(yaml.safe_load((ROOT / "meta" / "runtime.yml").read_text())["action_groups"]["vsphere"])
TRAVELS = {
    "CHANGELOG.rst",
    "CODE_OF_CONDUCT.md",
    "FILES.json",
    "LICENSE",
    "LICENSES",
    "MAINTAINERS.md",
    "MANIFEST.json",
    "README.md",
    "REUSE.toml",
    "SECURITY.md",
    "changelogs",
    "docs",
    "extensions",
    "front",
    "meta",
    "playbooks",
    "plugins",
    "requirements.txt",
    "roles",
    "stacks",
}


@pytest.fixture(scope="module")
def modules() -> list[str]:
    """The modules of the checkout."""
    return sorted(f"dml.vsphere.{path.stem}" for path in (ROOT / "plugins" / "modules").glob("*.py"))


@pytest.fixture
def names(tarball: Path) -> list[Path]:
    """Return what is in the tarball."""
    with tarfile.open(tarball) as archive:
        return [Path(name) for name in archive.getnames()]


def test_contains_only_what_is_needed(names: list[Path]) -> None:
    assert {name.parts[0] for name in names} <= TRAVELS
    assert [name for name in names if any(part.startswith(".") or part == "__pycache__" for part in name.parts)] == []


def texts_of(tarball: Path, *names: str) -> dict[str, str]:
    """Return the text of each of these files of the tarball."""
    with tarfile.open(tarball) as archive:
        packed = {name: archive.extractfile(name) for name in names}
        return {name: file.read().decode() if file else "" for name, file in packed.items()}


def test_contains_generated_files_with_their_checksums(tarball: Path, names: list[Path]) -> None:
    made = {name: text for name, text in generated.files().items() if Path(name) in names}
    texts = texts_of(tarball, *made, "FILES.json")
    listed = [(entry["name"], entry["chksum_sha256"]) for entry in json.loads(texts.pop("FILES.json"))["files"]]

    assert {name: texts[name] for name in generated.FILES} == {name: made[name] for name in generated.FILES}
    assert {"docs/privileges.md", "docs/unproven.md"} <= set(made) and "<!-- table" not in str(texts)
    assert {(name, hashlib.sha256(text.encode()).hexdigest()) for name, text in texts.items()} <= set(listed)
    assert len(listed) == len(dict(listed))


def test_links_of_shipped_pages_lead_to_existing_files(tarball: Path, names: list[Path]) -> None:
    pages = [str(name) for name in names if name.suffix == ".md"]
    texts = texts_of(tarball, *pages)
    dead = [
        (page, link)
        for page, text in texts.items()
        for link in re.findall(r"\]\(([^)#\s]+)", re.sub(r"```.*?```|`[^`\n]+`", "", text, flags=re.DOTALL))
        if "://" not in link and Path(os.path.normpath(Path(page).parent / link)) not in names
    ]

    assert len(pages) > 20 and dead == []
    assert "/blob/main/docs/testing.md#the-layer-that-tests-each-statement)" in texts["docs/threats.md"]


def test_contains_no_developer_pages_and_stays_small(tarball: Path, names: list[Path]) -> None:
    assert [name for name in names if name.name in {"testing.md", "simulator.md", "labs.md", "CONTRIBUTING.md"}] == []
    assert [name for name in names if "fragments" in name.parts and "changelogs" in name.parts] == []
    assert tarball.stat().st_size < 1_500_000


def test_builds_the_same_bytes_twice(tarball: Path, tmp_path: Path) -> None:
    again = run(tmp_path, "python", "-m", "tools.build", str(tmp_path), PYTHONPATH=str(ROOT))
    assert again.returncode == 0, again.stdout
    files = sorted(path.name for path in tmp_path.glob("dml-*"))
    assert files == sorted(path.name for path in tarball.parent.glob("dml-*")) and len(files) == 2
    assert [(tmp_path / name).read_bytes() for name in files] == [
        (tarball.parent / name).read_bytes() for name in files
    ]
    assert hashlib.sha256(tarball.read_bytes()).hexdigest() in again.stdout


def test_contains_every_plugin_and_role(names: list[Path]) -> None:
    expected = [path for folder in ("plugins", "roles", "playbooks") for path in (ROOT / folder).rglob("*.[py]*")]
    ours = {path.relative_to(ROOT) for path in expected if path.suffix in {".py", ".yml"}}
    assert len(ours) > 20
    assert ours - set(names) == set()


def test_lists_and_documents_every_module(elsewhere: Path, modules: list[str]) -> None:
    listed = run(elsewhere, "ansible-doc", "--list", "--json", "dml.vsphere")
    assert sorted(json.loads(listed.stdout)) == modules
    documents: dict[str, Any] = json.loads(run(elsewhere, "ansible-doc", "--json", *modules).stdout)
    assert sorted(documents) == modules
    for name, document in documents.items():
        assert f"{name}:" in document["examples"]
        assert document["return"]
        assert document["doc"]["attributes"].keys() >= {"check_mode", "diff_mode", "idempotent"}
        connects = name.rpartition(".")[2] in GROUPED
        assert ("hostname" in document["doc"]["options"]) is connects, f"{name} does not say how to connect"


def test_documents_the_options_of_every_role(elsewhere: Path) -> None:
    roles = sorted(path.name for path in (ROOT / "roles").iterdir())
    shown = json.loads(run(elsewhere, "ansible-doc", "-t", "role", "--list", "--json", "dml.vsphere").stdout)
    assert sorted(shown) == [f"dml.vsphere.{name}" for name in roles]
    assert all(role["entry_points"] for role in shown.values())


@pytest.mark.slow
def test_galaxy_accepts_it(tarball: Path, tmp_path: Path) -> None:
    config = tmp_path / "galaxy-importer.cfg"
    # The lint stage runs ansible-lint on all of this; here it would have 180 seconds, too few on a busy machine.
    switches = ("run_ansible_test = False", "run_ansible_lint = False", "check_required_tags = True")
    config.write_text("\n".join(["[galaxy-importer]", *switches, ""]))
    done = run(tmp_path, "python", "-m", "galaxy_importer.main", str(tarball), GALAXY_IMPORTER_CONFIG=str(config))
    assert done.returncode == 0, done.stdout
    assert "Importing with galaxy-importer" in done.stdout
    complaints = [line for line in done.stdout.splitlines() if line.startswith(("ERROR", "WARNING", "CRITICAL"))]
    assert complaints == []


@pytest.mark.parametrize(
    ("result", "counted"),
    [
        ({"hosts": [{"host": "esx1", "changed": False}, {"host": "esx2"}]}, ["esx1", "esx2"]),
        ({"workers": [{"name": "w1", "vm_uuid": "5012"}, {"name": "w2"}]}, ["w1", "w2"]),
        ({"hosts": {"esx1": {}}, "workers": None}, []),
        ({"hosts": ["esx1"], "msg": "esx1 failed"}, []),
        ({}, []),
    ],
)
def test_automation_controller_query_counts_hosts_and_workers(result: dict[str, Any], counted: list[str]) -> None:
    queries = yaml.safe_load((ROOT / "extensions" / "audit" / "event_query.yml").read_text())
    command = ["jq", "--slurp", f"map({queries['dml.vsphere.*']['query']})"]
    done = subprocess.run(command, input=json.dumps(result), check=True, capture_output=True, text=True)
    found = json.loads(done.stdout)

    assert [each["name"] for each in found] == counted
    assert all(set(each) == {"name", "canonical_facts", "facts"} and each["canonical_facts"] for each in found)
