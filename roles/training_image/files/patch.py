# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Changes a source as the patches of a stack say, within the image that is built: patch.py PATCHES FOLDER."""

# No "from __future__ import annotations" here: the whitepaper's image has a Python that does not know it.

import json
import pathlib
import re
import sys
from typing import Any, Dict


def patch(one: Dict[str, Any], folder: pathlib.Path) -> int:
    """How many files a patch has changed."""
    changed = 0
    for pattern in one["files"]:
        for path in folder.glob(pattern):
            text = path.read_text(encoding="utf-8")
            new = re.sub(one["find"], one["replace"], text, flags=re.MULTILINE)
            if new != text:
                path.write_text(new, encoding="utf-8")
                changed += 1
    return changed


def main(patches: str, folder: str) -> None:
    """Apply all patches; one that changes nothing is of another source."""
    for one in json.loads(pathlib.Path(patches).read_text(encoding="utf-8")):
        if not patch(one, pathlib.Path(folder)):
            sys.exit("The patch {} changes nothing in the source.".format(one["name"]))


if __name__ == "__main__":
    main(*sys.argv[1:])
