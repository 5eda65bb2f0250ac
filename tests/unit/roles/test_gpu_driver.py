"""The GPUs of NVIDIA on a PCI bus; whether a node starts with secure boot, and whether its modules are signed."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from plugins.module_utils.guests import software_packages
from roles.gpu_driver.files.cards import cards
from roles.gpu_driver.files.secure_boot import VARIABLE, state
from tests.rendering import ROLES, rendered, task_of, truth, value, variables


def test_gpus_are_distinguished_from_other_devices(tmp_path: Path) -> None:
    devices = {
        "0000:02:01.0": ("0x10de", "0x030000"),  # a vGPU
        "0000:02:02.0": ("0x10de", "0x030200"),  # a data centre GPU passed through
        "0000:02:02.1": ("0x10de", "0x040300"),  # its sound
        "0000:00:0f.0": ("0x15ad", "0x030000"),  # VMware's display
    }
    for address, (vendor, kind) in devices.items():
        (tmp_path / address).mkdir()
        (tmp_path / address / "vendor").write_text(vendor + "\n")
        (tmp_path / address / "class").write_text(kind + "\n")
    assert cards(tmp_path) == ["0000:02:01.0", "0000:02:02.0"]
    assert cards(tmp_path / "no-bus") == []


SIGNED = ["--silent", "--module-signing-secret-key=/root/key", "--module-signing-public-key=/root/key.der"]


@pytest.mark.parametrize(
    ("content", "expected"), [(b"\x06\x00\x00\x00\x01", "on"), (b"\x06\x00\x00\x00\x00", "off"), (b"", "off")]
)
def test_reads_secure_boot_from_the_firmware_variable(tmp_path: Path, content: bytes, expected: str) -> None:
    (tmp_path / VARIABLE).write_bytes(content)
    assert state(tmp_path) == expected


def test_a_bios_has_no_secure_boot(tmp_path: Path) -> None:
    assert state(tmp_path / "efivars") == "off"


@pytest.mark.parametrize(
    ("arguments", "elsewhere", "signs"),
    [(["--silent"], False, False), (SIGNED, False, True), (["--silent"], True, True)],
)
def test_accepts_modules_signed_with_key_or_by_vendor(arguments: list[str], elsewhere: bool, signs: bool) -> None:
    known = {"gpu_driver_arguments": arguments, "gpu_driver_signed_modules": elsewhere}
    assert value("gpu_driver", "__gpu_driver_signs", **known) is signs


@pytest.mark.parametrize(
    ("known", "kernel"),
    [
        ({"gpu_driver_arguments": ["--silent"]}, "hold"),
        ({"gpu_driver_arguments": ["--silent", "--dkms"]}, "follow"),
        ({"gpu_driver_arguments": [], "gpu_driver_install": "package"}, "follow"),
    ],
)
def test_holds_the_kernel_if_nothing_rebuilds_the_modules(known: dict[str, object], kernel: str) -> None:
    assert value("gpu_driver", "gpu_driver_kernel", **known) == kernel


def nouveau(name: str, facts: dict[str, str]) -> list[str]:
    """Return the command of a task that removes nouveau."""
    words = task_of("gpu_driver", "nouveau.yml", name)["ansible.builtin.command"]["argv"]
    known: dict[str, Any] = {**variables("gpu_driver"), "ansible_facts": facts}
    return [rendered(word, **known) for word in words] if isinstance(words, list) else list(rendered(words, **known))


@pytest.mark.parametrize(
    ("family", "kernel", "own", "copy"),
    [
        ("RedHat", "5.14.0-570.el9.x86_64", "initramfs-{}.img", "initramfs-{}kdump.img"),
        ("Debian", "6.8.0-60-generic", "initrd.img-{}", "initrd.img-{}.old-dkms"),
    ],
)
def test_old_copies_of_initramfs_do_not_count(family: str, kernel: str, own: str, copy: str, tmp_path: Path) -> None:
    """The role does not write them, so that each run would make the initramfs again."""
    words = nouveau("Find an initramfs that is older than the blacklist", {"os_family": family, "kernel": kernel})
    words = [{"/boot": str(tmp_path), "/etc/modprobe.d/dml-nouveau.conf": str(tmp_path / "b")}.get(w, w) for w in words]
    for age, name in enumerate([own.format(kernel), "b", copy.format(kernel)]):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (1e9 - age, 1e9 - age))

    def found() -> list[str]:
        done = subprocess.run(words, capture_output=True, text=True, check=True)
        return [Path(line).name for line in done.stdout.splitlines()]

    assert found() == []
    os.utime(tmp_path / own.format(kernel), (9e8, 9e8))
    assert found() == [own.format(kernel)]


def test_initramfs_of_running_kernel_is_made_again() -> None:
    """Without -k, Debian makes that of the newest kernel, which may not run yet."""
    words = nouveau("Remove nouveau from the initramfs", {"os_family": "Debian", "kernel": "6.8.0-60-generic"})
    assert words == ["update-initramfs", "-u", "-k", "all"]


def test_failed_runfile_is_quoted_without_its_lock() -> None:
    output = "nouveau is gone\nflock: getting lock took 0.0003 seconds\nflock: executing sh\n"
    registered = {"rc": 3, "stdout": output, "stderr": "flock: timeout while waiting to get lock"}
    names = {"gpu_driver_version": "580.0", "inventory_hostname": "n1"}
    task = task_of("gpu_driver", "runfile.yml", "Check the result")["ansible.builtin.assert"]

    message = " ".join(str(rendered(task["fail_msg"], **names, __gpu_driver_run=registered)).split())

    assert message.endswith(
        "with exit code 3: nouveau is gone flock: timeout while waiting to get lock See /var/log/nvidia-installer.log "
        "on the node."
    )


def holds(conditions: list[str] | str, **known: Any) -> bool:
    """Return whether all conditions of a task hold."""
    return all(truth(one, **known) for one in ([conditions] if isinstance(conditions, str) else conditions))


@pytest.mark.parametrize(
    ("check", "driver", "restarts"), [(True, "", False), (True, "580.1", True), (False, "580.1", True)]
)
def test_check_mode_needs_no_licence_daemon(check: bool, driver: str, restarts: bool) -> None:
    """A fresh node has no nvidia-gridd, without which the task of systemd fails in check mode too."""
    task = task_of("gpu_driver", "licence.yml", "Restart the licence daemon")
    changed = {"changed": True}
    known = {"ansible_check_mode": check, "__gpu_driver_there": driver, "__gpu_driver_newer": {"stdout": ""}}
    assert holds(task["when"], **known, __gpu_driver_token=changed, __gpu_driver_gridd=changed) == restarts


@pytest.mark.parametrize(("check", "plugin", "locks"), [(True, False, False), (True, True, True), (False, True, True)])
def test_check_mode_needs_no_versionlock_plugin(check: bool, plugin: bool, locks: bool) -> None:
    """Rocky has the packages of its kernel before the plugin, without which the lock fails in check mode too."""
    task = task_of("packages", "hold.yml", "Lock pinned packages for dnf")
    known = {"__packages_pinned": [{}], "__packages_plugin": {"stat": {"exists": plugin}}}
    assert holds(task["when"], __packages_apt=False, ansible_check_mode=check, **known) == locks


@pytest.mark.parametrize(("kernel", "kept"), [("hold", True), ("follow", False)])
def test_headers_of_held_kernel_stay_held(kernel: str, kept: bool) -> None:
    """The next task holds the headers of Rocky with the kernel: each run would release and hold them."""
    there = ["kernel-core 5.14.0-570.el9 installed", "kernel-devel 5.14.0-570.el9 installed"]
    facts = {"os_family": "RedHat", "kernel": "5.14.0-570.el9.x86_64"}
    packages: Any = software_packages.packages(there, facts)
    assert packages["headers"][0] in packages["held"]
    task = task_of("gpu_driver", "kernel.yml", "Install the header packages")
    assert rendered(str(task["vars"]["packages_hold"]), gpu_driver_kernel=kernel) in ({kept, str(kept)})


def test_runfile_waits_for_that_of_killed_run() -> None:
    """Ansible's end does not end the runfile on the node, and two at once would write the same files."""
    tasks = yaml.safe_load((ROLES / "gpu_driver" / "tasks" / "runfile.yml").read_text())
    waiting = [task["name"] for task in tasks if task.get("vars", {}).get("alone_work") == "gpu_driver"]
    names = [task["name"] for task in tasks]
    assert names.index(waiting[0]) < names.index("Install the driver from the runfile")
    task = task_of("gpu_driver", "runfile.yml", "Run the runfile of the driver")
    known = {**variables("gpu_driver"), "gpu_driver_source": {"url": "https://x/d.run"}}
    words: list[str] = list(rendered(task["ansible.builtin.command"]["argv"], **known))
    folder = yaml.safe_load((ROLES / "alone" / "defaults" / "main.yml").read_text())["alone_folder"]
    assert words[0] == "flock" and f"{folder}/gpu_driver" in words[: words.index("sh")]
