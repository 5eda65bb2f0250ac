"""Runs a whole module, arguments and all, over fake hosts instead of a server, or a function that a program calls."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import io
import json
from collections.abc import Callable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any
from unittest import mock

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.testing import patch_module_args

from plugins.module_utils import runner
from plugins.module_utils.vsphere import inventory, properties, session, tasks
from tests.fakes.esxi import FakeHost, refresh

CONNECTION = {"hostname": "vcenter.lab", "username": "ansible", "password": "not-a-secret"}


class FakeFleet:
    """The hosts of one call."""

    def __init__(self, hosts: Sequence[FakeHost]) -> None:
        self.hosts, self.session = tuple(hosts), hosts[0].session if hosts else None

    def refresh(self, hosts: Sequence[FakeHost] | None = None) -> None:
        for host in self.hosts if hosts is None else hosts:
            host.refresh()

    def refresh_for(self, subjects: Sequence[Any]) -> None:
        refresh(subjects)


def here(function: Callable[..., Any], /, shown: list[tuple[str, str]] | None = None, **options: Any) -> dict[str, Any]:
    """The result of a function, or its expected error; ``shown`` gets the objects and what was shown of them."""
    lines: list[tuple[str, str]] = [] if shown is None else shown
    if "show" in inspect.signature(function).parameters:
        options["show"] = lambda about, what: lines.append((about, what))
    return runner.outcome(lambda: function(**options))


def call(name: str, hosts: Sequence[FakeHost], /, *, check: bool = False, **options: Any) -> dict[str, Any]:
    """The result of a module over these hosts."""
    chosen = {"hosts": [host.name for host in hosts]} if hosts else {}
    replaced = [(session, "session", _session), (inventory, "find_hosts", lambda *_: FakeFleet(hosts))]
    return _called(name, {**chosen, **options, "_ansible_check_mode": check}, replaced)


def over(name: str, vcenter: Any, /, *, check: bool = False, **options: Any) -> dict[str, Any]:
    """The result of a module over a vCenter in memory with the cluster ``gpu``, with its warnings as ``told``.

    The vCenter has a ``session``, ``all`` objects of a kind, and the ``values`` of one.
    """
    warned = list[str]()

    def picked(ref: Any, paths: Sequence[str]) -> dict[str, Any]:
        values = vcenter.values(ref)
        return {path: values[path] for path in paths if values.get(path) is not None}

    def read(_session: Any, refs: Sequence[Any], paths: Sequence[str]) -> dict[str, Any]:
        return {ref._moId: picked(ref, paths) for ref in refs}

    replaced: list[tuple[Any, str, Any]] = [
        (session, "session", lambda _params: contextlib.nullcontext(vcenter.session)),
        (properties, "find_all", lambda _s, kind, paths: [(one, picked(one, paths)) for one in vcenter.all(kind)]),
        (properties, "read_many", read),
        (properties, "watch", lambda _s, refs, paths, _deadline: iter([read(_s, refs, paths)])),
        (AnsibleModule, "warn", lambda _module, text: warned.append(text)),
        (tasks, "wait", lambda _session, started, _seconds, _progress=None: started.task),
    ]
    given = {"cluster": "gpu", **options, "_ansible_check_mode": check, "_ansible_diff": True}
    return {**_called(name, given, replaced), "told": warned}


def _called(name: str, options: dict[str, Any], replaced: Sequence[tuple[Any, str, Any]]) -> dict[str, Any]:
    """The result of a module with parts of the collection replaced."""
    module, answer = importlib.import_module(f"plugins.modules.{name}"), io.StringIO()
    with contextlib.ExitStack() as stack:
        stack.enter_context(patch_module_args({**CONNECTION, **options}))
        stack.enter_context(contextlib.redirect_stdout(answer))
        stack.enter_context(contextlib.suppress(SystemExit))
        for target, part, fake in replaced:
            stack.enter_context(mock.patch.object(target, part, fake))
        module.main()
    return dict(json.loads(answer.getvalue()))


@contextlib.contextmanager
def _session(params: dict[str, Any]) -> Iterator[Any]:
    yield SimpleNamespace(server=params["hostname"])
