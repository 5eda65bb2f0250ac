"""The names of the packages of a kernel on each system."""

from __future__ import annotations

from typing import Any

import pytest

from plugins.module_utils.guests import software_packages

JAMMY = {"os_family": "Debian", "distribution": "Ubuntu", "kernel": "5.15.0-91-generic"}
BOOKWORM = {"os_family": "Debian", "distribution": "Debian", "kernel": "6.1.0-18-cloud-amd64"}
ROCKY = {"os_family": "RedHat", "distribution": "Rocky", "kernel": "5.14.0-427.13.1.el9_4.x86_64"}


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
