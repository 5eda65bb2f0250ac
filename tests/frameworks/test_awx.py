# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The project of AWX, imported by the client of AWX: `make frameworks`."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.frameworks.awx_server import FIELDS, Awx, Server
from tests.frameworks.test_node_pools import FRAMEWORKS
from tools import awx


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """An AWX that has synchronized a project with the generated playbooks."""
    for name, text in awx.files().items():
        (tmp_path / Path(name).name).write_text(text())
    found = Server(Awx({path.name for path in tmp_path.iterdir()} - {"awx.yml"}))
    yield found
    found.shutdown()


def imported(server: Server, path: Path) -> subprocess.CompletedProcess[str]:
    client = FRAMEWORKS / "awx" / "bin" / "awx"
    assert client.exists(), "awxkit is not installed: run make frameworks"
    command = [str(client), "--conf.host", server.address, "--conf.token", "a-token", "--conf.format", "yaml", "import"]
    with path.open() as given:
        return subprocess.run(command, stdin=given, capture_output=True, text=True, timeout=300, check=False)


def test_the_import_creates_each_object_with_its_survey_and_credential(server: Server, tmp_path: Path) -> None:
    done = imported(server, tmp_path / "awx.yml")

    assert (done.returncode, server.failures) == (0, []), done.stderr
    assert "ERROR" not in done.stderr
    created = {name: [page["name"] for page in pages] for name, pages in server.awx.pages.items()}
    assert created["projects"] == created["inventories"] == created["execution_environments"] == ["dml.vsphere"]
    assert created["job_templates"] == [f"dml.vsphere {name}" for name in awx.TEMPLATES]
    with_survey = {page["name"] for page in server.awx.pages["job_templates"] if page["survey_enabled"]}
    numbers = {int(path.split("/")[4]) for path in server.awx.surveys}
    assert {created["job_templates"][number - 1] for number in numbers} == with_survey
    with_credential = [path for path, numbers in server.awx.attached.items() if numbers == [1]]
    assert len(with_credential) == len(awx.TEMPLATES) + 1


def test_a_second_import_creates_nothing(server: Server, tmp_path: Path) -> None:
    imported(server, tmp_path / "awx.yml")
    before = {name: len(pages) for name, pages in server.awx.pages.items()}

    done = imported(server, tmp_path / "awx.yml")

    assert (done.returncode, server.failures) == (0, []), done.stderr
    assert {name: len(pages) for name, pages in server.awx.pages.items()} == before


def test_awx_refuses_a_template_of_a_playbook_that_the_project_lacks(server: Server, tmp_path: Path) -> None:
    server.awx.playbooks.remove("teardown.yml")

    imported(server, tmp_path / "awx.yml")

    assert server.failures == ["/api/v2/job_templates/: playbook: Playbook not found for project."]


def test_each_field_is_one_that_awx_reads() -> None:
    """The client leaves out a field that AWX does not have, without a word."""
    for resource, assets in yaml.safe_load(awx.text()).items():
        fields = {name.rstrip("*") for name in FIELDS[resource].split()}
        assert [set(asset) - fields - {"natural_key", "related"} for asset in assets if set(asset) - fields] == [
            set() for _asset in assets
        ]
