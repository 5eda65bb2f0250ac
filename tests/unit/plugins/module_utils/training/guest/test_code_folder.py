"""Equal folders give equal archives; a node keeps an archive, and a run keeps the files that it changed."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from plugins.module_utils.errors import Failed, Refused
from plugins.module_utils.training.guest import code_folder
from plugins.module_utils.training.guest.code_folder import CodeFolder, MadeFolders
from plugins.plugin_utils import packed_folder
from tests.fakes.training_folder import converge, make, packed


def code(tmp_path: Path, sha256: str, archive: Path | None = None, once: bool = True) -> CodeFolder:
    """Return the subject on a node."""
    sent = str(archive) if archive else None
    paths = {"store": str(tmp_path / "store"), "dest": str(tmp_path / "run" / "work")}
    return CodeFolder({"sha256": sha256, "archive": sent, "once": once, **paths})


@pytest.mark.parametrize("once", [True, False])
def test_a_second_run_sends_and_unpacks_nothing(tmp_path: Path, once: bool) -> None:
    archive = tmp_path / "sent.tar"
    sha256 = packed(make(tmp_path / "one"), archive)
    looking = code(tmp_path, sha256, once=once)
    assert looking.is_missing
    assert looking.plan(looking.read()).unmet
    assert converge(code(tmp_path, sha256, archive, once))
    work = tmp_path / "run" / "work"
    assert (work / "mylib" / "__init__.py").read_text() == "RATE = 1\n"
    assert (work / "same.py").readlink() == Path("train.py")
    assert ((work / "run.sh").stat().st_mode & 0o777, (work / "train.py").stat().st_mode & 0o777) == (0o700, 0o644)
    assert not converge(code(tmp_path, sha256, once=once))
    assert [path.name for path in (tmp_path / "store").iterdir()] == [f"{sha256}.tar"]


def test_another_run_unpacks_the_kept_archive(tmp_path: Path) -> None:
    archive = tmp_path / "sent.tar"
    sha256 = packed(make(tmp_path / "one"), archive)
    converge(code(tmp_path, sha256, archive))
    paths = {"store": str(tmp_path / "store"), "dest": str(tmp_path / "run2" / "work")}
    assert converge(CodeFolder({"sha256": sha256, "archive": None, "once": True, **paths}))
    assert (tmp_path / "run2" / "work" / "train.py").exists()


def test_keeps_a_runs_changes_but_repairs_the_library(tmp_path: Path) -> None:
    archive = tmp_path / "sent.tar"
    sha256 = packed(make(tmp_path / "one"), archive)
    converge(code(tmp_path, sha256, archive))
    script = tmp_path / "run" / "work" / "train.py"
    script.write_text("changed\n")
    assert not converge(code(tmp_path, sha256))
    assert script.read_text() == "changed\n"
    assert converge(code(tmp_path, sha256, once=False))
    assert script.read_text() == "import mylib\n"


def test_a_run_with_other_code_is_refused(tmp_path: Path) -> None:
    archive = tmp_path / "sent.tar"
    folder = make(tmp_path / "one")
    converge(code(tmp_path, packed(folder, archive), archive))
    (folder / "train.py").write_text("import other\n")
    other = code(tmp_path, packed(folder, archive), archive)
    with pytest.raises(Refused, match=r"the run has the code \w{12}, and .* is now \w{12}; set another training_name"):
        other.plan(other.read())


def test_nodes_sharing_a_disk_do_not_conflict(tmp_path: Path) -> None:
    archive = tmp_path / "sent.tar"
    sha256 = packed(make(tmp_path / "one"), archive)
    slower = code(tmp_path, sha256, archive)
    plan = slower.plan(slower.read())
    converge(code(tmp_path, sha256, archive))
    slower.apply(plan)
    assert not converge(code(tmp_path, sha256))
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == ["work", "work.sha256"]


def test_a_folder_with_other_files_is_not_replaced(tmp_path: Path) -> None:
    archive = tmp_path / "sent.tar"
    sha256 = packed(make(tmp_path / "one"), archive)
    work = tmp_path / "run" / "work"
    work.mkdir(parents=True)
    (work / "precious").touch()
    with pytest.raises(Refused, match="it contains other files; set another training_name"):
        converge(code(tmp_path, sha256, archive))
    assert [path.name for path in work.iterdir()] == ["precious"]


def test_resends_damaged_archives_and_refuses_changed_ones(tmp_path: Path) -> None:
    archive = tmp_path / "sent.tar"
    sha256 = packed(make(tmp_path / "one"), archive)
    converge(code(tmp_path, sha256, archive, once=False))
    (tmp_path / "store" / f"{sha256}.tar").write_bytes(b"torn")
    assert code(tmp_path, sha256, once=False).is_missing
    (tmp_path / "other").write_bytes(b"other")
    with pytest.raises(Failed, match="files of the folder changed meanwhile; run this again"):
        converge(code(tmp_path, sha256, tmp_path / "other", once=False))
    assert converge(code(tmp_path, sha256, archive, once=False))


@pytest.mark.parametrize("name", ["../out", "/out", "a/../../out"])
def test_a_member_outside_the_folder_is_refused(tmp_path: Path, name: str) -> None:
    archive = tmp_path / "sent.tar"
    with tarfile.open(archive, "w") as output:
        output.addfile(tarfile.TarInfo(name), io.BytesIO())
    with pytest.raises(OSError, match="a member that is not a file in the folder"):
        code_folder.unpack(str(archive), str(tmp_path / "to"))


def test_folders_are_made_once_for_all_users(tmp_path: Path) -> None:
    paths = [str(tmp_path / "run" / "work" / "outputs"), str(tmp_path / "run")]
    assert converge(MadeFolders(paths))
    assert not converge(MadeFolders(paths))
    assert Path(paths[0]).stat().st_mode & 0o777 == 0o755
    (tmp_path / "file").touch()
    with pytest.raises(Failed, match="could not create the folders: "):
        converge(MadeFolders([str(tmp_path / "file" / "below")]))


def test_finds_symbolic_links_that_form_a_loop(tmp_path: Path) -> None:
    folder = make(tmp_path / "one")
    (folder / "me.py").symlink_to("you.py")
    (folder / "you.py").symlink_to("me.py")

    found = packed_folder.files_of(str(folder))

    assert [file.path for file in found if file.loops] == ["me.py", "you.py"]
