"""The one place that all calls of a session pass through, where observers see them; and API values as text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from io import StringIO
from typing import Any, Protocol

from .sdk import SoapAdapter, VmomiSupport
from .session import Session


@dataclass(frozen=True)
class ApiCall:
    """One call of the SOAP API: the object's kind and id, the method's name, and its arguments."""

    kind: str
    id: str
    method: str
    arguments: tuple[Any, ...]


class CallObserver(Protocol):
    """An observer, which gets each call with the function that carries it to the server."""

    def soap(self, call: ApiCall, carry: Callable[[], object]) -> object: ...

    def rest(self, verb: str, path: str, body: str | None, carry: Callable[[], tuple[int, str]]) -> tuple[int, str]: ...


@contextmanager
def observed(session: Session, tap: CallObserver) -> Iterator[Session]:
    """Yield the same session with an observer of its calls.

    Objects that the server returns carry the session's connection, so it is this connection that is changed.
    """
    stub, before = session.stub, session.stub.InvokeMethod

    def invoke(ref: Any, info: Any, arguments: Any, *more: Any) -> object:
        call = ApiCall(str(ref._wsdlName), str(ref._moId), str(info.wsdlName), tuple(arguments))
        return tap.soap(call, lambda: before(ref, info, arguments, *more))

    def exchange(verb: str, path: str, body: str | None, carry: Callable[[], tuple[int, str]]) -> tuple[int, str]:
        below = session.exchange
        return tap.rest(verb, path, body, lambda: below(verb, path, body, carry) if below else carry())

    stub.InvokeMethod = invoke
    try:
        yield replace(session, exchange=exchange)
    finally:
        stub.InvokeMethod = before


def text_of(value: object, version: str) -> str:
    """Return an API value as the XML that a server sends; a field that the server omitted stays omitted."""
    writer = StringIO()
    whole = VmomiSupport.Object(name="obj", type=object, version=version, flags=0)
    _serializer()(writer, version, None).Serialize(value, whole)
    # Servers send the year 1 for "never". The library writes it with one digit, and cannot read that again.
    return re.sub(r">(\d{1,3})(?=-\d\d-\d\dT)", lambda found: f">{found[1]:>04}", writer.getvalue())


def value_of(text: str, stub: object) -> object:
    """Return the API value of an XML text; its objects are called over ``stub``."""
    return SoapAdapter.Deserialize(text.encode(), object, stub)


@cache
def _serializer() -> Any:
    """Return the serializer of the library, which also writes what servers send: a value that lacks a field, and
    the names of methods that it does not know."""

    class Lenient(SoapAdapter.SoapSerializer):  # type: ignore[misc]
        def _Serialize(self, val: Any, info: Any, defNS: Any) -> None:  # noqa: N802, N803 - the library's names
            if isinstance(val, VmomiSupport.UnknownManagedMethod):
                self.writer.write(f"<{info.name}>{val.name}</{info.name}>")
            elif val is not None:
                super()._Serialize(val, info, defNS)

    return Lenient


def newest_version() -> str:
    """Return the name of the newest API version that the library supports."""
    return str(VmomiSupport.newestVersions.GetName("vim"))
