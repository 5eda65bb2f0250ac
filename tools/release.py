"""Makes a release in the checkout: ``python -m tools.release 1.2.3``.

It writes the version, turns the fragments into CHANGELOG.rst, builds the files, commits, and tags. It pushes nothing.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tools import build

ROOT = build.ROOT
# The files that contain the version, each with the text around it.
PLACES = {
    "galaxy.yml": r"(?m)(?<=^version: )\S+$",
    "README.md": r"(?<=dml-vsphere-)\d+\.\d+\.\d+(?=\.tar\.gz)|(?<=Status: )\d+\.\d+\.\d+",
    "execution-environment.yml": r"(?<=dml-vsphere-)\d+\.\d+\.\d+(?=\.tar\.gz)",
}
VERSION = re.compile(r"(?:0|[1-9]\d*)(?:\.(?:0|[1-9]\d*)){2}")


class ReleaseError(Exception):
    """The reason why no release can be made."""


def release(version: str) -> list[Path]:
    """Make the release, and return the built files."""
    _check(version)
    for name, pattern in PLACES.items():
        path = ROOT / name
        path.write_text(re.sub(pattern, version, path.read_text()))
    _run("antsibull-changelog", "release")
    built = build.build(ROOT / "build")
    _run("git", "add", "--all", "changelogs", "CHANGELOG.rst", *PLACES)
    _run("git", "commit", "--quiet", "--message", f"Release {version}")
    _run("git", "tag", "--annotate", version, "--message", f"Release {version}")
    return built


def _check(version: str) -> None:
    if not VERSION.fullmatch(version):
        raise ReleaseError(f"{version!r} is not a version such as 1.2.3")
    if changes := _run("git", "status", "--porcelain"):
        raise ReleaseError(f"the checkout has changes; commit or remove them first:\n{changes}")
    if _run("git", "tag", "--list", version):
        raise ReleaseError(f"the tag {version} exists; choose the next version")
    if not list((ROOT / "changelogs" / "fragments").glob("*.yml")):
        raise ReleaseError("changelogs/fragments is empty: nothing has changed since the last release")


def _run(*command: str) -> str:
    done = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
    if done.returncode:
        raise ReleaseError(f"{' '.join(command)} failed: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout.strip()


def main(arguments: list[str]) -> int:
    try:
        for path in release(arguments[0] if arguments else ""):
            print(path.relative_to(ROOT))
    except ReleaseError as error:
        print(f"No release: {error}", file=sys.stderr)
        return 1
    print("To publish it: git push --follow-tags, then ansible-galaxy collection publish with the tarball")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
