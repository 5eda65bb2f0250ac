"""Packages of a stack in the notation of apt, dnf and pip, and the misfits of a node's packages."""

from __future__ import annotations

from typing import Any

import pytest

from plugins.module_utils.guests import node_settings, software_packages

MPI = {"name": "openmpi-bin", "version": "4.1.4-3+b1"}
MAKE = {"name": "make"}
THERE = ["openmpi-bin 4.1.4-3+b1 installed", "make 4.3-4.1 installed", "libmpi 1 config-files"]
JAMMY = {"os_family": "Debian", "distribution": "Ubuntu", "kernel": "5.15.0-91-generic"}
BOOKWORM = {"os_family": "Debian", "distribution": "Debian", "kernel": "6.1.0-18-cloud-amd64"}
ROCKY = {"os_family": "RedHat", "distribution": "Rocky", "kernel": "5.14.0-427.13.1.el9_4.x86_64"}


@pytest.mark.parametrize(
    ("manager", "words"), [("apt", ["openmpi-bin=4.1.4-3+b1", "make"]), ("dnf", ["openmpi-bin-4.1.4-3+b1", "make"])]
)
def test_joins_names_to_versions_in_the_managers_syntax(manager: str, words: list[str]) -> None:
    assert software_packages.specs([MPI, MAKE], manager) == words


@pytest.mark.parametrize(
    ("desired", "held", "sentences"),
    [
        ([MPI, MAKE], None, []),
        ([MPI, MAKE], ["openmpi-bin"], []),
        ([MPI, MAKE], [], ["The package openmpi-bin is not held at 4.1.4-3+b1."]),
        ([MPI], ["openmpi-bin-doc"], ["The package openmpi-bin is not held at 4.1.4-3+b1."]),
        ([MPI], ["openmpi-bin-0:4.1.4-3+b1.*"], []),
        ([MPI], ["openmpi-bin-0:4.1.4-3+b10.*"], ["The package openmpi-bin is not held at 4.1.4-3+b1."]),
        ([MAKE], [], []),
        ([{**MPI, "version": "4.1.5"}], None, ["The package openmpi-bin is 4.1.4-3+b1, not 4.1.5."]),
        ([{"name": "g++"}], None, ["The package g++ is missing."]),
        ([{"name": "libmpi", "version": "1"}], None, ["The package libmpi is missing, not 1."]),
    ],
)
def test_each_misfit_is_named(desired: list[dict[str, str]], held: list[str] | None, sentences: list[str]) -> None:
    assert software_packages.misfits(THERE, desired, held) == sentences


def test_replacements_are_listed_with_both_versions() -> None:
    desired = [{**MPI, "version": "4.1.5"}, MAKE, {"name": "g++", "version": "12"}, {"name": "libmpi", "version": "2"}]
    assert software_packages.replacements(THERE, desired) == ["openmpi-bin 4.1.4-3+b1 by 4.1.5"]
    assert software_packages.replacements(THERE, [MPI]) == []


def test_installs_kernels_side_by_side_without_replacing_any() -> None:
    two = ["kernel-devel 5.14.0-427.el9 installed", "kernel-devel 5.14.0-503.el9 installed"]
    older = {"name": "kernel-devel", "version": "5.14.0-427.el9"}
    assert software_packages.misfits(two, [older]) == []
    assert software_packages.misfits(two[1:], [older]) == [
        "The package kernel-devel is 5.14.0-503.el9, not 5.14.0-427.el9."
    ]
    assert software_packages.replacements(two[1:], [older]) == []
    assert software_packages.misfits(two, [{**older, "version": "4"}]) == [
        "The package kernel-devel is 5.14.0-427.el9 and 5.14.0-503.el9, not 4."
    ]


def test_requirements_carry_their_checksums() -> None:
    text = software_packages.python_requirements([{"name": "six", "version": "1.17.0", "sha256": "4721"}])
    assert text == "six==1.17.0 --hash=sha256:4721\n"


def test_downloads_a_package_outside_the_index_by_url() -> None:
    wheel = "https://download.example.org/whl/torch-1.10.2%2Bcu113-cp38-cp38-linux_x86_64.whl"
    text = software_packages.python_requirements(
        [{"name": "torch", "version": "1.10.2+cu113", "url": wheel, "sha256": "4721"}]
    )
    assert text == f"torch @ {wheel} --hash=sha256:4721\n"


def test_python_packages_are_compared_as_the_index_does() -> None:
    listed = [{"name": "PyYAML", "version": "6.0.3"}, {"name": "typing_extensions", "version": "4.16.0"}]
    desired = [
        {"name": "pyyaml", "version": "6.0.3"},
        {"name": "typing-extensions", "version": "4.15.0"},
        {"name": "six", "version": "1"},
    ]
    assert software_packages.python_misfits(listed, desired) == [
        "The Python package typing-extensions is 4.16.0, not 4.15.0.",
        "The Python package six is missing, not 1.",
    ]


@pytest.mark.parametrize(
    ("found", "desired", "sentences"),
    [
        ({"vm.nr_hugepages": "512"}, {"vm.nr_hugepages": 512}, []),
        ({"net.ipv4.tcp_rmem": "4096\t131072\t6291456"}, {"net.ipv4.tcp_rmem": "4096 131072 6291456"}, []),
        ({"memlock": [-1]}, {"memlock": "unlimited"}, []),
        ({"nofile": [1024, 4096]}, {"nofile": 4096}, ["nofile is 1024 and 4096, not 4096."]),
        ({}, {"kernel.numa_balancing": 0}, ["kernel.numa_balancing is None, not 0."]),
        ({"other": 1}, {}, []),
    ],
)
def test_settings_that_are_not_in_force_are_named(
    found: dict[str, object], desired: dict[str, object], sentences: list[str]
) -> None:
    assert node_settings.misfits(found, desired) == sentences


def names(packages: list[dict[str, str]]) -> list[str]:
    return [one["name"] for one in packages]


def found(installed: list[str], facts: dict[str, Any]) -> dict[str, list[dict[str, str]]]:
    return software_packages.packages([f"{one} installed" for one in installed], facts)


def test_an_ubuntu_cloud_image_gets_headers_and_modules() -> None:
    there = found(["linux-image-5.15.0-91-generic 5.15.0-91.101", "linux-image-virtual 5.15.0.91.88"], JAMMY)
    assert names(there["headers"]) == ["linux-headers-5.15.0-91-generic", "linux-headers-virtual"]
    assert names(there["modules"]) == ["linux-modules-extra-5.15.0-91-generic", "linux-image-generic"]
    assert there["held"] == [{"name": "linux-image-virtual", "version": "5.15.0.91.88"}]


def test_a_newer_kernel_of_ubuntu_keeps_its_kind() -> None:
    there = found(["linux-image-virtual-hwe-22.04 6.8.0.1"], JAMMY)
    assert names(there["headers"])[1:] == ["linux-headers-virtual-hwe-22.04"]
    assert names(there["modules"])[1:] == ["linux-image-generic-hwe-22.04"]


def test_a_server_of_ubuntu_has_its_modules_already() -> None:
    there = found(
        ["linux-image-generic 5.15.0.91.88", "linux-image-extra-virtual 1", "linux-image-unsigned-x 1"], JAMMY
    )
    assert names(there["headers"]) == ["linux-headers-5.15.0-91-generic", "linux-headers-generic"]
    assert names(there["modules"]) == ["linux-modules-extra-5.15.0-91-generic"]


@pytest.mark.parametrize("kernel", ["7.0.0-31-generic", "10.1.0-4-generic"])
def test_new_kernels_of_ubuntu_have_one_modules_package(kernel: str) -> None:
    there = found([f"linux-image-{kernel} 7.0.0-31.31", "linux-image-virtual 7.0.0-31.31"], {**JAMMY, "kernel": kernel})
    assert names(there["modules"]) == ["linux-image-generic"]
    assert names(there["headers"]) == [f"linux-headers-{kernel}", "linux-headers-virtual"]


def test_debian_has_one_package_of_modules() -> None:
    there = found(["linux-image-cloud-amd64 6.1.76-1", "linux-image-amd64-dbg 6.1.76-1"], BOOKWORM)
    assert names(there["headers"]) == ["linux-headers-6.1.0-18-cloud-amd64", "linux-headers-cloud-amd64"]
    assert there["modules"] == []


def test_removed_kernels_do_not_count() -> None:
    assert software_packages.packages(["linux-image-virtual 5.15.0.91.88 config-files"], JAMMY)["held"] == []


def test_rocky_headers_have_no_version_in_the_name() -> None:
    # The RPM's name is kernel-devel: https://packages.fedoraproject.org/pkgs/kernel/kernel-devel/
    running, newer = "5.14.0-427.13.1.el9_4", "5.14.0-503.el9"
    there = found(
        [f"kernel-core {running}", f"kernel-core {newer}", f"kernel {running}", "kernel-srpm-macros 1"], ROCKY
    )
    assert there["headers"] == [{"name": "kernel-devel", "version": running}]
    assert there["modules"] == [{"name": "kernel-modules", "version": running}]
    assert there["held"] == [{"name": "kernel-core", "version": running}, {"name": "kernel", "version": running}]
