"""The folder of a vMotion test, an unfinished one or a new one, and the file with its facts."""

from __future__ import annotations

import grp
import json
import os
import pwd
import stat
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Tuple

from ...core import whole_file
from ...durable.calls import Arguments
from ...durable.program import START
from ...durable.program_journal import ADVICE, NAME, JournalEnds, ends, read, start_of
from ...errors import CollectionError, Failed, Refused
from ...plan import State
from ...vsphere.escaped_names import file_name
from ..evidence.facts import Facts
from ..evidence.prediction import attended
from .continued_settings import WINDOW, is_replaced, kind, refuse_other, with_next_attempt

# The UUID of a vCenter and the id of a cluster.
Identity = Tuple[str, str]
UNKNOWN: Identity = ("", "")
CHANGES = "window.json"
NOTHING: dict[str, Any] = {"found": False, "folder": "", "replaced": False}
OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
MOST_LINKS = 10
ELSEWHERE = "name another folder, or judge this test again with the playbook judge"
OWN_FOLDER = "give tests a folder that only you can write to: vmotion_test_dir"
FACTS = "facts.json"
# The errors of code that uses damaged facts.
DAMAGES = (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError)


@dataclass(frozen=True)
class Cluster:
    """A cluster by its name, and by what renaming keeps: ``identity`` reads the UUID of its vCenter and its id.

    Both are empty if they cannot be read.
    """

    name: str
    identity: Callable[[], Identity] = lambda: UNKNOWN

    def has(self, path: Path, start: object) -> bool:
        """Return whether the test of a journal is that of this cluster; without known ids, names are compared."""
        known = _identity_at_start(path)
        present = self.identity() if known != UNKNOWN else UNKNOWN
        # Another vCenter has the same ids: to continue there is refused in words.
        if known != UNKNOWN and present[0] == known[0]:
            return present == known
        return bool(self.name) and cluster_of(start) == self.name


def identity_of(cluster: object) -> Identity:
    """Return the UUID of the vCenter and the id of a cluster, from its facts."""
    facts = cluster if isinstance(cluster, Mapping) else {}
    uuid, moid = (facts.get("vcenter") or {}).get("instance_uuid"), facts.get("id")
    return (str(uuid), str(moid)) if uuid and moid else UNKNOWN


def named(name: str, here: Callable[[str, dict[str, object]], Mapping[str, object]]) -> Cluster:
    """Return a cluster whose identity the module cluster_info reads, if a journal has one to compare."""
    return Cluster(name, lambda: identity_of(here("cluster_info", {"cluster": name}).get("cluster")))


def _identity_at_start(path: Path) -> Identity:
    """Return the identity that a test has written before its first effect; a damaged journal has none."""
    try:
        return identity_of(next((entry["value"] for entry in read(path) if entry["key"] == "cluster"), None))
    except (CollectionError, OSError, AttributeError):
        return UNKNOWN


def unfinished(where: Path, cluster: Cluster) -> list[Path]:
    return [path.parent for path in sorted(where.glob(f"*/{NAME}")) if _is_unfinished(path, cluster)]


def _is_unfinished(path: Path, cluster: Cluster) -> bool:
    """Return whether a journal belongs to an unfinished test of a cluster; ignore a damaged one of another cluster."""
    try:
        found = ends(path)
    except (CollectionError, OSError):
        # The folder of a test has the name of its cluster, with the suffix that mkdtemp makes.
        owner = cluster_of(start_of(path))
        if owner == cluster.name or (not owner and path.parent.name.rpartition("-")[0] == file_name(cluster.name)):
            raise
        return False
    return not found.is_ended and cluster.has(path, found.start)


def find(folder: str, where: str, cluster: Cluster) -> Path | None:
    """Return the folder of the unfinished or the named test; None if a new folder is needed."""
    if folder:
        _must_be_ours(Path(folder))
        _refuse_other(Path(folder), cluster)
        return Path(folder)
    _must_be_private(Path(where))
    folders = unfinished(Path(where), cluster)
    for path in folders:
        _must_be_ours(path)
    if len(folders) > 1:
        reason = f"several tests of this cluster are unfinished: {', '.join(map(str, folders))}"
        raise Refused(f"cluster {cluster.name}", "find its test", reason, "name one of them with vmotion_test_folder")
    return folders[0] if folders else None


def tests_in(folder: Path) -> list[Path]:
    """Return the folders of tests at a folder or below it, such as the folder that the demo leaves."""
    return sorted(path.parent for pattern in (NAME, f"*/{NAME}", f"*/*/{NAME}") for path in folder.glob(pattern))


def one_test(folder: Path) -> Path:
    """Return the folder of the only test at a folder or below it."""
    folders = tests_in(folder)
    if len(folders) == 1:
        return folders[0]
    reason = f"there are several: {', '.join(map(str, folders))}" if folders else f"no {NAME} is in it or below it"
    raise Refused(str(folder), "find the vMotion test in it", reason, "name the folder of one test")


def _must_be_ours(folder: Path) -> None:
    """Refuse a journal that another user may have written: it names commands that run here, as the present user."""
    _must_be_private(folder.parent)
    if not os.path.lexists(folder / NAME):
        return
    for path in (folder, folder / NAME):
        facts = path.lstat()
        if facts.st_uid != os.geteuid() or facts.st_mode & OTHERS_WRITE or stat.S_ISLNK(facts.st_mode):
            raise _untrusted(path)


def _must_be_private(folder: Path) -> None:
    """Refuse a folder if another user can replace it, one above it, or a link that leads to it."""
    if (path := _replaceable(Path(os.path.abspath(folder)))) is not None:
        raise _untrusted(path)


def _replaceable(path: Path, links: int = 0) -> Path | None:
    """Return the first folder or link on the way to a path whose content another user can replace; None without one."""
    for above in (*reversed(path.parents), path):
        try:
            facts = above.lstat()
        except FileNotFoundError:
            return None
        is_link = stat.S_ISLNK(facts.st_mode)
        if facts.st_uid not in (0, os.geteuid()) or (not is_link and _others_write(facts)) or links > MOST_LINKS:
            return above
        if is_link and (found := _replaceable(Path(os.path.normpath(above.parent / os.readlink(above))), links + 1)):
            return found
    return None


def _others_write(facts: os.stat_result) -> bool:
    """Return whether other users can replace the entries of a folder; the sticky bit protects entries of others."""
    is_open = facts.st_mode & stat.S_IWOTH or (facts.st_mode & stat.S_IWGRP and facts.st_gid not in _own_groups())
    return bool(is_open) and not facts.st_mode & stat.S_ISVTX


def _own_groups() -> set[int]:
    """Return the groups without other users: that of root, and a group with the name of this user and no member."""
    groups = {0}
    with suppress(KeyError):
        user = pwd.getpwuid(os.geteuid())
        group = grp.getgrgid(user.pw_gid)
        if group.gr_name == user.pw_name and set(group.gr_mem) <= {user.pw_name}:
            groups.add(user.pw_gid)
    return groups


def _untrusted(path: Path) -> Refused:
    reason = "others may have written it, and its commands run on this machine"
    return Refused(str(path), "continue the test in it", reason, OWN_FOLDER)


def _refuse_other(folder: Path, cluster: Cluster) -> None:
    found = ends(folder / NAME) if (folder / NAME).exists() else JournalEnds(None, False)
    tried, owner = f"test cluster {cluster.name} in it", cluster_of(found.start)
    if found.is_ended:
        raise Refused(str(folder), tried, "the test in it has ended", ELSEWHERE)
    if found.start is not None and not owner:
        raise Failed(str(folder / NAME), "read the journal", "its first entry does not name a cluster", ADVICE)
    if found.start is not None and not cluster.has(folder / NAME, found.start):
        raise Refused(str(folder), tried, f"it has a test of cluster {owner}", ELSEWHERE)


def cluster_of(settings: object) -> str:
    """Return the cluster of a test from its settings, the first entry of its journal, or an empty text."""
    cluster = settings.get("cluster") if isinstance(settings, dict) else None
    return cluster if isinstance(cluster, str) else ""


def is_window(folder: Path) -> bool:
    start = start_of(folder / NAME)
    return isinstance(start, dict) and kind(start) == WINDOW


def earlier_changes(where: Path, cluster: str, own: Path | None = None) -> list[dict[str, Any]]:
    """Return the measured host changes of the windows of a cluster, the newest last; damaged files are passed over."""
    changes: list[dict[str, Any]] = []
    for found in _changes(where, cluster, own):
        with suppress(TypeError, KeyError, AttributeError):
            changes += [one for one in attended(found) if one["back_at"] and one["back_at"] > one["began"]]
    return changes


def last_change(where: Path, cluster: str, own: Path | None = None) -> float:
    """Return when an earlier window of a cluster last began a host, however that ended; 0 if none did."""
    last = 0.0
    for found in _changes(where, cluster, own):
        with suppress(TypeError, ValueError, AttributeError):
            last = max([last, *(float(one.get("began") or one.get("out_at") or 0.0) for one in found)])
    return last


def _changes(where: Path, cluster: str, own: Path | None) -> Iterator[Any]:
    """Yield the host changes of each other window of a cluster, the newest last; damaged files are passed over."""
    for path in sorted(where.glob(f"*/{CHANGES}"), key=lambda path: path.stat().st_mtime):
        with suppress(OSError, ValueError):
            found = json.loads(path.read_text(encoding="utf-8"))
            if path.parent != own and cluster_of(start_of(path.parent / NAME)) == cluster:
                yield found


def opened(folder: str, where: str, cluster: Cluster) -> Path:
    """Return the folder of the test that continues, or a new one."""
    path = find(folder, where, cluster)
    if path is None:
        os.makedirs(where, mode=0o700, exist_ok=True)
        return Path(tempfile.mkdtemp(prefix=f"{file_name(cluster.name)}-", dir=where))
    os.makedirs(path, mode=0o700, exist_ok=True)
    return path


def unfinished_test(options: Arguments, cluster: Cluster) -> dict[str, object]:
    """Return the unfinished test of a cluster; refuse one of another kind, or a window with other settings.

    ``options["folder"]`` is the folder of the test; if it is empty, the test is searched in ``options["dir"]``. The
    options ``window`` and ``observe``, and those that name the job, are those of the requested test.
    """
    folder = find(options["folder"], options["dir"], cluster)
    return _test_in(folder, options) if folder else NOTHING


def settings_in(folder: Path) -> dict[str, object] | None:
    """Return the settings of the run in a folder, around the attempt of its job that runs now; None without a run."""
    path = folder / NAME
    values = {entry["key"]: entry["value"] for entry in read(path)} if path.exists() else {}
    return dict(with_next_attempt(values)) if isinstance(values.get(START), dict) else None


def _test_in(folder: Path, requested: State) -> dict[str, object]:
    settings = settings_in(folder)
    if settings is None:
        return NOTHING
    refuse_other(folder, settings, requested)
    return {"found": True, "folder": str(folder), "replaced": is_replaced(settings, requested)}


def read_facts(folder: Path) -> Facts:
    """Return the facts of the test in a folder; raise if it has none, or if the file is damaged."""
    path = folder / FACTS
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        facts = Facts(**content)
        if not isinstance(facts.settings["cluster"], str) or not isinstance(facts.settings["limits"], dict):
            raise ValueError("it does not have the settings of a test")
    except FileNotFoundError as error:
        reason = f"it ended before the job was warm, or an earlier version of the collection ran it: it has no {FACTS}"
        raise Refused(str(folder), "judge the test in it", reason, "name the folder of another test") from error
    except (OSError, *DAMAGES) as error:
        raise damaged(folder, error) from error
    return facts


def damaged(folder: Path, error: Exception) -> Failed:
    reason = f"it is not valid ({error!r}): the file was changed or damaged"
    return Failed(str(folder / FACTS), "read the facts of the test", reason, ADVICE)


def write_facts(folder: Path, facts: Facts) -> None:
    """Write the facts atomically: a live page may read them at any time."""
    write_json(folder / FACTS, asdict(facts), indent=None)


def write_json(path: Path, content: object, indent: int | None = 4) -> None:
    """Write a file of JSON atomically; only its owner can read it."""
    try:
        whole_file.write(str(path), json.dumps(content, indent=indent).encode())
    except OSError as error:
        reason, remedy = error.strerror or str(error), "free some space and run the playbook again"
        raise Failed(str(path), "write it", reason, remedy) from error
