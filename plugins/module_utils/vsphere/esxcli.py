"""esxcli over the vSphere API, in the same session: the only way to VIBs, RDMA counters and DCB state."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from functools import lru_cache
from threading import Lock
from typing import Any
from xml.sax.saxutils import escape

from ..errors import Failed
from .faults import NoAnswer, translating_faults, unreachable
from .sdk import ApiObject, VmomiSupport, vim
from .session import Session


class Row(dict[str, Any]):
    """One object of an answer; a missing field is an error with a sentence."""

    about: tuple[str, str] = ("esxcli", "read its answer")

    def __missing__(self, key: str) -> Any:
        raise Failed(*self.about, f"the answer has no field {key}", "check whether the host's version is supported")


_VERSION = "vim.version.version1"
_ROOM = "dml.reflect"


# Several hosts are read at once, and a cache alone lets two threads begin together.
_REGISTERING = Lock()


def _register() -> tuple[Any, Any]:
    """Teach pyVmomi the five types it lacks; its tables are global, so this happens once in a process."""
    with _REGISTERING:
        return _registered()


@lru_cache(maxsize=1)
def _registered() -> tuple[Any, Any]:
    data, managed, optional = VmomiSupport.CreateDataType, VmomiSupport.CreateManagedType, VmomiSupport.F_OPTIONAL
    argument, fault, result = (f"{_ROOM}.{name}" for name in ("SoapArgument", "SoapFault", "SoapResult"))
    wsdl = "ReflectManagedMethodExecuter"
    text = ("string", _VERSION)
    data(argument, f"{wsdl}SoapArgument", "vmodl.DynamicData", _VERSION, [("name", *text, 0), ("val", *text, 0)])
    data(
        fault,
        f"{wsdl}SoapFault",
        "vmodl.DynamicData",
        _VERSION,
        [("faultMsg", *text, 0), ("faultDetail", *text, optional)],
    )
    data(
        result,
        f"{wsdl}SoapResult",
        "vmodl.DynamicData",
        _VERSION,
        [("response", *text, optional), ("fault", fault, _VERSION, optional)],
    )
    words = tuple((name, *text, 0, None) for name in ("moid", "version", "method"))
    parameters = (*words, ("argument", f"{argument}[]", _VERSION, optional, None))
    method = ("executeSoap", "ExecuteSoap", _VERSION, parameters, (optional, result, result), None, None)
    managed(f"{_ROOM}.Executer", wsdl, "vmodl.ManagedObject", _VERSION, None, [method])
    # Servers use one of two names for the reference's type; it is unknown which one a live vCenter uses.
    managed(f"{_ROOM}.PlainExecuter", "ManagedMethodExecuter", f"{_ROOM}.Executer", _VERSION, None, None)
    return VmomiSupport.GetVmodlType(argument), _retrieve_method()


def _retrieve_method() -> ApiObject:
    return VmomiSupport.Object(
        name="retrieveManagedMethodExecuter",
        type=vim.HostSystem,
        wsdlName="RetrieveManagedMethodExecuter",
        version=_VERSION,
        params=(),
        isTask=False,
        resultFlags=0,
        result=VmomiSupport.ManagedObject,
        methodResult=VmomiSupport.ManagedObject,
    )


class CommandFailed(Failed):
    """The command itself ended with an error; the host and the connection work."""


def executer_of(name: str, stub: object) -> ApiObject:
    """Return a reference to the object that runs esxcli commands on a host."""
    _register()
    return VmomiSupport.GetVmodlType(f"{_ROOM}.Executer")(name, stub)


def result_of(response: str | None, fault: str | None = None, detail: str | None = None) -> Any:
    """Return the result of an esxcli command in the form of a server's answer."""
    _register()
    reported = VmomiSupport.GetVmodlType(f"{_ROOM}.SoapFault")(faultMsg=fault, faultDetail=detail) if fault else None
    return VmomiSupport.GetVmodlType(f"{_ROOM}.SoapResult")(response=response, fault=reported)


class Esxcli:
    """esxcli on one host."""

    def __init__(self, session: Session, ref: ApiObject, host: str) -> None:
        self._session, self._host = session, host
        argument_type, retrieve = _register()
        self._argument = argument_type
        with translating_faults(host, "reach its esxcli"):
            self._executer = ref._stub.InvokeMethod(ref, retrieve, ())

    def rows(self, command: str, **options: Any) -> list[Row]:
        """Run a command that answers with a list of objects."""
        answer = self.run(command, **options)
        if isinstance(answer, Row):
            return [answer]
        return answer if isinstance(answer, list) else []

    def run(self, command: str, *, tried: str = "", remedy: str = "", patience: int = 0, **options: object) -> Any:
        """Return the answer to a command: rows, one row, a text, or None. ``patience`` is the time limit in seconds."""
        words = command.split()
        executer = self._session.with_timeout(self._executer, patience) if patience else self._executer
        doing = tried or f"run esxcli {command}"
        with translating_faults(self._host, doing, remedy):
            answer = executer.ExecuteSoap(
                moid="ha-cli-handler-" + "-".join(words[:-1]),
                version="urn:vim25/5.0",
                method="vim.EsxCLI." + ".".join(words),
                argument=self._arguments(options),
            )
        if answer is not None and answer.fault:
            raise CommandFailed(self._host, doing, "esxcli said " + _fault_text(answer.fault), remedy)
        return answered(self._host, doing, answer.response if answer else None)

    def schema(self, namespace: str) -> str:
        """Return, as XML, esxcli's description of the commands in a namespace such as "network nic stats"."""
        kind = "vim.EsxCLI." + ".".join(namespace.split())
        with translating_faults(self._host, f"read the description of esxcli {namespace}"):
            answer = self._executer.ExecuteSoap(
                moid="ha-dynamic-type-manager-local-cli-cliinfo",
                version="urn:vim25/5.0",
                method="vim.CLIInfo.FetchCLIInfo",
                argument=self._arguments({"typeName": kind}),
            )
        return str(answer.response or "") if answer else ""

    def _arguments(self, options: dict[str, object]) -> list[Any]:
        # The server expects its arguments in the order it declares them, which is alphabetical.
        return [self._argument(name=name, val=_elements(name, value)) for name, value in sorted(options.items())]


def _elements(name: str, value: object) -> str:
    values = value if isinstance(value, (list, tuple)) else [value]
    texts = [str(one).lower() if isinstance(one, bool) else str(one) for one in values]
    return "".join(f"<{name}>{escape(text)}</{name}>" for text in texts)


def _fault_text(fault: ApiObject) -> str:
    try:
        texts = [node.text or "" for node in ET.fromstring(fault.faultDetail or "").iter() if _tag(node) == "errMsg"]
    except ET.ParseError:
        texts = []
    return "; ".join(text.strip() for text in texts if text.strip()) or str(fault.faultMsg)


def answered(host: str, tried: str, response: str | None) -> Any:
    """Return the parsed answer; its rows name the command in errors. Raise ``Unreachable`` if it is malformed."""
    try:
        answer = parse(response)
    except (ET.ParseError, ValueError) as error:
        raise unreachable(host, tried, NoAnswer.for_answer(error), "run again") from error
    for row in answer if isinstance(answer, list) else [answer]:
        if isinstance(row, Row):
            row.about = (host, tried)
    return answer


def parse(response: str | None) -> Any:
    """Return an esxcli answer as plain data: rows, one row, a text, or None."""
    if not response:
        return None
    root = ET.fromstring(response)
    children = list(root)
    if not children:
        kind = root.attrib.get("{http://www.w3.org/2001/XMLSchema-instance}type", "")
        return [] if kind.startswith("ArrayOf") else root.text
    if all(_tag(child) == "DataObject" for child in children):
        return [_row(child) for child in children]
    return _row(root)


def _row(node: ET.Element) -> Row:
    gathered: dict[str, list[Any]] = {}
    for child in node:
        gathered.setdefault(_tag(child), []).append(_row(child) if len(child) else child.text or "")
    return Row((key, values[0] if len(values) == 1 else values) for key, values in gathered.items())


def _tag(node: ET.Element) -> str:
    return node.tag.rsplit("}", maxsplit=1)[-1]
