# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The packages that a training program needs in addition to the stack: the key of their environment, and conflicts."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping

# A line that refers to other files, whose content is not part of the text.
_REFERS = re.compile(
    r"^\s*(-r|-c|-e|--requirement|--constraint|--editable|\.|/|file:)|@\s*file:|\.(whl|gz|zip)\s*$", re.MULTILINE
)


def key(text: str, stack: Mapping[str, str], python: str, code: str) -> str:
    """Return the name of the environment; ``code`` counts only if the text refers to files of the folder."""
    parts = [text, dict(sorted(stack.items())), python, code if _REFERS.search(text) else ""]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def constraints(stack: Mapping[str, str]) -> str:
    """Return the packages of the stack as constraints for pip."""
    return "".join(f"{name}=={version}\n" for name, version in sorted(stack.items()))


def cause(printed: str, stack: Mapping[str, str]) -> str:
    """Return the errors of pip, with the versions in the stack of the packages that they name."""
    lines = [line.strip() for line in printed.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR:")] or lines[-1:]
    text = " ".join(errors) or "pip printed nothing"
    words = {_plain(word) for word in re.findall(r"[A-Za-z0-9][\w.-]*", "\n".join(lines))}
    named = [f"{name} {version}" for name, version in sorted(stack.items()) if _plain(name) in words]
    return f"{text} (the stack has {', '.join(named)})" if named else text


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
