"""Apply the patches of a stack to a source during the image build: patch.py PATCHES FOLDER."""

# No "from __future__ import annotations" here: the Python in the whitepaper's image does not support it.

import json
import pathlib
import re
import sys
from typing import Any, Dict


def patch(one: Dict[str, Any], folder: pathlib.Path) -> int:
    """Apply a patch and return the number of changed files."""
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
    """Apply all patches; fail if a patch changes nothing, because it belongs to another source."""
    for one in json.loads(pathlib.Path(patches).read_text(encoding="utf-8")):
        if not patch(one, pathlib.Path(folder)):
            sys.exit("The patch {} changes nothing in the source.".format(one["name"]))


if __name__ == "__main__":
    main(*sys.argv[1:])
