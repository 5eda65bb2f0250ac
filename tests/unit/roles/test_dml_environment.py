"""dml_environment.py: which pods share an environment, and how they find it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from roles.training.files import dml_environment

STACK = {"torch": "2.15.0", "numpy": "2.4.6"}


@pytest.mark.parametrize(("text", "stack"), [("tqdm==2\n", STACK), ("tqdm\n", {**STACK, "numpy": "2.4.7"})])
def test_another_text_or_package_is_another_environment(text: str, stack: dict[str, str]) -> None:
    key = dml_environment.key_of("tqdm\n", dict(reversed(STACK.items())))
    assert key == dml_environment.key_of("tqdm\n", STACK) != dml_environment.key_of(text, stack)


def test_ignores_linked_and_foreign_environments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "planted").mkdir()
    (tmp_path / "link").symlink_to("planted")
    dml_environment.refuse_of_others(str(tmp_path / "planted"))

    with pytest.raises(SystemExit, match=r"could not use the environment .*/link: it is a link or belongs to another"):
        dml_environment.refuse_of_others(str(tmp_path / "link"))
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    with pytest.raises(SystemExit, match=r"could not use the environment .*/planted"):
        dml_environment.refuse_of_others(str(tmp_path / "planted"))


def installed(folder: Path) -> Path:
    """Return an environment with a package, as it is after pip."""
    (folder / "lib" / "tqdm").mkdir(parents=True)
    (folder / "lib" / "tqdm" / "__init__.py").write_text("ours = True\n")
    (folder / "python").symlink_to("/usr/bin/python3")
    dml_environment.write(str(folder / dml_environment.COMPLETE), dml_environment.digest_of(str(folder)))
    return folder


def write_module(path: Path) -> None:
    (path / "lib" / "tqdm" / "__init__.py").write_text("ours = None\n")


def add_module(path: Path) -> None:
    (path / "lib" / "sitecustomize.py").write_text("")


def move_link(path: Path) -> None:
    (path / "python").unlink()
    (path / "python").symlink_to("/tmp/python")


def plant(path: Path) -> None:
    (path / dml_environment.COMPLETE).write_text("")


def link_the_digest(path: Path) -> None:
    (path / dml_environment.COMPLETE).rename(path.parent / "digest")
    (path / dml_environment.COMPLETE).symlink_to("../digest")


@pytest.mark.parametrize("change", [write_module, add_module, move_link, plant, link_the_digest])
def test_refuses_an_environment_with_unknown_files(tmp_path: Path, change: Callable[[Path], None]) -> None:
    path = installed(tmp_path / "environment")
    dml_environment.refuse_changed(str(path))

    change(path)

    with pytest.raises(SystemExit, match=r"could not use the environment .*: its files are not those that pip"):
        dml_environment.refuse_changed(str(path))


def test_the_link_leads_to_the_newest_environment(tmp_path: Path) -> None:
    for name in ("one", "two"):
        dml_environment.link(str(tmp_path / name), str(tmp_path / "environment"))
    assert [path.name for path in tmp_path.iterdir()] == ["environment"]
    assert (tmp_path / "environment").readlink() == tmp_path / "two"


def test_failure_names_the_errors_of_pip() -> None:
    program = "import sys; sys.exit('noise\\nERROR: No matching distribution found for tqdm==99')"
    with pytest.raises(SystemExit) as ended:
        dml_environment.run("install the requirements", sys.executable, "-c", program)
    assert str(ended.value) == "could not install the requirements: ERROR: No matching distribution found for tqdm==99"
