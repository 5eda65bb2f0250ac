# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Verify the patches for govmomi: each applies to the version in go.mod, and its Go tests pass only with it.

python -m tools.upstream
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
PATCHES = ROOT / "upstream"
MODULE = "github.com/vmware/govmomi"
OWN_TEST = re.compile(r"^\+func (Test\w+)\(", re.MULTILINE)
# The build is for the race detector, which some of the tests need.
BUILD = ("go", "test", "-race", "-c", "-o", "own.test", "./simulator")
BUILD_SECONDS, TEST_SECONDS = 3600, 240


def patches() -> list[Path]:
    """Return the patches in their order."""
    return sorted(PATCHES.glob("*.patch"))


def own_tests(patch: Path) -> list[str]:
    """Return the names of the Go tests that a patch adds."""
    return OWN_TEST.findall(patch.read_text())


def source() -> Path:
    """Return the folder of govmomi's source, in the version that the simulator uses."""
    subprocess.run(["go", "mod", "download", MODULE], cwd=ROOT / "lab" / "vcenter", check=True)
    requested = ["go", "list", "-m", "-f", "{{.Dir}}", MODULE]
    output = subprocess.run(requested, cwd=ROOT / "lab" / "vcenter", capture_output=True, text=True, check=True)
    return Path(output.stdout.strip())


def refusal(patch: Path, folder: Path) -> str:
    """Return the reason for which a patch does not apply to a folder; empty if it applies."""
    checked = subprocess.run(
        ["git", "apply", "--check", str(patch)], cwd=folder, capture_output=True, text=True, check=False
    )
    return checked.stderr.strip()


def main() -> int:
    """Run the tests of all patches without and with them, and return 1 if a patch is not ready to be sent."""
    clean = source()
    with tempfile.TemporaryDirectory(prefix="upstream-") as scratch:
        without = passed(clean, Path(scratch) / "without", "--include=*_test.go")
        complete = passed(clean, Path(scratch) / "with")
    wrong = list(verdicts(without, complete))
    print("\n".join(wrong) or f"{len(patches())} patches apply, and each test passes only with its patch.")
    return 1 if wrong else 0


def verdicts(without: Sequence[str], complete: Sequence[str]) -> Iterator[str]:
    """Yield a sentence for each test that does not show its patch."""
    for patch in patches():
        for name in own_tests(patch):
            if name not in complete:
                yield f"{patch.name}: {name} fails with the patch."
            elif name in without:
                yield f"{patch.name}: {name} passes without the patch."


def passed(clean: Path, folder: Path, *options: str) -> list[str]:
    """Return the tests of the patches that pass in a copy of the source with the patches, or with parts of them."""
    shutil.copytree(clean, folder)
    for path in (folder, *folder.rglob("*")):
        path.chmod(path.stat().st_mode | 0o200)
    for patch in patches():
        subprocess.run(["git", "apply", *options, str(patch)], cwd=folder, check=True)
    subprocess.run(BUILD, cwd=folder, env={**os.environ, "GOFLAGS": "-mod=mod"}, timeout=BUILD_SECONDS, check=True)
    return [name for patch in patches() for name in own_tests(patch) if _passes(folder, name)]


def _passes(folder: Path, name: str) -> bool:
    """Return whether a test passes in a separate process, because a panic ends the process."""
    command = [str(folder / "own.test"), f"-test.run=^{name}$", f"-test.timeout={TEST_SECONDS}s"]
    ended = subprocess.run(
        command, cwd=folder / "simulator", capture_output=True, timeout=TEST_SECONDS * 2, check=False
    )
    return ended.returncode == 0


if __name__ == "__main__":
    sys.exit(main())
