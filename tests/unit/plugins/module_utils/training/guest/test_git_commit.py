"""The commit of a folder is the one that git reports, and comes from small regular files only."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from plugins.module_utils.core import replies
from plugins.module_utils.training.guest.git_commit import changes_of, commit_of

AUTHOR = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "protocol.file.allow=always")
OTHER = "0" * 40


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(["git", "-C", str(folder), *AUTHOR, *words], check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "mine"
    (folder / "deep" / "er").mkdir(parents=True)
    (folder / "deep" / "train.py").touch()
    git(folder, "init", "-q", "-b", "work/on it".replace(" ", "-"))
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "first")
    return folder


def test_finds_the_commit_of_branches_and_detached_heads(repository: Path) -> None:
    first = git(repository, "rev-parse", "HEAD")
    assert commit_of(str(repository)) == commit_of(str(repository / "deep" / "er")) == first
    git(repository, "commit", "-q", "--allow-empty", "-m", "second")
    assert commit_of(str(repository)) == git(repository, "rev-parse", "HEAD") != first
    git(repository, "checkout", "-q", first)
    assert commit_of(str(repository)) == first


def test_reads_packed_refs_but_prefers_a_loose_one(repository: Path) -> None:
    git(repository, "tag", "-a", "v1", "-m", "one")
    git(repository, "pack-refs", "--all")
    assert not (repository / ".git" / "refs" / "heads" / "work").exists()
    assert commit_of(str(repository)) == git(repository, "rev-parse", "HEAD")
    git(repository, "commit", "-q", "--allow-empty", "-m", "second")
    assert commit_of(str(repository)) == git(repository, "rev-parse", "HEAD")


def test_worktrees_and_submodules_have_their_own_commits(repository: Path, tmp_path: Path) -> None:
    git(repository, "worktree", "add", "-q", "-b", "other", str(tmp_path / "tree"))
    git(tmp_path / "tree", "commit", "-q", "--allow-empty", "-m", "second")
    assert commit_of(str(tmp_path / "tree")) == git(tmp_path / "tree", "rev-parse", "HEAD")
    (tmp_path / "above").mkdir()
    git(tmp_path / "above", "init", "-q")
    git(tmp_path / "above", "submodule", "--quiet", "add", str(repository), "part")
    assert commit_of(str(tmp_path / "above" / "part")) == git(repository, "rev-parse", "HEAD")


def test_a_folder_without_a_commit_has_none(tmp_path: Path) -> None:
    assert commit_of(str(tmp_path)) == ""
    git(tmp_path, "init", "-q")
    assert commit_of(str(tmp_path)) == ""
    assert commit_of(str(tmp_path / "absent")) == ""


@pytest.mark.parametrize(
    "text",
    ["ref: refs/heads/work/../../../../secret", "ref: refs/heads/a b", "ref: HEAD", OTHER[1:], "x" * 10_000, "\0", ""],
)
def test_a_malformed_head_has_no_commit(repository: Path, text: str) -> None:
    (repository / ".git" / "HEAD").write_text(text)
    (repository.parent / "secret").write_text(OTHER)
    assert commit_of(str(repository)) == ""


def test_circular_references_have_no_commit(repository: Path) -> None:
    (repository / ".git" / "HEAD").write_text("ref: refs/heads/loop")
    (repository / ".git" / "refs" / "heads" / "loop").write_text("ref: refs/heads/loop")
    assert commit_of(str(repository)) == ""


@pytest.mark.parametrize("name", [".git", ".git/HEAD", ".git/refs/heads", ".git/refs/heads/work/on-it"])
def test_a_link_is_not_followed(repository: Path, tmp_path: Path, name: str) -> None:
    path, there = repository / name, tmp_path / "there"
    path.rename(there)
    path.symlink_to(there)
    assert commit_of(str(repository)) == ""


@pytest.mark.parametrize("name", [".git", ".git/HEAD", ".git/packed-refs", ".git/commondir"])
def test_a_fifo_is_not_waited_for(repository: Path, tmp_path: Path, name: str) -> None:
    git(repository, "pack-refs", "--all")
    if (repository / name).exists():
        (repository / name).rename(tmp_path / "away")
    os.mkfifo(repository / name)
    assert commit_of(str(repository)) == ""


@pytest.mark.parametrize("form", ["sha1", "sha256"])
def test_counts_files_that_differ_from_the_commit(tmp_path: Path, form: str) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    for name in ("train.py", "gone.py", "same.py", "left_out.py"):
        (folder / name).write_text(name)
    (folder / "link").symlink_to("same.py")
    git(folder, "init", "-q", f"--object-format={form}")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "first")
    first, paths = git(folder, "rev-parse", "HEAD"), ["train.py", "gone.py", "same.py", "link", "new.py"]

    assert changes_of(str(folder), first, paths) == {"changed": 0}
    (folder / "train.py").write_text("other")
    one = changes_of(str(folder), first, paths)
    (folder / "gone.py").unlink()
    (folder / "link").unlink()
    (folder / "link").symlink_to("train.py")
    (folder / "new.py").touch()
    other = changes_of(str(folder), first, [path for path in paths if path != "gone.py"])

    assert (one["changed"], other["changed"]) == (1, 3)
    assert one["changes_sha256"] != other["changes_sha256"]
    assert replies.read(one, replies.REPLIES["dml.vsphere.training_folder"].form["git?"]) == one


def test_missing_objects_are_fetched_from_no_remote(repository: Path, tmp_path: Path) -> None:
    ran, first, tree = tmp_path / "ran", git(repository, "rev-parse", "HEAD"), git(repository, "rev-parse", "HEAD:deep")
    spy = tmp_path / "spy"
    spy.write_text(f"#!/bin/sh\ntouch {ran}\n")
    spy.chmod(0o755)
    for name, value in {
        "core.repositoryformatversion": "1",
        "extensions.partialClone": "origin",
        "remote.origin.url": f"ext::{spy}",
        "remote.origin.promisor": "true",
        "protocol.ext.allow": "always",
    }.items():
        git(repository, "config", name, value)
    (repository / ".git" / "objects" / tree[:2] / tree[2:]).unlink()

    assert changes_of(str(repository), first, ["deep/train.py"]) == {}
    assert not ran.exists()
    assert changes_of(str(tmp_path), first, []) == {}
    subprocess.run(["git", "-C", str(repository), "ls-tree", "-r", "HEAD"], check=False, capture_output=True)
    assert ran.exists(), "git runs the program if it may contact remotes"
