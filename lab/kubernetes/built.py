# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Where that lies which is built once for all labs."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class Built:
    """The programs, the image of nodes, and containerd's folder with the images of pods."""

    programs: Path
    image: str
    containerd: Path

    def write(self, path: Path) -> None:
        """Tell another process."""
        path.write_text(json.dumps({key: str(value) for key, value in asdict(self).items()}))

    @classmethod
    def read(cls, path: Path) -> Built:
        """What another process told."""
        told = json.loads(path.read_text())
        return cls(Path(told["programs"]), told["image"], Path(told["containerd"]))
