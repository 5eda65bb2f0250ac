"""Which devices of a PCI bus are GPUs of NVIDIA."""

from __future__ import annotations

from pathlib import Path

from roles.gpu_driver.files.cards import cards


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
