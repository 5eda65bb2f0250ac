"""Print the versions of Python, framework, Horovod and NCCL in an image, and its faults, as one line of JSON."""

# No "from __future__ import annotations" here: the Python in the whitepaper's image does not support it.

import ctypes
import importlib
import json
import os
import platform
import shutil
import sys
from typing import Any, Dict, List

FRAMEWORKS = {"tensorflow": "tensorflow", "pytorch": "torch"}


def load(name: str, faults: List[str]) -> None:
    """Load a required module with the libraries that it is linked to."""
    try:
        importlib.import_module(name)
    except (ImportError, OSError, AttributeError) as error:
        faults.append(f"{name} does not load: {error}")


def imported(name: str, faults: List[str]) -> str:
    """Return the version of a module, empty if the image lacks it; add a fault if the module does not load."""
    try:
        return str(importlib.import_module(name).__version__)
    except ModuleNotFoundError as error:
        if error.name != name:
            faults.append(f"{name} does not load: {error}")
    except (ImportError, OSError, AttributeError) as error:
        faults.append(f"{name} does not load: {error}")
    return ""


def nccl() -> str:
    """Return the version of the NCCL in PyTorch or of the system's NCCL; empty if none exists."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.version.cuda:
        return ".".join(str(number) for number in torch.cuda.nccl.version())
    try:
        number = ctypes.c_int()
        ctypes.CDLL("libnccl.so.2").ncclGetVersion(ctypes.byref(number))
    except (OSError, AttributeError):
        return ""
    # Before 2.9, version numbers have fewer digits.
    major, rest = divmod(number.value, 10000 if number.value >= 10000 else 1000)
    return f"{major}.{rest // 100}.{rest % 100}"


def main() -> None:
    """Print the line."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    faults: List[str] = []
    result: Dict[str, Any] = {"python": platform.python_version(), "executable": sys.executable}
    result.update({name: imported(module, faults) for name, module in FRAMEWORKS.items()})
    result["horovod"] = imported("horovod", faults)
    if result["horovod"]:
        load("horovod.tensorflow" if result["tensorflow"] else "horovod.torch", faults)
    result["nccl"] = nccl()
    result["missing"] = [name for name in ("mpirun", "ssh", "sh") if shutil.which(name) is None]
    result["faults"] = faults
    sys.stdout.write("versions " + json.dumps(result, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
