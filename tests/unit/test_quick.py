"""`make quick` selects the tests that opened or import a changed file, on a checkout whose tests really ran."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from lab.simulator import ROOT
from tools import quick

SCALE, GREET = "tests/unit/test_scale.py", "tests/integration/test_greet.py"
SIZES = ["tests/unit/test_sizes.py", "tests/unit/test_sizes_again.py"]
USES_SIZES = "from tests.sizes import sizes\ndef test_sizes():\n    assert sizes()"
FILES = {
    "pyproject.toml": '[tool.pytest.ini_options]\naddopts = "--import-mode=importlib"\npythonpath = ["."]',
    ".gitignore": ".cache\n__pycache__",
    "README.md": "nothing",
    "docs/page.md": "a page",
    "plugins/module_utils/factor.py": "FACTOR = 2",
    "plugins/module_utils/scale.py": "from .factor import FACTOR\ndef scale(number):\n    return FACTOR * number",
    SCALE: "from plugins.module_utils.scale import scale\ndef test_scale():\n    assert scale(2) == 4",
    "tests/sizes.yml": "[1]",
    "tests/sizes.py": "import functools, pathlib\n@functools.cache\ndef sizes():\n"
    "    return pathlib.Path(__file__).with_suffix('.yml').read_text()",
    SIZES[0]: USES_SIZES,
    SIZES[1]: USES_SIZES,
    "tests/unit/test_docs.py": "import pathlib\ndef test_docs():\n    assert list(pathlib.Path('docs').iterdir())",
    "tests/unit/test_fails.py": "def test_fails():\n    raise AssertionError",
    "roles/greet/tasks/main.yml": "- debug: {msg: \"{{ lookup('template', 'greeting.j2') }}\"}",
    "roles/greet/templates/greeting.j2": "hello",
    "play.yml": "- {hosts: localhost, gather_facts: false, connection: local, roles: [greet]}",
    GREET: "import os, subprocess\ndef test_greet():\n"
    "    environment = {**os.environ, 'PYTHONPATH': 'lab/bytecode'}\n"
    "    subprocess.run(['ansible-playbook', '-i', 'localhost,', 'play.yml'], env=environment, check=True)",
}


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout after a full run of its tests."""
    folder = tmp_path_factory.mktemp("checkout")
    for path, text in FILES.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(f"{text}\n")
    shutil.copytree(ROOT / "lab" / "bytecode", folder / "lab" / "bytecode")
    identity = ["-c", "user.name=test", "-c", "user.email=test@example.com"]
    for words in (["init", "-q"], ["add", "."], [*identity, "commit", "-q", "-m", "Files"]):
        subprocess.run(["git", *words], cwd=folder, check=True)
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("ANSIBLE_", "DML_", "PYTEST_"))},
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "ANSIBLE_HOME": str(folder / ".cache" / "ansible"),
    }
    for stage, code in (("tests/unit", 1), ("tests/integration", 0)):
        command = [sys.executable, "-m", "pytest", "-q", "-p", "lab.bytecode.opened", "-n0", stage]
        done = subprocess.run(command, cwd=folder, env=environment, check=False, capture_output=True, text=True)
        assert done.returncode == code, done.stdout
    return folder


@pytest.mark.parametrize(
    ("changed", "tests"),
    [
        pytest.param("plugins/module_utils/factor.py", [SCALE], id="a file that an imported file imports"),
        pytest.param("roles/greet/tasks/main.yml", [GREET], id="a file of a role"),
        pytest.param("roles/greet/templates/greeting.j2", [GREET], id="a template"),
        pytest.param("roles/greet/defaults/main.yml", [GREET], id="a new file of a role"),
        pytest.param("tests/sizes.yml", SIZES, id="a file that is read once for all tests"),
        pytest.param("docs/new.md", ["tests/unit/test_docs.py"], id="a new file in a folder that a test lists"),
        pytest.param("README.md", [], id="a file that no test opens"),
        pytest.param("tests/unit/test_new.py", ["tests/unit/test_new.py"], id="a new test"),
    ],
)
def test_quick_selects_tests_of_a_changed_file(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, changed: str, tests: list[str]
) -> None:
    monkeypatch.setattr(quick, "ROOT", checkout)
    monkeypatch.delenv("CI", raising=False)
    path = checkout / changed
    before = path.read_text() if path.exists() else None
    path.parent.mkdir(exist_ok=True)
    path.write_text("# changed\n")

    found = [test for stage in quick.STAGES for test in quick.selected(stage)]

    path.unlink()
    if before is not None:
        path.write_text(before)
    # A test that did not pass runs again each time.
    assert set(found) == {*tests, "tests/unit/test_fails.py"}


def test_quick_runs_all_without_record_and_on_ci(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quick, "ROOT", checkout)
    monkeypatch.setenv("CI", "true")
    on_ci = list(quick.selected("tests/unit"))
    monkeypatch.delenv("CI")
    (checkout / ".cache" / "opened" / "unit.json").unlink()

    assert on_ci == list(quick.selected("tests/unit")) == ["tests/unit"]
