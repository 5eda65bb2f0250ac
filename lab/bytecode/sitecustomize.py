"""Keeps what Python compiles from zip files, in .cache/bytecode of the checkout.

Ansible sends the source of a module in a zip file, and Python compiles it again for each task: up to half of the time
of a module that runs on this machine. Python imports this file by itself if its folder is in PYTHONPATH. The same code
runs with and without it.
"""

from __future__ import annotations

import contextlib
import hashlib
import marshal
import os
import sys
import zipimport
from pathlib import Path
from types import CodeType

KEPT = Path(__file__).resolve().parents[2] / ".cache" / "bytecode" / str(sys.implementation.cache_tag)
# A module of Python without a public interface: if another version has no such function, each task compiles.
_compile = getattr(zipimport, "_compile_source", None)


def compiled(path: str, source: bytes) -> CodeType:
    """Return the code of a source in a zip file, from the kept one if there is one.

    The zip file of each task has another folder, so the path counts from the zip file on.
    """
    inside = os.fsencode(path.rpartition(".zip")[2])
    kept = KEPT / hashlib.sha256(inside + b"\0" + source).hexdigest()
    with contextlib.suppress(OSError, ValueError, EOFError, TypeError):  # not kept yet, or damaged
        code = marshal.loads(kept.read_bytes())
        if isinstance(code, CodeType):
            return code
    assert _compile is not None
    made: CodeType = _compile(path, source)
    _keep(kept, made)
    return made


def _keep(kept: Path, code: CodeType) -> None:
    """Write a file as a whole: other processes read it at the same time."""
    part = kept.with_name(f"{kept.name}.{os.getpid()}")
    with contextlib.suppress(OSError):  # a user who cannot write here compiles
        kept.parent.mkdir(parents=True, exist_ok=True)
        part.write_bytes(marshal.dumps(code))
        part.replace(kept)


if _compile is not None:
    vars(zipimport)["_compile_source"] = compiled
if "DML_OPENED" in os.environ:  # a test runs, whose files are recorded
    __import__("opened").record()
