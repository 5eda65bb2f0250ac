"""Checks that a program calls a function or a module with options that it has: a fake would accept any."""

from __future__ import annotations

import ast
import importlib
import inspect
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from plugins.plugin_utils import controller

PLUGINS = Path(__file__).parents[2] / "plugins"


def check_options(name: str, options: Mapping[str, Any]) -> None:
    """Fail if the function or the module of the collection has no such option, or needs one that is missing."""
    if controller.has(name):
        function = controller.FUNCTIONS.get(name) or controller.WITH_PROGRESS[name]
        progress = {"show": None} if name in controller.WITH_PROGRESS else {}
        inspect.signature(function).bind(**progress, **options)
        return
    known = documented(name)
    if known:
        assert not set(options) - set(known), f"{name} has no option {sorted(set(options) - set(known))}"
        missing = [option for option, content in known.items() if content.get("required") and option not in options]
        assert not missing, f"{name} needs {missing}"


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
