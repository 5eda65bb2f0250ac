"""Whether a node starts with secure boot, and whether its modules are signed."""

from __future__ import annotations

from pathlib import Path

import pytest

from roles.gpu_driver.files.secure_boot import VARIABLE, state
from tests.rendering import value

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
