"""Translation of the faults of pyVmomi and the network into the errors of this collection."""

from __future__ import annotations

import http.client
import ssl
from collections.abc import Iterator
from contextlib import contextmanager

from ..errors import CollectionError, Failed, Refused, Unreachable
from . import tls
from .sdk import ApiObject, vim, vmodl

# Order matters: an SSLError is an OSError too.
CONNECTION_ERRORS = (ssl.SSLError, OSError, http.client.HTTPException)
# The statuses that a gateway returns while the services behind it are unavailable.
AWAY = (429, 502, 503, 504)
WAIT = "its services are starting or overloaded: wait and run again"
_WHICH = "check that hostname and port are those of a vCenter and run again"
_AGAIN = "the operation may have been carried out: run again, which reads the state again"


class NoAnswer(http.client.HTTPException):
    """The server did not answer, or not as vSphere does; without ``remedy``, the caller's remedy is shown."""

    def __init__(self, reason: str, remedy: str = "", *, untrusted: bool = False) -> None:
        self.reason, self.remedy, self.untrusted = reason, remedy, untrusted
        super().__init__(reason)

    @classmethod
    def for_status(cls, status: str) -> NoAnswer:
        """Return the error for an HTTP status that a working vCenter never sends."""
        return cls(f"it answered {status}", WAIT if int(status[:3]) in AWAY else _WHICH)

    @classmethod
    def for_answer(cls, error: Exception | str) -> NoAnswer:
        what = error if isinstance(error, str) else _named(error)
        return cls(f"its answer is not one of vSphere ({what})", _WHICH)


def no_answer(error: Exception, seconds: float) -> NoAnswer:
    """Return the error for a call that got no answer."""
    if isinstance(error, NoAnswer):
        return error
    if isinstance(error, TimeoutError):
        return NoAnswer(f"it did not answer within {seconds:g} s")
    if isinstance(error, (tls.WrongFingerprint, ssl.SSLCertVerificationError)):
        return NoAnswer(*tls.explained(error), untrusted=True)
    # pylint: disable-next=unidiomatic-typecheck # its subclasses are broken connections, handled below
    if type(error) is http.client.HTTPException and str(error)[:3].isdigit():
        return NoAnswer.for_status(str(error))
    if isinstance(error, CONNECTION_ERRORS):
        return NoAnswer(f"the connection broke ({_named(error)})")
    return NoAnswer.for_answer(error)


def line(text: str) -> str:
    """Return the text of a foreign server as one short line."""
    return " ".join("".join(one if one.isprintable() else " " for one in text[:200]).split())


def _named(error: Exception) -> str:
    return f"{type(error).__name__}: {line(str(error))}".rstrip(": ")


def unreachable(target: str, tried: str, error: Exception, remedy: str) -> CollectionError:
    """Return the error for a call that got no answer."""
    found = no_answer(error, 0)
    if found.untrusted:
        return Refused(target, "trust its certificate", found.reason, found.remedy)
    return Unreachable(target, tried, found.reason, found.remedy or remedy)


def note_account(fault: object, account: str) -> None:
    """Add the account to a fault about missing rights, because the server omits it."""
    if isinstance(fault, vmodl.fault.SecurityError):
        fault.__dict__["account"] = account


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
        raise unreachable(target, tried, error, _AGAIN) from error


def is_caused_by(error: CollectionError, *kinds: type) -> bool:
    """Return whether the cause of an error has one of these types: a type does not depend on the server's language."""
    return isinstance(error.__cause__, kinds)


def words(fault: object) -> str:
    """Return the server's message with the type of the fault, which often is all that the server reports."""
    kind = type(fault).__name__.rsplit(".", maxsplit=1)[-1]
    parts = [getattr(fault, "msg", None), *(m.message or m.key for m in getattr(fault, "faultMessage", None) or [])]
    parts += _missing(fault)
    text = "; ".join(dict.fromkeys(" ".join(part.split()).rstrip(".") for part in parts if part and part != kind))
    return f"the server said {kind}: {text}" if text else f"the server said {kind}"


def _missing(fault: object) -> list[str]:
    """Return the missing privileges and their objects, which may differ from the called object."""
    missing = [(getattr(fault, "privilegeId", None), getattr(fault, "object", None))]
    # Newer servers list all of them, and keep the two single properties for older clients.
    for one in getattr(fault, "missingPrivileges", None) or []:
        missing += [(privilege, one.entity) for privilege in one.privilegeIds or []]
    return [_missing_one(privilege, on) for privilege, on in missing if privilege]


def _missing_one(privilege: str, on: ApiObject) -> str:
    text = f"privilege {privilege} is missing"
    return f"{text} on {on._wsdlName} {on._moId}" if on is not None else text


def remedy_of(fault: object, otherwise: str) -> str:
    """Return the remedy of a fault: a missing session or privilege comes before the remedy of the caller."""
    if isinstance(fault, vim.fault.NotAuthenticated):
        return "the session ended: run again"
    if isinstance(fault, vim.fault.NoPermission):
        return f"give {getattr(fault, 'account', 'the account')} that privilege on the object and run again"
    return otherwise
