"""Print the RDMA devices of this node as JSON: name, driver, index of the RoCE v2 GID for IPv4, bytes sent."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

IPV4_MAPPED = "0000:0000:0000:0000:0000:ffff:"
WORD_BYTES = 4
MTUS, HEADER_BYTES = (4096, 2048, 1024, 512, 256), 88


def devices(root: Path) -> list[dict[str, Any]]:
    """Return all devices that have a port 1 in sysfs."""
    ports = sorted(path for path in root.glob("class/infiniband/*/ports/1") if path.is_dir())
    return [_device(root, port) for port in ports]


def _device(root: Path, port: Path) -> dict[str, Any]:
    folder = port.parents[1]
    link = folder / "device" / "driver"
    counts = [_sent(root, each) for each in sorted(port.parent.iterdir())]
    known = [count for count in counts if count is not None]
    return {
        "name": folder.name,
        "driver": link.resolve().name if link.exists() else None,
        "gid_index": _gid_index(port),
        "sent_bytes": sum(known) if known else None,
    }


def _gid_index(port: Path) -> int | None:
    for path in sorted((port / "gids").glob("*"), key=lambda path: int(path.name)):
        if _text(path).startswith(IPV4_MAPPED) and _text(port / "gid_attrs" / "types" / path.name) == "RoCE v2":
            return int(path.name)
    return None


def _sent(root: Path, port: Path) -> int | None:
    """Return the bytes that a port sent; port_xmit_data counts words of four bytes, Soft-RoCE counts only packets."""
    words, packets = _text(port / "counters" / "port_xmit_data"), _text(port / "hw_counters" / "sent_pkts")
    if words.isdigit():
        return int(words) * WORD_BYTES
    mtu = _text(root / "class" / "net" / _text(port.parents[1] / "parent") / "mtu")
    if not (packets.isdigit() and mtu.isdigit()):
        return None
    return int(packets) * next((size for size in MTUS if size + HEADER_BYTES <= int(mtu)), MTUS[-1])


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:  # an unused entry of the GID table is not readable
        return ""


if __name__ == "__main__":
    print(json.dumps(devices(Path(sys.argv[1] if len(sys.argv) > 1 else "/sys"))))  # noqa: T201 # the output of the program
