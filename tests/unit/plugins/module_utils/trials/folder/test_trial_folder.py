"""An unfinished test is found if it is the only one of its cluster; no folder is used for a second test."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from plugins.module_utils.durable.program import END, START
from plugins.module_utils.durable.program_journal import NAME, FileJournal
from plugins.module_utils.errors import CollectionError, Failed, Refused
from plugins.module_utils.trials.folder import trial_folder as folders

GPU = folders.Cluster("gpu")


def started(where: Path, name: str, cluster: str = "gpu", *, ended: bool = False) -> Path:
    (where / name).mkdir(parents=True)
    with FileJournal(where / name / NAME) as journal:
        journal.write(START, {"cluster": cluster})
        if ended:
            journal.write(END, {"passed": True, "said": ""})
    return where / name


def opening(where: Path, folder: str = "") -> Path:
    return folders.opened(folder, str(where), GPU)


def test_finds_only_unfinished_tests_of_this_cluster(tmp_path: Path) -> None:
    started(tmp_path, "other", "cpu")
    started(tmp_path, "old", ended=True)
    assert folders.find("", str(tmp_path), GPU) is None
    mine = started(tmp_path, "mine")
    assert folders.find("", str(tmp_path), GPU) == mine


@pytest.mark.parametrize(
    ("name", "identity", "is_found"),
    [
        ("gpu", ("v1", "domain-c8"), True),
        ("renamed", ("v1", "domain-c8"), True),
        ("gpu", ("v1", "domain-c9"), False),
        ("renamed", ("v2", "domain-c8"), False),
        # To continue in another vCenter is refused in words.
        ("gpu", ("v2", "domain-c8"), True),
        ("gpu", folders.UNKNOWN, True),
    ],
)
def test_a_renamed_cluster_keeps_its_test(tmp_path: Path, name: str, identity: tuple[str, str], is_found: bool) -> None:
    mine = started(tmp_path, "mine")
    with FileJournal(mine / NAME) as journal:
        journal.write("cluster", {"id": "domain-c8", "vcenter": {"instance_uuid": "v1"}})
    cluster = folders.Cluster(name, lambda: identity)

    assert folders.find("", str(tmp_path), cluster) == (mine if is_found else None)
    if is_found:
        assert folders.opened(str(mine), str(tmp_path), cluster) == mine
    else:
        with pytest.raises(Refused, match="it has a test of cluster gpu"):
            folders.opened(str(mine), str(tmp_path), cluster)


def test_requires_a_name_for_two_unfinished_tests(tmp_path: Path) -> None:
    first, second = started(tmp_path, "a"), started(tmp_path, "b")
    with pytest.raises(Refused, match=f"are unfinished: {first}, {second}; name one of them with vmotion_test_folder"):
        folders.find("", str(tmp_path), GPU)
    assert folders.find(str(second), str(tmp_path), GPU) == second


def test_a_folder_whose_test_has_ended_is_refused(tmp_path: Path) -> None:
    old = started(tmp_path, "old", ended=True)
    with pytest.raises(Refused, match="the test in it has ended; name another folder"):
        opening(tmp_path, str(old))
    other = started(tmp_path, "other", "cpu")
    with pytest.raises(Refused, match="it has a test of cluster cpu"):
        opening(tmp_path, str(other))


def test_creates_a_private_folder_named_after_the_cluster(tmp_path: Path) -> None:
    new = opening(tmp_path / "tests")
    assert {path.stat().st_mode & 0o777 for path in (new, new.parent)} == {0o700} and new.name.startswith("gpu-")
    assert opening(tmp_path, str(tmp_path / "named")) == tmp_path / "named" and (tmp_path / "named").is_dir()


def test_identity_of_a_cluster_needs_both_ids() -> None:
    facts = {"vcenter": {"instance_uuid": "u"}, "id": "domain-c1"}

    assert folders.identity_of(facts) == ("u", "domain-c1")
    assert folders.identity_of({**facts, "id": ""}) == folders.UNKNOWN


def test_damage_is_reported_with_its_file(tmp_path: Path) -> None:
    (tmp_path / folders.FACTS).write_text("{")

    with pytest.raises(Failed, match=f"^{tmp_path / folders.FACTS}: could not read the facts of the test: "):
        folders.read_facts(tmp_path)


def test_refuses_a_journal_of_an_earlier_version(tmp_path: Path) -> None:
    (tmp_path / "gpu-1a2b3c4d").mkdir()
    journal = tmp_path / "gpu-1a2b3c4d" / NAME
    journal.write_text('{"at": 1.0, "entry": "open", "settings": {"cluster": "gpu"}}\n')
    with pytest.raises(Refused) as error:
        folders.find("", str(tmp_path), GPU)
    sentence = (
        "could not read the journal: it belongs to an earlier version of the collection; move its folder elsewhere"
    )
    assert str(error.value) == f"{journal}: {sentence}"


def test_finds_a_test_below_the_demo_folder(tmp_path: Path) -> None:
    mine = started(tmp_path / "demo" / "vmotion", "gpu-1")
    assert folders.one_test(tmp_path / "demo") == folders.one_test(mine) == mine
    started(tmp_path / "demo" / "vmotion", "gpu-2")
    with pytest.raises(Refused, match=r"there are several: .*gpu-1, .*gpu-2; name the folder of one test"):
        folders.one_test(tmp_path / "demo")
    with pytest.raises(Refused, match=r"no journal.jsonl is in it or below it"):
        folders.one_test(tmp_path / "nothing")


@pytest.mark.parametrize("attack", ["open folder", "open journal", "link", "another owner"])
def test_refuses_a_journal_that_another_user_can_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, attack: str
) -> None:
    """Its settings name the commands by which this machine reaches the nodes."""
    one = started(tmp_path, "planted")
    if attack == "open folder":
        one.chmod(0o777)
    if attack == "open journal":
        (one / NAME).chmod(0o666)
    if attack == "link":
        (one / NAME).rename(tmp_path / "elsewhere")
        (one / NAME).symlink_to(tmp_path / "elsewhere")
    if attack == "another owner":
        monkeypatch.setattr(folders.os, "geteuid", lambda: one.stat().st_uid + 1)
    for named in ("", str(one)):
        with pytest.raises(Refused, match="others may have written it, and its commands run on this machine"):
            folders.find(named, str(tmp_path), GPU)


@pytest.mark.parametrize("attack", ["group", "owner", "link", "link in an open folder"])
def test_refuses_a_folder_that_another_user_can_replace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, attack: str
) -> None:
    one = started(tmp_path / "above" / "where", "planted")
    named = one
    if attack == "group":
        (tmp_path / "above").chmod(0o770)
        monkeypatch.setattr(folders, "_own_groups", set)
    if attack == "owner":
        foreign = (tmp_path / "above").lstat().st_ino
        monkeypatch.setattr(Path, "lstat", as_of_another(foreign))
    if attack.startswith("link"):
        (tmp_path / "open").mkdir()
        (tmp_path / "open" / "link").symlink_to(one.parent)
        named = tmp_path / "open" / "link" / "planted"
    if attack == "link":
        monkeypatch.setattr(Path, "lstat", as_of_another(named.parent.lstat().st_ino))
    if attack == "link in an open folder":
        (tmp_path / "open").chmod(0o777)

    with pytest.raises(Refused, match="others may have written it"):
        folders.find(str(named), str(tmp_path), GPU)


def as_of_another(inode: int) -> Callable[[Path], os.stat_result]:
    """Return lstat of a system on which another user owns one file."""
    real = Path.lstat

    def lstat(path: Path) -> os.stat_result:
        facts = real(path)
        changed = [*facts[:4], os.geteuid() + 1, *facts[5:]]
        return os.stat_result(changed) if facts.st_ino == inode else facts

    return lstat


ENTRY = '{"at": 1.0, "key": "job", "value": {}}'


@pytest.mark.parametrize(
    "first",
    [
        "not json",
        "[]",
        "{}",
        ENTRY,
        '{"at": 1.0, "key": "start", "value": []}',
        '{"at": 1.0, "key": "start", "value": {"cluster": ["gpu"]}}',
        '{"at": 1e999, "key": "start", "value": {"cluster": "cpu"}}',
        '{"at": 1.0, "entry": "open", "settings": {"cluster": "cpu"}}',
        "[" * 100000,
    ],
)
def test_ignores_unreadable_journals_of_other_clusters(tmp_path: Path, first: str) -> None:
    for name in ("cpu-1a2b3c4d", "gpu-2-1a2b3c4d", "old"):
        (tmp_path / name).mkdir()
        (tmp_path / name / NAME).write_text(f"{first}\n{ENTRY}\n")
    assert folders.find("", str(tmp_path), GPU) is None
    mine = started(tmp_path, "mine")
    assert folders.find("", str(tmp_path), GPU) == mine
    with pytest.raises(CollectionError, match="journal"):
        folders.find(str(tmp_path / "old"), str(tmp_path), GPU)


def test_assigns_damaged_journals_by_their_first_line(tmp_path: Path) -> None:
    for name, cluster in (("a", "cpu"), ("b", "gpu")):
        with (started(tmp_path / name, "test", cluster) / NAME).open("a") as journal:
            journal.write("damaged\n")
    assert folders.find("", str(tmp_path / "a"), GPU) is None
    with pytest.raises(Failed, match=r"line 2 is not a valid entry .*or move its folder elsewhere"):
        folders.find("", str(tmp_path / "b"), GPU)


def test_reports_damaged_journals_in_folders_of_the_cluster(tmp_path: Path) -> None:
    (tmp_path / "gpu-1a2b3c4d").mkdir()
    (tmp_path / "gpu-1a2b3c4d" / NAME).write_text("damaged\n")
    with pytest.raises(Failed, match=r"gpu-1a2b3c4d.*line 1 is not a valid entry"):
        folders.find("", str(tmp_path), GPU)


def test_fifo_as_journal_does_not_block_a_test(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    os.mkfifo(tmp_path / "old" / NAME)
    assert folders.find("", str(tmp_path), GPU) is None
    with pytest.raises(Refused, match="it is not a regular file"):
        folders.find(str(tmp_path / "old"), str(tmp_path), GPU)


@pytest.mark.parametrize("above", [".", "tests"])
def test_refuses_parent_folders_that_others_can_write(tmp_path: Path, above: str) -> None:
    """A folder is renamed with the rights to the one above it; the sticky bit forbids that to others."""
    mine = started(tmp_path / "tests", "mine")
    (tmp_path / above).chmod(0o777)
    for named in ("", str(mine), str(tmp_path / "tests" / "new")):
        with pytest.raises(Refused, match="others may have written it"):
            folders.find(named, str(tmp_path / "tests"), GPU)
    with pytest.raises(Refused, match="give tests a folder that only you can write to"):
        opening(tmp_path / "tests" / "further")
    (tmp_path / above).chmod(0o1777)
    assert folders.find("", str(tmp_path / "tests"), GPU) == mine


def test_last_change_counts_hosts_of_interrupted_windows(tmp_path: Path) -> None:
    """The owner of a job acknowledges one window, whether or not one controller carried it out to its end."""
    window = started(tmp_path, "window", ended=True)
    continued = {"host": "esx1", "began": 100.0, "back_at": 500.0, "attended": False}
    (window / folders.CHANGES).write_text(json.dumps([continued, {"host": "esx2", "began": 600.0, "back_at": None}]))

    assert folders.earlier_changes(tmp_path, "gpu") == [], "their times predict nothing"
    assert folders.last_change(tmp_path, "gpu") == 600.0
    assert folders.last_change(tmp_path, "gpu", window) == folders.last_change(tmp_path, "cpu") == 0.0
