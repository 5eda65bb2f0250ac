"""Keeps what Python compiles from zip files and for collections of Ansible, in .cache/bytecode of the checkout.

Ansible sends the source of a module in a zip file, and Python compiles it again for each task: up to half of the time
of a module that runs on this machine. Ansible's loader of collections compiles the imports of a plugin again in each
command: most of the time of a playbook that is refused. Each command also packs its modules again, unless DML_PACKED
names a folder for packed modules, which must not outlive a change of their files. Python imports this file by itself if
its folder is in PYTHONPATH. The same code runs with and without it.
"""

from __future__ import annotations

import marshal
import os
import sys
import zipimport

TYPE_CHECKING = False
if TYPE_CHECKING:  # each Python process imports this file, and these would take most of the time
    from collections.abc import Callable
    from types import CodeType, ModuleType
    from typing import Any, ClassVar

CHECKOUT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
KEPT = os.path.join(CHECKOUT, ".cache", "bytecode", str(sys.implementation.cache_tag))
# A module of Python without a public interface: if another version has no such function, each task compiles.
_compile = getattr(zipimport, "_compile_source", None)


def compiled(path: str, source: bytes) -> CodeType:
    """Return the code of a source in a zip file, whose folder is another for each task: the path counts from it on."""
    assert _compile is not None
    return _kept(path.rpartition(".zip")[2], source, _compile, path, source)


def compiled_file(source: bytes, filename: str, mode: str, flags: int, dont_inherit: bool) -> CodeType:
    """Return the code of a file of a collection, which can be installed in another folder."""
    inside = filename.rpartition("/ansible_collections/")[2]
    return _kept(inside, source, compile, source, filename, mode, flags, dont_inherit)


def _kept(inside: str, source: bytes, make: Callable[..., CodeType], *arguments: Any) -> CodeType:
    """Return the kept code of a source, or make it."""
    import hashlib

    kept = os.path.join(KEPT, hashlib.sha256(os.fsencode(inside) + b"\0" + source).hexdigest())
    try:
        with open(kept, "rb") as file:
            code: CodeType = marshal.load(file)
        if isinstance(code, type(_kept.__code__)):
            return code
    except (OSError, ValueError, EOFError, TypeError):  # not kept yet, or damaged
        pass
    made = make(*arguments)
    _keep(kept, made)
    return made


def _keep(kept: str, code: CodeType) -> None:
    """Write a file as a whole: other processes read it at the same time."""
    part = f"{kept}.{os.getpid()}"
    try:
        os.makedirs(KEPT, exist_ok=True)
        with open(part, "wb") as file:
            marshal.dump(code, file)
        os.replace(part, kept)
    except OSError:  # a user who cannot write here compiles
        pass


def _compile_once(loader: ModuleType) -> None:
    vars(loader)["compile"] = compiled_file


def _pack_once(packing: ModuleType) -> None:
    """Have the processes that name one folder, and have the same collections, pack a module for all of them."""
    if not (place := os.environ.get("DML_PACKED")):
        return
    import hashlib

    collections = os.environ.get("ANSIBLE_COLLECTIONS_PATH", "").encode()
    packed = os.path.join(place, hashlib.sha256(collections).hexdigest())
    os.makedirs(packed, exist_ok=True)
    os.symlink(packed, os.path.join(vars(packing)["C"].DEFAULT_LOCAL_TMP, "ansiballz_cache"))


class Finder:
    """Changes files of Ansible when they are imported."""

    changes: ClassVar = {
        "ansible.utils.collection_loader._collection_finder": _compile_once,
        "ansible.executor.module_common": _pack_once,
    }

    def find_spec(self, name: str, path: Any = None, _target: Any = None) -> Any:
        """Return how to import one of these files; all else is imported as usual."""
        if name not in self.changes:
            return None
        from importlib.machinery import PathFinder

        spec, change = PathFinder.find_spec(name, path), self.changes[name]
        if spec is None or spec.loader is None:
            return spec
        load = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            load(module)
            change(module)

        vars(spec.loader)["exec_module"] = exec_module
        return spec


sys.meta_path.insert(0, Finder())
if _compile is not None:
    vars(zipimport)["_compile_source"] = compiled
if "DML_OPENED" in os.environ:  # a test runs, whose files are recorded
    __import__("opened").record()
