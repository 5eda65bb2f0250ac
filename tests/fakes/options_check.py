"""Checks that a program calls a module with options that it has, and answers the methods of a site as modules."""

from __future__ import annotations

import ast
import importlib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import asdict, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from plugins.module_utils.durable.calls import required

PLUGINS = Path(__file__).parents[2] / "plugins"


def check_options(name: str, options: Mapping[str, Any]) -> None:
    """Fail if the module of the collection has no such option, or needs one that is missing."""
    known = documented(name)
    if known:
        assert not set(options) - set(known), f"{name} has no option {sorted(set(options) - set(known))}"
        missing = [option for option, content in known.items() if content.get("required") and option not in options]
        assert not missing, f"{name} needs {missing}"


class SitePart:
    """A part of a site: ``here`` of a world answers its methods as it answers modules, and a failure is raised."""

    def __init__(self, protocol: type, here: Callable[[str, Mapping[str, Any]], Any], prefix: str = "") -> None:
        self._protocol, self._here, self._prefix = protocol, here, prefix

    def __getattr__(self, name: str) -> Callable[..., Any]:
        signature = inspect.signature(getattr(self._protocol, name))

        def called(*values: Any, **options: Any) -> Any:
            bound = signature.bind(self, *values, **options).arguments
            del bound["self"]
            given: dict[str, Any] = {}
            for key, value in bound.items():
                # A dataclass of options, and the keywords of ``**check``, are options themselves.
                more = asdict(value) if is_dataclass(value) else {key: value}  # type: ignore[arg-type] # no class
                given.update(value if key == "check" else more)
            answer = self._here(f"{self._prefix}{name}", given)
            return required(answer) if isinstance(answer, dict) else answer

        return called


@cache
def documented(module: str) -> dict[str, Any]:
    """Return the options of a module of the collection; empty for any other name."""
    path = PLUGINS / "modules" / f"{module}.py"
    if not path.exists():
        return {}
    content = documentation_of(path)
    fragments = [fragment(name) for name in content.get("extends_documentation_fragment", [])]
    return {key: value for one in (*fragments, content) for key, value in (one.get("options") or {}).items()}


def fragment(name: str) -> dict[str, Any]:
    """Return a fragment of documentation, such as dml.vsphere.waiting or dml.vsphere.attributes.info."""
    _namespace, _collection, file, *section = name.split(".")
    fragments = importlib.import_module(f"plugins.doc_fragments.{file}").ModuleDocFragment
    return dict(yaml.safe_load(getattr(fragments, section[0].upper() if section else "DOCUMENTATION")))


def documentation_of(path: Path, name: str = "DOCUMENTATION") -> dict[str, Any]:
    """Return the documentation of this name in a file of the collection."""
    texts = [
        str(node.value.value)
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Assign)
        and any(isinstance(target, ast.Name) and target.id == name for target in node.targets)
        and isinstance(node.value, ast.Constant)
    ]
    return dict(yaml.safe_load(texts[0]))
