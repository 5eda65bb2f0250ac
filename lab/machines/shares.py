"""Makes read-only disks from folders of this machine: a guest with a file system pass-through cannot migrate."""

from __future__ import annotations

import fcntl
import hashlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from lab.machines import kept
from lab.nodes.nodes import Share
from lab.nodes.programs import LabError, run

SPARE_MIB = 64


def disks(store: Path, shares: Sequence[Share]) -> list[tuple[Path, str]]:
    """Return the disk of each share with its mount point, rebuilding disks whose folder has changed."""
    store.mkdir(parents=True, exist_ok=True)
    with (store / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return [(_disk(store.resolve(), share), share.there) for share in shares]


def _disk(store: Path, share: Share) -> Path:
    if share.writable:
        raise LabError(f"{share.here} cannot be shared for writing: a virtual machine gets it as a read-only disk.")
    name = f"share-{hashlib.sha256(str(share.here).encode()).hexdigest()[:8]}"
    disk = store / f"{name}-{_digest(share.here)}.ext4"
    if not disk.exists():
        part = disk.with_suffix(".part")
        part.unlink(missing_ok=True)
        mib = int(run("du", "--summarize", "--block-size=1M", str(share.here)).split()[0])
        size = f"{mib + mib // 10 + SPARE_MIB}M"
        run("mkfs.ext4", "-q", "-F", "-O", "^has_journal", "-d", str(share.here), str(part), size)
        part.rename(disk)
    kept.hold(disk)
    kept.remove_others(disk, f"{name}-*")
    return disk


def _digest(folder: Path) -> str:
    digest = hashlib.sha256(str(folder).encode())
    for line in _listed(sorted(folder.rglob("*"))):
        digest.update(line.encode())
    return digest.hexdigest()[:12]


def _listed(paths: Iterable[Path]) -> Iterator[str]:
    for path in paths:
        status = path.lstat()
        yield f"{path} {status.st_mode} {status.st_size} {status.st_mtime_ns}\n"
