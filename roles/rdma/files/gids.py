"""Print every GID of every RDMA device in the kernel as one line of JSON each."""

from __future__ import annotations

import json
import sys
from pathlib import Path

DEVICES = Path("/sys/class/infiniband")


def read(path: Path) -> str:
    """Return the text of a kernel file; files of unused entries are not readable."""
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def main() -> None:
    """Print one line for each GID in use."""
    for types in sorted(DEVICES.glob("*/ports/*/gid_attrs/types/*")):
        port = types.parents[2]
        card = read(types.parents[1] / "ndevs" / types.name)
        row = {
            "device": port.parents[1].name,
            "port": int(port.name),
            "index": int(types.name),
            "gid": read(port / "gids" / types.name),
            "type": read(types),
            "card": card,
            "state": read(port / "state"),
            "mtu": int(read(Path("/sys/class/net") / card / "mtu") or 0) if card else 0,
        }
        if row["type"]:
            sys.stdout.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
