"""The guarded import of pyVmomi: everything else takes vim and vmodl from here."""

from __future__ import annotations

import traceback
from typing import Any

from ..errors import Refused

IMPORT_ERROR = None
try:
    from pyVim import connect
    from pyVmomi import SoapAdapter, VmomiSupport, vim, vmodl
except ImportError:
    IMPORT_ERROR = traceback.format_exc()
    connect = SoapAdapter = VmomiSupport = vim = vmodl = None  # type: ignore[assignment]

# An object of the API: pyVmomi makes the classes when it is imported, so that no type checker knows them.
ApiObject = Any

__all__ = ["ApiObject", "SoapAdapter", "VmomiSupport", "connect", "require", "vim", "vmodl"]


def require() -> None:
    """Refuse in one sentence if the library is missing."""
    if IMPORT_ERROR is not None:
        raise Refused(
            "the Python that runs this module",
            "import pyVmomi",
            str(IMPORT_ERROR).strip().rsplit("\n", maxsplit=1)[-1],
            "install it there: pip install 'pyvmomi>=8.0.3'",
        )
