"""Builds the tarball for ansible-galaxy and its bill of materials: ``python -m tools.build [FOLDER]``.

Only files that git tracks are built, and those that are generated (tools/generated.py). The same checkout gives the
same bytes: the files have a fixed order, owner and time.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import yaml

from tools import docs_site, generated, sbom

ROOT = Path(__file__).resolve().parent.parent
MANIFEST, FILES = "MANIFEST.json", "FILES.json"
# 1 January 2026, unless the environment has another time.
TIME = int(os.environ.get("SOURCE_DATE_EPOCH", "1767225600"))


def build(folder: Path) -> list[Path]:
    """Build the tarball and the bill of materials in a folder, and return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place, tempfile.TemporaryDirectory() as checkout:
        copy_tracked(ROOT, Path(checkout))
        generated.main(Path(checkout))
        lead_to_repository(Path(checkout))
        command = ["ansible-galaxy", "collection", "build", "--output-path", place, checkout]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        (built,) = Path(place).glob("*.tar.gz")
        tarball = folder / built.name
        tarball.write_bytes(reproducible(built.read_bytes()))
    bill = tarball.with_name(tarball.name.removesuffix(".tar.gz") + ".cdx.json")
    bill.write_text(sbom.text())
    return [tarball, bill]


def copy_tracked(checkout: Path, folder: Path) -> None:
    """Copy the files that git tracks: an inventory, a recording or a key in a checkout is not published."""
    command = ["git", "-C", str(checkout), "-c", f"safe.directory={checkout}", "ls-files", "-z"]
    listed = subprocess.run(command, check=True, capture_output=True).stdout
    for name in filter(None, os.fsdecode(listed).split("\0")):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        # A file that was removed from the checkout is not published either.
        if os.path.lexists(checkout / name):
            shutil.copy2(checkout / name, path, follow_symlinks=False)


def lead_to_repository(folder: Path) -> None:
    """Have the links of pages to files that are not shipped lead to the repository."""
    settings = yaml.safe_load((folder / "galaxy.yml").read_text())

    def is_shipped(path: Path) -> bool:
        name = path.relative_to(folder)
        named = (str(each) for each in (name, *name.parents) if each.parts)
        return path.exists() and not any(fnmatch(each, left) for each in named for left in settings["build_ignore"])

    for page in filter(is_shipped, sorted(folder.rglob("*.md"))):
        text = docs_site.linked(
            page.read_text(), page.relative_to(folder).parent, settings["repository"], folder, is_shipped
        )
        page.write_text(text)


def reproducible(content: bytes) -> bytes:
    """Return a tarball with the same files, which depends on nothing but their content."""
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        members = {member.name: (member, _bytes(archive, member)) for member in archive.getmembers()}
    listed = json.loads(members[FILES][1])
    listed["files"].sort(key=lambda entry: entry["name"])
    manifest = json.loads(members[MANIFEST][1])
    manifest["file_manifest_file"]["chksum_sha256"] = hashlib.sha256(_json(listed)).hexdigest()
    replaced = {FILES: _json(listed), MANIFEST: _json(manifest)}
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name in [MANIFEST, FILES, *sorted(set(members) - set(replaced))]:
            member, data = members[name]
            data = replaced.get(name, data)
            member.size, member.mtime, member.pax_headers = len(data), TIME, {}
            archive.addfile(member, io.BytesIO(data))
    return gzip.compress(packed.getvalue(), mtime=TIME)


def _bytes(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    file = archive.extractfile(member) if member.isfile() else None
    return file.read() if file else b""


def _json(value: Any) -> bytes:
    return json.dumps(value, indent=True).encode()


if __name__ == "__main__":
    for path in build(Path(sys.argv[1] if len(sys.argv) > 1 else "build")):
        print(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path}")
