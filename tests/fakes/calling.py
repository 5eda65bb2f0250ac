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

from ansible.module_utils.testing import patch_module_args

from plugins.module_utils import runner
from plugins.module_utils.vsphere import inventory, session
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
    module = importlib.import_module(f"plugins.modules.{name}")
    chosen = {"hosts": [host.name for host in hosts]} if hosts else {}
    arguments = {**CONNECTION, **chosen, **options, "_ansible_check_mode": check}
    answer = io.StringIO()
    with contextlib.ExitStack() as stack:
        stack.enter_context(patch_module_args(arguments))
        stack.enter_context(contextlib.redirect_stdout(answer))
        stack.enter_context(contextlib.suppress(SystemExit))
        stack.enter_context(mock.patch.object(session, "session", _session))
        stack.enter_context(mock.patch.object(inventory, "find_hosts", return_value=FakeFleet(hosts)))
        module.main()
    return dict(json.loads(answer.getvalue()))


@contextlib.contextmanager
def _session(params: dict[str, Any]) -> Iterator[Any]:
    yield SimpleNamespace(server=params["hostname"])
