# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""Translation of the faults of pyVmomi and the network into the errors of this collection."""

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
def translating_faults(target: str, tried: str, remedy: str = "") -> Iterator[None]:
    """Translate every fault of the block into one sentence about ``target``."""
    try:
        yield
    except CollectionError:
        raise
    except vmodl.fault.ManagedObjectNotFound as fault:
        raise Failed(target, tried, words(fault), remedy or "it was removed meanwhile: run again") from fault
    except vmodl.fault.SecurityError as fault:
        raise Failed(target, tried, words(fault), remedy_of(fault, remedy)) from fault
    except vmodl.MethodFault as fault:
        raise Failed(target, tried, words(fault), remedy) from fault
    except CONNECTION_ERRORS as error:
        raise Unreachable(
            target,
            tried,
            f"the connection broke ({type(error).__name__}: {error})",
            "what was under way may have been carried out: run again, which reads the state anew",
        ) from error


def is_of(error: CollectionError, *kinds: type) -> bool:
    """Whether a fault of one of these types is behind an error: a type is the same in every language of a server."""
    return isinstance(error.__cause__, kinds)


def words(fault: Any) -> str:
    """The message of the server with the type of the fault, which is often all that the server tells."""
    kind = type(fault).__name__.rsplit(".", maxsplit=1)[-1]
    parts = [getattr(fault, "msg", None), *(m.message for m in getattr(fault, "faultMessage", None) or [])]
    parts += [_missing(fault)] if getattr(fault, "privilegeId", None) else []
    text = "; ".join(dict.fromkeys(part.strip().rstrip(".") for part in parts if part and part != kind))
    return f"the server said {kind}: {text}" if text else f"the server said {kind}"


def _missing(fault: Any) -> str:
    """The missing privilege and its object, which need not be the object that was called."""
    text = f"privilege {fault.privilegeId} is missing"
    on = getattr(fault, "object", None)
    return f"{text} on {on._wsdlName} {on._moId}" if on is not None else text


def remedy_of(fault: Any, otherwise: str) -> str:
    """The remedy of a fault: a missing session or privilege comes before the caller's own remedy."""
    if isinstance(fault, vim.fault.NotAuthenticated):
        return "the session ended: run again"
    if isinstance(fault, vim.fault.NoPermission):
        return "give the account that privilege on the object and run again"
    return otherwise
