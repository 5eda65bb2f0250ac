"""Real package managers keep the pinned versions, verified independently of the roles."""

from __future__ import annotations

from pathlib import Path

import pytest
from testinfra.host import Host

from tests.scenario import debs, node, proof, run, stack

FOLDER = Path(__file__).parents[1]
STACK = stack("bare-2019", FOLDER)
DEBS = {
    one["name"]: one["version"] for part in ("cuda", "cudnn", "nccl") for one in STACK[part]["packages"]["ubuntu-18.04"]
}
RPMS = {
    "cuda-toolkit-10-0": "10.0.130-1",
    "libcudnn7": "7.6.0.64-1.cuda10.0",
    "libcudnn7-devel": "7.6.0.64-1.cuda10.0",
    "libnccl": "2.4.7-1+cuda10.0",
    "libnccl-devel": "2.4.7-1+cuda10.0",
}


@pytest.fixture(scope="module")
def apt() -> Host:
    return node("u1")


@pytest.fixture(scope="module")
def dnf() -> Host:
    return node("r1")


def rpms(host: Host) -> dict[str, str]:
    """Return the versions of the packages that rpm has installed."""
    output = run(host, "rpm --query --queryformat '%{NAME} %{VERSION}-%{RELEASE}\\n' " + " ".join(RPMS))
    return dict(line.split() for line in output.splitlines())


def test_the_stack_names_the_versions_of_2019() -> None:
    assert DEBS["libcudnn7"] == "7.6.0.64-1+cuda10.0"
    assert DEBS["libnccl2"] == "2.4.7-1+cuda10.0"


def test_apt_holds_pinned_versions_despite_newer_ones(apt: Host) -> None:
    assert debs(apt, DEBS) == DEBS
    assert set(run(apt, "apt-mark showhold").split()) == set(DEBS)
    for name in DEBS:
        assert len(run(apt, f"apt-cache madison {name}").splitlines()) >= 2


def test_no_upgrade_by_apt_changes_them(apt: Host) -> None:
    for how in ("upgrade", "dist-upgrade"):
        run(apt, f"apt-get --yes --quiet {how}")
        assert debs(apt, DEBS) == DEBS


def test_apt_trusts_each_archive_only_by_its_key(apt: Host) -> None:
    output = run(apt, "apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages'")
    assert len(output.split()) == 2
    for repository, key in (("cuda", "nvidia-2022"), ("nvidia-machine-learning", "nvidia-2016")):
        source = run(apt, f"cat /etc/apt/dml.sources.d/dml-{repository}.sources").splitlines()
        assert f"Signed-By: /etc/apt/keyrings/dml-{key}.asc" in source
        assert next(line for line in source if line.startswith("URIs: ")).split()[1] in output.split()


def test_dnf_locks_pinned_versions_despite_newer_ones(dnf: Host) -> None:
    assert rpms(dnf) == RPMS
    locked = run(dnf, "dnf --quiet versionlock list").splitlines()
    assert sorted(locked) == sorted(f"{name}-0:{version}.*" for name, version in RPMS.items())
    for name in RPMS:
        offered = run(dnf, f"dnf --quiet --disableplugin=versionlock repoquery --show-duplicates {name}").splitlines()
        assert len(offered) == 2


def test_no_upgrade_by_dnf_changes_them(dnf: Host) -> None:
    output = run(dnf, "dnf --assumeyes upgrade")
    assert "Nothing to do" in output
    assert rpms(dnf) == RPMS


def test_dnf_checks_lists_and_packages_with_repository_key(dnf: Host) -> None:
    for repository, key in (("cuda", "nvidia-2022"), ("nvidia-machine-learning", "nvidia-2016")):
        text = run(dnf, f"cat /etc/dml/yum.repos.d/dml-{repository}.repo")
        assert {"gpgcheck=1", "repo_gpgcheck=1", f"gpgkey=file:///etc/pki/rpm-gpg/dml-{key}.asc"} <= set(text.split())
    assert len(run(dnf, "dnf --quiet repolist --enabled").splitlines()) == 3


@pytest.mark.parametrize("name", ["u1", "r1"])
def test_cuda_reports_its_versions_as_facts(name: str) -> None:
    host = node(name)
    assert proof(host, "repositories") == {
        "only": True,
        "proven": True,
        "repositories": proof(host, "repositories")["repositories"],
        "why": "",
    }
    kept = proof(host, "cuda")
    assert (kept["proven"], kept["devices"]) == (True, [])
    assert kept["versions"] == {"nvcc": "10.0", "cudnn": "7.6.0", "nccl": "2.4.7"}
    assert kept["packages"] == (DEBS if name == "u1" else RPMS)


@pytest.mark.parametrize("name", ["u1", "r1"])
def test_a_login_finds_the_toolkit(name: str) -> None:
    assert "release 10.0" in run(node(name), "bash -lc 'nvcc --version'")
