# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A stand-in for the Docker client: it prints the settings that the daemon read, and keeps a list of images."""

from __future__ import annotations

import json
import sys
from pathlib import Path

IMAGES = Path("/var/lib/docker/images")
# A test writes the number of running containers to this file.
RUNNING = Path("/run/docker.running")

if not Path("/run/docker.pid").exists():
    sys.exit("Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?")
words = sys.argv[1:]
images = IMAGES.read_text().split() if IMAGES.exists() else []
if words == ["info", "--format", "{{json .}}"]:
    info = json.loads(Path("/run/docker.info").read_text())
    info["ContainersRunning"] = int(RUNNING.read_text()) if RUNNING.exists() else 0
    print(json.dumps(info))
elif words[:2] == ["image", "inspect"]:
    sys.exit(0 if words[2] in images else "Error: No such image: " + words[2])
elif words[0] == "pull":
    IMAGES.parent.mkdir(parents=True, exist_ok=True)
    IMAGES.write_text("\n".join([*images, words[1]]) + "\n")
else:
    sys.exit("unknown command: " + " ".join(words))
