"""The GPUs of NVIDIA on a PCI bus; whether a node starts with secure boot, and whether its modules are signed."""

from __future__ import annotations

from pathlib import Path

import pytest

from roles.gpu_driver.files.cards import cards
from roles.gpu_driver.files.secure_boot import VARIABLE, state
from tests.rendering import value


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
