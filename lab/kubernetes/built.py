"""The locations of the Kubernetes build results, which all labs share."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class Built:
    """The programs, the node image, and containerd's folder with the pod images."""

    programs: Path
    image: str
    containerd: Path

    def write(self, path: Path) -> None:
        """Write the locations to a file for another process."""
        path.write_text(json.dumps({key: str(value) for key, value in asdict(self).items()}))

    @classmethod
    def read(cls, path: Path) -> Built:
        """Read the locations that another process wrote."""
        locations = json.loads(path.read_text())
        return cls(Path(locations["programs"]), locations["image"], Path(locations["containerd"]))
