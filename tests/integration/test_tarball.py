"""The tarball as a user gets it: built, installed into an empty folder, read, and run from elsewhere."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from lab.simulator import ROOT
from tools import generated

BIN = Path(sys.executable).parent
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
    "licenses",
    "meta",
    "playbooks",
    "plugins",
    "requirements.txt",
    "roles",
    "stacks",
}

PLACES = {"ANSIBLE_COLLECTIONS_PATH": "collections", "ANSIBLE_HOME": "home", "ANSIBLE_REMOTE_TEMP": "remote"}


def run(folder: Path, *command: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a command that knows nothing of the checkout."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("ANSIBLE_", "VMWARE_"))}
    environment = {
        **clean,
        "ANSIBLE_COLLECTIONS_PATH": str(folder / "collections"),
        "ANSIBLE_HOME": str(folder / "home"),
        "ANSIBLE_NOCOLOR": "1",
        "PATH": f"{BIN}:{os.environ['PATH']}",
        **variables,
    }
    return subprocess.run(
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=600,
        check=False,
    )


@pytest.fixture(scope="module")
def tarball(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The collection, built from this checkout as by make build."""
    folder = tmp_path_factory.mktemp("built")
    built = run(folder, "python", "-m", "tools.build", str(folder), PYTHONPATH=str(ROOT))
    assert built.returncode == 0, built.stdout
    (only,) = folder.glob("dml-vsphere-*.tar.gz")
    return only


@pytest.fixture(scope="module")
def elsewhere(tarball: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty folder into which the tarball was installed."""
    folder = tmp_path_factory.mktemp("elsewhere")
    collections = str(folder / "collections")
    done = run(folder, "ansible-galaxy", "collection", "install", "--offline", "-p", collections, str(tarball))
    assert done.returncode == 0, done.stdout
    assert "dml.vsphere:" in done.stdout and "was installed successfully" in done.stdout
    return folder


@pytest.fixture(scope="module")
def modules() -> list[str]:
    """The modules of the checkout."""
    return sorted(f"dml.vsphere.{path.stem}" for path in (ROOT / "plugins" / "modules").glob("*.py"))


@pytest.fixture(scope="module")
def names(tarball: Path) -> list[Path]:
    """Return what is in the tarball."""
    with tarfile.open(tarball) as archive:
        return [Path(name) for name in archive.getnames()]


def test_only_what_is_needed_travels(names: list[Path]) -> None:
    assert {name.parts[0] for name in names} <= TRAVELS
    assert [name for name in names if any(part.startswith(".") or part == "__pycache__" for part in name.parts)] == []


def texts_of(tarball: Path, *names: str) -> dict[str, str]:
    """Return the text of each of these files of the tarball."""
    with tarfile.open(tarball) as archive:
        packed = {name: archive.extractfile(name) for name in names}
        return {name: file.read().decode() if file else "" for name, file in packed.items()}


def test_generated_files_travel_with_their_checksums(tarball: Path, names: list[Path]) -> None:
    made = {name: text for name, text in generated.files().items() if Path(name) in names}
    texts = texts_of(tarball, *made, "FILES.json")
    listed = [(entry["name"], entry["chksum_sha256"]) for entry in json.loads(texts.pop("FILES.json"))["files"]]

    assert {name: texts[name] for name in generated.FILES} == {name: made[name] for name in generated.FILES}
    assert {"docs/privileges.md", "docs/unproven.md"} <= set(made) and "<!-- table" not in str(texts)
    assert {(name, hashlib.sha256(text.encode()).hexdigest()) for name, text in texts.items()} <= set(listed)
    assert len(listed) == len(dict(listed))


def test_links_of_shipped_pages_lead_to_shipped_files_or_to_the_repository(tarball: Path, names: list[Path]) -> None:
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


def test_no_page_for_developers_is_shipped_and_the_size_is_known(tarball: Path, names: list[Path]) -> None:
    assert [name for name in names if name.name in {"testing.md", "simulator.md", "labs.md", "CONTRIBUTING.md"}] == []
    assert [name for name in names if "fragments" in name.parts and "changelogs" in name.parts] == []
    assert tarball.stat().st_size < 1_300_000


def test_two_builds_have_the_same_bytes(tarball: Path, tmp_path: Path) -> None:
    again = run(tmp_path, "python", "-m", "tools.build", str(tmp_path), PYTHONPATH=str(ROOT))
    assert again.returncode == 0, again.stdout
    files = sorted(path.name for path in tmp_path.glob("dml-*"))
    assert files == sorted(path.name for path in tarball.parent.glob("dml-*")) and len(files) == 2
    assert [(tmp_path / name).read_bytes() for name in files] == [
        (tarball.parent / name).read_bytes() for name in files
    ]
    assert hashlib.sha256(tarball.read_bytes()).hexdigest() in again.stdout


def test_every_plugin_and_role_of_the_checkout_travels(names: list[Path]) -> None:
    expected = [path for folder in ("plugins", "roles", "playbooks") for path in (ROOT / folder).rglob("*.[py]*")]
    ours = {path.relative_to(ROOT) for path in expected if path.suffix in {".py", ".yml"}}
    assert len(ours) > 20
    assert ours - set(names) == set()


def test_every_module_is_listed_and_documented(elsewhere: Path, modules: list[str]) -> None:
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


def test_the_documentation_reads_with_examples(elsewhere: Path, modules: list[str]) -> None:
    shown = run(elsewhere, "ansible-doc", *modules)
    assert shown.returncode == 0, shown.stdout
    pages = re.split(r"^> MODULE (\S+)", shown.stdout, flags=re.MULTILINE)[1:]
    assert sorted(pages[::2]) == sorted(modules)
    assert all("EXAMPLES:" in page and "OPTIONS" in page for page in pages[1::2])


def test_the_roles_say_their_options(elsewhere: Path) -> None:
    roles = sorted(path.name for path in (ROOT / "roles").iterdir())
    shown = json.loads(run(elsewhere, "ansible-doc", "-t", "role", "--list", "--json", "dml.vsphere").stdout)
    assert sorted(shown) == [f"dml.vsphere.{name}" for name in roles]
    assert all(role["entry_points"] for role in shown.values())


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
def test_the_query_for_automation_controller_counts_hosts_and_workers(
    result: dict[str, Any], counted: list[str]
) -> None:
    queries = yaml.safe_load((ROOT / "extensions" / "audit" / "event_query.yml").read_text())
    command = ["jq", "--slurp", f"map({queries['dml.vsphere.*']['query']})"]
    done = subprocess.run(command, input=json.dumps(result), check=True, capture_output=True, text=True)
    found = json.loads(done.stdout)

    assert [each["name"] for each in found] == counted
    assert all(set(each) == {"name", "canonical_facts", "facts"} and each["canonical_facts"] for each in found)
