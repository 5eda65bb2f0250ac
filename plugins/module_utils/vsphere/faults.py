# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""Turns what pyVmomi and the network raise into the one error family."""

from __future__ import annotations

import http.client
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..errors import CollectionError, Failed, Unreachable
from .sdk import vim, vmodl

# Order matters: an SSLError is an OSError too.
CONNECTION_ERRORS = (ssl.SSLError, OSError, http.client.HTTPException)


@contextmanager
def speaking(target: str, tried: str, remedy: str = "") -> Iterator[None]:
    """Within it, any fault becomes one sentence about ``target``."""
    try:
        yield
    except CollectionError:
        raise
    except vmodl.fault.ManagedObjectNotFound as fault:
        raise Failed(target, tried, words(fault), remedy or "it was removed meanwhile: run again") from fault
    except vmodl.fault.SecurityError as fault:
        raise Failed(target, tried, words(fault), remedy or _security_remedy(fault)) from fault
    except vmodl.MethodFault as fault:
        raise Failed(target, tried, words(fault), remedy) from fault
    except CONNECTION_ERRORS as error:
        raise Unreachable(
            target,
            tried,
            f"the connection broke ({type(error).__name__}: {error})",
            "what was under way may have been carried out: run again, it will be seen",
        ) from error


def words(fault: Any) -> str:
    """The server's own words, with the fault's type, which alone is often the only thing said."""
    kind = type(fault).__name__.rsplit(".", maxsplit=1)[-1]
    parts = [getattr(fault, "msg", None), *(m.message for m in getattr(fault, "faultMessage", None) or [])]
    parts += [f"privilege {fault.privilegeId} is missing"] if getattr(fault, "privilegeId", None) else []
    text = "; ".join(dict.fromkeys(part.strip().rstrip(".") for part in parts if part and part != kind))
    return f"the server said {kind}: {text}" if text else f"the server said {kind}"


def _security_remedy(fault: Any) -> str:
    if isinstance(fault, vim.fault.NotAuthenticated):
        return "the session ended: run again"
    if isinstance(fault, vim.fault.NoPermission):
        return "give the account that privilege on the object and run again"
    return ""
